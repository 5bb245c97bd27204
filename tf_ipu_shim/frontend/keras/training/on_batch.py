"""`train_on_batch`, `test_on_batch` and `predict_on_batch`: one mini-batch as a program of one step."""

from __future__ import annotations

import contextlib
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim import keras2
from tf_ipu_shim.frontend.keras.training import loop, model_step
from tf_ipu_shim.tf_private import keras_members
from tf_ipu_shim.tf_private.datasets import dataset_ops
from tf_ipu_shim.tf_private.graphs import ops

_STEPS = 1


class OnBatchMethods:
    """The methods of a model that accept one mini-batch."""

    def train_on_batch(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        class_weight: Any = None,
        reset_metrics: bool = True,
        return_dict: bool = False,
    ) -> Any:
        """Updates the weights with one mini-batch; the arguments of `tf.keras.Model.train_on_batch`.

        Returns:
            The loss, or a list of loss and metrics, or a dictionary of them.

        Raises:
            RuntimeError: the model is not compiled, or accumulates gradients of several mini-batches.
            ValueError: inputs, targets and weights differ in their number of samples.
        """
        return self._metrics_of_batch("fit", (x, y, sample_weight), class_weight, reset_metrics, return_dict)

    def test_on_batch(
        self, x: Any, y: Any = None, sample_weight: Any = None, reset_metrics: bool = True, return_dict: bool = False
    ) -> Any:
        """Computes the metrics of one mini-batch; the arguments of `tf.keras.Model.test_on_batch`.

        Returns:
            The loss, or a list of loss and metrics, or a dictionary of them.

        Raises:
            RuntimeError: the model is not compiled.
        """
        return self._metrics_of_batch("evaluate", (x, y, sample_weight), None, reset_metrics, return_dict)

    def predict_on_batch(self, x: Any) -> Any:
        """Predictions for one mini-batch; the argument of `tf.keras.Model.predict_on_batch`.

        Returns:
            Arrays of shape [samples, ...], in the structure of the model's outputs.
        """
        return self._run_batch("predict", (x, None, None), None)

    def _metrics_of_batch(self, mode: str, data: Any, class_weight: Any, reset: bool, return_dict: bool) -> Any:
        model: Any = self
        with model._ipu.locks.hold_for_metrics(model):
            if reset:
                model.reset_metrics()
            logs = self._run_batch(mode, data, class_weight)
        return logs if return_dict else loop.order_metrics(logs, model.metrics_names)

    def _run_batch(self, mode: str, data: Any, class_weight: Any) -> Any:
        model: Any = self
        model._check_mode(mode)
        package = model_step.keras_package(model)
        adapters = keras2.module("engine.data_adapter", package)
        # `compile` decided which weights train: adversarial models freeze layers of each other afterwards.
        as_compiled = keras2.module("engine.training_utils", package).RespectCompiledTrainableState
        with model.distribute_strategy.scope(), as_compiled(model) if mode == "fit" else contextlib.nullcontext():
            with ops.device("/device:CPU:0"):
                packed = adapters.pack_x_y_sample_weight(*keras_members.process_tensorlike(adapters, data))
                packed = nest.map_structure(ops.convert_to_tensor, packed)
                keras_members.check_data_cardinality(adapters, packed)
                dataset = dataset_ops.DatasetV2.from_tensors(packed)
            handler = model._make_data_handler(mode, steps_per_execution=_STEPS, x=dataset, class_weight=class_weight)
            with loop.ModelCall(model, mode, handler) as call:
                execution = call.start_epoch()
                if mode == "predict":
                    keep = handler.mini_batches if handler.padding else None
                    return execution.predictions(0, _no_callback, _no_callback, keep)
                return execution.last_metrics(0, _no_callback, _no_callback)


def _no_callback(*_: Any) -> None:
    """There are no callbacks for a single mini-batch."""
