"""`ipu_tensorflow_addons.keras.optimizers.ipu_optimizer_base`: optimizer slots of a chosen dtype."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import keras2
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.tracing import internal_variables
from tf_ipu_shim.frontend.validation import booleans
from tf_ipu_shim.tf_private import distribute as tf_distribute
from tf_ipu_shim.tf_private import variables as tf_variables

OptimizerV2: Any = keras2.module("optimizers.legacy.optimizer_v2").OptimizerV2


class IpuOptimizerBase(OptimizerV2):
    """A Keras 2 optimizer whose slots and arithmetic may have other types than the variables.

    Args:
        name: the name of the operations.
        optimizer_compute_precisions: the types that updates are computed in.
        outline_apply_gradients: no effect: sharing code between updates does not change results.
        outline_apply_gradients_kwargs: no effect, as above.
        **kwargs: keyword arguments of Keras's base class.

    Raises:
        TypeError: the compute dtype is missing or not a floating-point type, or another argument has an invalid value.

    Source: `ipu_tensorflow_addons.keras.optimizers.ipu_optimizer_base.IpuOptimizerBase`.

    Example:
        >>> class Signs(IpuOptimizerBase):
        ...     def _resource_apply_dense(self, grad, var, apply_state=None):
        ...         return var.assign_sub(0.1 * tf.sign(grad))
    """

    def __init__(
        self,
        name: str,
        optimizer_compute_precisions: Sequence[Any] = (tf.float32,),
        outline_apply_gradients: bool = False,
        outline_apply_gradients_kwargs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        note_arguments(
            "IpuOptimizerBase",
            outline_apply_gradients=outline_apply_gradients,
            outline_apply_gradients_kwargs=outline_apply_gradients_kwargs or None,
        )
        booleans.check_boolean("outline_apply_gradients", outline_apply_gradients)
        if outline_apply_gradients_kwargs is not None and not isinstance(outline_apply_gradients_kwargs, Mapping):
            raise TypeError(
                "outline_apply_gradients_kwargs must be a dictionary of arguments of outlined_function, not "
                f"{outline_apply_gradients_kwargs!r}. Pass a dictionary."
            )
        if not isinstance(optimizer_compute_precisions, (list, tuple)) or not optimizer_compute_precisions:
            raise TypeError(
                "optimizer_compute_precisions must be a list or a tuple of types, not "
                f"{optimizer_compute_precisions!r}. Pass a list or a tuple."
            )
        for dtype in optimizer_compute_precisions:
            check_dtype("Each of optimizer_compute_precisions", dtype)
        self.opt_dtypes = tuple(optimizer_compute_precisions)
        self.outline_apply_gradients = outline_apply_gradients
        self.outline_apply_gradients_kwargs = dict(outline_apply_gradients_kwargs or {})

    def get_slot_dtype(self, var: Any, slot_name: str) -> Any:
        """Returns the type of a slot.

        Args:
            var: the variable.
            slot_name: the name of the slot.

        Returns:
            The variable's type, unless a subclass says otherwise.
        """
        return var.dtype

    def add_slot_with_dtype(self, var: Any, slot_name: str, dtype: Any, initializer: Any = "zeros") -> Any:
        """Adds a slot of a type.

        Args:
            var: the variable.
            slot_name: the name of the slot.
            dtype: the dtype of the slot.
            initializer: an initialiser, or its name.
        """
        return self.add_slot(var, slot_name, initializer, dtype=dtype)

    def add_slot(
        self, var: Any, slot_name: str, initializer: Any = "zeros", shape: Any = None, dtype: Any = None
    ) -> Any:
        """Adds a slot.

        Args:
            var: the variable.
            slot_name: the name of the slot.
            initializer: an initialiser, or its name.
            shape: the shape of the slot; the variable's by default.
            dtype: the dtype of the slot; `get_slot_dtype`'s by default.

        Raises:
            ValueError: the variable belongs to another distribution strategy.
        """
        dtype = tf.as_dtype(dtype or self.get_slot_dtype(var, slot_name))
        slots: dict[str, Any] = self._slots.setdefault(_key(var), {})
        if slot_name not in self._slot_names:
            self._slot_names.append(slot_name)
        if slot_name in slots:
            return slots[slot_name]
        if isinstance(initializer, str) or callable(initializer):
            initializer_function = keras2.public_module().initializers.get(initializer)
            initializer = functools.partial(
                initializer_function, shape=var.shape if shape is None else shape, dtype=dtype
            )
        with self._distribution_strategy_scope():
            strategy = tf.distribute.get_strategy()
            if not strategy.extended.variable_created_in_scope(var):
                raise ValueError(
                    f"Trying to create optimizer slot variable under the scope of {strategy}, but {var.name} "
                    "was made under another one; both must be the same. Make variables and apply gradients under "
                    "one strategy."
                )
            with strategy.extended.colocate_vars_with(var):
                slot = tf.Variable(
                    name=f"{tf_variables.shared_name(var)}/{slot_name}",
                    dtype=dtype,
                    trainable=False,
                    initial_value=initializer,
                )
        slots[slot_name] = internal_variables.internal(slot)
        self._restore_slot_variable(slot_name=slot_name, variable=var, slot_variable=slot)
        self._weights.append(slot)
        return slot

    def _resource_apply_sparse(self, grad: Any, var: Any, indices: Any, apply_state: Any = None) -> Any:
        # IPUs have no sparse updates: rows that are not looked up have a gradient of zero.
        return self._resource_apply_dense(
            tf.math.unsorted_segment_sum(grad, indices, var.shape[0]), var, apply_state=apply_state
        )

    def _resource_apply_sparse_duplicate_indices(self, grad: Any, var: Any, indices: Any, **kwargs: Any) -> Any:
        return self._resource_apply_sparse(grad, var, indices, **kwargs)

    def _number(self, name: str) -> Any:
        return self._get_hyper(name, self.opt_dtypes[0])

    def _step(self) -> Any:
        return tf.cast(self.iterations + 1, self.opt_dtypes[0])

    def get_config(self) -> dict[str, Any]:
        """Returns the configuration for `from_config`."""
        return {
            **super().get_config(),
            "optimizer_compute_precisions": self.opt_dtypes,
            "outline_apply_gradients": self.outline_apply_gradients,
            "outline_apply_gradients_kwargs": self.outline_apply_gradients_kwargs,
        }


def _key(var: Any) -> Any:
    var = tf_distribute.container_of(var)
    if tf_variables.in_graph_mode(var):
        return tf_variables.shared_name(var)
    return tf_variables.unique_id(var)


def update_slot(slot: Any, value: Any) -> Any:
    """Writes a slot in the slot's dtype, and returns the value as computed."""
    with tf.control_dependencies([slot.assign(tf.cast(value, slot.dtype), read_value=False)]):
        return tf.identity(value)


def check_dtype(name: str, dtype: Any) -> None:
    """Refuses types that an optimizer's slots and arithmetic cannot have."""
    if dtype is None:
        return
    try:
        is_floating = not isinstance(dtype, int) and tf.as_dtype(dtype).is_floating
    except TypeError:
        is_floating = False
    if not is_floating:
        raise TypeError(
            f"{name} must be a floating-point type, such as tf.float32, not {dtype!r}. Pass a floating-point type."
        )


def check_one_precision(optimizer: IpuOptimizerBase) -> None:
    """Refuses a second compute type, which an optimizer cannot use."""
    first, *dtypes = (tf.as_dtype(dtype) for dtype in optimizer.opt_dtypes)
    if any(other_dtype != first for other_dtype in dtypes):
        raise ValueError(
            f"{type(optimizer).__name__} must compute its whole update in one type: "
            f"optimizer_compute_precisions has {', '.join(dtype.name for dtype in (first, *dtypes))}. "
            "Pass only the first of them."
        )


def unknown_slot(slot_name: str, slot_names: str) -> AssertionError:
    """Returns the error for a slot that an optimizer does not have."""
    return AssertionError(f"There is no slot {slot_name!r} in this optimizer; it has {slot_names}.")
