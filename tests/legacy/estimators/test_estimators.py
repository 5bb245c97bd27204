"""`IPUEstimator`, `IPUPipelineEstimator` and their hook, against TensorFlow's own estimator on the CPU."""

import copy
import glob

import numpy as np
import pytest
import tensorflow.compat.v1 as tf
from slow_cases import slowly

pytestmark = pytest.mark.estimator
estimators = pytest.importorskip("tensorflow_estimator")  # TensorFlow has it up to 2.15

from estimator_models import Runs, X, Y, dataset, model_fn, of_ipu, stock_model_fn  # noqa: E402  needs the line above
from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ipu.ipu_estimator import IPUEstimator, IPUEstimatorSpec  # noqa: E402
from tensorflow.python.ipu.ipu_pipeline_estimator import IPUPipelineEstimatorSpec  # noqa: E402
from tensorflow.python.ipu.ipu_run_config import IPURunConfig, RunConfig  # noqa: E402

from tf_ipu_shim.messages.trace_pb2 import IpuTraceEvent  # noqa: E402

logging_hook = ipu.ipu_session_run_hooks.IPULoggingTensorHook


def summaries(folder, tag):
    values = []
    for file in glob.glob(f"{folder}/*tfevents*"):
        for event in tf.train.summary_iterator(file):
            values.extend(value.simple_value for value in event.summary.value if value.tag == tag)
    return values


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    estimator = tf.estimator.Estimator(stock_model_fn, str(tmp_path_factory.mktemp("stock")))
    estimator.train(dataset, steps=8)
    return estimator


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    estimator = of_ipu(tmp_path_factory.mktemp("ipu"))
    runs = Runs()
    assert estimator.train(dataset, steps=8, hooks=[runs]) is estimator
    assert runs.number == 2
    return estimator


def test_variables_on_the_host_are_updated_by_a_host_call(tmp_path):
    """In a job of one process; nothing may move to another device than its own."""

    def on_host(features, labels, mode):
        weight = tf.get_variable("weight", [3, 1], initializer=tf.zeros_initializer())
        loss = tf.losses.mean_squared_error(labels, features @ weight)
        optimizer = tf.train.GradientDescentOptimizer(0.05)
        (gradient,) = [found for found, _ in optimizer.compute_gradients(loss, [weight])]

        def apply(gradient):
            return optimizer.apply_gradients([(gradient, weight)])

        return IPUEstimatorSpec(mode, loss=loss, train_op=tf.identity(loss), host_call=(apply, [gradient]))

    cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    strategy = ipu.ipu_multi_worker_strategy.IPUMultiWorkerStrategyV1(cluster, variables_on_host=True)
    session = tf.ConfigProto(allow_soft_placement=False)
    estimator = of_ipu(tmp_path, 1, on_host, run={"train_distribute": strategy, "session_config": session})
    estimator.train(dataset, steps=5)
    weight = np.zeros((3, 1), np.float32)
    for step in range(5):
        x, y = X[2 * step : 2 * step + 2], Y[2 * step : 2 * step + 2]
        weight -= 0.05 * x.T @ (x @ weight - y)
    np.testing.assert_allclose(estimator.get_variable_value("weight"), weight, rtol=1e-5)


