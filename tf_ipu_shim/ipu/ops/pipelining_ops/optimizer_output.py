"""What a pipeline's optimizer function returns."""

from __future__ import annotations

from typing import Any

from tensorflow.python.eager import backprop
from tensorflow.python.framework import ops, tensor_util
from tensorflow.python.training import optimizer as optimizer_v1


class OptimizerFunctionOutput:
    """The optimizer that trains a pipeline, and the loss it minimises.

    Args:
        opt: a `tf.compat.v1.train.Optimizer`, or a Keras optimizer.
        loss: the loss of one mini-batch.
        compute_gradients_args: further arguments of `compute_gradients`.
        compute_gradients_kwargs: further keyword arguments of `compute_gradients`.
        apply_gradients_args: further arguments of `apply_gradients`.
        apply_gradients_kwargs: further keyword arguments of `apply_gradients`.
        variables: what a Keras optimizer trains.
        tape: a `tf.GradientTape` that recorded the loss, for a Keras optimizer.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an argument does not go with this kind of optimizer.

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
    ) -> None:
        self.is_keras = not isinstance(opt, optimizer_v1.Optimizer)
        if self.is_keras and not (hasattr(opt, "apply_gradients") and hasattr(opt, "get_config")):
            raise TypeError(
                "OptimizerFunctionOutput.opt must be a TensorFlow Optimizer or Keras OptimizerV2 object, not "
                f"{type(opt).__name__}."
            )
        if not tensor_util.is_tf_type(loss):
            raise TypeError(
                f"OptimizerFunctionOutput.loss must be a TensorFlow Tensor object, not {type(loss).__name__}."
            )
        self.opt = opt
        self.loss = loss
        self.compute_gradients_args = self._checked("compute_gradients_args", compute_gradients_args, tuple)
        self.compute_gradients_kwargs = self._checked("compute_gradients_kwargs", compute_gradients_kwargs, dict)
        self.apply_gradients_args = self._checked("apply_gradients_args", apply_gradients_args, tuple)
        self.apply_gradients_kwargs = self._checked("apply_gradients_kwargs", apply_gradients_kwargs, dict)
        for name in ("compute_gradients_args", "compute_gradients_kwargs"):
            if self.is_keras and getattr(self, name):
                raise ValueError(f"OptimizerFunctionOutput.{name} may not be used with OptimizerV2 instances.")
        if variables is not None and not isinstance(variables, (list, tuple)):
            raise TypeError("OptimizerFunctionOutput.variables must be a tuple or list.")
        if tape is not None and not isinstance(tape, backprop.GradientTape):
            raise TypeError("OptimizerFunctionOutput.tape must be a GradientTape.")
        for name, value in (("variables", variables), ("tape", tape)):
            if value and not self.is_keras:
                raise ValueError(f"OptimizerFunctionOutput.{name} may only be used with OptimizerV2.")
        if variables and tape:
            raise ValueError(
                "OptimizerFunctionOutput.tape may not be used when OptimizerFunctionOutput.variables is used too."
            )
        self.variables = list(variables or [])
        self.tape = tape

    @staticmethod
    def _checked(name: str, value: Any, kind: type) -> Any:
        if value is None:
            return kind()
        if not isinstance(value, kind):
            raise TypeError(f"OptimizerFunctionOutput.{name} must be a {kind.__name__}, not {type(value).__name__}.")
        return value

    def gradients(self) -> list[tuple[Any, Any]]:
        """Gradient and variable, for each variable that the loss depends on.

        Raises:
            RuntimeError: a Keras optimizer was given neither variables nor a tape.
        """
        if not self.is_keras:
            pairs = self.opt.compute_gradients(self.loss, *self.compute_gradients_args, **self.compute_gradients_kwargs)
        elif self.tape is not None:
            variables = self.tape.watched_variables()
            pairs = list(zip(self.tape.gradient(self.loss, variables), variables))
        elif self.variables:
            from tensorflow.python.ops import gradients_impl

            pairs = list(zip(gradients_impl.gradients(self.loss, self.variables), self.variables))
        else:
            raise RuntimeError(
                "No variables to optimize. When using OptimizerV2, give OptimizerFunctionOutput variables or a tape."
            )
        return [(ops.convert_to_tensor(gradient), variable) for gradient, variable in pairs if gradient is not None]

    def apply(self, gradients: list[tuple[Any, Any]]) -> Any:
        """The operation that updates the variables."""
        return self.opt.apply_gradients(gradients, *self.apply_gradients_args, **self.apply_gradients_kwargs)
