"""`keras.ipu.optimizers.optimizer_v2_wrapper`: the base class of Keras optimizers that wrap another optimizer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tf_ipu_shim import keras2
from tf_ipu_shim.tf_private import keras_members

OptimizerV2: Any = keras2.module("optimizers.legacy.optimizer_v2").OptimizerV2
_NewOptimizer: Any = keras2.module("optimizers.optimizer").Optimizer
_HYPERPARAMETERS = ("lr", "learning_rate", "iterations")
_CLIPPING = ("clipnorm", "clipvalue", "global_clipnorm")


class _OptimizerV2Wrapper(OptimizerV2):
    """Forwards calls about weights and hyperparameters to the wrapped optimizer.

    Args:
        opt: a Keras 2 optimizer, of the legacy or the newer kind.
        name: the name of the operations.
        **kwargs: keyword arguments of Keras's base class.

    Raises:
        TypeError: `opt` is not a Keras 2 optimizer.

    Source: `keras.ipu.optimizers.optimizer_v2_wrapper`.

    Example:
        >>> class Negated(_OptimizerV2Wrapper):
        ...     def preprocess_gradients(self, grad, var):
        ...         return -grad, var
    """

    def __init__(self, opt: Any, name: str | None = None, **kwargs: Any) -> None:
        if not isinstance(opt, (OptimizerV2, _NewOptimizer)):
            raise TypeError(
                f"{type(self).__name__} wraps a Keras 2 optimizer and was given a {type(opt).__name__}; "
                "expected an optimizer of tf.keras. Use ipu.optimizers for those of tf.compat.v1.train."
            )
        object.__setattr__(self, "_opt", opt)
        clipping = {name: getattr(opt, name) for name in _CLIPPING}
        super().__init__(name or type(self).__name__, **kwargs)
        for option, value in clipping.items():  # which Keras's constructor has just set to its own defaults
            if kwargs.get(option) is None and value is not None:
                setattr(opt, option, value)
        self._track_trackable(opt, "_opt")

    def preprocess_gradients(self, grad: Any, var: Any) -> tuple[Any, Any]:
        """Changes a gradient before it is applied; this class returns it unchanged.

        Args:
            grad: the gradient; never None.
            var: its variable.
        """
        return grad, var

    def apply_gradients(self, grads_and_vars: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        """Applies gradients.

        Args:
            grads_and_vars: pairs of gradient and variable.
            *args: a name; see Keras. The wrapped optimizer gets all of them.
            **kwargs: as above.
        """
        pairs = [(g, v) if g is None else self.preprocess_gradients(g, v) for g, v in grads_and_vars]
        return self._apply(pairs, *args, **kwargs)

    def _apply(self, pairs: list[tuple[Any, Any]], *args: Any, **kwargs: Any) -> Any:
        return self._opt.apply_gradients(pairs, *args, **kwargs)

    def _transform_loss(self, loss: Any) -> Any:
        inner = getattr(self._opt, "_transform_loss", None)
        return loss if inner is None else inner(loss)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # each has its own internals, such as what checkpoints track
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(object.__getattribute__(self, "_opt"), name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _HYPERPARAMETERS:
            setattr(self._opt, name, value)
        else:
            super().__setattr__(name, value)

    @property
    def iterations(self) -> Any:
        """Updates of the wrapped optimizer."""
        return self._opt.iterations

    @iterations.setter
    def iterations(self, variable: Any) -> None:
        self._opt.iterations = variable

    @property
    def clipnorm(self) -> Any:
        """The wrapped optimizer's."""
        return self._opt.clipnorm

    @clipnorm.setter
    def clipnorm(self, value: Any) -> None:
        self._opt.clipnorm = value

    @property
    def global_clipnorm(self) -> Any:
        """The wrapped optimizer's."""
        return self._opt.global_clipnorm

    @global_clipnorm.setter
    def global_clipnorm(self, value: Any) -> None:
        self._opt.global_clipnorm = value

    @property
    def clipvalue(self) -> Any:
        """The wrapped optimizer's."""
        return self._opt.clipvalue

    @clipvalue.setter
    def clipvalue(self, value: Any) -> None:
        self._opt.clipvalue = value

    @property
    def weights(self) -> Any:
        """The wrapped optimizer's weights."""
        return self._opt.weights if isinstance(self._opt, OptimizerV2) else list(self._opt.variables)

    @weights.setter
    def weights(self, _: Any) -> None:
        # The words of Pythons before 3.11, which scripts of the time look for.
        raise AttributeError(
            "can't set attribute: weights belongs to the wrapped optimizer and has no setter here. Call set_weights."
        )

    def variables(self) -> Any:
        """Returns the wrapped optimizer's weights."""
        return self.weights

    def get_weights(self) -> Any:
        """Values of the wrapped optimizer's weights."""
        if isinstance(self._opt, OptimizerV2):
            return self._opt.get_weights()
        return [variable.numpy() for variable in self._opt.variables]

    def set_weights(self, weights: Any) -> None:
        """Sets the wrapped optimizer's weights.

        Args:
            weights: as returned by `get_weights`.
        """
        self._opt.set_weights(weights)

    def get_slot(self, var: Any, slot_name: str) -> Any:
        """Returns the wrapped optimizer's slot.

        Args:
            var: a variable that is trained.
            slot_name: such as `"momentum"`.
        """
        return self._opt.get_slot(var, slot_name)

    def add_slot(self, var: Any, slot_name: str, initializer: Any = "zeros", shape: Any = None) -> Any:
        """Adds a slot to the wrapped optimizer; arguments as in Keras."""
        return self._opt.add_slot(var, slot_name, initializer, shape)

    def get_slot_names(self) -> Any:
        """Returns the names of the wrapped optimizer's slots."""
        return self._opt.get_slot_names()

    def _create_all_weights(self, var_list: Any) -> Any:
        if isinstance(self._opt, OptimizerV2):
            return keras_members.create_all_weights(self._opt, var_list)
        return self._opt.build(var_list)

    def get_config(self) -> dict[str, Any]:
        """Returns the configuration for `from_config`."""
        inner = keras2.public_module().optimizers.serialize(self._opt)
        if not isinstance(self._opt, OptimizerV2):
            inner = {"class_name": inner["class_name"], "config": self._opt.get_config()}
        return {
            "name": self._name,
            "inner_optimizer_type": type(self._opt).__name__,
            "inner_optimizer_legacy": isinstance(self._opt, OptimizerV2),
            "inner_optimizer_config": inner["config"],
        }

    @staticmethod
    def _inner_from_config(config: dict[str, Any], custom_objects: Any) -> Any:
        kind, legacy = config.pop("inner_optimizer_type"), config.pop("inner_optimizer_legacy", True)
        inner = config.pop("inner_optimizer_config")
        for candidate in (*(custom_objects or {}).values(), *_wrapper_classes(_OptimizerV2Wrapper)):
            if getattr(candidate, "__name__", None) == kind:
                return candidate.from_config(dict(inner))
        optimizers = keras2.public_module().optimizers
        # Newer classes of the same names are in `experimental`, also where the public names mean those of 2.6.
        optimizer_class = getattr(
            optimizers.legacy if legacy else optimizers.experimental, kind, getattr(optimizers, kind, None)
        )
        if optimizer_class is None:
            raise ValueError(
                f"There is no optimizer {kind!r} in Keras, and custom_objects must contain others. Add its "
                "class to custom_objects."
            )
        return optimizer_class.from_config(dict(inner))

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Makes an optimizer like the one whose `get_config` gave `config`.

        Args:
            config: a configuration from `get_config`.
            custom_objects: classes of optimizers that are not Keras's, by name.
        """
        config = dict(config)
        return cls(cls._inner_from_config(config, custom_objects), **config)


def _wrapper_classes(kind: Any) -> list[Any]:
    classes: list[Any] = []
    for subclass in kind.__subclasses__():
        classes += [subclass, *_wrapper_classes(subclass)]
    return classes