def test_hooks_and_scaffolds_of_a_specification(tmp_path):
    """As TensorFlow's estimator has them, in the same order."""

    class Noting(tf.train.SessionRunHook):
        def __init__(self, name):
            self.name = name

        def end(self, session):
            seen.append(self.name)

    def scaffold(name):
        saver = tf.train.Saver(defer_build=True, max_to_keep=1) if name == "train" else None
        return tf.train.Scaffold(saver=saver, init_fn=lambda scaffold, session: seen.append(f"init {name}"))

    def hooked(function):
        def with_hooks(features, labels, mode):
            names = {"train": "training_hooks training_chief_hooks", "eval": "evaluation_hooks"}
            hooks = {name: (Noting(name),) for name in names.get(mode, "prediction_hooks").split()}
            return function(features, labels, mode)._replace(scaffold=scaffold(mode), **hooks)

        return with_hooks

    found = []
    every = {"save_checkpoints_steps": 4}
    run = tf.estimator.RunConfig(**every)
    for estimator in (
        tf.estimator.Estimator(hooked(stock_model_fn), str(tmp_path / "stock"), run),
        of_ipu(tmp_path / "ipu", 4, hooked(model_fn), run=every),
    ):
        seen = []
        estimator.train(dataset, steps=8).evaluate(dataset, steps=4)
        list(estimator.predict(lambda: dataset(repeat=False)))
        found.append((seen, sorted(name for name in glob.glob("*.index", root_dir=estimator.model_dir))))
    assert found[0] == found[1]
    assert set(found[0][0]) >= {"init train", "training_hooks", "training_chief_hooks", "prediction_hooks"}
    assert found[0][1] == ["model.ckpt-8.index"]


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("local_init_op", lambda: tf.train.Scaffold(local_init_op=tf.no_op())),
        ("saver", lambda: tf.train.Scaffold(saver=tf.train.Saver())),
    ],
)
def test_a_scaffold_of_the_program_is_refused(name, make, tmp_path):
    def inside(features, labels, mode):
        return model_fn(features, labels, mode)._replace(scaffold=make())

    with pytest.raises(ValueError, match=f"The scaffold's {name} was made in the model_fn.*give a Saver defer_build"):
        of_ipu(tmp_path, 4, inside).train(dataset, steps=4)


def test_profiles_are_named_by_what_is_done(environment, tmp_path):
    engine = {"autoReport.all": "true", "autoReport.directory": str(tmp_path / "reports")}
    environment(engine=engine, ipus=1)
    estimator = of_ipu(tmp_path / "model")
    estimator.train(dataset, steps=8)
    estimator.evaluate(dataset, steps=8)
    next(estimator.predict(dataset))
    names = [folder.name.rpartition("__")[2] for folder in sorted((tmp_path / "reports").iterdir())]
    assert [name for name in names if name != "cluster"] == ["train", "evaluate", "predict"]


def test_training_gives_what_tensorflow_does(stock, trained):
    assert trained.get_variable_value("global_step") == 8
    for name in ("weight", "bias"):
        np.testing.assert_allclose(trained.get_variable_value(name), stock.get_variable_value(name), rtol=1e-5)


def test_evaluation_gives_what_tensorflow_does(stock, trained):
    mine, theirs = trained.evaluate(dataset, steps=12), stock.evaluate(dataset, steps=12)
    assert set(mine) == set(theirs) == {"loss", "error", "positive", "global_step"}
    for name in mine:
        np.testing.assert_allclose(mine[name], theirs[name], rtol=1e-5, err_msg=name)


@pytest.mark.parametrize("single", [slowly(True), False])
def test_prediction_gives_what_tensorflow_does_to_the_last_batch(stock, trained, single):
    """24 examples in batches of 2: the third loop of 4 batches ends with the dataset, in its last one in between."""

    def fed():
        return dataset(repeat=False).take(10)

    mine = list(trained.predict(fed, yield_single_examples=single))
    theirs = list(stock.predict(fed, yield_single_examples=single))
    assert len(mine) == len(theirs) == (20 if single else 10)
    for one, other in zip(mine, theirs):
        assert set(one) == {"y", "twice"}
        np.testing.assert_allclose(one["y"], other["y"], rtol=1e-5)
    assert len(list(trained.predict(fed, num_predictions=3))) == 3
    assert set(next(trained.predict(fed, predict_keys=["y"]))) == {"y"}


def test_training_goes_on_from_the_checkpoint_in_whole_loops(tmp_path):
    estimator = of_ipu(tmp_path).train(dataset, steps=4)
    estimator.train(dataset, max_steps=9)
    assert estimator.get_variable_value("global_step") == 12
    estimator.train(dataset, max_steps=12)
    assert estimator.get_variable_value("global_step") == 12


