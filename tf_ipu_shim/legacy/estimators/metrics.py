"""Turns evaluation metrics on IPUs into the value and update pairs that estimators expect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tf_ipu_shim import errors
from tf_ipu_shim.legacy.estimators import graphs
from tf_ipu_shim.tf_private.control_flow import control_flow_ops
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops, math_ops, metrics_impl
from tf_ipu_shim.tf_private.variables import variable_v1

# Variables of metrics whose mean over replicas of equally large shares is the metric over all data.
_OF_MEANS = {"total", "count"}


def updates(eval_metric_ops: Mapping[str, Any]) -> dict[str, Any]:
    """The updates of metrics on the IPU, by name: tensors or operations; called in the model function's graph."""
    return {
        name: metric[1] if isinstance(metric, tuple) else control_flow_ops.group(*metric.updates)
        for name, metric in eval_metric_ops.items()
    }


def on_ipu(eval_metric_ops: Mapping[str, Any], program: Any, sent: Mapping[str, Any], replicas: int) -> dict[str, Any]:
    """Metrics that the IPU has updated in each iteration."""
    if replicas == 1:
        values = {
            name: metric[0] if isinstance(metric, tuple) else metric.result()
            for name, metric in eval_metric_ops.items()
        }
        return {name: (graphs.lifted(value), program) for name, value in values.items()}
    of_metrics = {variable.op.name for variable in ops.get_collection(ops.GraphKeys.METRIC_VARIABLES)}
    for name in sent:
        used = sorted(graphs.sources(eval_metric_ops[name][1]) & of_metrics)
        if {variable.rpartition("/")[2] for variable in used} != _OF_MEANS or len(used) != len(_OF_MEANS):
            raise errors.UnsupportedError(
                f"Metric {name!r}, with variables {', '.join(used)}, is computed by {replicas} "
                "replicas, each from its own share of the data; only means can be averaged over replicas. "
                "Compute it on the host: return an IPUEstimatorSpec with eval_metrics=(function, tensors)."
            )
    return {
        name: _reduced(name, math_ops.reduce_mean(values[-1], axis=0), eval_metric_ops[name][1].shape)
        for name, values in sent.items()
    }


def _reduced(name: str, value: Any, shape: Any) -> tuple[Any, Any]:
    """Returns the last value of a run, kept on the host for when the evaluation ends."""
    with ops.device("/device:CPU:0"):
        variable = variable_v1.VariableV1(
            array_ops.zeros(shape, value.dtype),
            trainable=False,
            use_resource=True,
            collections=[ops.GraphKeys.LOCAL_VARIABLES],
            name=f"{name}_of_replicas",
        )
        return variable.read_value(), variable.assign(value)


def on_host(function: Any, sent: Any) -> dict[str, Any]:
    """Metrics that a function computes on the host, from a run's outputs."""
    with ops.device("/device:CPU:0"):
        metric_ops = function(**sent) if isinstance(sent, dict) else function(*sent)
    if not isinstance(metric_ops, Mapping):
        raise TypeError(
            "The function of eval_metrics must return a dictionary of metrics by name, and returned a "
            f"{type(metric_ops).__name__}. Return a dictionary."
        )
    return dict(metric_ops)


def completed(metric_ops: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics in TensorFlow's form; a plain tensor becomes its mean over the evaluation."""
    with ops.device("/device:CPU:0"):
        return _completed(metric_ops)


def _completed(metric_ops: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _pair(name, metric) for name, metric in metric_ops.items()}


def _pair(name: str, metric: Any) -> Any:
    if isinstance(metric, tuple):
        return metric
    if not hasattr(metric, "result"):
        return metrics_impl.mean(metric)
    if not metric.updates:
        raise ValueError(
            f"Metric {name!r} is never updated; expected a call of its update_state(). Call it in the "
            "function that returns the metric."
        )
    for variable in metric.variables:  # Keras' are in no collection, and sessions of estimators initialise collections
        for collection in (ops.GraphKeys.LOCAL_VARIABLES, ops.GraphKeys.METRIC_VARIABLES):
            ops.add_to_collection(collection, variable)
    return metric.result(), control_flow_ops.group(*metric.updates)
