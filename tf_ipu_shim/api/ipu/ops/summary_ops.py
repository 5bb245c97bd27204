"""`tensorflow.python.ipu.ops.summary_ops`: reports in summaries, which Graphcore has replaced by profiles."""

from __future__ import annotations

from typing import Any, NoReturn

import tensorflow.compat.v2 as tf

_INSTEAD = "Use tf_ipu_shim.profile, which takes the place of the PopVision tools."


def ipu_compile_summary(name: str, op_list: Any, collections: Any = None) -> NoReturn:
    """Not functional since Graphcore's SDK 2.4.

    Args:
        name: of the summary.
        op_list: ops that must have been compiled.
        collections: the graph's collections it goes to.

    Raises:
        NotImplementedError: always.

    Source: `tensorflow.python.ipu.ops.summary_ops.ipu_compile_summary`.
    """
    raise NotImplementedError(f"ipu_compile_summary is deprecated, is no longer functional. {_INSTEAD}")


def get_ipu_reports() -> NoReturn:
    """Not functional since Graphcore's SDK 2.4.

    Raises:
        ValueError: in graph mode.
        NotImplementedError: otherwise.

    Source: `tensorflow.python.ipu.ops.summary_ops.get_ipu_reports`.
    """
    if not tf.executing_eagerly():
        raise ValueError("Eager execution mode should be used.")
    raise NotImplementedError(f"get_ipu_reports is deprecated, is no longer functional. {_INSTEAD}")
