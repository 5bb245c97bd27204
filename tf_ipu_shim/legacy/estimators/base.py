"""The base class of IPU estimators: TensorFlow's estimator with its steps in a program loop."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from tensorflow.compat.v2 import distribute as distribute_lib
from tensorflow.compat.v2 import nest

from tf_ipu_shim import errors
from tf_ipu_shim.configuration import system
from tf_ipu_shim.configuration.tree import IPUConfig
from tf_ipu_shim.frontend.validation.counts import check_integer
from tf_ipu_shim.legacy.estimators import shards, workers
from tf_ipu_shim.legacy.estimators.feeds import EvaluationFeeds, PredictionFeeds
from tf_ipu_shim.legacy.estimators.run_config import RunConfig
from tf_ipu_shim.legacy.estimators.specs import IPUEstimatorSpec, scaffold_of
from tf_ipu_shim.legacy.estimators.step_hooks import StepRestorer, StopAtStep, before_others
from tf_ipu_shim.legacy.utilities import compile_summaries
from tf_ipu_shim.runtime import devices
from tf_ipu_shim.tf_private import estimators
from tf_ipu_shim.tf_private.control_flow import control_flow_ops
from tf_ipu_shim.tf_private.datasets import dataset_ops
from tf_ipu_shim.tf_private.estimators import ModeKeys
from tf_ipu_shim.tf_private.estimators import estimator as stock
from tf_ipu_shim.tf_private.estimators import model_fn as stock_specs
from tf_ipu_shim.tf_private.functions import function_utils
from tf_ipu_shim.tf_private.graphs import ops, random_seed
from tf_ipu_shim.tf_private.operations import array_ops
from tf_ipu_shim.tf_private.training import basic_session_run_hooks, training_util
from tf_ipu_shim.tf_private.variables import variable_scope

PROGRAM_NAMES = {ModeKeys.TRAIN: "train", ModeKeys.EVAL: "evaluate", ModeKeys.PREDICT: "predict"}
"""The name of each mode's program in a profile."""
HOST = "/device:CPU:0"