def test_losses_of_a_loop_are_averaged_in_the_summary(tmp_path):
    def counting(features, labels, mode):
        loss = tf.reduce_sum(features)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.identity(loss))

    def numbers():
        return (
            tf.data.Dataset.range(4)
            .map(lambda i: (tf.fill([1], tf.cast(i, tf.float32)), tf.cast(i, tf.int32)))
            .repeat()
        )

    estimator = of_ipu(tmp_path, 2, counting, run={"save_summary_steps": 1})
    estimator.train(numbers, steps=8)
    assert summaries(tmp_path, "loss") == [0.5, 2.5, 0.5, 2.5]


def test_summaries_of_the_model_function_are_left_out(stock, tmp_path):
    """There are none in a program; those of the estimator itself are there."""

    def with_summaries(features, labels, mode):
        spec = model_fn(features, labels, mode)
        tf.summary.scalar("inner", spec.loss)
        return spec

    estimator = of_ipu(tmp_path, 4, with_summaries, run={"save_summary_steps": 1}).train(dataset, steps=8)
    np.testing.assert_allclose(estimator.get_variable_value("weight"), stock.get_variable_value("weight"), rtol=1e-5)
    assert len(summaries(tmp_path, "loss")) == 2 and not summaries(tmp_path, "inner")


def test_compile_summaries_of_older_sdks(tmp_path, monkeypatch):
    """The events of the training program, of the kinds that its configuration has."""
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.1")
    options = ipu.utils.create_ipu_config(profiling=True, use_poplar_text_report=False)
    options = ipu.utils.auto_select_ipus(options, 1)
    run = IPURunConfig(4, options, True)
    assert run.compile_summary and not IPURunConfig(4, options).compile_summary
    config = RunConfig(ipu_run_config=run, save_summary_steps=1)
    IPUEstimator(model_fn, str(tmp_path), config).train(dataset, steps=8)
    kinds = []
    for file in glob.glob(f"{tmp_path}/*tfevents*"):
        for event in tf.train.summary_iterator(file):
            for value in event.summary.value:
                if value.metadata.plugin_data.plugin_name == "ipu":
                    kinds += [IpuTraceEvent.FromString(one).type for one in tf.make_ndarray(value.tensor).flat]
    assert kinds.count(IpuTraceEvent.COMPILE_END) == 1 and IpuTraceEvent.EXECUTE in kinds
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.4")
    with pytest.raises(NotImplementedError, match="IPURunConfig.compile_summary is deprecated"):
        IPURunConfig(compile_summary=True)


@pytest.mark.parametrize("release", [None, "2.1", "2.3", "2.4"])
def test_options_of_older_sdks(release, monkeypatch):
    """What `create_ipu_config` gives can only be of SDK 2.3 and older, unless a newer one is asked for."""
    options = ipu.utils.auto_select_ipus(ipu.utils.create_ipu_config(), 2)
    if release:
        monkeypatch.setenv("TF_IPU_SHIM_SDK", release)
    if release == "2.4":
        with pytest.raises(TypeError, match="ipu_options must be an IPUConfig instance. Received IpuOptions"):
            IPURunConfig(ipu_options=options, num_replicas=2)
        return
    assert IPURunConfig(ipu_options=options, num_replicas=2).ipu_options is options
    with pytest.raises(ValueError, match="`IpuOptions` configured with 2 devices"):
        IPURunConfig(ipu_options=options)


@pytest.mark.parametrize("release", ["1.3", "1.4", "2.1", "2.5", "3.4"])
def test_copies_of_what_estimators_are_told(release, monkeypatch):
    """Estimators copy their configuration, whose positional arguments have another order in each of these releases."""
    monkeypatch.setenv("TF_IPU_SHIM_SDK", release)
    options = ipu.config.IPUConfig()
    options.auto_select_ipus = [1, 2]
    run = IPURunConfig(4, options, num_shards=2, ordinal=1, prefetch_depth=5)
    spec = IPUPipelineEstimatorSpec(
        "train", [abs], 8, optimizer_function=abs, device_mapping=[0], pipeline_schedule=None, inputs=[1.0]
    )
    for copied in (copy.copy, copy.deepcopy):
        assert copied(run)._replace(ipu_options=options) == run
        assert copied(spec) == spec and copied(spec).pipeline_op_kwargs == {"pipeline_schedule": None, "inputs": [1.0]}
    made = IPUEstimator(model_fn, config=RunConfig(ipu_run_config=IPURunConfig(4)))
    assert made.config.ipu_run_config == IPURunConfig(4)


