"""Group, instance and layer normalization as Keras layers."""

from __future__ import annotations

import numbers
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import keras2
from tf_ipu_shim.frontend.layers.ipu_layer import IPULayer, accepts_leading_dtype
from tf_ipu_shim.frontend.ops.norms.group_normalisation import check_groups, group_normalise

_keras = keras2.public_module()


@accepts_leading_dtype
class GroupNormalization(IPULayer):
    """Normalises groups of channels of each sample (https://arxiv.org/abs/1803.08494).

    Args:
        groups: how many groups; a divisor of the number of channels.
        channels_axis: 1 or the last one.
        center: adds `beta`, `[channels]`.
        scale: multiplies by `gamma`, `[channels]`.
        epsilon: added to the variance.
        beta_initializer: zeros when left out.
        gamma_initializer: ones when left out.
        strided_channel_grouping: channel c is in group `c % groups`; else neighbours make a group.
        trainable: whether the variables are.
        **kwargs: keyword arguments of a Keras layer, such as `dtype` and `name`.

    Raises:
        ValueError: when built, if shape, axis and groups do not fit together.

    Source: `ipu_tensorflow_addons.keras.layers.GroupNormalization`.

    Example:
        >>> y = GroupNormalization(groups=2)(tf.constant([[[[1.0, 3.0, 10.0, 30.0]]]]))
        >>> y.numpy().round(2).tolist()  # channels 0 and 2 by themselves, and 1 and 3
        [[[[-1.0, -1.0, 1.0, 1.0]]]]
    """

    def __init__(
        self,
        groups: int = 2,
        channels_axis: int = -1,
        center: bool = True,
        scale: bool = True,
        epsilon: float = 1e-3,
        beta_initializer: Any = None,
        gamma_initializer: Any = None,
        strided_channel_grouping: bool = True,
        trainable: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=trainable, **kwargs)
        self.groups = groups
        self.channels_axis = channels_axis
        self.center = center
        self.scale = scale
        self.epsilon = epsilon
        self.beta_initializer = _keras.initializers.get("zeros" if beta_initializer is None else beta_initializer)
        self.gamma_initializer = _keras.initializers.get("ones" if gamma_initializer is None else gamma_initializer)
        self.strided_channel_grouping = strided_channel_grouping
        self.data_format = ""
        self.channels = 1

    def build(self, input_shape: Any) -> None:
        """Makes the variables.

        Args:
            input_shape: `[batch, ..., channels]` or `[batch, channels, ...]`.

        Raises:
            ValueError: it does not fit the axis and the groups.
        """
        shape = tf.TensorShape(input_shape)
        rank = shape.rank
        inside = rank is not None and -rank <= self.channels_axis < rank
        channels: Any = shape.as_list()[self.channels_axis] if inside else None
        self.channels_axis = check_groups(rank, channels, self.channels_axis, self.groups, "Input")
        self.channels = channels
        self.data_format = "NCHW" if self.channels_axis == 1 and rank != 2 else "NHWC"
        self._add_parameters([channels])
        super().build(input_shape)

    def _add_parameters(self, shape: list[int], **options: dict[str, Any]) -> None:
        def parameter(name: str, initializer: Any) -> Any:
            return self.add_weight(
                name=name, shape=shape, initializer=initializer, trainable=self.trainable, **options.get(name, {})
            )

        # In the order of Keras' own layers, which is that of a list of weights.
        self.gamma = parameter("gamma", self.gamma_initializer) if self.scale else None
        self.beta = parameter("beta", self.beta_initializer) if self.center else None

    def call(self, inputs: Any, training: Any = None) -> Any:
        """Normalises.

        Args:
            inputs: as built.
            training: accepted; statistics come from the sample in training and in inference.

        Returns:
            A tensor like inputs.
        """
        return group_normalise(
            inputs,
            self.gamma,
            self.beta,
            self.groups,
            self.channels_axis,
            self.epsilon,
            self.strided_channel_grouping,
        )

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            **super().get_config(),
            "groups": self.groups,
            "channels_axis": self.channels_axis,
            "center": self.center,
            "scale": self.scale,
            "epsilon": self.epsilon,
            "beta_initializer": _keras.initializers.serialize(self.beta_initializer),
            "gamma_initializer": _keras.initializers.serialize(self.gamma_initializer),
            "strided_channel_grouping": self.strided_channel_grouping,
        }


@accepts_leading_dtype
class InstanceNormalization(GroupNormalization):
    """Normalises each channel of each sample separately (https://arxiv.org/abs/1607.08022).

    Args: see `GroupNormalization`.

    Source: `ipu_tensorflow_addons.keras.layers.InstanceNormalization`.

    Example:
        >>> y = InstanceNormalization()(tf.reshape(tf.constant([1.0, 10.0, 3.0, 30.0]), [1, 2, 1, 2]))
        >>> y.numpy().round(2)[0, :, 0].tolist()  # each channel by itself
        [[-1.0, -1.0], [1.0, 1.0]]
    """

    def __init__(
        self,
        channels_axis: int = -1,
        center: bool = True,
        scale: bool = True,
        epsilon: float = 1e-3,
        beta_initializer: Any = None,
        gamma_initializer: Any = None,
        trainable: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            groups=1,
            channels_axis=channels_axis,
            center=center,
            scale=scale,
            epsilon=epsilon,
            beta_initializer=beta_initializer,
            gamma_initializer=gamma_initializer,
            trainable=trainable,
            **kwargs,
        )

    def build(self, input_shape: Any) -> None:
        """Makes the variables.

        Args:
            input_shape: `[batch, ..., channels]` or `[batch, channels, ...]`.

        Raises:
            ValueError: it does not fit the axis.
        """
        shape = tf.TensorShape(input_shape)
        if shape.rank is not None and -shape.rank <= self.channels_axis < shape.rank:
            self.groups = shape.as_list()[self.channels_axis] or 1
        super().build(input_shape)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        del config["groups"], config["strided_channel_grouping"]
        return config


