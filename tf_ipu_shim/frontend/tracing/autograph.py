"""Applies AutoGraph to a script's functions and leaves this library's functions unconverted.

Graphcore's library is part of TensorFlow, which is never converted. Checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.tf_private.autograph import ag_ctx, api, config

_OURS = config.DoNotConvert("tf_ipu_shim")


def install() -> None:
    """Makes AutoGraph skip this package, because converting it is slower than tracing the script."""
    patches.replace(
        config,
        "CONVERSION_RULES",
        lambda stock: (_OURS, *stock),
        why="autograph does not convert this package's own code",
    )


def convert_like_caller(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a script's function, converted by AutoGraph if its caller's code is.

    Example:
        >>> def countdown(x):
        ...     while x > 3.0:
        ...         x -= 1.0
        ...     return x
        >>> def step(x):
        ...     return convert_like_caller(countdown)(x)
        >>> float(tf.function(step)(tf.constant(5.5)))
        2.5
    """
    status = ag_ctx.control_status_ctx()
    if status.status is not ag_ctx.Status.ENABLED:
        return function
    return api.tf_convert(function, status)


def convert(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a script's function, converted as `tf.function` would convert it.

    Example:
        >>> def positive(x):
        ...     return x if x > 0.0 else -x
        >>> float(tf.function(convert(positive), autograph=False)(tf.constant(-2.0)))
        2.0
    """
    return api.tf_convert(function, enable_conversion())


def enable_conversion() -> AbstractContextManager[Any]:
    """A context in which Keras converts a script's layers, losses and metrics, as when `tf.function` traces them.

    Example:
        >>> with enable_conversion():
        ...     ag_ctx.control_status_ctx().status.name
        'ENABLED'
    """
    return ag_ctx.ControlStatusCtx(ag_ctx.Status.ENABLED)  # type: ignore[no-any-return]
