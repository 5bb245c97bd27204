"""`tensorflow.python.ipu.ipu_outfeed_queue`: sends tensors from running programs to the host."""

from __future__ import annotations

import enum
import threading
from typing import Any, NamedTuple

from tensorflow.compat.v2 import nest

from tf_ipu_shim import plugin
from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.feeds import feed_arguments, feed_names
from tf_ipu_shim.frontend.tracing import ipu_compiler, single_replica, tracing, uncompiled_graph
from tf_ipu_shim.frontend.validation import booleans
from tf_ipu_shim.frontend.validation.counts import check_integer
from tf_ipu_shim.machine.environment import flags
from tf_ipu_shim.runtime import devices
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops

_HOST = "/device:CPU:0"


class IPUOutfeedMode(enum.Enum):
    """The elements that a dequeue returns: all, or the last.

    Attributes:
        ALL: everything that was enqueued since the last dequeue, stacked.
        LAST: only the last element.
    """

    ALL = "all"
    LAST = "get_last"


class _EnqueuedElement(NamedTuple):
    """The structure that a program enqueues to an outfeed."""

    graph: Any
    structure: Any
    types: list[Any]
    shapes: list[Any]


class IPUOutfeedQueue(feed_names.NonCopyable):
    """Receives results of every iteration of a loop or pipeline, without leaving it.

    Args:
        outfeed_mode: an `IPUOutfeedMode`; `ALL` when left out. SDKs up to 2.3 have the feed name here.
        device_ordinal: the TensorFlow device that fills it; by default the current IPU strategy's, else 0.
        buffer_depth: elements that the real device buffers, at least 1; no effect.
        optimise_latency: recorded; it does not make a simulated IPU faster.
        **kwargs: arguments of older SDKs: `feed_name`, `outfeed_all`, `replication_factor`, `io_batch_size`.

    Raises:
        TypeError: `buffer_depth` is not an integer, or `optimise_latency` is not a bool.
        ValueError: an argument is out of range.

    Source: `tensorflow.python.ipu.ipu_outfeed_queue.IPUOutfeedQueue`.

    Example:
        >>> outfeed = IPUOutfeedQueue()
        >>> step = tf.function(lambda: ipu.loops.repeat(3, lambda x: (2.0 * x, outfeed.enqueue(x)), [1.0]))
        >>> float(strategy.run(step)), outfeed.dequeue().numpy().tolist()
        (8.0, [1.0, 2.0, 4.0])
    """

    @argument_order(
        0,
        "feed_name outfeed_mode outfeed_all device_ordinal replication_factor io_batch_size",
        until=(2, 0),
        when=lambda first: isinstance(first, str),
    )
    @feed_arguments.accept_old_order(
        0, "feed_name", "outfeed_mode", "device_ordinal", "replication_factor", "io_batch_size"
    )
    def __init__(
        self,
        outfeed_mode: Any = None,
        device_ordinal: Any = None,
        buffer_depth: int = 3,
        optimise_latency: bool = False,
        **kwargs: Any,
    ) -> None:
        name = kwargs.pop("feed_name", "")
        outfeed_all = kwargs.pop("outfeed_all", None)
        self._replicas: int | None = kwargs.pop("replication_factor", None)
        io_batch_size = kwargs.pop("io_batch_size", None)
        if kwargs:
            raise TypeError(
                f"IPUOutfeedQueue takes no argument {sorted(kwargs)[0]!r}; expected those of Graphcore's "
                "class. Remove it, or correct its name."
            )
        if outfeed_all is not None and not isinstance(outfeed_all, bool):
            raise ValueError(
                f"Expcted value True or False for outfeed_all, not {outfeed_all!r}. Pass True or False."
            )  # Graphcore's spelling
        if self._replicas is not None and self._replicas < 1:
            raise ValueError(f"Replication factor must be >= 1, but {self._replicas} was given. Pass 1 or more.")
        if outfeed_mode is None:
            outfeed_mode = IPUOutfeedMode.LAST if outfeed_all is False else IPUOutfeedMode.ALL
        if not isinstance(outfeed_mode, IPUOutfeedMode):
            raise ValueError(
                "Expected `outfeed_mode` value to be of `ipu_outfeed_queue.IPUOutfeedMode` type, not "
                f"{outfeed_mode!r}. Use IPUOutfeedMode.ALL or IPUOutfeedMode.LAST."
            )
        buffer_depth = check_integer("buffer_depth", buffer_depth)
        if buffer_depth <= 0:
            raise ValueError(
                f"Outfeed buffer depth cannot be less than one, but {buffer_depth} was given. Pass 1 or more."
            )
        booleans.check_boolean("optimise_latency", optimise_latency)
        note_arguments(
            "IPUOutfeedQueue",
            optimise_latency=optimise_latency,
            buffer_depth=buffer_depth,
            io_batch_size=io_batch_size,
        )
        self._mode = outfeed_mode
        self._device_ordinal = feed_arguments.resolve_device_ordinal(device_ordinal)
        self._buffer_depth = buffer_depth
        self._id = feed_names.unique_name("outfeed", name)
        self._sent: _EnqueuedElement | None = None
        self._thread = threading.get_ident()

    @property
    def enqueued(self) -> bool:
        """Returns whether a program sends to this queue; while a graph is built, one in that graph.

        While a function is traced, its earlier traces do not count. TensorFlow traces a function again if its first
        trace created variables, or for other shapes.
        """
        if self._sent is None:
            return False
        graph = ops.get_default_graph()
        if not ops.executing_eagerly_outside_functions():
            return _session_graph(self._sent.graph) is _session_graph(graph)
        traced = _outermost_function(graph)
        return traced is self._sent.graph or getattr(traced, "name", None) != getattr(self._sent.graph, "name", "")

    def enqueue(self, tensors: Any) -> Any:
        """Sends a tensor, or a structure of tensors, to the host.

        Args:
            tensors: a tensor, list, tuple or dict, nested as you like.

        Returns:
            The operation that does it.

        Raises:
            ValueError: the queue is enqueued to a second time in one graph.
        """
        outermost = _outermost_function(ops.get_default_graph())
        if self._sent is not None and self._sent.graph is outermost:
            raise ValueError(
                "An outfeed can only be enqueued once. IPUOutfeedQueue.enqueue was called before: pass "
                "several tensors as one tuple or dict."
            )
        flat = [ops.convert_to_tensor(tensor) for tensor in nest.flatten(tensors)]
        # All of it at once: another thread may be dequeuing already.
        enqueued = _EnqueuedElement(
            outermost, tensors, [tensor.dtype for tensor in flat], [tensor.shape for tensor in flat]
        )
        if tracing.may_run(ops.get_default_graph()):
            self._sent = enqueued
        if uncompiled_graph.is_uncompiled():
            return self._enqueue_of_each_replica(flat)
        return self._enqueue_op(*flat)

    def _enqueue_op(self, *tensors: Any) -> Any:
        with ops.device(_HOST):
            return plugin.load().ops.pop_datastream_outfeed_enqueue(
                inputs=list(tensors),
                output_shapes=[tensor.shape for tensor in tensors],
                outfeed_mode=self._mode.value,
                feed_id=self._id,
                prefetch_depth=self._buffer_depth,
            )

    def _enqueue_of_each_replica(self, tensors: list[Any]) -> Any:
        """Enqueues from each of the device's replicas, whose number the configuration sets later."""
        random_op = uncompiled_graph.find_replica_op(tensors)
        copies = uncompiled_graph.ProducerCopies(tensors)

        def enqueue(*inputs: Any) -> Any:
            with ops.control_dependencies(single_replica.assertions(random_op, "An outfeed's enqueue")):
                return self._enqueue_op(*copies.build(*inputs))

        return ipu_compiler.compile(enqueue, copies.inputs)

    def dequeue(self, wait_for_completion: bool = False) -> Any:
        """Dequeues the elements that programs have sent so far.

        Args:
            wait_for_completion: waits for a program that runs in another thread to finish first.

        Returns:
            The structure that was enqueued. With mode `ALL` each tensor has a further first dimension: the iterations
            since the last dequeue. If the program runs as several replicas, they are the next dimension. In graph
            mode the tensors are to be fetched; that is when the queue is emptied. If `TF_POPLAR_FLAGS` makes outfeeds
            synthetic, programs send no iterations. An empty list if an eager thread dequeues before another thread has
            built the program that sends the elements.

        Raises:
            ValueError: no program enqueues to it, and this thread made it or builds a graph.
            FailedPreconditionError: it is in mode `LAST` but empty: no program has run, or outfeeds are synthetic. In
                graph mode, when the tensors are fetched.
        """
        enqueued = self._sent
        if enqueued is None:
            if context.executing_eagerly() and threading.get_ident() != self._thread:
                return []
            raise ValueError(
                "Trying to dequeue an outfeed which has not been enqueued: IPUOutfeedQueue.enqueue must be "
                "called first. Build the program that enqueues to it before dequeue()."
            )
        with ops.device(_HOST):
            flat = plugin.load().ops.pop_datastream_outfeed_dequeue(
                output_types=enqueued.types,
                output_shapes=enqueued.shapes,
                device_ordinal=self._device_ordinal,
                feed_id=self._id,
                outfeed_mode=self._mode.value,
                prefetch_depth=self._buffer_depth,
                wait_for_completion=wait_for_completion,
                may_be_replicated=self._may_be_replicated(),
                is_synthetic=flags.current().is_synthetic("outfeed"),
            )
        return nest.pack_sequence_as(enqueued.structure, flat)

    def results(self, iterations: int, replicas: int) -> Any:
        """Dequeues results for training and evaluation; raises an error without any.

        Args:
            iterations: the iterations of the run that has sent it.
            replicas: the replicas of the same program.

        Returns:
            The structure that was enqueued; zeros if `TF_POPLAR_FLAGS` makes outfeeds synthetic.
        """
        enqueued = self._sent
        if enqueued is None or not flags.current().is_synthetic("outfeed"):
            return self.dequeue()
        axes = [*([iterations] if self._mode is IPUOutfeedMode.ALL else []), *([replicas] if replicas > 1 else [])]
        flat = [array_ops.zeros([*axes, *shape], dtype) for shape, dtype in zip(enqueued.shapes, enqueued.types)]
        return nest.pack_sequence_as(enqueued.structure, flat)

    def _may_be_replicated(self) -> bool:
        """Returns whether elements may have an axis of replicas: known once the system is configured."""
        if self._replicas is not None:
            return self._replicas > 1
        configured = devices.configured() is not None
        return not configured or devices.get(self._device_ordinal, attach=False).num_ipus > 1

    @property
    def deleter(self) -> Any:
        """The operation that deletes the queue with its elements."""
        with ops.device(_HOST):
            return plugin.load().ops.ipu_delete_outfeed(feed_id=self._id, device_ordinal=self._device_ordinal)

    def __iter__(self) -> IPUOutfeedQueueIterator:
        if not context.executing_eagerly():
            raise RuntimeError(
                "IPUOutfeedQueue can only be iterated over in eager mode: this is a graph. Use dequeue() in a graph."
            )
        if self._mode is not IPUOutfeedMode.ALL:
            raise RuntimeError(
                f"IPUOutfeedQueue can only be iterated over if its mode is IPUOutfeedMode.ALL, not {self._mode}."
                " Create the queue with outfeed_mode=IPUOutfeedMode.ALL."
            )
        return IPUOutfeedQueueIterator(self)


