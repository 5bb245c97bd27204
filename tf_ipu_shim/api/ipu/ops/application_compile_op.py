"""`tensorflow.python.ipu.ops.application_compile_op`: compiles a function to a file, for the embedded runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tf_ipu_shim.frontend.applications import compile_op


def experimental_application_compile_op(
    func: Callable[..., Any],
    inputs: Sequence[Any] | None = None,
    output_path: str | None = None,
    freeze_variables: bool = False,
    name: str | None = None,
) -> Any:
    """Compiles a function to a file that embedded engines run, in this process or another.

    `ipu_compiler.compile` runs a program; this function stores it, with its configuration and constants. It attaches to
    no IPU, so it also works under `DeviceConnectionType.NEVER`. The file's format is described in
    `docs/how_to/deploy/embedded_runtime.md`; it holds data only.

    Args:
        func: a Python function or `tf.function` with one argument for each input, usually with a loop or pipeline that
            uses infeeds and outfeeds.
        inputs: a list of tensors and values. Values become part of the application; tensors are inputs of its engine.
        output_path: the path of the file; a new file in the directory for temporary files when left out.
        freeze_variables: whether variables become part of the application with the values that they have when the op
            runs; else they are inputs of its engine.
        name: the name of the op.

    Returns:
        A scalar string tensor, the path. In graph mode the file is written when it is fetched.

    Raises:
        TypeError: `inputs` is not a list.
        ValueError: the function uses tensors that are computed outside it.
        tf.errors.InvalidArgumentError: when the op runs: XLA cannot compile the function, or there is nothing to
            compile, or it writes a variable that is frozen.
        tf.errors.NotFoundError: when the op runs: the directory does not exist.

    Source: `tensorflow.python.ipu.ops.application_compile_op.experimental_application_compile_op`.

    Example:
        >>> infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(tf.zeros([2])).repeat())
        >>> outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
        >>> double = lambda: ipu.loops.repeat(16, lambda x: outfeed.enqueue(2.0 * x), [], infeed)
        >>> path = experimental_application_compile_op(double, output_path="double.poplar_exec")
        >>> path.numpy()
        b'double.poplar_exec'
    """
    return compile_op.application_compile(func, inputs, output_path, freeze_variables, name)
