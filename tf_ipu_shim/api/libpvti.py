"""`libpvti`: PopVision's tracepoints of a script's own, as spans of TensorFlow's profiler.

They are in what `tf.profiler.experimental.start` and `stop` write, beside the ops that ran meanwhile.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tensorflow.python.profiler import trace


class TraceChannel(NamedTuple):
    """A channel, which groups tracepoints.

    Args:
        name: of the channel.
    """

    name: str


def createTraceChannel(name: str) -> TraceChannel:
    """A channel for tracepoints.

    Args:
        name: of the channel.

    Returns:
        What `Tracepoint` takes.

    Source: `libpvti.createTraceChannel`.

    Example:
        >>> createTraceChannel("steps").name
        'steps'
    """
    return TraceChannel(name)


class Tracepoint:
    """A span of time in the trace, from its entry to its exit.

    Args:
        channel: the channel it is on.
        label: its name.

    Source: `libpvti.Tracepoint`.

    Example:
        >>> with Tracepoint(createTraceChannel("steps"), "step 1"):
        ...     total = sum(range(10))
    """

    def __init__(self, channel: TraceChannel, label: str):
        self._span = trace.Trace(label, channel=channel.name)

    def __enter__(self) -> Tracepoint:
        self._span.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._span.__exit__(*error)