def test_metrics_and_calls_on_the_host(tmp_path):
    def counted(loss):
        total = tf.get_variable("total", initializer=0.0)
        assert "CPU" in total.device
        return total.assign_add(loss)

    def on_host(labels, predictions):
        error = tf.keras.metrics.Mean("of_keras")
        error.update_state(tf.abs(labels - predictions))
        return {"of_keras": error, "error": tf.metrics.mean_absolute_error(labels, predictions)}

    def with_host(features, labels, mode):
        spec = model_fn(features, labels, mode)
        predictions = features @ tf.trainable_variables()[0] + tf.trainable_variables()[1]
        return IPUEstimatorSpec(
            mode,
            loss=spec.loss,
            train_op=spec.train_op,
            host_call=(counted, [spec.loss]) if mode == "train" else None,
            eval_metrics=(on_host, {"predictions": predictions, "labels": labels}) if mode == "eval" else None,
        )

    estimator = of_ipu(tmp_path, 1, with_host, run={"save_summary_steps": 1})
    estimator.train(dataset, steps=4)
    assert estimator.get_variable_value("total") == pytest.approx(sum(summaries(tmp_path, "loss")), rel=1e-5)
    predicted = X @ estimator.get_variable_value("weight") + estimator.get_variable_value("bias")
    scores = estimator.evaluate(dataset, steps=12)
    for name in ("error", "of_keras"):
        assert scores[name] == pytest.approx(np.abs(predicted - Y).mean(), rel=1e-5)
    assert scores["global_step"] == 4

    with pytest.raises(ValueError, match="host_call is not allowed for iterations_per_loop > 1"):
        of_ipu(tmp_path / "loop", 2, with_host).train(dataset, steps=2)


def test_the_model_may_read_the_step_and_not_write_it(tmp_path):
    def reading(features, labels, mode):
        step = tf.cast(tf.train.get_global_step(), tf.float32)
        return tf.estimator.EstimatorSpec(
            mode, loss=tf.reduce_sum(features), eval_metric_ops={"s": tf.metrics.mean(step)}
        )

    assert of_ipu(tmp_path / "read", 2, reading).evaluate(dataset, steps=4)["s"] == np.mean([0, 0, 2, 2])

    def writing(features, labels, mode):
        loss = tf.losses.mean_squared_error(labels, features @ tf.get_variable("weight", [3, 1]))
        train_op = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=tf.train.get_global_step())
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op)

    with pytest.raises(ValueError, match="Illegal increment of the `global_step` variable in the `model_fn`"):
        of_ipu(tmp_path / "write", 2, writing).train(dataset, steps=2)


def test_export_is_a_plain_saved_model(tmp_path, trained):
    def receiver():
        x = tf.placeholder(tf.float32, [None, 3], "x")
        return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

    def exporting(features, labels, mode):
        spec = model_fn(features["x"] if isinstance(features, dict) else features, labels, mode)
        outputs = {"serving_default": tf.estimator.export.PredictOutput(spec.predictions)}
        return spec._replace(export_outputs=outputs)

    estimator = of_ipu(trained.model_dir, 4, exporting)
    folder = estimator.export_saved_model(str(tmp_path), receiver).decode()
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.load(session, ["serve"], folder)
        operations = {operation.type for operation in session.graph.get_operations()}
        found = session.run("add:0", {"x:0": X})
    assert not any(kind.startswith(("Ipu", "Pop")) for kind in operations)
    expected = X @ trained.get_variable_value("weight") + trained.get_variable_value("bias")
    np.testing.assert_allclose(found, expected, rtol=1e-5)


