"""`libpvti`: PopVision tracepoints and graphs, recorded as spans of TensorFlow's profiler.

The profile written between `tf.profiler.experimental.start` and `stop` contains them, in addition to the ops. Values
without a duration, such as points of a graph, are spans that end at once, with the value next to the name.
"""

from __future__ import annotations

import bisect
import functools
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from tf_ipu_shim.tf_private.utilities import trace


class TraceChannel(NamedTuple):
    """A channel, which groups tracepoints.

    Args:
        name: the name of the channel.
    """

    name: str


def createTraceChannel(name: str) -> TraceChannel:
    """Returns a channel for tracepoints.

    Args:
        name: the name of the channel.

    Returns:
        The channel, for `Tracepoint`.

    Source: `libpvti.createTraceChannel`.

    Example:
        >>> createTraceChannel("steps").name
        'steps'
    """
    return TraceChannel(name)


def instrument_fn(channel: TraceChannel) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a decorator: each call of the function is a span, under the function's name.

    Args:
        channel: the channel it is on.

    Source: `libpvti.instrument_fn`.

    Example:
        >>> @instrument_fn(createTraceChannel("steps"))
        ... def double(value):
        ...     return 2 * value
        >>> double(4)
        8
    """

    def decorator(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def traced(*args: Any, **kwargs: Any) -> Any:
            with Tracepoint(channel, function.__qualname__):
                return function(*args, **kwargs)

        return traced

    return decorator


class _Open(threading.local):
    """The spans of a thread that `Tracepoint.begin` has begun, by channel and label, the last one last."""

    def __init__(self) -> None:
        self.spans: dict[tuple[TraceChannel, str], list[Tracepoint]] = {}


_open = _Open()


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

    @staticmethod
    def begin(channel: TraceChannel, label: str) -> None:
        """Begins a span, which `end` with the same channel and label ends, in the same thread.

        Args:
            channel: the channel it is on.
            label: its name.

        Source: `libpvti.Tracepoint`.

        Example:
            >>> Tracepoint.begin(createTraceChannel("steps"), "step 2")
            >>> Tracepoint.end(createTraceChannel("steps"), "step 2")
        """
        _open.spans.setdefault((channel, label), []).append(Tracepoint(channel, label).__enter__())

    @staticmethod
    def end(channel: TraceChannel, label: str) -> None:
        """Ends the span that was begun last.

        Args:
            channel: the channel it is on.
            label: its name.

        Raises:
            ValueError: this thread has begun no span.

        Source: `libpvti.Tracepoint`.
        """
        spans = _open.spans.get((channel, label))
        if not spans:
            raise ValueError(
                f"Tracepoint.end: no span {label!r} of channel {channel.name!r} was begun in this thread, "
                "and only such a span can end. Call Tracepoint.begin first."
            )
        spans.pop().__exit__(None, None, None)

    @staticmethod
    def event(channel: TraceChannel, label: str) -> None:
        """A moment in the trace.

        Args:
            channel: the channel it is on.
            label: its name.

        Source: `libpvti.Tracepoint`.

        Example:
            >>> Tracepoint.event(createTraceChannel("steps"), "epoch 1 begins")
        """
        _moment(label, channel=channel.name)


class Series:
    """Numbers of a graph that follow each other in time; `Graph.addSeries` makes it.

    Args:
        graph: the name of the graph.
        unit: the unit of the numbers.
        name: the name of the series.
    """

    def __init__(self, graph: str, unit: str, name: str):
        self._graph, self._unit, self._name = graph, unit, name

    def add(self, value: float) -> None:
        """Puts a number into the trace, at the time of the call.

        Args:
            value: the number.
        """
        _moment(f"{self._graph}: {self._name}", value=float(value), unit=self._unit)


class Graph:
    """A graph of numbers over time.

    Args:
        name: the name of the graph.
        unit: the unit of its numbers.

    Source: `libpvti.Graph`.

    Example:
        >>> Graph("Loss", "").addSeries("Training loss").add(0.5)
    """

    def __init__(self, name: str, unit: str = ""):
        self._name, self._unit = name, unit

    def addSeries(self, name: str) -> Series:  # noqa: N802
        """Makes a series of the graph.

        Args:
            name: the name of the series.
        """
        return Series(self._name, self._unit, name)


class HeatmapDouble:
    """A histogram over time: the count of values in each interval.

    Args:
        name: the name of the heat map.
        edges: the edges of the intervals, in ascending order.
        unit: the unit of the numbers.

    Source: `libpvti.HeatmapDouble`.

    Example:
        >>> HeatmapDouble("weights", [0.0, 1.0, 2.0], "").add([0.5, 0.7, 1.5])
    """

    def __init__(self, name: str, edges: Sequence[float], unit: str = ""):
        self._edges = [float(edge) for edge in edges]
        if len(self._edges) < 2 or self._edges != sorted(self._edges):
            raise ValueError(
                f"HeatmapDouble({name!r}): edges must be two or more numbers in ascending order. Pass at least two "
                "edges in ascending order."
            )
        self._name, self._unit = name, unit

    def add(self, values: Iterable[float]) -> None:
        """Puts the counts of some numbers into the trace, at the time of the call; numbers outside are not counted.

        Args:
            values: the numbers.
        """
        counts = [0] * (len(self._edges) - 1)
        for value in values:
            interval = bisect.bisect_right(self._edges, value) - 1
            interval -= value == self._edges[-1]  # the last interval has its upper edge too
            if 0 <= interval < len(counts):
                counts[interval] += 1
        edges, counts_text = (" ".join(map(str, figures)) for figures in (self._edges, counts))
        _moment(self._name, counts=counts_text, edges=edges, unit=self._unit)


def _moment(label: str, **beside: Any) -> None:
    with trace.Trace(label, **beside):
        pass
