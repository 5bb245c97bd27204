"""`IPUPipelineEstimator`: runs a model function that returns pipeline stages."""

from __future__ import annotations

import collections
import inspect
import numbers
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim import sdk
from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.gradients.gradient_accumulation import GradientAccumulationReductionMethod
from tf_ipu_shim.frontend.pipelines import pipelining_ops
from tf_ipu_shim.frontend.sharding import scopes
from tf_ipu_shim.frontend.tracing import ipu_compiler
from tf_ipu_shim.legacy.estimators import metrics, shards
from tf_ipu_shim.legacy.estimators.base import PROGRAM_NAMES, IPUEstimatorBase
from tf_ipu_shim.legacy.estimators.feeds import EvaluationFeeds, Feeds, PredictionFeeds
from tf_ipu_shim.legacy.estimators.step_hooks import RestCounter
from tf_ipu_shim.tf_private.estimators import ModeKeys
from tf_ipu_shim.tf_private.estimators import model_fn as stock_specs
from tf_ipu_shim.tf_private.functions import function_utils
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import math_ops

_COUNTED_UPDATES = (2, 0)  # the last SDK whose estimators could count updates as steps

_Fields: Any = collections.namedtuple(
    "_Fields",
    "mode computational_stages gradient_accumulation_count eval_metrics_fn optimizer_function device_mapping "
    "loss_accumulator_dtype training_hooks evaluation_hooks prediction_hooks reduction_method "
    "count_gradient_accumulation_as_iterations pipeline_op_kwargs",
)


class IPUPipelineEstimatorSpec(_Fields):
    """The return value of the model function of an `IPUPipelineEstimator`.

    Args:
        mode: a `tf.estimator.ModeKeys`.
        computational_stages: functions; the first receives the features and labels, the others the previous stage's
            results. The last returns the loss when training, the arguments of `eval_metrics_fn` when evaluating, and a
            tensor or dictionary of predictions when predicting.
        gradient_accumulation_count: mini-batches of an update.
        eval_metrics_fn: runs on the host and returns metrics by name, one of them `loss`.
        optimizer_function: accepts the last stage's results, returns an `OptimizerFunctionOutput`.
        device_mapping: the IPU of each stage.
        loss_accumulator_dtype: no effect: losses are sent one by one and averaged on the host in float32.
        training_hooks: session hooks for training.
        evaluation_hooks: hooks for evaluation.
        prediction_hooks: hooks for prediction.
        reduction_method: how the gradients of mini-batches become one.
        pipeline_depth: the name of `gradient_accumulation_count` in SDKs up to 2.0.
        count_gradient_accumulation_as_iterations: whether steps and `iterations_per_loop` are mini-batches, as they
            always are from SDK 2.1 on. Left out under SDKs up to 2.0, they are updates.
        **pipeline_op_kwargs: further arguments of `pipelining_ops.pipeline`.

    Raises:
        TypeError: an argument is not one of the pipeline's either, or the count is not an integer.
        ValueError: an argument that the mode needs is missing, `accumulate_outfeed` is given, or updates are to be
            counted under SDK 2.1 or later.

    Source: `tensorflow.python.ipu.ipu_pipeline_estimator.IPUPipelineEstimatorSpec`.

    Example:
        >>> def optimizer_function(loss):
        ...     return pipelining_ops.OptimizerFunctionOutput(tf.compat.v1.train.GradientDescentOptimizer(0.1), loss)
        >>> spec = IPUPipelineEstimatorSpec("train", computational_stages=[tf.nn.relu, tf.reduce_sum],
        ...                                 gradient_accumulation_count=8, optimizer_function=optimizer_function)
        >>> spec.gradient_accumulation_count
        8
    """

    @argument_order(
        2,
        "pipeline_depth eval_metrics_fn optimizer_function device_mapping pipeline_schedule "
        "offload_weight_update_variables inputs",
        until=(1, 3),
    )
    @argument_order(
        3,
        "gradient_accumulation_dtype pipeline_depth eval_metrics_fn optimizer_function device_mapping "
        "pipeline_schedule recomputation_mode offload_weight_update_variables inputs",
        since=(1, 4),
        until=(2, 0),
    )
    def __new__(
        cls,
        mode: str,
        computational_stages: Sequence[Callable[..., Any]],
        gradient_accumulation_count: int | None = None,
        eval_metrics_fn: Callable[..., Any] | None = None,
        optimizer_function: Callable[..., Any] | None = None,
        device_mapping: Sequence[int] | None = None,
        loss_accumulator_dtype: Any = None,
        training_hooks: Sequence[Any] | None = None,
        evaluation_hooks: Sequence[Any] | None = None,
        prediction_hooks: Sequence[Any] | None = None,
        reduction_method: Any = GradientAccumulationReductionMethod.SUM,
        pipeline_depth: int | None = None,
        count_gradient_accumulation_as_iterations: bool | None = None,
        **pipeline_op_kwargs: Any,
    ) -> IPUPipelineEstimatorSpec:
        """Checks that the mode's required values are present."""
        counts_updates_too = sdk.current() <= _COUNTED_UPDATES
        if count_gradient_accumulation_as_iterations is None:
            count_gradient_accumulation_as_iterations = not counts_updates_too
        elif not count_gradient_accumulation_as_iterations and not counts_updates_too:
            raise ValueError(
                f"iterations_per_loop counts mini-batches under SDK {sdk.current()}, and "
                "count_gradient_accumulation_as_iterations=False asks for updates, which only SDKs up to 2.0 "
                "count. Leave it out and multiply steps and iterations_per_loop by "
                "gradient_accumulation_count, or run with --sdk 2.0."
            )
        count: Any = gradient_accumulation_count or pipeline_depth
        missing = [("gradient_accumulation_count", not count, "")]
        if mode == ModeKeys.TRAIN:
            missing.insert(0, ("optimizer_function", not optimizer_function, " when training"))
        if mode == ModeKeys.EVAL:
            missing.insert(0, ("eval_metrics_fn", not eval_metrics_fn, " when evaluating"))
        for name, is_missing, when in missing:
            if is_missing:
                raise ValueError(f"`IPUPipelineEstimatorSpec` must contain `{name}`{when}. Add it to the spec.")
        if not isinstance(count, numbers.Integral):
            raise TypeError(f"gradient_accumulation_count must be an integer, not {count!r}. Pass an integer.")
        unknown = sorted(set(pipeline_op_kwargs) - set(inspect.signature(pipelining_ops.pipeline).parameters))
        if unknown:
            raise TypeError(
                f"IPUPipelineEstimatorSpec takes no argument {unknown[0]!r}, and neither does "
                "pipelining_ops.pipeline; expected an argument of one of them. Remove it, or correct its "
                "name."
            )
        if "accumulate_outfeed" in pipeline_op_kwargs:
            raise ValueError(
                "The `accumulate_outfeed` pipeline keyword argument cannot be given: the estimator decides what the "
                "outfeed holds. Remove it."
            )
        note_arguments("IPUPipelineEstimatorSpec", loss_accumulator_dtype=loss_accumulator_dtype)
        return super().__new__(
            cls,
            mode,
            computational_stages,
            count,
            eval_metrics_fn,
            optimizer_function,
            device_mapping,
            loss_accumulator_dtype,
            training_hooks,
            evaluation_hooks,
            prediction_hooks,
            reduction_method,
            bool(count_gradient_accumulation_as_iterations),
            pipeline_op_kwargs,
        )

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]:
        """Copies are made of named arguments, whose order is not the same in all releases."""
        named = dict(self._asdict())
        options = named.pop("pipeline_op_kwargs")
        return (), {**named, **options}