@pytest.mark.parametrize("older", [{}, {"feed_name": "losses", "replication_factor": 1}])
def test_logging_hook(tmp_path, caplog, older):
    hook = ipu.ipu_session_run_hooks.IPULoggingTensorHook(
        every_n_iter=1,
        **older,
        logging_mode=ipu.ipu_session_run_hooks.IPULoggingTensorHook.LoggingMode.ALL,
        formatter=lambda values: f"seen {sorted(values)} {values['first'].tolist()}",
    )

    def logging(features, labels, mode):
        loss = tf.reduce_sum(features)
        train_op = tf.group(hook.log({"first": features[0, 0]}), tf.identity(loss))
        return IPUEstimatorSpec(mode, loss=loss, train_op=train_op, training_hooks=[hook])

    def numbers():
        return tf.data.Dataset.range(4).map(lambda i: (tf.fill([1, 1], tf.cast(i, tf.float32)), tf.cast(i, tf.int32)))

    with caplog.at_level("INFO", "tensorflow"):
        of_ipu(tmp_path, 2, logging).train(numbers, steps=4)
    assert [record.message for record in caplog.records if record.message.startswith("seen")] == [
        "seen ['first'] [0.0, 1.0]",
        "seen ['first'] [2.0, 3.0]",
    ]


def test_logging_hook_takes_no_other_argument(monkeypatch):
    hook = ipu.ipu_session_run_hooks.IPULoggingTensorHook
    with pytest.raises(TypeError, match="takes no argument 'at_begin'"):
        hook(at_end=True, at_begin=True)
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.1")
    with pytest.raises(ValueError, match="Replication factor must be >= 1"):
        hook(1, None, False, None, hook.LoggingMode.ALL, "losses", 0)


def test_scripts_may_replace_the_function_that_logs(monkeypatch):
    from tensorflow.python.platform import tf_logging

    lines = []
    monkeypatch.setattr(tf_logging, "info", lambda text, *_: lines.append(text))
    hook = logging_hook(at_end=True)
    with tf.Graph().as_default():
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            run = ipu.ipu_compiler.compile(lambda: hook.log(tf.constant(42.0, name="foo")))
        with tf.compat.v1.train.MonitoredTrainingSession(hooks=[hook]) as session:
            session.run(run)
    assert any("foo:0 = " in line and "42." in line for line in lines)


def test_two_sets_of_fetches_run_one_program():
    """A session has a function library for each set of fetches, and one kernel of the program."""
    with tf.Graph().as_default():
        infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(np.float32(2)).repeat())
        outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            run = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(3, lambda x: outfeed.enqueue(x * x), [], infeed))
        with tf.control_dependencies([run]):
            mean = tf.reduce_mean(outfeed.dequeue())
        with tf.Session() as session:
            session.run(infeed.initializer)
            assert session.run(mean) == 4
            assert session.run([mean, mean + 1]) == [4, 5]


