"""Dense Keras layers: serialized to need less memory, or with float8 kernels."""

from __future__ import annotations

import math
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import keras2
from tf_ipu_shim.frontend.ops import math_ops
from tf_ipu_shim.frontend.ops.serialization_factor import check_factor

_keras: Any = keras2.public_module()
_Layer: Any = _keras.layers.Layer

# How `ipu.math_ops.serialized_matmul` calls the dimensions.
_DIMENSIONS = {
    "input_columns": "a_columns",
    "input_rows_kernel_columns": "a_rows_b_columns",
    "kernel_rows": "b_rows",
}
# The 8-bit layer and what it is made of, loaded when asked for.
_F8 = ("Dense", "Format", "QuarterTensor", "create_metadata", "f8_matmul")


def __getattr__(name: str) -> Any:
    if name not in _F8:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tf_ipu_shim.frontend.layers import f8_dense

    return getattr(f8_dense, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_F8})


class SerialDense(_Layer):  # type: ignore[misc]
    """A dense layer that computes its matmul in parts, to use less memory at a time.

    Args:
        units: size of the output.
        serialization_factor: how many parts; divides the dimension.
        serialization_dimension: `input_columns`, `input_rows_kernel_columns` or `kernel_rows`.
        activation: the activation of the output.
        use_bias: whether to add a bias.
        kernel_initializer: the initializer of the kernel `[inputs, units]`.
        bias_initializer: the initializer of the bias `[units]`.
        kernel_regularizer: the regularizer of the kernel.
        bias_regularizer: the regularizer of the bias.
        activity_regularizer: the regularizer of the output.
        kernel_constraint: the constraint of the kernel.
        bias_constraint: the constraint of the bias.
        **kwargs: keyword arguments of a Keras layer.

    Raises:
        TypeError: when built for another type than floats; when called with sparse inputs.
        ValueError: the last dimension of the inputs is unknown; when called, if the factor or the dimension is wrong.

    Source: `ipu_tensorflow_addons.keras.layers.SerialDense`.

    Example:
        >>> SerialDense(1000, 4, "kernel_rows")(tf.ones([2, 8])).shape
        TensorShape([2, 1000])
    """

    def __init__(
        self,
        units: int,
        serialization_factor: int,
        serialization_dimension: str,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = "glorot_uniform",
        bias_initializer: Any = "zeros",
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(activity_regularizer=_keras.regularizers.get(activity_regularizer), **kwargs)
        self.units = int(units)
        self.serialization_factor = check_factor(serialization_factor)
        self.serialization_dimension = serialization_dimension
        self.activation = _keras.activations.get(activation)
        self.use_bias = use_bias
        self.kernel_initializer = _keras.initializers.get(kernel_initializer)
        self.bias_initializer = _keras.initializers.get(bias_initializer)
        self.kernel_regularizer = _keras.regularizers.get(kernel_regularizer)
        self.bias_regularizer = _keras.regularizers.get(bias_regularizer)
        self.kernel_constraint = _keras.constraints.get(kernel_constraint)
        self.bias_constraint = _keras.constraints.get(bias_constraint)
        self.supports_masking = True
        self.input_spec = _keras.layers.InputSpec(min_ndim=2)

    def build(self, input_shape: Any) -> None:
        """Makes the variables.

        Args:
            input_shape: `[..., inputs]`.

        Raises:
            TypeError: the layer's type is not a float.
            ValueError: the last dimension is unknown.
        """
        dtype = tf.as_dtype(self.dtype or "float32")
        if not (dtype.is_floating or dtype.is_complex):
            raise TypeError(
                f"Unable to build `SerialDense` layer with non-floating point dtype {dtype}; expected "
                "float16 or float32. Pass such a dtype."
            )
        size = tf.TensorShape(input_shape).as_list()[-1]
        if size is None:
            raise ValueError(
                "The last dimension of the inputs to `SerialDense` should be defined. Found `None`. Set the last "
                "dimension of the input shape."
            )
        self.input_spec = _keras.layers.InputSpec(min_ndim=2, axes={-1: size})
        self.kernel = self.add_weight(
            "kernel",
            shape=[size, self.units],
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.bias = None
        if self.use_bias:
            self.bias = self.add_weight(
                "bias",
                shape=[self.units],
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
            )
        self.built = True

    def call(self, inputs: Any, **kwargs: Any) -> Any:
        """Multiplies.

        Args:
            inputs: `[..., inputs]`.
            **kwargs: accepted, because Keras may pass `training` or `mask`; the result does not depend on them.

        Returns:
            `[..., units]`.

        Raises:
            TypeError: the inputs are sparse.
            ValueError: the factor or the dimension is wrong.
        """
        if isinstance(inputs, (tf.SparseTensor, tf.compat.v1.SparseTensorValue)):
            raise TypeError(
                "Unable to build `SerialDense` layer with sparse inputs: these are sparse; expected dense tensors. "
                "Convert "
                "them with tf.sparse.to_dense."
            )
        if self.serialization_dimension not in _DIMENSIONS:
            raise ValueError(
                f"Invalid serialization_dimension={self.serialization_dimension}, expected one of: "
                "'input_columns', 'input_rows_kernel_columns', 'kernel_rows'. Pass one of these."
            )
        shape = inputs.shape.as_list()
        rows = tf.reshape(inputs, [-1, shape[-1]]) if len(shape) > 2 else inputs
        if len(shape) > 2 and None not in shape:
            rows = tf.ensure_shape(rows, [math.prod(shape[:-1]), shape[-1]])
        outputs = math_ops.serialized_matmul(
            rows,
            tf.convert_to_tensor(self.kernel),
            self.serialization_factor,
            _DIMENSIONS[self.serialization_dimension],
        )
        if len(shape) > 2:
            outputs = tf.reshape(outputs, tf.concat([tf.shape(inputs)[:-1], [self.units]], axis=0))
            outputs.set_shape([*shape[:-1], self.units])
        if self.bias is not None:
            outputs = tf.nn.bias_add(outputs, self.bias)
        return outputs if self.activation is None else self.activation(outputs)

    def compute_output_shape(self, input_shape: Any) -> Any:
        """Returns the inputs' shape with `units` last.

        Args:
            input_shape: the shape of the inputs.

        Raises:
            ValueError: its last dimension is unknown.
        """
        shape = tf.TensorShape(input_shape).with_rank_at_least(2)
        if shape.as_list()[-1] is None:
            raise ValueError(
                f"The innermost dimension of input_shape must be defined, but saw: {input_shape}"
                ". Set the last dimension of the input shape."
            )
        return shape[:-1].concatenate(self.units)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = {
            "units": self.units,
            "serialization_factor": self.serialization_factor,
            "serialization_dimension": self.serialization_dimension,
            "activation": _keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
            "activity_regularizer": _keras.regularizers.serialize(self.activity_regularizer),
        }
        for part in ("kernel", "bias"):
            for kind in ("initializer", "regularizer", "constraint"):
                name = f"{part}_{kind}"
                config[name] = getattr(_keras, kind + "s").serialize(getattr(self, name))
        return {**super().get_config(), **config}
