"""`tensorflow.python.ipu.ops.summary_ops`: reports in summaries, which Graphcore has replaced by profiles."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.names.refused import refused

_REASON = (
    "is deprecated, is no longer functional. Use tf_ipu_shim.memory_report(), which takes the place of the PopVision "
    "tools."
)


@refused(_REASON, NotImplementedError)
def ipu_compile_summary(name: str, op_list: Any, collections: Any = None) -> None:
    """Not functional since Graphcore's SDK 2.4.

    Args:
        name: of the summary.
        op_list: ops that must have been compiled.
        collections: the graph's collections it goes to.

    Raises:
        NotImplementedError: always.

    Source: `tensorflow.python.ipu.ops.summary_ops.ipu_compile_summary`.
    """


@refused(_REASON, NotImplementedError)
def get_ipu_reports() -> None:
    """Not functional since Graphcore's SDK 2.4.

    Raises:
        ValueError: in graph mode.
        NotImplementedError: otherwise.

    Source: `tensorflow.python.ipu.ops.summary_ops.get_ipu_reports`.
    """
    if not tf.executing_eagerly():
        raise ValueError("Eager execution mode should be used.")