class IPUOutfeedQueueIterator:
    """Yields the elements of an outfeed one by one, for the iterations that have run.

    Args:
        outfeed_queue: the queue, in mode `ALL`.

    Source: `tensorflow.python.ipu.ipu_outfeed_queue.IPUOutfeedQueueIterator`.

    Example:
        >>> outfeed = IPUOutfeedQueue()
        >>> step = tf.function(lambda: ipu.loops.repeat(3, lambda x: (2.0 * x, outfeed.enqueue(x)), [1.0]))
        >>> float(strategy.run(step)), [float(x) for x in outfeed]
        (8.0, [1.0, 2.0, 4.0])
    """

    def __init__(self, outfeed_queue: IPUOutfeedQueue) -> None:
        self._queue = outfeed_queue
        self._taken: Any = None
        self._left = 0
        self._position = 0

    def __iter__(self) -> IPUOutfeedQueueIterator:
        return self

    def __next__(self) -> Any:
        if self._position >= self._left:
            if not self._queue.enqueued:  # no program that sends to it is built yet
                raise StopIteration
            self._taken = self._queue.dequeue()
            flat = nest.flatten(self._taken)
            self._position = 0
            self._left = int(flat[0].shape[0]) if flat else 0
            if not self._left:
                raise StopIteration
        position = self._position
        self._position += 1
        return nest.map_structure(lambda tensor: tensor[position], self._taken)


