"""`tensorflow.python.ipu.ops.embedded_runtime`: running compiled executables: refused, there are none here."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.names.refused import refused

_REASON = (
    "is not emulated: executable files hold Poplar programs for real IPUs, which the simulated IPU cannot run. Run the "
    "model itself with ipu_compiler.compile, or save it with tf.saved_model."
)


@refused(_REASON)
def embedded_runtime_start(executable_file: str, inputs: Any, name: str, timeout: int | None = None) -> None:
    """Loads an executable: refused.

    Args:
        executable_file: a `.poplar_exec` file.
        inputs: a list of tensors, or a dictionary by name.
        name: of the engine.
        timeout: in microseconds.

    Raises:
        UnsupportedError: always.

    Source: `tensorflow.python.ipu.ops.embedded_runtime.embedded_runtime_start`.
    """


@refused(_REASON)
def embedded_runtime_call(inputs: Any, context: Any) -> None:
    """Runs an executable: refused.

    Args:
        inputs: tensors.
        context: of the started executable.

    Raises:
        UnsupportedError: always.

    Source: `tensorflow.python.ipu.ops.embedded_runtime.embedded_runtime_call`.
    """


@refused(_REASON)
def embedded_runtime_start_and_call(executable_file: str, startup_inputs: Any, call_inputs: Any, name: str) -> None:
    """Loads and runs an executable: refused.

    Args:
        executable_file: a `.poplar_exec` file.
        startup_inputs: for the start.
        call_inputs: for the call.
        name: of the engine.

    Raises:
        UnsupportedError: always.

    Source: `tensorflow.python.ipu.ops.embedded_runtime.embedded_runtime_start_and_call`.
    """


@refused("is refused, as Graphcore does: Embedded runtime doesn't support stopping an engine.", NotImplementedError)
def embedded_runtime_stop(context: Any) -> None:
    """Graphcore's runtime cannot stop an engine.

    Args:
        context: of the started executable.

    Raises:
        NotImplementedError: always, as Graphcore's.

    Source: `tensorflow.python.ipu.ops.embedded_runtime.embedded_runtime_stop`.
    """