@accepts_leading_dtype
class LayerNormalization(GroupNormalization):
    """Normalises over given axes of each sample (https://arxiv.org/abs/1607.06450), as the layer of Keras does.

    Args:
        axis: one or several; their elements have mean 0 and variance 1 together.
        epsilon: added to the variance.
        center: adds `beta`, of the axes' sizes.
        scale: multiplies by `gamma`, of the axes' sizes.
        beta_initializer: the initializer of beta.
        gamma_initializer: the initializer of gamma.
        beta_regularizer: the regularizer of beta.
        gamma_regularizer: the regularizer of gamma.
        beta_constraint: the constraint of beta.
        gamma_constraint: the constraint of gamma.
        trainable: whether the variables are.
        **kwargs: keyword arguments of a Keras layer.

    Raises:
        ValueError: the axes are not integers; when built, if the shape does not have them.

    Source: `ipu_tensorflow_addons.keras.layers.LayerNormalization`.

    Example:
        >>> y = LayerNormalization(axis=[1, 2])(tf.constant([[[1.0, 3.0], [1.0, 3.0]]]))
        >>> y.numpy().round(2).tolist()
        [[[-1.0, 1.0], [-1.0, 1.0]]]
    """

    def __init__(
        self,
        axis: Any = -1,
        epsilon: float = 1e-3,
        center: bool = True,
        scale: bool = True,
        beta_initializer: Any = "zeros",
        gamma_initializer: Any = "ones",
        beta_regularizer: Any = None,
        gamma_regularizer: Any = None,
        beta_constraint: Any = None,
        gamma_constraint: Any = None,
        trainable: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            groups=1,
            center=center,
            scale=scale,
            epsilon=epsilon,
            beta_initializer=beta_initializer,
            gamma_initializer=gamma_initializer,
            trainable=trainable,
            **kwargs,
        )
        if not isinstance(axis, (numbers.Integral, list, tuple)):
            raise ValueError(
                f"Expected an int or a list/tuple of ints for the argument 'axis', but received {axis!r}. Pass an int, "
                "or a list of ints."
            )
        self.axis: Any = int(axis) if isinstance(axis, numbers.Integral) else list(axis)
        self.beta_regularizer = _keras.regularizers.get(beta_regularizer)
        self.gamma_regularizer = _keras.regularizers.get(gamma_regularizer)
        self.beta_constraint = _keras.constraints.get(beta_constraint)
        self.gamma_constraint = _keras.constraints.get(gamma_constraint)

    def build(self, input_shape: Any) -> None:
        """Makes the variables.

        Args:
            input_shape: the axes' sizes must be known.

        Raises:
            ValueError: it does not have the axes.
        """
        shape = tf.TensorShape(input_shape)
        rank = shape.rank
        if rank is None:
            raise ValueError(
                f"Input shape {input_shape} has undefined rank. Expected a known number of axes: set the input shape."
            )
        axes = [self.axis] if isinstance(self.axis, int) else list(self.axis)
        axes = [axis + rank if axis < 0 else axis for axis in axes]
        for axis in axes:
            if not 0 <= axis < rank:
                raise ValueError(
                    f"Invalid axis: {axis} for an input of {rank} dimensions. Choose an axis of the input."
                )
        if len(axes) != len(set(axes)):
            raise ValueError(f"Duplicate axis: {axes}. Name each axis once.")
        sizes = [shape.as_list()[axis] for axis in axes]
        if None in sizes:
            raise ValueError(
                f"Input shape {shape} has unknown dimensions - axes {axes} must be known. Set these dimensions in the "
                "input shape."
            )
        self.axis = axes
        self._add_parameters(
            sizes,
            beta={"regularizer": self.beta_regularizer, "constraint": self.beta_constraint},
            gamma={"regularizer": self.gamma_regularizer, "constraint": self.gamma_constraint},
        )
        self.built = True

    def call(self, inputs: Any, training: Any = None) -> Any:
        """Normalises.

        Args:
            inputs: as built.
            training: accepted; statistics come from the sample in training and in inference.

        Returns:
            A tensor like inputs.
        """
        values = tf.cast(inputs, tf.float32)
        mean, variance = tf.nn.moments(values, self.axis, keepdims=True)
        result = (values - mean) * tf.math.rsqrt(variance + self.epsilon)
        if self.gamma is not None:
            result *= self._along_axes(self.gamma, inputs.shape)
        if self.beta is not None:
            result += self._along_axes(self.beta, inputs.shape)
        return tf.cast(result, inputs.dtype)

    def _along_axes(self, parameter: Any, shape: Any) -> Any:
        """Returns a parameter with its axes placed among the inputs' axes in the given order."""
        order = sorted(range(len(self.axis)), key=lambda index: self.axis[index])
        sizes = [size if index in self.axis else 1 for index, size in enumerate(shape.as_list())]
        return tf.reshape(tf.transpose(tf.cast(parameter, tf.float32), order), sizes)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        config = super().get_config()
        for name in ("groups", "channels_axis", "strided_channel_grouping"):
            del config[name]
        return {
            **config,
            "axis": self.axis,
            "beta_regularizer": _keras.regularizers.serialize(self.beta_regularizer),
            "gamma_regularizer": _keras.regularizers.serialize(self.gamma_regularizer),
            "beta_constraint": _keras.constraints.serialize(self.beta_constraint),
            "gamma_constraint": _keras.constraints.serialize(self.gamma_constraint),
        }


GroupNorm = GroupNormalization
InstanceNorm = InstanceNormalization
LayerNorm = LayerNormalization
