"""Checks and unpacks the return value of a pipeline's optimizer function."""

from __future__ import annotations

import contextlib
from typing import Any

from tf_ipu_shim.frontend.feeds.ipu_outfeed_queue import IPUOutfeedQueue
from tf_ipu_shim.frontend.gradients import backprop as ipu_backprop
from tf_ipu_shim.frontend.pipelines import update_types
from tf_ipu_shim.tf_private.eager import backprop, gradients_impl
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops
from tf_ipu_shim.tf_private.tensors import tensor_util
from tf_ipu_shim.tf_private.training import optimizer as optimizer_v1
from tf_ipu_shim.tf_private.utilities import tf_logging

_NO_VARIABLES = "No variables to optimize."  # what an optimizer of TensorFlow 1 says


def _arguments(name: str, kind: type) -> Any:
    """Returns the property of further arguments of an optimizer's method, which are checked when they are set."""

    def get(output: OptimizerFunctionOutput) -> Any:
        return output._arguments[name]

    def set_checked(output: OptimizerFunctionOutput, value: Any) -> None:
        output._arguments[name] = output._check_kind(name, value, kind)

    return property(get, set_checked, doc=f"Further arguments of `{name.rpartition('_')[0]}`.")


class OptimizerFunctionOutput:
    """The optimizer that trains a pipeline, and the loss it minimises. Every argument is an attribute that can be set.

    Args:
        opt: a `tf.compat.v1.train.Optimizer`, or a Keras optimizer.
        loss: the loss of one mini-batch.
        compute_gradients_args: further arguments of `compute_gradients`.
        compute_gradients_kwargs: further keyword arguments of `compute_gradients`.
        apply_gradients_args: further arguments of `apply_gradients`.
        apply_gradients_kwargs: further keyword arguments of `apply_gradients`.
        variables: the variables that a Keras optimizer trains.
        tape: a `tf.GradientTape` that recorded the loss, for a Keras optimizer.
        gradient_capture_context: a `GradientCaptureContext` for the gradients that values marked with
            `grad_util_ops.capture_upstream_gradients` get; if there is a tape, a `GradientCaptureTape` has them.
        captured_gradient_outfeed: an `IPUOutfeedQueue` to which captured gradients are sent, once an execution, as a
            dictionary by tag.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an argument does not match this kind of optimizer, or conflicts with another argument.

    Source: `tensorflow.python.ipu.ops.pipelining_ops.OptimizerFunctionOutput`.

    Example:
        >>> def optimizer_function(loss):
        ...     return OptimizerFunctionOutput(tf.compat.v1.train.GradientDescentOptimizer(0.01), loss)
    """

    def __init__(
        self,
        opt: Any,
        loss: Any,
        compute_gradients_args: tuple[Any, ...] | None = None,
        compute_gradients_kwargs: dict[str, Any] | None = None,
        apply_gradients_args: tuple[Any, ...] | None = None,
        apply_gradients_kwargs: dict[str, Any] | None = None,
        variables: Any = None,
        tape: Any = None,
        gradient_capture_context: Any = None,
        captured_gradient_outfeed: Any = None,
    ) -> None:
        self._arguments: dict[str, Any] = {}
        self._variables: Any = []
        self._tape: Any = None
        self._context: Any = None
        self.opt = opt
        self.loss = loss
        self.compute_gradients_args = () if compute_gradients_args is None else compute_gradients_args
        self.compute_gradients_kwargs = {} if compute_gradients_kwargs is None else compute_gradients_kwargs
        self.apply_gradients_args = () if apply_gradients_args is None else apply_gradients_args
        self.apply_gradients_kwargs = {} if apply_gradients_kwargs is None else apply_gradients_kwargs
        self.variables = [] if variables is None else variables
        self.tape = tape
        self.gradient_capture_context = gradient_capture_context
        self.captured_gradient_outfeed = captured_gradient_outfeed

    @property
    def is_keras(self) -> bool:
        """Returns whether the optimizer is one of Keras."""
        return not isinstance(self._opt, optimizer_v1.Optimizer)

    @property
    def opt(self) -> Any:
        """The optimizer."""
        return self._opt

    @opt.setter
    def opt(self, value: Any) -> None:
        is_keras = hasattr(value, "apply_gradients") and hasattr(value, "get_config")
        if not isinstance(value, optimizer_v1.Optimizer) and not is_keras:
            raise TypeError(
                "OptimizerFunctionOutput.opt must be a TensorFlow Optimizer or Keras OptimizerV2 object, not "
                f"{type(value).__name__}. Pass such an object."
            )
        self._opt = value

    @property
    def loss(self) -> Any:
        """The loss of one mini-batch."""
        return self._loss

    @loss.setter
    def loss(self, value: Any) -> None:
        if not tensor_util.is_tf_type(value):
            raise TypeError(
                f"OptimizerFunctionOutput.loss must be a TensorFlow Tensor object, not {type(value).__name__}. Pass a "
                "tensor."
            )
        self._loss = value

    compute_gradients_args = _arguments("compute_gradients_args", tuple)
    compute_gradients_kwargs = _arguments("compute_gradients_kwargs", dict)
    apply_gradients_args = _arguments("apply_gradients_args", tuple)
    apply_gradients_kwargs = _arguments("apply_gradients_kwargs", dict)

    @property
    def variables(self) -> Any:
        """The variables that a Keras optimizer trains; empty if a tape records them."""
        return self._variables

    @variables.setter
    def variables(self, value: Any) -> None:
        if not isinstance(value, (list, tuple)):
            raise TypeError(f"OptimizerFunctionOutput.variables must be a tuple or list, not {type(value).__name__}.")
        self._check_keras("variables", value)
        if value and self._tape:
            raise ValueError(
                "OptimizerFunctionOutput.variables must be empty when OptimizerFunctionOutput.tape is used: the tape "
                "knows them. Leave the variables out."
            )
        self._variables = value

    @property
    def tape(self) -> Any:
        """The tape that recorded the loss; None if `variables` are given."""
        return self._tape

    @tape.setter
    def tape(self, value: Any) -> None:
        if value and not isinstance(value, backprop.GradientTape):
            raise TypeError(
                f"OptimizerFunctionOutput.tape must be a GradientTape, not {type(value).__name__}. Pass a GradientTape."
            )
        self._check_keras("tape", value)
        for conflicting in ("variables", "gradient_capture_context"):
            if value and getattr(self, conflicting):
                raise ValueError(
                    f"OptimizerFunctionOutput.tape may not be used when OptimizerFunctionOutput.{conflicting} is "
                    f"{'nonempty' if conflicting == 'variables' else 'used'}. Pass one of the two."
                )
        self._tape = value

    @property
    def gradient_capture_context(self) -> Any:
        """The context that captures gradients; None if a tape does."""
        return self._context

    @gradient_capture_context.setter
    def gradient_capture_context(self, value: Any) -> None:
        if value and not isinstance(value, ipu_backprop.GradientCaptureContext):
            raise TypeError(
                "OptimizerFunctionOutput.gradient_capture_context must be an "
                f"ipu.eager.backprop.GradientCaptureContext, not {type(value).__name__}. Pass a "
                "GradientCaptureContext."
            )
        if value and self._tape:
            raise ValueError(
                "OptimizerFunctionOutput.gradient_capture_context may not be used when OptimizerFunctionOutput.tape is "
                "used too: make the tape an ipu.eager.backprop.GradientCaptureTape."
            )
        self._context = value

    @property
    def captured_gradient_outfeed(self) -> Any:
        """The outfeed for captured gradients."""
        return self._outfeed

    @captured_gradient_outfeed.setter
    def captured_gradient_outfeed(self, value: Any) -> None:
        if value and not isinstance(value, IPUOutfeedQueue):
            raise TypeError(
                "OptimizerFunctionOutput.captured_gradient_outfeed must be an instance of IPUOutfeedQueue, not "
                f"{type(value).__name__}. Pass an IPUOutfeedQueue."
            )
        if value and self._capturing is None:
            raise ValueError(
                "OptimizerFunctionOutput.captured_gradient_outfeed may not be used when neither "
                "OptimizerFunctionOutput.gradient_capture_context nor a GradientCaptureTape is used. Remove it, or "
                "capture gradients."
            )
        self._outfeed = value

    def _check_kind(self, name: str, value: Any, kind: type) -> Any:
        if not isinstance(value, kind):
            raise TypeError(
                f"OptimizerFunctionOutput.{name} must be a {kind.__name__}, not {type(value).__name__}. Pass an object "
                "of this type."
            )
        if value and self.is_keras and name.startswith("compute"):
            raise ValueError(f"OptimizerFunctionOutput.{name} may not be used with OptimizerV2 instances. Remove it.")
        return value

    def _check_keras(self, name: str, value: Any) -> None:
        if value and not self.is_keras:
            raise ValueError(
                f"OptimizerFunctionOutput.{name} may only be used with OptimizerV2. Remove it, or use an OptimizerV2."
            )

    @property
    def _capturing(self) -> Any:
        if self._context:
            return self._context
        return self._tape if isinstance(self._tape, ipu_backprop.GradientCaptureTape) else None

    def gradients(self) -> tuple[list[tuple[Any, Any]], dict[str, Any]]:
        """Adds the backward pass of one mini-batch to the current graph.

        Returns:
            Pairs of gradient and variable for each variable that the loss depends on, or zeros for all if it depends on
            none. Also the captured gradients by tag: tensors, or lists of them.

        Raises:
            RuntimeError: a Keras optimizer was given neither variables nor a tape.
        """
        context = self._context if self._context and not self._context.is_entered else contextlib.nullcontext()
        with context:
            pairs = self._pairs()
        captured = dict(self._capturing.captured_gradients) if self._capturing is not None else {}
        if pairs and all(gradient is None for gradient, _ in pairs):
            # As Graphcore's: such a pipeline runs, and its weights stay.
            names = [variable.name for _, variable in pairs]
            tf_logging.warning(f"A pipeline's loss depends on none of the variables {names}: they are not trained.")
            pairs = [(array_ops.zeros_like(variable), variable) for _, variable in pairs]
        return [(ops.convert_to_tensor(gradient), v) for gradient, v in pairs if gradient is not None], captured

    def _pairs(self) -> list[tuple[Any, Any]]:
        if not self.is_keras:
            return self._pairs_of_collections()
        if self._tape:
            variables = self._tape.watched_variables()
            return list(zip(self._tape.gradient(self._loss, variables), variables))
        own_gradients = getattr(self._opt, "own_gradients", None)  # of a model's optimizer of TensorFlow 1
        if self._variables and own_gradients is not None:
            return list(own_gradients(self._loss, list(self._variables)))
        if self._variables:
            return list(zip(gradients_impl.gradients(self._loss, list(self._variables)), self._variables))
        raise RuntimeError(
            f"{_NO_VARIABLES} When using OptimizerV2, OptimizerFunctionOutput needs variables or a tape: both are "
            "missing. Pass one of them."
        )

    def _pairs_of_collections(self) -> list[tuple[Any, Any]]:
        try:
            return self._opt.compute_gradients(
                self._loss, *self.compute_gradients_args, **self.compute_gradients_kwargs
            )
        except ValueError as error:
            if str(error) != _NO_VARIABLES:
                raise
            raise ValueError(
                f"{_NO_VARIABLES} The {type(self._opt).__name__} of an OptimizerFunctionOutput only trains those in "
                "the graph's collection, and variables made eagerly are in none. Pass "
                'compute_gradients_kwargs={"var_list": [...]} to OptimizerFunctionOutput.'
            ) from None

    def apply(self, gradients: list[tuple[Any, Any]], captured: dict[str, Any]) -> Any:
        """Returns the operation that updates the variables.

        Args:
            gradients: pairs of reduced gradient and variable.
            captured: gradients by tag, for an optimizer that accepts them.

        Raises:
            TypeError: the optimizer does not accept gradients of the type that they are accumulated in.
        """
        keywords = dict(self.apply_gradients_kwargs)
        if captured and getattr(self._opt, "supports_captured_grads", False):
            keywords["captured_grads"] = captured
        with update_types.accept_accumulator_dtype(self._opt, gradients):
            return self._opt.apply_gradients(gradients, *self.apply_gradients_args, **keywords)
