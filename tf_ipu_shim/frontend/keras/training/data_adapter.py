"""`keras.ipu.extensions.data_adapter`: makes a dataset of fit's data, checks `steps_per_execution` and step counts.

`evaluate` and `predict` use it too. Keras' own adapters make the dataset; data that a compiled program cannot accept
is refused here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tensorflow.compat.v2 import distribute as distribute_lib
from tensorflow.compat.v2 import dtypes, errors, nest

from tf_ipu_shim import keras2, sdk
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.keras.training import partial_batches
from tf_ipu_shim.frontend.keras.training.data_feed_manager import InfeedIterator, InfeedManager
from tf_ipu_shim.frontend.strategies import sized_datasets
from tf_ipu_shim.frontend.validation.counts import check_integer, check_whole
from tf_ipu_shim.tf_private import keras_members
from tf_ipu_shim.tf_private.datasets import cardinality, dataset_ops
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import math_ops
from tf_ipu_shim.tf_private.tensors import tensor_spec
from tf_ipu_shim.tf_private.utilities import tf_logging

_DIVISOR_SINCE = (2, 6)  # the words of the error
_STEPS_PER_REPLICA_SINCE = (2, 5)


class IPUDataHandler:
    """The data of one call, its size and its epochs.

    Args:
        x: arrays, tensors or a `tf.data.Dataset`; see `tf.keras.Model.fit`.
        y: targets.
        sample_weight: a weight for each sample.
        batch_size: samples of one mini-batch; 32 when left out.
        steps_per_epoch: mini-batches that all replicas together consume in an epoch, as many as the same call on a CPU;
            all of the data if left out.
        initial_epoch: the first epoch's number.
        epochs: the number after the last epoch's.
        shuffle: whether samples are in a new order each epoch.
        class_weight: a weight for each class.
        max_queue_size: recorded: generators are refused.
        workers: recorded: generators are refused.
        use_multiprocessing: recorded: generators are refused.
        model: the model whose Keras package's adapters are used.
        steps_per_execution: mini-batches that a replica consumes in one execution; 1 when left out. If an epoch has
            fewer, all of an epoch's are used, with a warning.
        replication_factor: number of replicas; None: `set_replication_factor` sets it later.

    Raises:
        TypeError: `batch_size` is not an integer.
        ValueError: the data cannot be fed to a compiled program.

    Source: `keras.ipu.extensions.data_adapter.IPUDataHandler`.

    Example:
        >>> handler = IPUDataHandler(np.ones([64, 4], "f"), np.ones([64, 1], "f"), batch_size=8, steps_per_execution=4)
        >>> handler.set_replication_factor(1)
        >>> handler.inferred_steps
        8
    """

    def __init__(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        batch_size: int | None = None,
        steps_per_epoch: int | None = None,
        initial_epoch: int = 0,
        epochs: int = 1,
        shuffle: Any = False,
        class_weight: Any = None,
        max_queue_size: int = 10,
        workers: int = 1,
        use_multiprocessing: bool = False,
        model: Any = None,
        steps_per_execution: Any = None,
        replication_factor: int | None = 1,
    ) -> None:
        note_arguments(
            "Model.fit", max_queue_size=max_queue_size, workers=workers, use_multiprocessing=use_multiprocessing
        )
        package = keras2.root_of_class(type(model)) if model is not None else None
        adapters = keras2.module("engine.data_adapter", package)
        self._initial_epoch, self._epochs = initial_epoch, epochs
        self._steps_per_epoch = steps_per_epoch = _check_steps(steps_per_epoch)
        self._batch_size = batch_size = _check_batch_size(batch_size)
        self._steps_per_execution = 1 if steps_per_execution is None else int(steps_per_execution)
        if self._steps_per_execution < 1:
            raise ValueError(
                f"steps_per_execution is {self._steps_per_execution}; expected a positive number. Pass one to compile."
            )
        x = sized_datasets.unwrap_dataset(x)
        kind = adapters.select_data_adapter(x, y)
        if issubclass(kind, adapters.GeneratorDataAdapter):
            raise _unsupported_data_error(x)
        self._adapter = kind(
            x,
            y,
            batch_size=batch_size,
            steps=steps_per_epoch,
            epochs=epochs - initial_epoch,
            sample_weights=sample_weight,
            shuffle=shuffle,
            max_queue_size=max_queue_size,
            workers=workers,
            use_multiprocessing=use_multiprocessing,
            distribution_strategy=distribute_lib.get_strategy(),
            model=model,
        )
        _check_no_partial_batch(self._adapter, batch_size)
        self._dataset = self._adapter.get_dataset()
        if class_weight:
            self._dataset = self._dataset.map(keras_members.class_weight_function(adapters, class_weight))
        self._dataset = _cast_float64(self._dataset, package)
        self._replication_factor: int | None = None
        self._inferred_steps = 0
        self._insufficient_data = False
        self.mini_batches = 0  # of all replicas in an epoch, without those that pad it
        self._pads = False
        self.padding = 0
        self._padded: Any = None  # the dataset with its padding
        if replication_factor is not None:
            self.set_replication_factor(replication_factor)

    def split_execution(self, replicas: int) -> None:
        """Counts the steps of an execution over all replicas together, as SDK 2.4 and older do.

        Args:
            replicas: their number.

        Raises:
            RuntimeError: the steps are not a multiple of `replicas`.
        """
        if sdk.current() >= _STEPS_PER_REPLICA_SINCE:
            return
        steps = self._steps_per_execution
        if steps % replicas:
            raise RuntimeError(
                f"Currently `steps_per_execution` is set to {steps} and the model has {replicas} replicas, which "
                f"share them in this SDK. It has to be a multiple of {replicas}. Change it in compile, or use fewer "
                "IPUs. "
                "(Since SDK 2.5 it counts the steps of each replica.)"
            )
        self._steps_per_execution = steps // replicas

    def enable_padding(self) -> None:
        """Pads the data if the last mini-batches do not fill all replicas. Called before their number is set."""
        self._pads = True

    def divides_evenly(self, replicas: int) -> bool:
        """Returns whether this number of replicas can share the data without a warning.

        Args:
            replicas: their number.
        """
        try:
            mini_batches = self._infer_mini_batches()
        except (TypeError, ValueError):
            return False
        if mini_batches % replicas and not self._pads:
            return False
        steps = -(-mini_batches // replicas)
        return sdk.current() >= _STEPS_PER_REPLICA_SINCE and steps % self._steps_per_execution == 0

    def set_replication_factor(self, value: int) -> None:
        """Tells how many replicas share the data, and checks that it is enough for them.

        Args:
            value: number of replicas.

        Raises:
            ValueError: the data is too small, of unknown size, or of shapes that are not known.
        """
        self._replication_factor, self._padded = value, None
        self.mini_batches = self._infer_mini_batches()
        self._inferred_steps = self.mini_batches // value
        if self._pads and self.mini_batches % value:
            self._inferred_steps += 1
        self._validate()
        executions = -(-self._inferred_steps // self._steps_per_execution)
        if self._pads and self.mini_batches % value:
            self.padding = executions * self._steps_per_execution * value - self.mini_batches

    @property
    def batch_size(self) -> Any:
        """Samples of one mini-batch."""
        if self._batch_size is not None:
            return self._batch_size
        size = self._adapter.batch_size()
        return nest.flatten(self.element_spec)[0].shape[0] if size is None else size

    @property
    def element_spec(self) -> Any:
        """The structure of a mini-batch."""
        return self._dataset.element_spec

    @property
    def inferred_steps(self) -> int:
        """Number of mini-batches that a replica consumes in an epoch."""
        self._check_replication_factor_set("inferred_steps")
        return self._inferred_steps

    def dropped_batches_message(self, mode: str) -> str:
        """Returns the warning about mini-batches that do not fill all replicas; empty if they do."""
        shape = nest.flatten(self.element_spec)[0].shape
        return partial_batches.dropped_batches_message(
            mode,
            self.mini_batches,
            shape[0] if shape.rank else 0,
            self._replication_factor or 1,
            self._steps_per_epoch is not None,
            self._epochs - self._initial_epoch > 1 and not self._adapter.should_recreate_iterator(),
        )

    @property
    def steps_per_execution_value(self) -> int:
        """Number of mini-batches that a replica consumes in one execution."""
        return self._steps_per_execution

    @property
    def reported_steps(self) -> int:
        """Steps of one execution as callbacks count them."""
        return self._steps_per_execution

    def enumerate_epochs_with_reuse(
        self, manager: InfeedManager, mode: str, infeed_kwargs: dict[str, Any]
    ) -> Iterator[tuple[int, Any]]:
        """Yields each epoch with the infeed that has its data.

        Args:
            manager: returns the infeed.
            mode: `"fit"`, `"evaluate"` or `"predict"`.
            infeed_kwargs: keyword arguments of `IPUInfeedQueue`.
        """
        iterator = None
        for epoch in self.epochs:
            iterator = self.epoch_iterator(iterator, manager, mode, infeed_kwargs)
            iterator.select()
            iterator.infeed.selected = iterator
            yield epoch, iterator.infeed
            self.end_epoch()

    @property
    def epochs(self) -> range:
        """The numbers of the epochs."""
        return range(self._initial_epoch, self._epochs)

    def epoch_iterator(
        self,
        previous: InfeedIterator | None,
        manager: InfeedManager,
        mode: str,
        infeed_kwargs: dict[str, Any],
    ) -> InfeedIterator:
        """Returns the iterator over an epoch's data: the previous epoch's, unless the data starts again each epoch."""
        self._check_replication_factor_set("enumerate_epochs_with_reuse")
        if previous is not None and not self._adapter.should_recreate_iterator():
            return previous
        if self.padding and self._padded is None:
            with ops.device("/device:CPU:0"):
                self._padded = partial_batches.pad_dataset(self._dataset, self.mini_batches, self.padding)
        return manager.make_iterator(mode, self._padded if self.padding else self._dataset, infeed_kwargs)

    def end_epoch(self) -> None:
        """Prepares the data for the next epoch."""
        self._adapter.on_epoch_end()

    def enumerate_epochs(self) -> Iterator[tuple[int, Iterator[Any]]]:
        """Yields each epoch with an iterator over its mini-batches, on the host and without an infeed."""
        iterator = iter(self._dataset)
        for epoch in range(self._initial_epoch, self._epochs):
            if self._insufficient_data:
                break
            if epoch > self._initial_epoch and self._adapter.should_recreate_iterator():
                iterator = iter(self._dataset)
            yield epoch, iterator
            self._adapter.on_epoch_end()

    def steps(self) -> Iterator[int]:
        """Yields the number of the first mini-batch of each execution of an epoch, until the data ends."""
        for step in range(0, self.inferred_steps, self._steps_per_execution):
            if self._insufficient_data:
                break
            yield step

    @contextlib.contextmanager
    def catch_stop_iteration(self) -> Iterator[None]:
        """A scope in which data that ends early ends the epochs, with a warning, and raises nothing."""
        try:
            yield
        except (StopIteration, errors.OutOfRangeError):
            self._insufficient_data = True
            expected_steps = self.inferred_steps * (self._epochs - self._initial_epoch)
            tf_logging.warning(
                f"Your input ran out of data: {expected_steps} batches are needed, `steps_per_epoch` * `epochs`. "
                "Training ends here. You may need to use the repeat() function of your dataset."
            )

    def _infer_mini_batches(self) -> int:
        if self._steps_per_epoch is not None:
            return self._steps_per_epoch
        size = self._adapter.get_size()
        if size is None:
            size = int(cardinality.cardinality(self._dataset))
        if size < 0:
            raise ValueError(
                "Could not infer the size of the data, which is infinite or unknown; expected a number of steps "
                "with such a dataset. Pass `steps_per_epoch` to fit, or `steps` to evaluate and predict."
            )
        if size == 0:
            if self._adapter.get_size() is None:
                raise ValueError(
                    "Expect x to be a non-empty array or dataset: `x` of fit, evaluate or predict has no data. Pass at "
                    "least one mini-batch."
                )
            raise TypeError(
                "Expect x to be a non-empty array or dataset: `x` of fit, evaluate or predict has no samples, and "
                "the dataset length is unknown. Pass at least one mini-batch."
            )
        return size

    def _validate(self) -> None:
        steps, replicas = self._inferred_steps, self._replication_factor or 1
        size = int(cardinality.cardinality(self._dataset))
        if steps == 0:
            raise self._too_few_steps(size, replicas)
        if self._steps_per_execution > steps:
            tf_logging.warning(
                f"`steps_per_execution` ({self._steps_per_execution}) is more than the {steps} steps of an epoch, so "
                f"each execution runs {steps}. Set steps_per_execution={steps} in compile to avoid this "
                "warning."
            )
            self._steps_per_execution = steps
        pads = self._pads and self.mini_batches % replicas != 0
        if steps % self._steps_per_execution and not pads:
            raise _partial_execution_error(steps, self._steps_per_execution)
        self._check_shapes()
        epochs = 1 if self._adapter.should_recreate_iterator() else self._epochs - self._initial_epoch
        if size < 0 and self._adapter.get_size() is not None:  # arrays, which the adapter repeats each epoch
            size = self._adapter.get_size() * epochs
        required_batches = (self.mini_batches if pads else steps * replicas) * epochs
        if 0 <= size < required_batches:
            raise ValueError(
                "Your input does not have enough data. Make sure that your dataset or generator can generate at least "
                f"{required_batches} batches (currently it can only generate {size} batches). Steps per epoch {steps} "
                f"* epochs {epochs} * replicas {replicas} are needed. You may need to use the repeat() function of "
                "your dataset."
            )

    def _check_shapes(self) -> None:
        for spec in nest.flatten(dataset_ops.get_structure(self._dataset)):
            if spec.shape.is_fully_defined():
                continue
            is_known = spec.shape.rank is not None and spec.shape[0] is not None
            raise ValueError(
                f"The provided set of data contains a shape {spec.shape} which is not fully defined. A compiled "
                "program takes batches of one size only: use "
                f"{'map with tf.ensure_shape' if is_known else 'batch(size, drop_remainder=True)'}."
            )

    def _too_few_steps(self, size: int, replicas: int) -> ValueError:
        if self._steps_per_epoch is not None:
            return ValueError(
                f"`steps_per_epoch` (or `steps`) is {self._steps_per_epoch}, and {replicas} replicas share them: "
                f"each needs at least one. Pass {replicas} or more, or use fewer IPUs."
            )
        size = size if size >= 0 else self._adapter.get_size()
        return ValueError(
            f"The provided dataset contains {size} items, but all {replicas} replicas are requested to run 1 steps "
            f"each. Make sure the dataset contains at least {replicas} items, or use fewer IPUs."
        )

    def _check_replication_factor_set(self, label: str) -> None:
        if self._replication_factor is None:
            raise RuntimeError(
                f"Cannot call {label} before the replication factor is set. Call set_replication_factor(n)."
            )


def _cast_float64(dataset: Any, package: Any) -> Any:
    """Returns the dataset with its float64 values in Keras' float type, as Keras' adapters convert arrays."""
    spec, kind = dataset.element_spec, keras2.module("backend", package).floatx()
    flat = nest.flatten(spec)
    doubles = [
        isinstance(component, tensor_spec.TensorSpec) and component.dtype == dtypes.float64 for component in flat
    ]
    layers_cast = keras2.module("engine.base_layer_utils", package).v2_dtype_behavior_enabled()
    if not any(doubles) or kind == "float64" or not layers_cast:
        return dataset

    def cast(*element: Any) -> Any:
        parts = nest.flatten(element if isinstance(spec, tuple) else element[0])
        parts = [
            math_ops.cast(component, kind) if is_double else component for component, is_double in zip(parts, doubles)
        ]
        return nest.pack_sequence_as(spec, parts)

    return dataset.map(cast)


def _partial_execution_error(steps: int, execution: int) -> ValueError:
    phrase = (
        f"`steps_per_execution` ({execution}) must be a divisor of the number of batches ({steps}) in the dataset "
        "provided, or of the steps given."
        if sdk.current() >= _DIVISOR_SINCE
        else "`steps_per_execution` must be a divisor of the number of batches in the dataset provided. The inferred "
        f"number of steps per epoch ({steps}) is not divisible by the steps per execution ({execution})."
    )
    return ValueError(
        f"{phrase} Every execution of a compiled program takes as many mini-batches: change `steps_per_execution` in "
        "compile, the batch size, or `steps_per_epoch`."
    )


def _check_steps(steps: int | None) -> int | None:
    if steps is None:
        return None
    if steps <= 0:
        raise ValueError(
            f"`steps_per_epoch` (or `steps`) is {steps}; expected a positive number. Pass one, or leave it out."
        )
    return check_whole("`steps_per_epoch` (or `steps`)", steps)


def _check_batch_size(batch_size: int | None) -> int | None:
    if batch_size is None:
        return None
    batch_size = check_integer("batch_size", batch_size)
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; expected a positive number. Pass one, or leave it out.")
    return batch_size


def _check_no_partial_batch(adapter: Any, batch_size: int | None) -> None:
    if adapter.has_partial_batch():
        default = "" if batch_size is not None else ", which it is unless you give one"
        raise ValueError(
            f"The provided set of data has a partial batch: {adapter.partial_batch_size()} samples are left over where "
            f"batch_size is {adapter.batch_size()}{default}. A compiled program takes batches of one size only: give a "
            "batch_size that divides the number of samples, or a tf.data.Dataset batched with drop_remainder=True."
        )


def _unsupported_data_error(x: Any) -> ValueError:
    advice = (
        "Please use `tf.data.Dataset.from_generator()` to specify the shape of your data. If it is an iterator, first "
        "wrap your iterator inside a generator like so:\n\ndef generator:\n    while True:\n        yield "
        "next(iterator)\n\nand then pass the generator on."
    )
    return ValueError(
        f"The provided set of data is of an unsupported type: {type(x).__name__}. A compiled program has to know the "
        f"shapes of its data. {advice}"
    )
