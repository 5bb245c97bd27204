"""`tensorflow.python.ipu.ipu_infeed_queue`: feeds dataset elements to running programs."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim import plugin
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.feeds import feed_arguments, feed_names, infeed_queue_spec, null_data
from tf_ipu_shim.frontend.feeds.ipu_iterators import IPUIterator, IPUOwnedIterator
from tf_ipu_shim.frontend.validation import booleans
from tf_ipu_shim.tf_private import datasets as tf_datasets
from tf_ipu_shim.tf_private.datasets import gen_dataset_ops, structure
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import ops

_HOST = "/device:CPU:0"

__all__ = ["IPUInfeedQueue", "IPUIterator", "IPUOwnedIterator", "element_arguments"]


class IPUInfeedQueue(feed_names.NonCopyable):
    """Feeds a dataset to a loop or pipeline on an IPU, an element an iteration.

    The dataset runs on the host, in TensorFlow's own iterator; the program dequeues elements without returning to
    Python.

    Args:
        dataset: a `tf.data.Dataset` whose elements have fully defined shapes.
        device_ordinal: the TensorFlow device that is fed; by default the current IPU strategy's, else 0. SDKs up to 2.3
            have a feed name here.
        prefetch_depth: number of elements (1 to 255) that are prefetched. The SDK's default if left out, and from SDK
            2.6 on if 0, as in Graphcore's.
        optimise_latency: no effect: it does not make a simulated IPU faster.
        **kwargs: arguments of older SDKs: `feed_name`, `replication_factor`, `data_to_prefetch`.

    Raises:
        TypeError: `dataset` is not a dataset, or an argument has the wrong type.
        ValueError: a shape is not fully defined, or an argument is out of range.
        FailedPreconditionError: the elements have 64-bit numbers; in graph mode reading `initializer` raises it.

    Source: `tensorflow.python.ipu.ipu_infeed_queue.IPUInfeedQueue`.

    Example:
        >>> infeed = IPUInfeedQueue(tf.data.Dataset.from_tensors(1.5).repeat())
        >>> step = tf.function(lambda: ipu.loops.repeat(4, lambda total, x: total + x, [0.0], infeed))
        >>> float(strategy.run(step))
        6.0
    """

    @feed_arguments.accept_old_order(
        1, "feed_name", "device_ordinal", "replication_factor", "data_to_prefetch", "prefetch_depth"
    )
    def __init__(
        self,
        dataset: Any,
        device_ordinal: int | None = None,
        prefetch_depth: int | None = None,
        optimise_latency: bool = False,
        **kwargs: Any,
    ) -> None:
        name = kwargs.pop("feed_name", "")
        replication_factor = kwargs.pop("replication_factor", None)  # known from the configuration since SDK 1.4
        prefetch_depth = kwargs.pop("data_to_prefetch", prefetch_depth)
        if kwargs:
            raise TypeError(
                f"IPUInfeedQueue takes no argument {sorted(kwargs)[0]!r}; expected those of Graphcore's "
                "class. Remove it, or correct its name."
            )
        booleans.check_boolean("optimise_latency", optimise_latency)
        note_arguments("IPUInfeedQueue", optimise_latency=optimise_latency, replication_factor=replication_factor)
        self._device_ordinal = feed_arguments.resolve_device_ordinal(device_ordinal)
        self._prefetch_depth = feed_arguments.resolve_prefetch_depth(prefetch_depth)
        self._set_structure(feed_arguments.get_element_structure(dataset))
        feed_arguments.check_shapes(self._shapes)
        self._id = feed_names.unique_name("infeed", name)
        with ops.device(_HOST):
            self._dataset = dataset.prefetch(self._prefetch_depth)
        self._has_been_started = False
        self._initialized = False
        self._dequeued = False
        self._start: Any = None
        if context.executing_eagerly():
            self._initialize()
        elif not ops.get_default_graph().building_function and not any(0 in shape.as_list() for shape in self._shapes):
            # Of the queue's own graph, which may be finished when the script asks for it. In a function it would run
            # by itself, at every call.
            self._start = self._make_initializer()

    @property
    def initializer(self) -> Any:
        """The operation that starts the dataset from its beginning.

        Raises:
            ValueError: read a second time in graph mode.
            FailedPreconditionError: the elements have 64-bit numbers.
            RuntimeError: the queue was made from a spec.
        """
        if self._dataset is None:
            raise infeed_queue_spec.not_supported_error("initializer")
        self._has_been_started = True
        if context.executing_eagerly() and self._start is None:
            return self._initialize()
        if self._initialized:
            raise ValueError(
                "The IPUInfeedQueue `initializer` function can only be accessed once: it was accessed "
                "before. Keep the operation and run it again to restart the dataset."
            )
        self._check_types()
        self._initialized = True
        return self._initialize() if self._start is None else self._start

    @property
    def deleter(self) -> Any:
        """The operation that frees the dataset's resources. The `initializer` starts it again.

        In a session, the operation raises `NotFoundError` if the queue has not been started.

        Raises:
            RuntimeError: the queue was made from a spec.
        """
        if self._dataset is None:
            raise infeed_queue_spec.not_supported_error("deleter")
        if context.executing_eagerly() and self._start is not None:
            with self._start.graph.as_default():
                return self.deleter
        with ops.device(_HOST):
            if context.executing_eagerly():
                return plugin.load().ops.ipu_delete_infeed(feed_id=self._id)
            started = plugin.load().ops.ipu_infeed_started(feed_id=self._id)
        with ops.device(_HOST), ops.control_dependencies([started]):
            # The iterator stays: ops of a session keep its handle.
            nothing = null_data.make_null_dataset(self._structure).take(0)
            return gen_dataset_ops.make_iterator(tf_datasets.variant_tensor(nothing), self._iterator())

    @property
    def dequeued(self) -> bool:
        """Returns whether a program consumes elements of this queue."""
        return self._dequeued

    @property
    def number_of_tuple_elements(self) -> int:
        """The number of tensors of an element."""
        return len(self._types)

    def get_next(self) -> Any:
        """Refuses calls from scripts: a loop or pipeline consumes the elements.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            "`get_next()` is now obsolete as the IPUInfeedQueue is dequeued by the loop or pipeline that "
            "it must be passed to. Pass the queue as `infeed_queue` to ipu.loops.repeat."
        )

    @property
    def _type_spec(self) -> infeed_queue_spec.IPUInfeedQueueSpec:
        """The queue's type spec, known once the script has read `initializer`."""
        if not self._has_been_started:
            raise RuntimeError(
                f"Spec for IPUInfeedQueue {self._id} is not known before its `initializer` is read. Read that first."
            )
        return infeed_queue_spec.IPUInfeedQueueSpec(
            self._id, self._structure, self._flat_structure, self._device_ordinal, self._prefetch_depth
        )

    @classmethod
    def _from_type_spec(cls, spec: infeed_queue_spec.IPUInfeedQueueSpec) -> IPUInfeedQueue:
        """A queue that shares the elements of the original queue, which starts and frees them."""
        queue = cls.__new__(cls)
        queue._device_ordinal = spec._device_ordinal
        queue._prefetch_depth = spec._prefetch_depth
        queue._set_structure(spec._structure)
        queue._id = spec._id
        queue._dataset = queue._start = None
        queue._has_been_started = queue._initialized = True
        queue._dequeued = False
        return queue

    @property
    def _flat_structure(self) -> dict[str, Any]:
        return {"output_types": self._types, "output_shapes": self._shapes}

    def _check_types(self) -> None:
        feed_arguments.check_types(self._types, self._id)

    def _set_structure(self, of_element: Any) -> None:
        self._structure = of_element
        self._types = structure.get_flat_tensor_types(of_element)
        self._shapes = structure.get_flat_tensor_shapes(of_element)

    def _initialize(self) -> Any:
        feed_arguments.check_not_empty(self._shapes, "infeed")
        self._check_types()
        self._initialized = True
        return self._make_initializer()

    def _make_initializer(self) -> Any:
        with ops.device(_HOST):
            dataset = null_data.apply_null_data_flag(self._dataset, self._structure)
            if not context.executing_eagerly():
                started = gen_dataset_ops.make_iterator(tf_datasets.variant_tensor(dataset), self._iterator())
                with ops.control_dependencies([started]):
                    return plugin.load().ops.ipu_infeed_restarted(feed_id=self._id)
            return plugin.load().ops.ipu_start_infeed(
                dataset=tf_datasets.variant_tensor(dataset),
                feed_id=self._id,
                output_types=self._types,
                output_shapes=self._shapes,
            )

    def _iterator(self) -> Any:
        """Returns the iterator by its name, which programs and sessions share."""
        return gen_dataset_ops.iterator_v2(
            shared_name=self._id, container="", output_types=self._types, output_shapes=self._shapes
        )

    def _dequeue(self) -> Any:
        """Returns an element, in the structure of the dataset; called while a program is traced."""
        self._dequeued = True
        with ops.device(_HOST):
            flat = gen_dataset_ops.iterator_get_next(self._iterator(), self._types, self._shapes)
        return structure.from_compatible_tensor_list(self._structure, flat)


def element_arguments(element: Any) -> tuple[list[Any], dict[str, Any]]:
    """Splits an element into positional and keyword arguments of a function.

    A tuple is passed by position and a dict by keyword, also if a tuple contains only a dict. Any other value is passed
    unchanged, as is a dict whose keys are not strings.
    """
    if isinstance(element, tuple) and len(element) == 1 and isinstance(element[0], dict):
        element = element[0]
    if isinstance(element, dict) and all(isinstance(key, str) for key in element):
        return [], element
    if isinstance(element, tuple):
        return list(element), {}
    return [element], {}
