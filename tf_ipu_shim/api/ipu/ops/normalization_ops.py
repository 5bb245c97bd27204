"""`tensorflow.python.ipu.ops.normalization_ops`: group, layer and instance normalization with their variables."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import sdk
from tf_ipu_shim.configuration import warnings
from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.ops.norms import group_normalisation

v1 = tf.compat.v1

DATA_FORMAT_NHWC = "NHWC"
DATA_FORMAT_NCHW = "NCHW"
_AFTER_REDUCTION_AXES = "center scale epsilon param_initializers reuse variables_collections training trainable scope"
# The default changed with SDK 2.3.
_EPSILON = 1.53e-05 if sdk.current() >= (2, 3) else 1e-06
_SAFE_EPSILON = 1.53e-05
_WARNS_SINCE = (2, 2)


@argument_order(3, "reduction_axes " + _AFTER_REDUCTION_AXES + " strided_channel_grouping", until=(2, 0))
def group_norm(
    inputs: Any,
    groups: int = 2,
    channels_axis: int = -1,
    center: bool = True,
    scale: bool = True,
    epsilon: float = _EPSILON,
    param_initializers: dict[str, Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    training: bool = True,
    trainable: bool = True,
    scope: Any = None,
    strided_channel_grouping: bool = True,
    *,
    reduction_axes: Any = None,
) -> Any:
    """Normalises groups of channels of each sample (https://arxiv.org/abs/1803.08494).

    Statistics are computed from the sample, in training and in inference, so they do not depend on the batch size.

    Args:
        inputs: `[batch, ..., channels]` or `[batch, channels, ...]`.
        groups: how many groups; a divisor of the number of channels.
        channels_axis: 1 or the last one.
        center: adds a variable `beta`, `[channels]`.
        scale: multiplies by a variable `gamma`, `[channels]`.
        epsilon: added to the variance. 1e-6 before SDK 2.3.
        param_initializers: the initializers of `beta` and `gamma`; zeros and ones by default.
        reuse: whether to reuse the variables of the scope.
        variables_collections: a list of collections, or a dictionary of such lists for `beta` and `gamma`.
        training: accepted; statistics come from the sample in training and in inference.
        trainable: whether the variables are.
        scope: the variables' scope; `GroupNorm` by default.
        strided_channel_grouping: channel c is in group `c % groups`; else neighbours make a group.
        reduction_axes: only in SDK 1.4 and older, which ignored it.

    Returns:
        A tensor like inputs.

    Raises:
        ValueError: shape, axis and groups do not fit together.

    Source: `tensorflow.python.ipu.normalization_ops.group_norm`.

    Example:
        >>> group_norm(tf.ones([2, 4, 4, 8]), groups=4).shape
        TensorShape([2, 4, 4, 8])
    """
    return _normalised("GroupNorm", groups, strided_channel_grouping, locals())


@argument_order(2, "reduction_axes " + _AFTER_REDUCTION_AXES, until=(2, 0))
def layer_norm(
    inputs: Any,
    channels_axis: int = -1,
    center: bool = True,
    scale: bool = True,
    epsilon: float = _EPSILON,
    param_initializers: dict[str, Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    training: bool = True,
    trainable: bool = True,
    scope: Any = None,
    *,
    reduction_axes: Any = None,
) -> Any:
    """Normalises all channels of a sample together: `group_norm` with one group, see there.

    Returns:
        A tensor like inputs.

    Raises:
        ValueError: shape and axis do not fit together.

    Source: `tensorflow.python.ipu.normalization_ops.layer_norm`.

    Example:
        >>> layer_norm(tf.ones([2, 4, 4, 8])).shape
        TensorShape([2, 4, 4, 8])
    """
    return _normalised("LayerNorm", 1, True, locals())


@argument_order(2, "reduction_axes " + _AFTER_REDUCTION_AXES, until=(2, 0))
def instance_norm(
    inputs: Any,
    channels_axis: int = -1,
    center: bool = True,
    scale: bool = True,
    epsilon: float = _EPSILON,
    param_initializers: dict[str, Any] | None = None,
    reuse: Any = None,
    variables_collections: Any = None,
    training: bool = True,
    trainable: bool = True,
    scope: Any = None,
    *,
    reduction_axes: Any = None,
) -> Any:
    """Normalises each channel of a sample separately: `group_norm` with as many groups as channels, see there.

    Returns:
        A tensor like inputs.

    Raises:
        ValueError: shape and axis do not fit together.

    Source: `tensorflow.python.ipu.normalization_ops.instance_norm`.

    Example:
        >>> instance_norm(tf.ones([2, 4, 4, 8])).shape
        TensorShape([2, 4, 4, 8])
    """
    arguments = locals()
    inputs = tf.convert_to_tensor(inputs)
    rank = inputs.shape.rank
    if rank is None:
        raise ValueError(
            f"Inputs {_described(inputs)} has undefined rank. Expected a known number of axes: set the "
            "static shape, for example with tf.ensure_shape."
        )
    if not -rank <= channels_axis < rank:
        raise ValueError(
            f"Axis is out of bounds. channels_axis is {channels_axis}, and the tensor's rank is {rank}; "
            "expected an axis below the rank. Choose another channels_axis."
        )
    return _normalised("InstanceNorm", inputs.shape.as_list()[channels_axis] or 1, True, arguments)


def _normalised(name: str, groups: int, strided: bool, arguments: dict[str, Any]) -> Any:
    """Computes a normalization from the arguments of its function; `name` is the default scope of its variables."""
    note_arguments("group_norm", training=bool(arguments["training"]), reduction_axes=arguments["reduction_axes"])
    epsilon, channels_axis = arguments["epsilon"], arguments["channels_axis"]
    if sdk.current() >= _WARNS_SINCE and epsilon < _SAFE_EPSILON:
        warnings.warn(
            f"{name} has an epsilon of {epsilon:g}. One below {_SAFE_EPSILON:g} may be lost when "
            "added to a variance in half precision, and the result may be infinite or NaN: make it larger."
        )
    inputs = tf.convert_to_tensor(arguments["inputs"])
    rank = inputs.shape.rank
    inside = rank is not None and -rank <= channels_axis < rank
    channels = inputs.shape.as_list()[channels_axis] if inside else None
    axis = group_normalisation.check_groups(rank, channels, channels_axis, groups, f"Inputs {_described(inputs)}")
    initializers, collections = arguments["param_initializers"] or {}, arguments["variables_collections"]
    with v1.variable_scope(arguments["scope"], name, [inputs], reuse=arguments["reuse"]):

        def get_parameter(parameter: str, default: Any) -> Any:
            extra_collections = collections.get(parameter) if isinstance(collections, dict) else collections
            return v1.get_variable(
                parameter,
                shape=[channels],
                dtype=inputs.dtype.base_dtype,
                initializer=initializers.get(parameter, default),
                collections=[v1.GraphKeys.GLOBAL_VARIABLES, v1.GraphKeys.MODEL_VARIABLES, *(extra_collections or ())],
                trainable=arguments["trainable"],
                use_resource=True,
            )

        beta = get_parameter("beta", v1.zeros_initializer()) if arguments["center"] else None
        gamma = get_parameter("gamma", v1.ones_initializer()) if arguments["scale"] else None
        return group_normalisation.group_normalise(inputs, gamma, beta, groups, axis, epsilon, strided)


def _described(inputs: Any) -> str:
    """Returns a tensor's name in a graph; eager tensors have none."""
    return f"of shape {inputs.shape}" if tf.executing_eagerly() else inputs.name