class IPUEstimatorBase(stock.EstimatorV2):
    """Base class of IPU estimators. Checkpoints, hooks, summaries and sessions are TensorFlow's.

    Args:
        model_fn: the model function.
        model_dir: the directory of checkpoints and summaries.
        config: a `RunConfig` of `ipu_run_config`; default values if omitted.
        params: the parameters for the model function and the input function.
        warm_start_from: a checkpoint, or a `tf.estimator.WarmStartSettings`.
        train_batch_size: the batch size of all replicas together; each is given its share as
            `params["batch_size"]`.
        eval_batch_size: the same for evaluation.
        predict_batch_size: the same for prediction.
    """

    def __init__(
        self,
        model_fn: Callable[..., Any],
        model_dir: str | None = None,
        config: RunConfig | None = None,
        params: Any = None,
        warm_start_from: Any = None,
        train_batch_size: int | None = None,
        eval_batch_size: int | None = None,
        predict_batch_size: int | None = None,
    ) -> None:
        config = RunConfig() if config is None else config
        if not isinstance(config, RunConfig):
            raise ValueError(
                f"`config` must be provided with type `ipu_run_config.RunConfig`, not {type(config).__name__}. Pass "
                "ipu.ipu_run_config.RunConfig."
            )
        self._ipu = config.ipu_run_config
        if self._ipu.iterations_per_loop < 1:
            raise ValueError(
                f"iterations_per_loop must be positive, but {self._ipu.iterations_per_loop} was given. Pass a value "
                "above 0."
            )
        self._check_distribution(config)
        sizes = {
            ModeKeys.TRAIN: ("train_batch_size", train_batch_size, config.train_distribute),
            ModeKeys.EVAL: ("eval_batch_size", eval_batch_size, config.eval_distribute),
            ModeKeys.PREDICT: ("predict_batch_size", predict_batch_size, None),
        }
        set_sizes = {mode: size for mode, size in sizes.items() if size[1] is not None}
        if set_sizes and "batch_size" in (params or {}):
            raise ValueError(
                "batch_size cannot be passed in params when a batch size argument is passed. Remove batch_size from "
                "params."
            )
        self._config: Any
        self._batch_sizes = {mode: _share_of(*size, self._ipu.num_replicas) for mode, size in set_sizes.items()}
        self._prediction_feeds: Any = None
        self._params: Any
        super().__init__(model_fn, model_dir, config, params, warm_start_from)

    def _check_distribution(self, config: RunConfig) -> None:
        """Refuses options that a strategy of several workers excludes."""

    def _assert_members_are_not_overridden(self) -> None:
        """This class overrides how programs are made: nothing else may be decided by TensorFlow's own check."""

    def train(
        self,
        input_fn: Callable[..., Any],
        hooks: Sequence[Any] | None = None,
        steps: int | None = None,
        max_steps: int | None = None,
        saving_listeners: Sequence[Any] | None = None,
    ) -> Any:
        """Trains.

        If the dataset ends within a loop, the completed steps count.

        Args:
            input_fn: returns a `tf.data.Dataset` of features, or of (features, labels).
            hooks: session hooks; they see one run for each loop of `iterations_per_loop` steps.
            steps: how many more; a multiple of `iterations_per_loop`.
            max_steps: until the global step is at least this.
            saving_listeners: see `tf.estimator.Estimator.train`.

        Returns:
            The estimator.

        Raises:
            TypeError: `steps` is not an integer.
            ValueError: `steps` is not a multiple of `iterations_per_loop`, or `input_fn` returns no dataset.
        """
        self._check_steps(steps)
        self._configure()
        super().train(input_fn, hooks, steps, max_steps, saving_listeners)
        return self

    def evaluate(
        self,
        input_fn: Callable[..., Any],
        steps: int | None = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        name: str | None = None,
    ) -> dict[str, Any]:
        """Evaluates a checkpoint.

        If the dataset ends within a loop, the metrics and the loss include the completed steps.

        Args:
            input_fn: returns a `tf.data.Dataset` of features, or of (features, labels).
            steps: how many; a multiple of `iterations_per_loop`. Until the dataset ends, by default.
            hooks: session hooks.
            checkpoint_path: the checkpoint to load; by default the newest.
            name: the name of the evaluation, if there are several.

        Returns:
            A dictionary of the metrics, including `loss` and `global_step`.

        Raises:
            TypeError: `steps` is not an integer.
            ValueError: `steps` is not a multiple of `iterations_per_loop`, or `input_fn` returns no dataset.
        """
        self._check_steps(steps)
        self._configure()
        loops_ = None if steps is None else steps // self._ipu.iterations_per_loop
        return super().evaluate(input_fn, loops_, hooks, checkpoint_path, name)

    def predict(
        self,
        input_fn: Callable[..., Any],
        predict_keys: Any = None,
        hooks: Sequence[Any] | None = None,
        checkpoint_path: str | None = None,
        yield_single_examples: bool = True,
        num_predictions: int | None = None,
    ) -> Iterator[Any]:
        """Yields predictions until the dataset ends.

        Args:
            input_fn: returns a `tf.data.Dataset` of features; labels are left out.
            predict_keys: selects entries of a dictionary of predictions.
            hooks: session hooks.
            checkpoint_path: the checkpoint to load; by default the newest.
            yield_single_examples: whether to yield single examples, or batches.
            num_predictions: how many to yield at most.

        Returns:
            A generator of predictions as NumPy arrays, or dictionaries of them.
        """
        self._configure()
        batches = self._predicted(input_fn, predict_keys, hooks, checkpoint_path)
        yielded = 0
        for batch in batches:
            for prediction in _examples(batch) if yield_single_examples else [batch]:
                yield prediction
                yielded += 1
                if yielded == num_predictions:
                    batches.close()
                    return

    def _predicted(self, input_fn: Any, keys: Any, hooks: Any, checkpoint_path: Any) -> Any:
        """Yields the batches of predictions of each loop, also of a loop cut short by the dataset's end."""
        self._prediction_feeds = None
        for sent in super().predict(input_fn, keys, hooks, checkpoint_path, yield_single_examples=False):
            yield from self._batches(sent)
        feeds = self._prediction_feeds
        if feeds is not None and feeds.rest is not None:
            yield from self._batches(self._extract_keys(feeds.rest, keys))

    def _batches(self, sent: Any) -> Iterator[Any]:
        iterations = len(nest.flatten(sent)[0])
        for index in range(iterations):
            batch = nest.map_structure(lambda values: values[index], sent)  # noqa: B023  used at once
            if self._ipu.num_replicas > 1:
                batch = nest.map_structure(_of_replicas, batch)
            yield batch

    def _check_steps(self, steps: int | None) -> None:
        if steps is None:
            return
        check_integer("steps", steps)
        loop = self._ipu.iterations_per_loop
        if steps % loop:
            raise ValueError(f"steps ({steps}) must be a multiple of iterations_per_loop ({loop}). Change one of them.")

    def _convert_train_steps_to_hooks(self, steps: int | None, max_steps: int | None) -> list[Any]:
        if steps is None and max_steps is None:
            return []
        return [StopAtStep(steps, max_steps, self._ipu.iterations_per_loop)]

    def _configure(self) -> None:
        options = self._ipu.ipu_options
        if options is None:  # one IPU: a system that somebody configured with more would run as many replicas
            if devices.configured() is not None and devices.get(self._ipu.ordinal, attach=False).num_ipus == 1:
                return
            options = IPUConfig()
            options.auto_select_ipus = [1] * (self._ipu.ordinal + 1)
        system.configure_ipu_system(options)
        shards.check_device(self._ipu.ordinal, self._ipu.num_replicas, self._ipu.num_shards)

    def _create_global_step(self, graph: Any) -> Any:
        # Read once a run, on the host: a model that asks for the step is given a value, not a variable of the host's.
        strategy = distribute_lib.get_strategy()
        creation_scope = workers.own_variables(strategy) if distribute_lib.has_strategy() else contextlib.nullcontext()
        scope = variable_scope.variable_scope(
            variable_scope.get_variable_scope(), use_resource=True, caching_device=HOST
        )
        with creation_scope, ops.device(HOST), scope:
            return training_util.create_global_step(graph)

    _rest_counter: Any = None  # of the training program

    def _train_with_estimator_spec(
        self, estimator_spec: Any, worker_hooks: Any, hooks: Any, global_step_tensor: Any, saving_listeners: Any
    ) -> Any:
        counter, self._rest_counter = self._rest_counter, None
        if counter is not None and self._train_distribution is None:
            all_hooks = [*worker_hooks, *hooks, *estimator_spec.training_hooks, *estimator_spec.training_chief_hooks]
            is_saved = any(isinstance(hook, basic_session_run_hooks.CheckpointSaverHook) for hook in all_hooks)
            worker_hooks = before_others(counter, worker_hooks, is_saved, self._config, estimator_spec.scaffold)
        return super()._train_with_estimator_spec(
            estimator_spec, worker_hooks, hooks, global_step_tensor, saving_listeners
        )

    _loss_is_divided = False  # by the number of workers: the mean is reported, of pipelines the sum

    def _train_model_distributed(self, input_fn: Any, hooks: Any, saving_listeners: Any) -> Any:
        if estimators.is_independent_worker(self._config):
            raise ValueError(
                "Only `STANDALONE_CLIENT` mode is supported when you call `estimator.train`, and TF_CONFIG names a "
                "cluster: call tf.estimator.train_and_evaluate, which starts this worker's server and trains on it."
            )
        return super()._train_model_distributed(input_fn, hooks, saving_listeners)

    def _actual_train_model_distributed(self, strategy: Any, input_fn: Any, hooks: Any, saving_listeners: Any) -> Any:
        config = self._config
        try:
            return self._trained_by_workers(strategy, input_fn, hooks, saving_listeners)
        finally:
            self._config = config

    def _trained_by_workers(self, strategy: Any, input_fn: Any, hooks: Any, saving_listeners: Any) -> Any:
        workers.begin(strategy)
        if workers.is_silent(strategy):
            self._config, saving_listeners = workers.silent(self._config), ()
        with workers.graph_of(strategy) as graph:
            random_seed.set_random_seed(self._config.tf_random_seed)
            step = self._create_and_assert_global_step(graph)
            dataset = self._call_input_fn(input_fn, ModeKeys.TRAIN, workers.input_context(strategy))
            arguments = (dataset, None, ModeKeys.TRAIN, self._config)
            spec = strategy.extended.call_for_each_replica(self._call_model_fn, arguments)
            spec = spec._replace(loss=workers.reported_loss(strategy, spec.loss, self._loss_is_divided))
            own_hooks = []
            if workers.save_on_all_processes(strategy):
                self._config = workers.saving_by_steps(self._config)
                own_hooks = workers.saving_hooks(self._config, spec.scaffold)
            return self._train_with_estimator_spec(spec, own_hooks, hooks, step, saving_listeners)

    def _call_model_fn_eval_distributed(self, input_fn: Any, config: Any) -> Any:
        strategy = self._eval_distribution
        if workers.number_of(strategy) == 1:
            return self._call_model_fn_eval(input_fn, config)
        self._call_input_fn(input_fn, ModeKeys.EVAL, workers.input_context(strategy))
        raise errors.UnsupportedError(
            f"An evaluation that is distributed over {workers.number_of(strategy)} workers is not emulated. Leave "
            "eval_distribute out and evaluate in one process, as the evaluator of a cluster does."
        )

    def _get_features_and_labels_from_input_fn(self, input_fn: Any, mode: str) -> tuple[Any, None, list[Any]]:
        return self._call_input_fn(input_fn, mode), None, []

    def _get_features_from_input_fn(self, input_fn: Any, mode: str) -> tuple[Any, list[Any]]:
        return self._call_input_fn(input_fn, mode), []

    def _call_input_fn(self, input_fn: Any, mode: str, input_context: Any = None) -> Any:
        if mode in self._batch_sizes and "params" not in function_utils.fn_args(input_fn):
            raise ValueError(
                "input_fn must have params argument to receive params['batch_size'], because the estimator was given "
                "batch sizes. Add an argument named params to input_fn."
            )
        stock_call = super()._call_input_fn
        return self._with_params(mode, lambda: stock_call(input_fn, mode, input_context))

    def _with_params(self, mode: str, function: Callable[[], Any]) -> Any:
        """Calls a function while `params` has this mode's batch size."""
        if mode not in self._batch_sizes:
            return function()
        params = self._params
        self._params = {**params, "batch_size": self._batch_sizes[mode]}
        try:
            return function()
        finally:
            self._params = params

    def _call_model_fn(self, features: Any, labels: Any, mode: str, config: Any) -> Any:
        """Returns the tensors that the session runs: the program of a mode if `features` is a dataset, else the model's
        ops.
        """
        if mode not in (ModeKeys.TRAIN, ModeKeys.EVAL, ModeKeys.PREDICT):
            raise ValueError(f"Unknown mode: {mode}. Use a mode of tf.estimator.ModeKeys.")
        if features is not None and not isinstance(features, dataset_ops.DatasetV2) and self._is_exporting:
            return self._exported(self._user_spec(features, labels, mode))
        make = {ModeKeys.TRAIN: self._training, ModeKeys.EVAL: self._evaluation, ModeKeys.PREDICT: self._prediction}
        spec = make[mode](features)
        if self._ipu.compile_summary and mode == ModeKeys.TRAIN:
            compile_summaries.add("compile_summary", spec.train_op)
        return spec

    _is_exporting = False

    def _add_meta_graph_for_mode(self, *arguments: Any, **options: Any) -> Any:
        # A SavedModel holds the model's own ops, for any program that loads it: no loop, no feeds.
        self._is_exporting = True
        try:
            return super()._add_meta_graph_for_mode(*arguments, **options)
        finally:
            self._is_exporting = False

    def _exported(self, spec: Any) -> Any:
        if isinstance(spec, stock_specs.EstimatorSpec):
            return spec
        return stock_specs.EstimatorSpec(spec.mode, spec.predictions, spec.loss, spec.train_op, spec.eval_metric_ops)

    def _user_spec(self, features: Any, labels: Any, mode: str) -> Any:
        """Calls the model function with the arguments that it accepts."""
        names = function_utils.fn_args(self._model_fn)
        arguments: dict[str, Any] = {}
        if "labels" in names:
            arguments["labels"] = labels
        elif labels is not None:
            raise ValueError(
                "model_fn does not take labels, but input_fn returns labels. Add a labels argument, or return features "
                "only."
            )
        if "mode" in names:
            arguments["mode"] = mode
        if "config" in names:
            arguments["config"] = self._config

        def call() -> Any:
            if "params" in names:
                arguments["params"] = self.params
            return self._model_fn(features=features, **arguments)

        spec = self._with_params(mode, call)
        self._check_spec(spec)
        return spec

    def _check_spec(self, spec: Any) -> None:
        if not isinstance(spec, (stock_specs.EstimatorSpec, IPUEstimatorSpec)):
            raise ValueError(
                f"model_fn must return EstimatorSpec or IPUEstimatorSpec, not {type(spec).__name__}. Return one of "
                "these."
            )

    def _count_steps(self, after: Sequence[Any]) -> Any:
        """Adds a loop's steps to the global step once it has run."""
        with ops.control_dependencies(list(after)), ops.device(HOST):
            return training_util.get_global_step().assign_add(self._ipu.iterations_per_loop).op

    def _training(self, dataset: Any) -> Any:
        raise NotImplementedError

    def _evaluation(self, dataset: Any) -> Any:
        raise NotImplementedError

    def _prediction(self, dataset: Any) -> Any:
        raise NotImplementedError

    def _evaluation_spec(
        self, spec: Any, feeds: EvaluationFeeds, loss: Any, metric_values: dict[str, Any], program: Any, sent: Any
    ) -> Any:
        """Returns the tensors that the session evaluates; `loss` is the mean of those in `sent`."""
        counted = self._count_steps([program])
        metric_ops: dict[str, Any] = {}
        for name, (value, update) in metric_values.items():
            with ops.control_dependencies([counted] if not metric_ops else []):
                metric_ops[name] = (value, control_flow_ops.group(update))
        # TensorFlow takes the mean over loops, of which the last may be shorter. It reshapes what it can tell is no
        # scalar.
        iterations = array_ops.shape(nest.flatten(sent)[0])[:1]
        losses = array_ops.placeholder_with_default(array_ops.broadcast_to(loss, iterations), None)
        merged_spec = stock_specs.EstimatorSpec(
            ModeKeys.EVAL,
            loss=losses,
            eval_metric_ops=metric_ops,
            scaffold=scaffold_of(spec),
            evaluation_hooks=[feeds, StepRestorer(), *(spec.evaluation_hooks or ())],
        )
        feeds.sent, feeds.counted_on_ipu = sent, [program]
        feeds.metrics = collections.ChainMap(metric_values, merged_spec.eval_metric_ops)
        return merged_spec

    def _prediction_spec(self, spec: Any, feeds: PredictionFeeds, sent: Any) -> Any:
        self._prediction_feeds = feeds
        hooks = [feeds, *(spec.prediction_hooks or ())]
        return stock_specs.EstimatorSpec(
            ModeKeys.PREDICT, predictions=sent, prediction_hooks=hooks, scaffold=scaffold_of(spec)
        )


def _share_of(name: str, size: Any, strategy: Any, replicas: int) -> int:
    processes = 1 if strategy is None else workers.number_of(strategy)
    size = check_integer(name, size)
    if size < 1:
        raise ValueError(f"{name} (got {size}) must be positive. Pass a value above 0.")
    if size % (processes * replicas):
        raise ValueError(
            f"{name} (got {size}) must be divisible by num_workers * num_replicas ({processes} * {replicas}). Choose a "
            "multiple."
        )
    return size // (processes * replicas)


def _examples(batch: Any) -> Iterator[Any]:
    length = len(nest.flatten(batch)[0])
    if any(len(values) != length for values in nest.flatten(batch)):
        raise ValueError(
            "Batch length of predictions should be same, but they are different. Set "
            "yield_single_examples=False for such predictions."
        )
    for index in range(length):
        yield nest.map_structure(lambda values: values[index], batch)  # noqa: B023  used at once


def _of_replicas(values: Any) -> Any:
    """Returns the examples of all replicas; a replica whose prediction is a scalar has one."""
    return np.concatenate(list(values)) if np.ndim(values) > 1 else np.asarray(values)