@pytest.mark.parametrize(
    ("make", "error", "phrase"),
    [
        (lambda: of_ipu("x", 3).train(dataset, steps=4), ValueError, "must be a multiple of iterations_per_loop"),
        (lambda: of_ipu("x", 3).evaluate(dataset, steps=4), ValueError, "must be a multiple of iterations_per_loop"),
        (lambda: of_ipu("x").train(lambda: (X, Y), steps=4), ValueError, "input_fn must return Dataset"),
        (lambda: IPURunConfig(num_replicas=2), ValueError, "requires more than one device"),
        (lambda: IPURunConfig(ipu_options={"auto": 1}), TypeError, "ipu_options must be an IPUConfig instance"),
        (lambda: of_ipu("x", "4"), TypeError, "iterations_per_loop must be an integer, not '4'"),
        (lambda: of_ipu("x").train(dataset, steps="4"), TypeError, "steps must be an integer, not '4'"),
        (lambda: of_ipu("x", train_batch_size="2"), TypeError, "train_batch_size must be an integer, not '2'"),
        (lambda: RunConfig(ipu_run_config=3), TypeError, "ipu_run_config must be an IPURunConfig, not int"),
        (lambda: IPURunConfig(num_shards=0), ValueError, "num_shards must be at least 1, but 0 was given"),
        (lambda: IPURunConfig(ordinal=-1), ValueError, "ordinal must be at least 0, but -1 was given"),
        (
            lambda: ipu.ipu_pipeline_estimator.IPUPipelineEstimatorSpec("infer", [], "4"),
            TypeError,
            "gradient_accumulation_count must be an integer, not '4'",
        ),
        (
            lambda: ipu.ipu_pipeline_estimator.IPUPipelineEstimatorSpec("infer", [], 4, nonsense=1),
            TypeError,
            "takes no argument 'nonsense', and neither does pipelining_ops.pipeline",
        ),
        (
            lambda: IPUPipelineEstimatorSpec("infer", [], 4, count_gradient_accumulation_as_iterations=False),
            ValueError,
            "iterations_per_loop counts mini-batches under SDK 3.4.*run with --sdk 2.0",
        ),
        (lambda: IPURunConfig(autosharding=True), NotImplementedError, "ipu_shard"),
        (lambda: of_ipu("x", train_batch_size=0), ValueError, r"train_batch_size \(got 0\) must be positive"),
        (lambda: of_ipu("x", eval_batch_size=2, params={"batch_size": 1}), ValueError, "cannot be passed in params"),
        (
            lambda: IPUEstimatorSpec("eval", eval_metrics=(len, 3)),
            TypeError,
            "second element in `eval_metrics`",
        ),
        (lambda: IPUEstimatorSpec("train", host_call=len), TypeError, "`host_call` must be a tuple"),
        (lambda: IPUEstimator(model_fn, config=tf.estimator.RunConfig()), ValueError, "ipu_run_config.RunConfig"),
        (
            lambda: ipu.ipu_pipeline_estimator.IPUPipelineEstimatorSpec("train", [], 4),
            ValueError,
            "must contain `optimizer_function` when training",
        ),
        (
            lambda: logging_hook(),
            ValueError,
            "Either every_n_iter, every_n_secs or at_end should be",
        ),
        (lambda: logging_hook(every_n_iter=0), ValueError, "every_n_iter must be at least 1, but 0 was given"),
        (lambda: logging_hook(every_n_iter="x"), TypeError, "every_n_iter must be an integer, not 'x'"),
        (lambda: logging_hook(every_n_secs=-1), ValueError, "every_n_secs must be a number of seconds, from 0 on"),
        (lambda: logging_hook(at_end=True, formatter=3), TypeError, "formatter must be a function, not 3"),
    ],
)
def test_mistakes(make, error, phrase):
    with pytest.raises(error, match=phrase):
        make()


@pytest.mark.parametrize("is_read_before", [False, True])
def test_the_step_is_read_separately_only_if_training_may_end(is_read_before):
    """Loops of 2 steps up to 6: what a run gives is from before or after the loop, and it ends after the third."""
    from tf_ipu_shim.legacy.estimators.step_hooks import StopAtStep

    class Context:
        asked, stopped, step = 0, False, 0

        @property
        def session(self):
            return self

        def run(self, fetched):
            self.asked += 1
            return self.step

        def request_stop(self):
            self.stopped = True

    context, hook = Context(), StopAtStep(None, 6, 2)
    with tf.Graph().as_default():
        tf.train.create_global_step()
        hook.begin()
        hook.after_create_session(context, None)
        for loop in range(1, 4):
            before, context.step = context.step, 2 * loop
            arguments = hook.before_run(context)
            results = before if is_read_before else context.step
            hook.after_run(context, tf.train.SessionRunValues(results, None, None))
            assert arguments.fetches is tf.train.get_global_step()
            assert context.stopped == (loop == 3)
    assert context.asked == (1 if is_read_before else 2)
