"""Defines `IPUEstimatorSpec`, the result of a model function, and validates its functions and scaffold."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence
from typing import Any

from tf_ipu_shim.tf_private.training import saver

_Fields: Any = collections.namedtuple(
    "_Fields",
    "mode predictions loss train_op eval_metric_ops eval_metrics host_call training_hooks evaluation_hooks "
    "prediction_hooks",
)


class IPUEstimatorSpec(_Fields):
    """The return value of a model function, with functions that run on the host.

    Args:
        mode: a `tf.estimator.ModeKeys`.
        predictions: a tensor, or a dictionary of tensors.
        loss: a scalar tensor.
        train_op: the operation that trains.
        eval_metric_ops: metrics by name, computed on the IPU: pairs of a value and an update.
        eval_metrics: a function that runs on the host and returns metrics by name, and its arguments: a list or a
            dictionary of tensors. It is given them with a first dimension of iterations, then one of replicas if there
            are several.
        host_call: a function that runs on the host after each step and returns an operation or a tensor, and its
            arguments, a list of tensors. Only with one iteration a loop.
        training_hooks: session hooks for training.
        evaluation_hooks: hooks for evaluation.
        prediction_hooks: hooks for prediction.

    Raises:
        TypeError: `eval_metrics` or `host_call` is not a tuple of a function and its arguments.
        ValueError: it does not have two elements.

    Source: `tensorflow.python.ipu.ipu_estimator.IPUEstimatorSpec`.

    Example:
        >>> def log_loss(loss):
        ...     return tf.print("loss", loss)
        >>> loss = tf.constant(1.0)
        >>> IPUEstimatorSpec(mode="train", loss=loss, train_op=tf.no_op(), host_call=(log_loss, [loss])).mode
        'train'
    """

    def __new__(
        cls,
        mode: str,
        predictions: Any = None,
        loss: Any = None,
        train_op: Any = None,
        eval_metric_ops: dict[str, Any] | None = None,
        eval_metrics: tuple[Callable[..., Any], Any] | None = None,
        host_call: tuple[Callable[..., Any], Sequence[Any]] | None = None,
        training_hooks: Sequence[Any] | None = None,
        evaluation_hooks: Sequence[Any] | None = None,
        prediction_hooks: Sequence[Any] | None = None,
    ) -> IPUEstimatorSpec:
        """Checks the functions that run on the host."""
        _check_call("host_call", host_call, (list,))
        _check_call("eval_metrics", eval_metrics, (list, dict))
        return super().__new__(
            cls,
            mode,
            predictions,
            loss,
            train_op,
            eval_metric_ops,
            eval_metrics,
            host_call,
            training_hooks,
            evaluation_hooks,
            prediction_hooks,
        )


def scaffold_of(spec: Any) -> Any:
    """Returns the scaffold of an `EstimatorSpec` for the session around the program, or None."""
    return getattr(spec, "scaffold", None)


def refuse_scaffold_inside(spec: Any, graph: Any) -> None:
    """Refuses a scaffold with operations that were made in the model function, which are part of the program."""
    for name in ("init_op", "ready_op", "ready_for_local_init_op", "local_init_op", "summary_op", "saver"):
        if _is_inside(getattr(scaffold_of(spec), name, None), graph):
            raise ValueError(
                f"The scaffold's {name} was made in the model_fn, whose operations are the program for the IPU: the "
                "session cannot run it. Leave it out, or give the Scaffold an init_fn; give a Saver defer_build=True."
            )


def _is_inside(member: Any, graph: Any) -> bool:
    if not isinstance(member, saver.Saver):
        return getattr(member, "graph", None) is graph
    if member.saver_def is None:
        return False
    names = {operation.name for operation in graph.get_operations()}
    return member.saver_def.filename_tensor_name.partition(":")[0] in names


def _check_call(name: str, spec: Any, expected_types: tuple[type, ...]) -> None:
    if spec is None:
        return
    if not isinstance(spec, tuple):
        raise TypeError(
            f"`{name}` must be a tuple of a function and its arguments, not {type(spec).__name__}. Pass a tuple."
        )
    if len(spec) != 2:
        raise ValueError(
            f"`{name}` must have two elements, a function and its arguments, but it has {len(spec)}. Pass (function, "
            "arguments)."
        )
    if not callable(spec[0]):
        raise TypeError(f"first element in `{name}` must be callable, not {type(spec[0]).__name__}.")
    if not isinstance(spec[1], expected_types):
        allowed = " or ".join(kind.__name__ for kind in expected_types)
        raise TypeError(f"second element in `{name}` must be a {allowed}, not {type(spec[1]).__name__}.")