class ScopedIPUOutfeedQueue(IPUOutfeedQueue):
    """An outfeed that is dropped together with its Python object.

    Args:
        outfeed_mode: an `IPUOutfeedMode`; `ALL` when left out.
        device_ordinal: the TensorFlow device that fills it; 0 when left out.

    Raises:
        RuntimeError: outside eager mode.

    Source: `tensorflow.python.ipu.ipu_outfeed_queue.ScopedIPUOutfeedQueue`.

    Example:
        >>> outfeed = ScopedIPUOutfeedQueue()
    """

    def __init__(self, outfeed_mode: Any = None, device_ordinal: int | None = None) -> None:
        if not context.executing_eagerly():
            raise RuntimeError(
                "ScopedIPUOutfeedQueue can only be created in eager mode: this is a graph. Use IPUOutfeedQueue."
            )
        super().__init__(outfeed_mode, device_ordinal)

    def __del__(self) -> None:
        if getattr(self, "_sent", None) is not None and context.executing_eagerly():
            plugin.load().delete_outfeed(self._id)


def _session_graph(graph: Any) -> Any:
    """Returns the graph that a session runs, or the outermost function."""
    while getattr(graph, "outer_graph", None) is not None:
        graph = graph.outer_graph
    return graph


def _outermost_function(graph: Any) -> Any:
    """Returns the outermost function that is being traced."""
    while getattr(graph, "outer_graph", None) is not None and getattr(graph.outer_graph, "building_function", False):
        graph = graph.outer_graph
    return graph
