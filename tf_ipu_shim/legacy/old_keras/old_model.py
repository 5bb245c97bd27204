"""The base class of Keras models of SDK 1.2 to 2.1: `ipu.keras.Model`, `Sequential` and pipelined models.

They are models of stock Keras with the extensions of `keras.ipu`, with fixed options. Differences: they
count in steps of several mini-batches, average gradients over replicas, and cannot be called.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim import keras2, sdk
from tf_ipu_shim.frontend.keras.models.pipelined_extension import PipelinedExtension
from tf_ipu_shim.frontend.keras.options import replication
from tf_ipu_shim.frontend.keras.training import loop, model_step
from tf_ipu_shim.frontend.strategies.ipu_strategy import IPUStrategyV1
from tf_ipu_shim.legacy.old_keras import late_scope, step_data
from tf_ipu_shim.legacy.old_keras import old_arguments as arguments
from tf_ipu_shim.legacy.old_keras.tensorflow1_optimizer import keras_optimizer

_NEW_SAVE_MESSAGE = (2, 0)
_PREDICT_UNPACKS = (2, 0)


class OldModel(PipelinedExtension):
    """Training, evaluation and prediction as models of SDK 1.2 to 2.1 have them."""

    _ipu_generated = True  # the extensions are in already
    _running_in: list[int]  # threads in `fit`, `evaluate` or `predict`
    _older_kind = "IPU keras models"  # as SDK 1.4 says it

    @property
    def replication_factor(self) -> int:
        """The number of replicas of the model that fit on the configured IPUs."""
        self._check_scope("replication_factor")
        return self._replicas()

    def call(self, inputs: Any, training: Any = None, mask: Any = None) -> Any:
        """Refused: such a model only runs in `fit`, `evaluate` and `predict`.

        Args:
            inputs: the inputs of the model.
            training: whether layers behave as in training.
            mask: the mask of the inputs.

        Raises:
            ValueError: called outside `fit`, `evaluate` and `predict`.
        """
        if threading.get_ident() not in vars(self).get("_running_in", ()):
            raise ValueError(
                "This model can only be called through the `fit`, `evaluate`, or `predict` interfaces: an "
                f"{type(self).__name__} cannot be called directly. Call one of these methods."
            )
        return super().call(inputs, training=training, mask=mask)  # type: ignore[misc]

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        metrics: Any = None,
        loss_weights: Any = None,
        **kwargs: Any,
    ) -> None:
        """Sets the optimizer, losses and metrics of the training.

        Args:
            optimizer: an optimizer of `tf.keras`, or of `tf.compat.v1.train`.
            loss: as in Keras.
            metrics: as in Keras.
            loss_weights: as in Keras.
            **kwargs: keyword arguments of Keras' `compile`.

        Raises:
            NotImplementedError: an argument that these models do not support.
            ValueError: the optimizer duplicates work of the model.
        """
        arguments.refuse_keras(kwargs, arguments.KERAS_COMPILE, "compile")
        if kwargs.pop("steps_per_execution", None) is not None:
            raise TypeError("steps_per_execution is not known to this model: use fit(steps_per_run=...).")
        with self._strategy().scope():
            optimizer = keras_optimizer(optimizer)
            super().compile(optimizer, loss, metrics, loss_weights, **kwargs)  # type: ignore[misc]
        self._set(metric_reduction=replication.ReplicatedMetricReductionMethod.MEAN)

    def fit(  # type: ignore[override]
        self,
        x: Any = None,
        y: Any = None,
        *,
        batch_size: int | None = None,
        epochs: int = 1,
        verbose: Any = 1,
        callbacks: Any = None,
        shuffle: Any = True,
        initial_epoch: int = 0,
        steps_per_epoch: int | None = None,
        steps_per_run: int | None = None,
        prefetch_depth: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Trains the model on the IPUs.

        Args:
            x: inputs: arrays, tensors, or a dataset of pairs of inputs and targets.
            y: targets, if `x` is not a dataset.
            batch_size: samples of one mini-batch; 32 when left out.
            epochs: number after the last epoch's.
            verbose: 0, 1 or 2.
            callbacks: Keras callbacks; batch callbacks are called once a run.
            shuffle: whether samples of arrays are in a new order each epoch.
            initial_epoch: number of the first epoch.
            steps_per_epoch: steps of an epoch; all the data when left out.
            steps_per_run: steps of one run of the compiled program; the whole epoch when left out.
            prefetch_depth: elements that the infeed holds ready.
            **kwargs: refused by name.

        Returns:
            The history, with one entry an epoch.

        Raises:
            RuntimeError: the model is not compiled, or neither made nor called in the scope of an `IPUStrategy`.
            ValueError: the data cannot be fed to a compiled program, or is not a multiple of a step.
            NotImplementedError: an argument that these models do not support.
        """
        arguments.refuse_keras(kwargs, arguments.KERAS_FIT, "fit")
        with self._run("fit", prefetch_depth):
            data = self._data(
                "fit",
                step_data.with_targets(self._named("fit"), x),
                steps_per_epoch,
                steps_per_run,
                y=y,
                batch_size=batch_size,
                initial_epoch=initial_epoch,
                epochs=epochs,
                shuffle=shuffle,
            )
            listed = self._callbacks(callbacks, verbose, epochs, data)
            trainable_state = keras2.module("engine.training_utils", model_step.keras_package(self))
            with trainable_state.RespectCompiledTrainableState(self):
                return loop.fit(self, data, listed, None)

    def evaluate(  # type: ignore[override]
        self,
        x: Any = None,
        y: Any = None,
        *,
        batch_size: int | None = None,
        verbose: Any = 1,
        steps: int | None = None,
        callbacks: Any = None,
        steps_per_run: int | None = None,
        prefetch_depth: int | None = None,
        **kwargs: Any,
    ) -> list[Any]:
        """Computes loss and metrics on the IPUs; the arguments of `fit`.

        Returns:
            A list of the loss and the metrics, in the order of `metrics_names`.

        Raises:
            RuntimeError: the model is not compiled, or neither made nor called in the scope of an `IPUStrategy`.
            ValueError: the data cannot be fed to a compiled program, or is not a multiple of a step.
            NotImplementedError: an argument that these models do not support.
        """
        arguments.refuse_keras(kwargs, arguments.KERAS_FIT, "evaluate")
        with self._run("evaluate", prefetch_depth):
            x = step_data.with_targets(self._named("evaluate"), x)
            data = self._data("evaluate", x, steps, steps_per_run, y=y, batch_size=batch_size)
            listed = self._callbacks(callbacks, verbose, 1, data)
            with self._ipu.locks.hold_for_evaluate(self):
                logs = loop.evaluate(self, data, listed)
            metric_values = loop.order_metrics(logs, self.metrics_names)  # type: ignore[attr-defined]
            return metric_values if isinstance(metric_values, list) else [metric_values]

    def predict(  # type: ignore[override]
        self,
        x: Any,
        *,
        batch_size: int | None = None,
        verbose: Any = 0,
        steps: int | None = None,
        callbacks: Any = None,
        steps_per_run: int | None = None,
        prefetch_depth: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Computes predictions on the IPUs; the arguments of `fit`.

        Returns:
            Arrays of shape [samples, ...], in the structure of the model's outputs; up to SDK 1.4 a tuple of them.

        Raises:
            RuntimeError: the model was neither made nor is called in the scope of an `IPUStrategy`.
            ValueError: the data cannot be fed to a compiled program, or is not a multiple of a step.
            NotImplementedError: an argument that these models do not support.
        """
        arguments.refuse_keras(kwargs, arguments.KERAS_FIT, "predict")
        with self._run("predict", prefetch_depth):
            x = step_data.inputs_only(self._named("predict"), x, self._input_count())
            data = self._data("predict", x, steps, steps_per_run, batch_size=batch_size)
            listed = self._callbacks(callbacks, verbose, 1, data)
            predictions = loop.predict(self, data, listed)
        return predictions if sdk.current() >= _PREDICT_UNPACKS else tuple(nest.flatten(predictions))

    def save(
        self,
        filepath: Any,
        overwrite: bool = True,
        include_optimizer: bool = True,
        save_format: Any = None,
        signatures: Any = None,
        options: Any = None,
    ) -> None:
        """Refuses to save, as Graphcore does: `save_weights` writes files that can be loaded again.

        Args:
            filepath: the path of the model's file.
            overwrite: whether to replace an existing file.
            include_optimizer: whether to save the optimizer's state.
            save_format: `"tf"` or `"h5"`.
            signatures: the signatures of the SavedModel.
            options: the options of the SavedModel.

        Raises:
            NotImplementedError: always.
        """
        kind = "IPU Keras models" if sdk.current() >= _NEW_SAVE_MESSAGE else self._older_kind
        raise NotImplementedError(f"{kind} do not support the `save` interface. Use `save_weights` and `load_weights`.")

    def train_step(self, data: Any) -> dict[str, Any]:
        """One update of the weights with one mini-batch.

        Args:
            data: inputs and targets.

        Returns:
            The metrics so far.
        """
        return model_step.apply_update(self, data)

    def compute_loss(self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None) -> Any:
        """Returns the loss whose gradients are summed over replicas: a replica's part of their mean.

        Args:
            x: inputs.
            y: targets.
            y_pred: outputs.
            sample_weight: the weight of each sample.
        """
        loss = self.compiled_loss(  # type: ignore[attr-defined]
            y,
            y_pred,
            sample_weight,
            regularization_losses=self.losses,  # type: ignore[attr-defined]
        )
        replicas = self.replication_factor
        return loss / replicas if replicas > 1 else loss

    def _input_count(self) -> int:
        return 1

    def _named(self, method: str) -> str:
        return f"{type(self).__name__}.{method}"

    def _strategy(self) -> Any:
        return self.distribute_strategy  # type: ignore[attr-defined]

    def _check_scope(self, method: str) -> None:
        if not isinstance(self._strategy(), IPUStrategyV1):
            raise RuntimeError(
                f"{self._named(method)} may only be used with a model made in the scope of an IPUStrategy, or within "
                "such a scope: call it inside `with strategy.scope():`."
            )

    @contextlib.contextmanager
    def _run(self, mode: str, prefetch_depth: int | None) -> Iterator[None]:
        """While this lasts, layers may call the model."""
        self._check_scope(mode)
        self._check_mode(mode)
        # An infeed for each depth is kept, and with it its program: nothing is forgotten here.
        self._ipu.options.infeed_kwargs = {} if prefetch_depth is None else {"prefetch_depth": prefetch_depth}
        with self._strategy().scope():
            late_scope.bring_to_ipu(self)
            running_in = vars(self).setdefault("_running_in", [])
            running_in.append(threading.get_ident())
            try:
                yield
            finally:
                running_in.remove(threading.get_ident())

    def _data(self, mode: str, x: Any, steps: int | None, steps_per_run: int | None, **data: Any) -> step_data.StepData:
        from tf_ipu_shim.tf_private.graphs import ops

        strict = mode == "fit" or self._is_pipelined()
        with ops.device("/device:CPU:0"):
            data_ = step_data.StepData(
                type(self).__name__, self._accumulation(), strict, steps, steps_per_run, x=x, model=self, **data
            )
            data_.set_replication_factor(self.replication_factor)
        return data_

    def _callbacks(self, callbacks: Any, verbose: Any, epochs: int, data: step_data.StepData) -> Any:
        package = model_step.keras_package(self)
        return loop.callback_list(self, callbacks, package, verbose, epochs, data.steps_per_epoch)
