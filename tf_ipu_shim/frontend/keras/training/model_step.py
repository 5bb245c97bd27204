"""Runs one mini-batch of a Keras model: forward pass, loss, gradients, update.

Keras 2.15 computes loss and metrics in methods of the model; older copies call the compiled containers. Both are
covered; checked on `keras` 2.15, `tf_keras` 2.21 and `tensorflow.python.keras` of TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from tf_ipu_shim import keras2
from tf_ipu_shim.frontend.gradients import backprop
from tf_ipu_shim.tf_private.autograph import ag_ctx
from tf_ipu_shim.tf_private.autograph import api as autograph
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.training import optimizer as optimizer_v1


def keras_package(model: Any) -> str:
    """Returns the root of the Keras package that defines a model."""
    return keras2.root_of_class(type(model)) or keras2.root()


def overrides_method(model: Any, name: str) -> bool:
    """Returns whether a user's class, or one of Keras' premade models, overrides a method."""
    keras_own = (f"{keras_package(model)}.engine.", "tf_ipu_shim.")
    for kind in type(model).__mro__:
        if name in vars(kind) and not vars(kind).get("_ipu_generated"):
            return not kind.__module__.startswith(keras_own)
    return False


def unpack_element(model: Any, data: Any) -> tuple[Any, Any, Any]:
    """Inputs, targets and sample weights of an element."""
    return keras2.module("engine.data_adapter", keras_package(model)).unpack_x_y_sample_weight(data)


def convert_step(model: Any, name: str) -> Any:
    """Returns a step method as Keras would call it: with the user's `if` and `for` on tensors converted."""
    return autograph.tf_convert(getattr(model, name), ag_ctx.control_status_ctx())


def compute_loss(model: Any, x: Any, y: Any, y_pred: Any, weights: Any) -> Any:
    """Returns the compiled loss of a mini-batch, regularisation included."""
    if hasattr(model, "compute_loss"):
        return model.compute_loss(x, y, y_pred, weights)
    return model.compiled_loss(y, y_pred, weights, regularization_losses=model.losses)


def update_metrics(model: Any, x: Any, y: Any, y_pred: Any, weights: Any) -> dict[str, Any]:
    """Updates the compiled metrics with a mini-batch, and returns their results so far."""
    if hasattr(model, "compute_metrics"):
        return model.compute_metrics(x, y, y_pred, weights)
    model.compiled_metrics.update_state(y, y_pred, weights)
    return {metric.name: metric.result() for metric in model.metrics}


def forward_pass(model: Any, data: Any, training: bool) -> tuple[Any, dict[str, Any]]:
    """Loss and metrics of a mini-batch, as `train_step` and `test_step` compute them."""
    x, y, weights = unpack_element(model, data)
    y_pred = model(x, training=training)
    loss = compute_loss(model, x, y, y_pred, weights)
    return loss, update_metrics(model, x, y, y_pred, weights)


class StepGradients(NamedTuple):
    """The results of a mini-batch's backward pass.

    Args:
        pairs: gradients with their variables.
        captured: captured gradients by tag.
    """

    pairs: list[tuple[Any, Any]]
    metrics: dict[str, Any]
    captured: dict[str, Any]


def compute_gradients(model: Any, data: Any) -> StepGradients:
    """Computes the gradients and metrics of a mini-batch."""
    x, y, weights = unpack_element(model, data)
    compute = optimizer_gradients(model.optimizer)
    with backprop.GradientCaptureContext() if compute else backprop.GradientCaptureTape() as capturing:
        y_pred = model(x, training=True)
        loss = scale_loss(model.optimizer, compute_loss(model, x, y, y_pred, weights))
        if compute:
            scaled_pairs = compute(loss, model.trainable_variables)
    if isinstance(capturing, backprop.GradientCaptureTape):
        variables = model.trainable_variables
        scaled_pairs = list(zip(capturing.gradient(loss, variables), variables))
    pairs = unscale_gradients(model.optimizer, scaled_pairs)
    return StepGradients(pairs, update_metrics(model, x, y, y_pred, weights), dict(capturing.captured_gradients))


def optimizer_gradients(optimizer: Any) -> Callable[..., Any] | None:
    """Returns the optimizer's own `compute_gradients`, if a TensorFlow 1 optimizer overrides it.

    Gradient accumulation and pipelines call it for each mini-batch. Keras' `minimize`, which trains without them,
    never does.
    """
    native = getattr(optimizer, "optimizer", None)
    if not isinstance(native, optimizer_v1.Optimizer):
        return None
    plain = type(native).compute_gradients is optimizer_v1.Optimizer.compute_gradients
    return None if plain else native.compute_gradients


def train_step(model: Any, data: Any) -> dict[str, Any]:
    """Trains with a mini-batch as Keras' own `train_step`, and passes captured gradients to the optimizer."""
    if accepts_captured_gradients(model.optimizer):
        return apply_update(model, data)
    with backprop.GradientCaptureContext():  # so that layers may capture gradients that no one reads
        return convert_step(model, "train_step")(data)


def apply_update(model: Any, data: Any) -> dict[str, Any]:
    """Updates the weights with a mini-batch, and returns the metrics so far."""
    step = compute_gradients(model, data)
    passes_captured = step.captured and accepts_captured_gradients(model.optimizer)
    model.optimizer.apply_gradients(step.pairs, **({"captured_grads": step.captured} if passes_captured else {}))
    return step.metrics


def accepts_captured_gradients(optimizer: Any) -> bool:
    """Returns whether an optimizer's `apply_gradients` accepts `captured_grads`."""
    return bool(getattr(optimizer, "supports_captured_grads", False))


def scale_loss(optimizer: Any, loss: Any) -> Any:
    """Returns the loss as a loss-scaling optimizer differentiates it."""
    return optimizer.get_scaled_loss(loss) if hasattr(optimizer, "get_scaled_loss") else loss


def unscale_gradients(optimizer: Any, pairs: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Returns dense gradients as the optimizer's `apply_gradients` expects them; variables without one are left out.

    Keras' LossScaleOptimizer expects unscaled gradients. Optimizers with automatic loss scaling receive scaled
    gradients, which they count and unscale themselves.
    """
    pairs = [(ops.convert_to_tensor(gradient), variable) for gradient, variable in pairs if gradient is not None]
    if not pairs:
        raise ValueError(
            "No gradients provided for any variable: the `loss` is computed without trainable variables, and must "
            "depend on "
            "one. Compute the loss from the outputs of trainable layers."
        )
    if hasattr(optimizer, "get_unscaled_gradients") and not getattr(optimizer, "takes_scaled_gradients", False):
        values = optimizer.get_unscaled_gradients([gradient for gradient, _ in pairs])
        return list(zip(values, (variable for _, variable in pairs)))
    return pairs


def call_context(model: Any, inputs: Any, training: bool | None) -> Any:
    """Returns Keras' context of a model's call, from which its layers read whether it trains."""
    context = keras2.module("engine.base_layer_utils", keras_package(model)).call_context()
    build_graph = training is not None
    if "call_context_args" in inspect.signature(context.enter).parameters:
        return context.enter(model, inputs, build_graph, {"training": training})
    return context.enter(model, inputs, build_graph, training)
