"""`tensorflow.python.ipu.ops.embedded_runtime`: runs compiled applications as ops of a graph on the host."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.frontend.applications.calls import (
    RuntimeContext,
    _find_opaque_blob,  # noqa: F401  scripts that look into executables import it
    embedded_runtime_call,
    embedded_runtime_start,
    embedded_runtime_start_and_call,
)
from tf_ipu_shim.names.not_supported_marker import not_supported

__all__ = [
    "RuntimeContext",
    "embedded_runtime_call",
    "embedded_runtime_start",
    "embedded_runtime_start_and_call",
    "embedded_runtime_stop",
]


@not_supported("is refused, as by Graphcore: Embedded runtime doesn't support stopping an engine.", NotImplementedError)
def embedded_runtime_stop(context: Any) -> None:
    """Graphcore's runtime cannot stop an engine; it ends with the process.

    Args:
        context: the context of the started executable.

    Raises:
        NotImplementedError: always, as Graphcore's.

    Source: `tensorflow.python.ipu.ops.embedded_runtime.embedded_runtime_stop`.
    """