class IPUPipelineEstimator(IPUEstimatorBase):
    """A `tf.estimator.Estimator` whose model is a pipeline over several IPUs.

    A step is a mini-batch: a loop of `iterations_per_loop` steps makes `iterations_per_loop /
    gradient_accumulation_count` updates. Under SDKs up to 2.0 a step is an update, unless the specification has
    `count_gradient_accumulation_as_iterations`.

    Args:
        model_fn: accepts `mode`, and `params` and `config` if it has them; returns an `IPUPipelineEstimatorSpec`.
        model_dir: the directory of checkpoints and summaries.
        config: a `RunConfig` of `ipu_run_config`; default values if omitted.
        params: the parameters for the model function and the input function.
        warm_start_from: a checkpoint, or a `tf.estimator.WarmStartSettings`.

    Source: `tensorflow.python.ipu.ipu_pipeline_estimator.IPUPipelineEstimator`.

    Example:
        >>> from tf_ipu_shim.ipu.ipu_run_config import IPURunConfig, RunConfig
        >>> def model_fn(mode):
        ...     return IPUPipelineEstimatorSpec(mode, [lambda x: 2 * x, lambda x: x + 1], gradient_accumulation_count=4)
        >>> options = ipu.config.IPUConfig()
        >>> options.auto_select_ipus = 2
        >>> run = IPURunConfig(iterations_per_loop=4, num_shards=2, ipu_options=options)
        >>> estimator = IPUPipelineEstimator(model_fn, config=RunConfig(ipu_run_config=run))
        >>> predictions = estimator.predict(lambda: tf.data.Dataset.range(4).map(lambda i: tf.cast([i], tf.float32)))
        >>> [float(one) for one in predictions]
        [1.0, 3.0, 5.0, 7.0]
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | None = None,
        config: Any = None,
        params: Any = None,
        warm_start_from: Any = None,
    ) -> None:
        self._stages_of = model_fn

        def accepted(features: Any, labels: Any, mode: str, params: Any, config: Any) -> Any:
            """TensorFlow requires a model function of features; stages consume them directly."""
            return self._stages(mode)

        super().__init__(accepted, model_dir, config, params, warm_start_from)

    def _check_spec(self, spec: Any) -> None:
        if not isinstance(spec, IPUPipelineEstimatorSpec):
            raise TypeError(
                f"model_fn must return `IPUPipelineEstimatorSpec`, not {type(spec).__name__}. Return an "
                "IPUPipelineEstimatorSpec."
            )
        shards.check_pipeline(spec.computational_stages, spec.device_mapping, self._ipu.num_shards)
        if not spec.count_gradient_accumulation_as_iterations:
            return
        if self._ipu.iterations_per_loop % spec.gradient_accumulation_count:
            loop, count = self._ipu.iterations_per_loop, spec.gradient_accumulation_count
            relation = "cannot be less than" if loop < count else "must be divisible by"
            raise ValueError(
                f"`IPURunConfig.iterations_per_loop` (got {loop}) {relation} `gradient_accumulation_count` "
                f"(got {count}): a loop makes whole updates. Set it to a multiple of {count}."
            )

    def _training(self, dataset: Any) -> Any:
        feeds = Feeds(dataset, self._ipu)
        spec, program = self._pipeline(ModeKeys.TRAIN, feeds)
        losses = self._sent(spec, feeds, program)
        count = spec.gradient_accumulation_count
        steps_per_update = count if spec.count_gradient_accumulation_as_iterations else 1
        self._rest_counter = RestCounter(feeds.outfeed, lambda mini_batches: mini_batches // count * steps_per_update)
        return stock_specs.EstimatorSpec(
            ModeKeys.TRAIN,
            loss=math_ops.reduce_mean(math_ops.cast(nest.flatten(losses)[0], "float32")),
            train_op=self._count_steps([program]),
            training_hooks=[feeds, *(spec.training_hooks or ())],
        )

    def _evaluation(self, dataset: Any) -> Any:
        feeds = EvaluationFeeds(dataset, self._ipu)
        spec, program = self._pipeline(ModeKeys.EVAL, feeds)
        sent = self._sent(spec, feeds, program)
        metric_values = metrics.on_host(spec.eval_metrics_fn, sent if isinstance(sent, (dict, list, tuple)) else [sent])
        if "loss" not in metric_values or isinstance(metric_values["loss"], tuple):
            raise KeyError(
                "The dictionary that `eval_metrics_fn` returns must contain 'loss', a tensor; it has "
                f"{', '.join(map(repr, metric_values)) or 'nothing'}. Add the loss."
            )
        loss = math_ops.reduce_mean(math_ops.cast(metric_values.pop("loss"), "float32"))
        return self._evaluation_spec(spec, feeds, loss, metrics.completed(metric_values), program, sent)

    def _prediction(self, dataset: Any) -> Any:
        feeds = PredictionFeeds(dataset, self._ipu)
        spec, program = self._pipeline(ModeKeys.PREDICT, feeds)
        sent = self._sent(spec, feeds, program)
        if isinstance(sent, (list, tuple)):
            if len(sent) != 1:
                raise ValueError(
                    "The last computational stage must return exactly one prediction tensor, or a dictionary of them; "
                    f"it returns {len(sent)}. Return a dictionary."
                )
            sent = sent[0]
        return self._prediction_spec(spec, feeds, sent)

    def _sent(self, spec: IPUPipelineEstimatorSpec, feeds: Feeds, program: Any) -> Any:
        mini_batches = self._ipu.iterations_per_loop
        if not spec.count_gradient_accumulation_as_iterations:
            mini_batches *= spec.gradient_accumulation_count
        with ops.control_dependencies([program]):
            return feeds.outfeed.results(mini_batches, self._ipu.num_replicas)

    def _pipeline(self, mode: str, feeds: Feeds) -> tuple[Any, Any]:
        """Builds the pipeline of a mode: the model function's results, and the operation that runs it."""
        specs: list[Any] = []

        def model() -> Any:
            spec = self._stages(mode)
            specs.append(spec)
            training = mode == ModeKeys.TRAIN
            repeats = self._ipu.iterations_per_loop
            if spec.count_gradient_accumulation_as_iterations:
                repeats //= spec.gradient_accumulation_count
            options = dict(spec.pipeline_op_kwargs)
            if training:
                options.update(optimizer_function=spec.optimizer_function, outfeed_loss=True)
            return pipelining_ops.pipeline(
                computational_stages=spec.computational_stages,
                gradient_accumulation_count=spec.gradient_accumulation_count,
                repeat_count=repeats,
                infeed_queue=feeds.infeed,
                outfeed_queue=feeds.outfeed,
                device_mapping=spec.device_mapping,
                reduction_method=spec.reduction_method,
                name="ipu_pipeline_estimator",
                **options,
            )

        with scopes.ipu_scope(f"/device:IPU:{self._ipu.ordinal}"):
            program = ipu_compiler.compile_named(PROGRAM_NAMES[mode], model)
        return specs[-1], program

    def _stages(self, mode: str) -> Any:
        names = function_utils.fn_args(self._stages_of)
        if {"features", "labels"} & set(names):
            raise ValueError(
                "model_fn of an IPUPipelineEstimator must not have `features` or `labels` arguments; it has "
                f"{', '.join(names)}. The first computational stage takes them: give it those arguments."
            )
        arguments = {"mode": mode, "config": self._config, "params": self.params}
        spec = self._stages_of(**{name: value for name, value in arguments.items() if name in names})
        self._check_spec(spec)
        return spec
