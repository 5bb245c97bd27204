"""`tensorflow.python.ipu.ops.application_compile_op`: compiling to a file is refused."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.names.refused import refused


@refused(
    "is not emulated: it writes a Poplar executable for a real IPU, and the simulated IPU has no Poplar compiler. Run "
    "the function with ipu_compiler.compile; keep the model with tf.saved_model."
)
def experimental_application_compile_op(
    func: Any, inputs: Any = None, output_path: str | None = None, freeze_variables: bool = False, name: Any = None
) -> None:
    """Compiles a function to an executable file for a real IPU: refused.

    Args:
        func: the function.
        inputs: its inputs.
        output_path: of the file.
        freeze_variables: whether variables become constants.
        name: of the op.

    Raises:
        UnsupportedError: always.

    Source: `tensorflow.python.ipu.ops.application_compile_op.experimental_application_compile_op`.
    """
