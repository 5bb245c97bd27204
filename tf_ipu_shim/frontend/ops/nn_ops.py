"""`tensorflow.python.ipu.nn_ops`: activations, CTC, sampled losses and multi-convolutions."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.ops import activations, planner_options
from tf_ipu_shim.frontend.ops.ctc.ctc_decoders import ctc_beam_search_decoder, ctc_beam_search_decoder_with_log_probs
from tf_ipu_shim.frontend.ops.ctc.ctc_losses import ctc_loss_v2, ctc_loss_with_log_probs
from tf_ipu_shim.frontend.ops.sampled_losses import _compute_sampled_logits, nce_loss, sampled_softmax_loss

__all__ = [
    "_compute_sampled_logits",
    "ctc_beam_search_decoder",
    "ctc_beam_search_decoder_with_log_probs",
    "ctc_loss",
    "ctc_loss_v2",
    "ctc_loss_with_log_probs",
    "ctc_loss_with_logits",
    "gelu",
    "hard_sigmoid",
    "multi_conv",
    "nce_loss",
    "sampled_softmax_loss",
    "softmax",
    "swish",
]

_CONVOLUTIONS = {"Conv2D", "Conv3D", "DepthwiseConv2dNative", "Conv2DBackpropInput", "Conv3DBackpropInputV2"}

# The older names of SDK 2.0 to 2.3.
ctc_loss = ctc_loss_with_log_probs
ctc_loss_with_logits = ctc_loss_v2


@argument_order(1, "name", until=(2, 0))
def gelu(x: Any, approximate: Any = True, name: str | None = None) -> Any:
    """Returns the Gaussian error linear unit (https://arxiv.org/abs/1606.08415).

    Args:
        x: a float tensor.
        approximate: with the hyperbolic tangent in place of the error function, as the IPU's instruction has it.
        name: the name of the op.

    Returns:
        A tensor like x.

    Source: `tensorflow.python.ipu.nn_ops.gelu`.

    Example:
        >>> gelu(tf.constant([0.0, 10.0])).numpy().tolist()
        [0.0, 10.0]
    """
    if isinstance(approximate, str):  # SDKs before 2.1: gelu(x, name)
        approximate, name = True, approximate
    return tf.nn.gelu(x, approximate=approximate, name=name)


def hard_sigmoid(x: Any, name: str | None = None) -> Any:
    """`0.2 * x + 0.5`, clipped to 0 and 1.

    Args:
        x: a float tensor.
        name: the name of the op.

    Returns:
        A tensor like x.

    Source: `tensorflow.python.ipu.nn_ops.hard_sigmoid`.

    Example:
        >>> hard_sigmoid(tf.constant([0.0])).numpy().tolist()
        [0.5]
    """
    return tf.identity(activations.hard_sigmoid(tf.convert_to_tensor(x)), name=name)


def swish(x: Any, name: str | None = None) -> Any:
    """`x * sigmoid(x)` (https://arxiv.org/abs/1710.05941).

    Args:
        x: a float tensor.
        name: the name of the op.

    Returns:
        A tensor like x.

    Source: `tensorflow.python.ipu.nn_ops.swish`.

    Example:
        >>> swish(tf.constant([0.0])).numpy().tolist()
        [0.0]
    """
    return tf.identity(tf.nn.silu(tf.convert_to_tensor(x)), name=name)


def softmax(x: Any, stable: bool = False, name: str | None = None) -> Any:
    """Softmax along the last dimension.

    Args:
        x: a float tensor.
        stable: subtract the largest element first, so that nothing overflows. That is always done here.
        name: the name of the op.

    Returns:
        A tensor like x.

    Source: `tensorflow.python.ipu.nn_ops.softmax`.

    Example:
        >>> softmax(tf.constant([[0.0, 0.0]])).numpy().tolist()
        [[0.5, 0.5]]
    """
    note_arguments("nn_ops.softmax", stable=stable)
    return tf.nn.softmax(x, name=name)


def multi_conv(func: Callable[..., Any] | None = None, options: dict[str, Any] | None = None) -> Callable[..., Any]:
    """Marks a function whose independent convolutions an IPU may run side by side.

    The values do not depend on it. The cycle model plans the convolutions inside, not their gradients, by the
    options `partialsType` and `availableMemoryProportion`, one after the other; it reads no other options.

    Args:
        func: the function; left out, this is a decorator with arguments.
        options: options of Poplar's multi-convolutions, by name.

    Returns:
        A function with the same arguments and results.

    Raises:
        TypeError: when called, if the options are not a dictionary.
        InternalError: when the program runs, if Poplar would refuse the options.

    Source: `tensorflow.python.ipu.nn_ops.multi_conv`.

    Example:
        >>> @multi_conv(options={"availableMemoryProportion": "0.3"})
        ... def both(x, y, w1, w2):
        ...     return tf.nn.conv2d(x, w1, 1, "SAME"), tf.nn.conv2d(y, w2, 1, "SAME")
    """

    planner_options.record_ignored_options("nn_ops.multi_conv", options)

    def decorate(inner: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(inner)
        def multi_conv_wrapper(*args: Any, **kwargs: Any) -> Any:
            if not isinstance({} if options is None else options, dict):
                raise TypeError(
                    f"Expected the multi_conv `options` to be a `dict`, but got {options!r} instead. Pass a dict."
                )
            graph = tf.compat.v1.get_default_graph()
            before = len(graph.get_operations())
            with planner_options.planner_scope(convolution=options):
                results = inner(*args, **kwargs)
            _check_independent(graph.get_operations()[before:])
            return planner_options.check_options(results, options, library="multi_convolution")

        return multi_conv_wrapper

    return decorate if func is None else decorate(func)


def _check_independent(operations: Sequence[Any]) -> None:
    """Refuses convolutions of a multi-convolution that use results of one another."""
    convolution_of: dict[str, str] = {}  # what depends on a convolution, and on which
    for operation in operations:  # in the order in which they were made, so that inputs come first
        sources = [convolution_of[tensor.op.name] for tensor in operation.inputs if tensor.op.name in convolution_of]
        if operation.type in _CONVOLUTIONS:
            if sources:
                raise tf.errors.FailedPreconditionError(
                    None,
                    None,
                    "A MultiConvolution operation requires all convolutions to be independent of each other: "
                    f"{operation.name} depends on {sources[0]}. Compute one of them outside of multi_conv.",
                )
            convolution_of[operation.name] = operation.name
        elif sources:
            convolution_of[operation.name] = sources[0]
