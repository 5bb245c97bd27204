"""Implements `tensorflow.contrib.summary.all_summary_ops`: the graph's summary ops, for a session to run."""

from __future__ import annotations

from typing import Any


def all_summary_ops() -> list[Any]:
    """Returns the ops of the default graph that write summaries of this kind, for a session to run.

    Example:
        >>> with tf.Graph().as_default():
        ...     all_summary_ops()
        []
    """
    from tf_ipu_shim.tf_private.operations import summary_ops_v2

    return summary_ops_v2.all_v2_summary_ops()
