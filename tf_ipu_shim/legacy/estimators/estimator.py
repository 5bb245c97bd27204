"""`IPUEstimator`: runs a model function as a loop of steps on the IPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tf_ipu_shim import errors
from tf_ipu_shim.legacy.estimators import loops, metrics
from tf_ipu_shim.legacy.estimators.base import HOST, PROGRAM_NAMES, IPUEstimatorBase
from tf_ipu_shim.legacy.estimators.feeds import EvaluationFeeds, Feeds, PredictionFeeds
from tf_ipu_shim.legacy.estimators.run_config import RunConfig
from tf_ipu_shim.legacy.estimators.specs import scaffold_of
from tf_ipu_shim.legacy.estimators.step_hooks import RestCounter
from tf_ipu_shim.tf_private.estimators import ModeKeys
from tf_ipu_shim.tf_private.estimators import model_fn as stock_specs
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import math_ops


class IPUEstimator(IPUEstimatorBase):
    """A `tf.estimator.Estimator` whose model runs on IPUs, `iterations_per_loop` steps at a time.

    Args:
        model_fn: returns an `EstimatorSpec` or `IPUEstimatorSpec`, as for `tf.estimator`. It does not count steps.
        model_dir: the directory of checkpoints and summaries.
        config: a `RunConfig` of `ipu_run_config`; default values if omitted.
        params: the parameters for the model function and the input function.
        warm_start_from: a checkpoint, or a `tf.estimator.WarmStartSettings`.
        train_batch_size: the batch size of all replicas together; each is given its share as
            `params["batch_size"]`.
        eval_batch_size: the same for evaluation.
        predict_batch_size: the same for prediction.

    Raises:
        ValueError: a batch size is not positive, or cannot be dealt out to the replicas.
        NotImplementedError: several iterations a loop with a distribution strategy.

    Source: `tensorflow.python.ipu.ipu_estimator.IPUEstimator`.

    Example:
        >>> from tf_ipu_shim.ipu.ipu_run_config import IPURunConfig, RunConfig
        >>> def model_fn(features, labels, mode):
        ...     weight = tf.compat.v1.get_variable("weight", initializer=0.0)
        ...     predictions = weight * features
        ...     if mode == "infer":
        ...         return tf.estimator.EstimatorSpec(mode, predictions=predictions)
        ...     loss = tf.reduce_mean((predictions - labels) ** 2)
        ...     train_op = tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        ...     metrics = {"labels": tf.compat.v1.metrics.mean(labels)}
        ...     return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)
        >>> def input_fn():
        ...     return tf.data.Dataset.from_tensors(([1.0, 2.0], [3.0, 6.0])).repeat()
        >>> config = RunConfig(ipu_run_config=IPURunConfig(iterations_per_loop=10))
        >>> estimator = IPUEstimator(model_fn, config=config).train(input_fn, steps=100)
        >>> float(round(estimator.get_variable_value("weight"), 3))
        3.0
        >>> float(estimator.evaluate(input_fn, steps=10)["labels"])
        4.5
        >>> float(round(next(estimator.predict(input_fn)), 3))
        3.0
    """

    def _check_distribution(self, config: RunConfig) -> None:
        loop = self._ipu.iterations_per_loop
        if loop > 1 and (config.train_distribute is not None or config.eval_distribute is not None):
            raise NotImplementedError(
                f"iterations_per_loop > 1 (got {loop}) not supported with distribution. Set iterations_per_loop to 1."
            )

    def _training(self, dataset: Any) -> Any:
        feeds = Feeds(dataset, self._ipu)

        def step(spec: Any) -> tuple[Any, list[Any]]:
            if spec.loss is None or spec.train_op is None:
                raise ValueError("EstimatorSpec must contain loss and train_op when training: one is None. Pass both.")
            sent = {"loss": loops.reported_loss(spec.loss)}
            host_call = getattr(spec, "host_call", None)
            if host_call is not None:
                self._check_host_call()
                sent["host_call"] = list(host_call[1])
            return sent, [spec.train_op]

        loop = self._loop(ModeKeys.TRAIN, step, feeds)
        self._rest_counter = RestCounter(feeds.outfeed, int)
        self._loss_is_divided = loop.loss_is_divided
        if self._ipu.num_replicas > 1 and not loop.reduces_over_replicas:
            raise ValueError(
                f"This is not a valid replicated training graph: it runs on {self._ipu.num_replicas} replicas, but "
                "no cross-replica op reduces gradients over them. Each replica would train other weights. "
                "Wrap the optimizer in CrossReplicaOptimizer, or reduce with cross_replica_ops.cross_replica_sum."
            )
        sent, spec = loop.results(), loop.spec
        after = [loop.program]
        if getattr(spec, "host_call", None) is not None:
            with ops.control_dependencies([loop.program]):
                after.append(_host_call(spec.host_call[0], [values[-1] for values in sent["host_call"]]))
        return stock_specs.EstimatorSpec(
            ModeKeys.TRAIN,
            loss=math_ops.reduce_mean(sent["loss"]),
            train_op=self._count_steps(after),
            scaffold=scaffold_of(spec),
            training_chief_hooks=getattr(spec, "training_chief_hooks", None),
            training_hooks=[feeds, *(spec.training_hooks or ())],
        )

    def _evaluation(self, dataset: Any) -> Any:
        feeds = EvaluationFeeds(dataset, self._ipu)
        replicas = self._ipu.num_replicas

        def step(spec: Any) -> tuple[Any, list[Any]]:
            on_host = getattr(spec, "eval_metrics", None)
            if spec.loss is None:
                raise ValueError("EstimatorSpec must contain loss when evaluating: it is None. Pass loss.")
            if not spec.eval_metric_ops and not on_host:
                raise ValueError(
                    "EstimatorSpec must contain either eval_metric_ops or eval_metrics when evaluating: both are "
                    "None. Pass one of them."
                )
            if spec.eval_metric_ops and on_host:
                raise ValueError(
                    "EstimatorSpec cannot contain both eval_metric_ops and eval_metrics. Leave one of them out."
                )
            sent = {"loss": loops.reported_loss(spec.loss)}
            if on_host:
                return {**sent, "metrics": on_host[1]}, []
            updates = metrics.updates(spec.eval_metric_ops)
            return ({**sent, "metrics": updates} if replicas > 1 else sent), list(updates.values())

        loop = self._loop(ModeKeys.EVAL, step, feeds)
        sent, spec = loop.results(), loop.spec
        loss = math_ops.reduce_mean(sent["loss"])
        if spec.eval_metric_ops:
            metric_values = metrics.on_ipu(spec.eval_metric_ops, loop.program, sent.get("metrics", {}), replicas)
        else:
            metric_values = metrics.completed(metrics.on_host(spec.eval_metrics[0], sent["metrics"]))
        return self._evaluation_spec(spec, feeds, loss, metric_values, loop.program, sent)

    def _prediction(self, dataset: Any) -> Any:
        feeds = PredictionFeeds(dataset, self._ipu)

        def step(spec: Any) -> tuple[Any, list[Any]]:
            if spec.predictions is None:
                raise ValueError(
                    "EstimatorSpec must contain predictions when predicting: it is None. Pass predictions."
                )
            return spec.predictions, []

        loop = self._loop(ModeKeys.PREDICT, step, feeds)
        return self._prediction_spec(loop.spec, feeds, loop.results())

    def _loop(self, mode: str, step: loops.Step, feeds: Feeds) -> loops.ModelLoop:
        def model(features: Any, labels: Any) -> Any:
            return self._user_spec(features, None if mode == ModeKeys.PREDICT else labels, mode)

        return loops.ModelLoop(PROGRAM_NAMES[mode], model, step, feeds, self._ipu)

    def _check_host_call(self) -> None:
        if self._ipu.iterations_per_loop > 1:
            raise ValueError(
                "host_call is not allowed for iterations_per_loop > 1: the host is not asked between iterations. Set "
                "iterations_per_loop to 1."
            )
        if self._ipu.num_replicas > 1:
            raise errors.UnsupportedError(
                f"host_call with {self._ipu.num_replicas} replicas: each has other tensors, but it needs "
                "one set. Reduce them in the model with cross_replica_ops and train with one replica, or use "
                "training_hooks."
            )


def _host_call(function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    with ops.device(HOST):
        returned = function(*arguments)
    if not (isinstance(returned, ops.Operation) or hasattr(returned, "op")):
        raise TypeError(
            f"`host_call` return value must be Operation or Tensor, not {type(returned).__name__}: the session runs it "
            "after each step. Return one of these."
        )
    return returned
