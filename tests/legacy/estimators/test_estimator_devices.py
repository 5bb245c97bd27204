"""Which IPUs estimators run on: replicas, shards, and the stages of pipelines; and what pipelines train."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

pytestmark = pytest.mark.estimator
estimators = pytest.importorskip("tensorflow_estimator")  # TensorFlow has it up to 2.15

from estimator_models import Runs, X, Y, dataset, model_fn, of_ipu, stock_model_fn  # noqa: E402  needs the line above
from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ipu.ipu_pipeline_estimator import IPUPipelineEstimatorSpec  # noqa: E402
from tensorflow.python.ipu.ipu_run_config import IPURunConfig, RunConfig  # noqa: E402


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    estimator = tf.estimator.Estimator(stock_model_fn, str(tmp_path_factory.mktemp("stock")))
    estimator.train(dataset, steps=8)
    return estimator


def test_replicas_share_the_work(tmp_path):
    """Two replicas with half a batch each and averaged gradients are one with the whole batch."""
    options = ipu.config.IPUConfig()
    options.auto_select_ipus = 2

    def replicated(features, labels, mode):
        spec = model_fn(features, labels, "eval")
        metrics = {"error": spec.eval_metric_ops["error"]}
        if mode == "eval":
            return spec._replace(eval_metric_ops=metrics)
        optimizer = ipu.cross_replica_optimizer.CrossReplicaOptimizer(tf.train.GradientDescentOptimizer(0.05))
        return tf.estimator.EstimatorSpec(mode, loss=spec.loss, train_op=optimizer.minimize(spec.loss))

    def single(features, labels, mode):
        spec = model_fn(features, labels, mode)
        return spec if mode == "train" else spec._replace(eval_metric_ops={"error": spec.eval_metric_ops["error"]})

    def fed(params):
        return dataset(params["batch_size"])

    one = of_ipu(tmp_path / "one", 2, single, train_batch_size=4, eval_batch_size=4)
    two = of_ipu(
        tmp_path / "two",
        2,
        replicated,
        ipu={"num_replicas": 2, "ipu_options": options},
        train_batch_size=4,
        eval_batch_size=4,
    )
    one.train(fed, steps=4)
    two.train(fed, steps=4)
    np.testing.assert_allclose(two.get_variable_value("weight"), one.get_variable_value("weight"), rtol=1e-5)
    mine, theirs = two.evaluate(fed, steps=6), one.evaluate(fed, steps=6)
    np.testing.assert_allclose(mine["error"], theirs["error"], rtol=1e-5)
    np.testing.assert_allclose(mine["loss"], theirs["loss"], rtol=1e-5)

    with pytest.raises(NotImplementedError, match="only means can be averaged"):
        of_ipu(tmp_path / "three", 2, model_fn, ipu={"num_replicas": 2, "ipu_options": options}).evaluate(
            dataset, steps=2
        )


def test_replicas_that_do_not_reduce_gradients_are_refused(tmp_path):
    with pytest.raises(ValueError, match="not a valid replicated training graph: it runs on 2 replicas"):
        of_ipu(tmp_path, 2, model_fn, ipu=selected(2, num_replicas=2)).train(dataset, steps=2)


@pytest.mark.parametrize("shape", [[], [2]])
def test_predictions_of_all_replicas(tmp_path, shape):
    """A scalar of each replica is one example, in the order of the mini-batches."""

    def largest(features, mode):
        return tf.estimator.EstimatorSpec(mode, predictions=tf.reduce_max(features) + tf.zeros(shape))

    def features():
        values = np.array([[1], [3], [5], [3], [7], [3], [9], [2]], np.float32)
        return tf.data.Dataset.from_tensor_slices(values).batch(2, drop_remainder=True)

    estimator = of_ipu(tmp_path, 1, largest, ipu=selected(4, num_replicas=4))
    expected = np.repeat([3, 5, 7, 9], 1 if shape == [] else 2)
    assert [float(one) for one in estimator.predict(features)] == expected.tolist()
    np.testing.assert_array_equal(next(estimator.predict(features, yield_single_examples=False)), expected)


def pipelined(count=4, loop=4, metrics=None, results=1):
    """A pipeline estimator on two IPUs of one device."""
    options = selected(2, num_shards=2)
    run = ipu.ipu_run_config.IPURunConfig(iterations_per_loop=loop, **options)

    def stages(mode):
        return ipu.ipu_pipeline_estimator.IPUPipelineEstimatorSpec(
            mode,
            [lambda x: x * x, lambda x: x if results == 1 else tuple(x + n for n in range(results))],
            gradient_accumulation_count=count,
            eval_metrics_fn=metrics,
            optimizer_function=lambda x: None,
        )

    return ipu.ipu_pipeline_estimator.IPUPipelineEstimator(
        stages, config=ipu.ipu_run_config.RunConfig(ipu_run_config=run)
    )


def numbers_of(count):
    return lambda: tf.data.Dataset.from_tensor_slices(np.arange(count, dtype=np.float32)).batch(1, drop_remainder=True)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda: pipelined(count=3).train(numbers_of(8), steps=4),
            ValueError,
            r"`IPURunConfig.iterations_per_loop` \(got 4\) must be divisible by `gradient_accumulation_count` \(got 3",
        ),
        (
            lambda: pipelined(count=4, loop=1).train(numbers_of(8), steps=4),
            ValueError,
            r"`IPURunConfig.iterations_per_loop` \(got 1\) cannot be less than `gradient_accumulation_count` \(got 4\)",
        ),
        (
            lambda: pipelined(metrics=lambda x: {"mean": tf.metrics.mean(x)}).evaluate(numbers_of(8), steps=4),
            KeyError,
            "must contain 'loss', a tensor; it has 'mean'",
        ),
        (
            lambda: next(pipelined(results=2).predict(numbers_of(8))),
            ValueError,
            "must return exactly one prediction tensor.*it returns 2",
        ),
        (
            lambda: ipu.ipu_pipeline_estimator.IPUPipelineEstimator(
                lambda features, labels, mode: None,
                config=ipu.ipu_run_config.RunConfig(ipu_run_config=ipu.ipu_run_config.IPURunConfig()),
            ).train(dataset, steps=1),
            ValueError,
            "must not have `features` or `labels` arguments; it has features, labels, mode",
        ),
    ],
)
def test_what_pipeline_estimators_refuse(call, error, words):
    with pytest.raises(error, match=words):
        call()


def selected(ipus, **options):
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = ipus
    return {"ipu_options": config, **options}


@pytest.mark.parametrize("loop", [1, 4])
@pytest.mark.parametrize("marked", [False, True])
def test_a_replica_has_as_many_ipus_as_there_are_shards(stock, loop, marked, tmp_path):
    """On four of them, wherever its ops are: one replica takes all batches."""

    def sharded(features, labels, mode):
        with ipu.scopes.ipu_shard(1):
            return model_fn(features, labels, mode)

    estimator = of_ipu(tmp_path, loop, sharded if marked else model_fn, ipu=selected(4, num_shards=4))
    estimator.train(dataset, steps=8)
    np.testing.assert_allclose(estimator.get_variable_value("weight"), stock.get_variable_value("weight"), rtol=1e-5)


def test_replicas_of_several_shards_take_turns_at_the_batches(tmp_path):
    """Two of them on four IPUs, in a model without marks: each step takes a batch for each, and means of gradients."""

    def reduced(features, labels, mode):
        spec = model_fn(features, labels, "eval")
        optimizer = ipu.cross_replica_optimizer.CrossReplicaOptimizer(tf.train.GradientDescentOptimizer(0.05))
        return tf.estimator.EstimatorSpec(mode, loss=spec.loss, train_op=optimizer.minimize(spec.loss))

    estimator = of_ipu(tmp_path, 2, reduced, ipu=selected(4, num_shards=2, num_replicas=2))
    estimator.train(dataset, steps=4)
    weight, bias = np.zeros([3, 1], np.float32), np.zeros([1], np.float32)
    for step in range(4):
        rows = np.arange(4 * step, 4 * step + 4)
        error = X[rows] @ weight + bias - Y[rows]
        weight, bias = weight - 0.05 * X[rows].T @ error / 2, bias - 0.05 * 2 * error.mean(0)
    np.testing.assert_allclose(estimator.get_variable_value("weight"), weight, rtol=1e-4)


def test_a_model_on_more_ipus_than_a_replica_has_is_refused(tmp_path):
    def inside(features, labels, mode):
        def branch():
            with ipu.scopes.ipu_shard(1):
                return tf.reduce_sum(features)

        loss = tf.cond(tf.reduce_sum(labels) > 0, branch, lambda: 0.0)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.identity(loss))

    def outside(features, labels, mode):
        with ipu.scopes.ipu_shard(3):
            return model_fn(features, labels, mode)

    for function, shard in ((inside, 1), (outside, 3)):
        with pytest.raises(ValueError, match=f"on IPU {shard} of a replica.*num_shards` is 1; expected at least"):
            of_ipu(tmp_path, 1, function, ipu=selected(4, num_replicas=4)).train(dataset, steps=1)


def test_a_device_with_other_ipus_than_replicas_need_is_refused(tmp_path):
    options = ipu.config.IPUConfig()
    options.select_ipus = [0]  # a device of one
    with pytest.raises(
        ValueError, match=r"\(1 replicas times 2 shards\), but /device:IPU:0 has 1; both must be equal. Select 2"
    ):
        of_ipu(tmp_path, 1, ipu={"num_shards": 2, "ipu_options": options}).train(dataset, steps=1)


def test_three_shards_are_on_a_device_of_four(stock, tmp_path):
    """There are none of three; one of them is left unused."""
    from tf_ipu_shim.machine import systems

    options = ipu.config.IPUConfig()
    options.select_ipus = [systems.current().devices_with(4)[0].id]
    estimator = of_ipu(tmp_path, 4, ipu={"num_shards": 3, "ipu_options": options}).train(dataset, steps=8)
    np.testing.assert_allclose(estimator.get_variable_value("weight"), stock.get_variable_value("weight"), rtol=1e-5)


@pytest.mark.parametrize(("shards", "mapping", "needed"), [(4, None, 2), (1, None, 2), (2, [1, 1], 1)])
def test_pipelines_are_on_all_ipus_of_a_replica(shards, mapping, needed, tmp_path):
    def mapped(mode, params):
        spec = pipeline_fn(mode, params)
        return spec._replace(device_mapping=mapping)

    run = IPURunConfig(iterations_per_loop=4, **selected(shards, num_shards=shards))
    estimator = ipu.ipu_pipeline_estimator.IPUPipelineEstimator(
        mapped, str(tmp_path), RunConfig(ipu_run_config=run), params={"rate": 0.05}
    )
    phrase = f"requires {needed} devices, but `IPURunConfig.num_shards` was set to {shards}. Map its stages to {shards}"
    with pytest.raises(ValueError, match=phrase):
        estimator.train(dataset, steps=4)


def pipeline_fn(mode, params):
    def first(features, labels):
        return features @ tf.get_variable("weight", [3, 1], initializer=tf.zeros_initializer()), labels

    def last(partial, labels):
        predictions = partial + tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
        loss = tf.losses.mean_squared_error(labels, predictions)
        return loss if mode == "train" else (loss, predictions, labels) if mode == "eval" else predictions

    def optimizer_function(loss):
        return ipu.pipelining_ops.OptimizerFunctionOutput(tf.train.GradientDescentOptimizer(params["rate"]), loss)

    def eval_metrics_fn(loss, predictions, labels):
        return {"loss": loss, "error": tf.metrics.mean_absolute_error(labels, predictions)}

    return ipu.ipu_pipeline_estimator.IPUPipelineEstimatorSpec(
        mode,
        computational_stages=[first, last],
        gradient_accumulation_count=4,
        optimizer_function=optimizer_function,
        eval_metrics_fn=eval_metrics_fn,
    )


def test_pipeline_estimator(tmp_path):
    """SUM over 4 mini-batches with a quarter of the rate is one update with their mean gradient."""
    options = ipu.config.IPUConfig()
    options.auto_select_ipus = 2
    run = IPURunConfig(iterations_per_loop=8, num_shards=2, ipu_options=options)
    estimator = ipu.ipu_pipeline_estimator.IPUPipelineEstimator(
        pipeline_fn, str(tmp_path), RunConfig(ipu_run_config=run), params={"rate": 0.05 / 4}
    )
    runs = Runs()
    estimator.train(dataset, steps=16, hooks=[runs])
    assert runs.number == 2 and estimator.get_variable_value("global_step") == 16
    weight, bias = np.zeros([3, 1], np.float32), np.zeros([1], np.float32)
    for update in range(4):
        rows = np.arange(update * 8, update * 8 + 8) % 24
        error = X[rows] @ weight + bias - Y[rows]
        weight, bias = weight - 0.05 * 2 * X[rows].T @ error / 8, bias - 0.05 * 2 * error.mean(0)
    np.testing.assert_allclose(estimator.get_variable_value("weight"), weight, rtol=1e-4, atol=1e-6)
    error = X @ weight + bias - Y
    scores = estimator.evaluate(lambda: dataset(3), steps=8)
    assert scores["loss"] == pytest.approx(np.square(error).mean(), rel=1e-4)
    assert scores["error"] == pytest.approx(np.abs(error).mean(), rel=1e-4)
    found = np.concatenate(list(estimator.predict(lambda: dataset(3, repeat=False), yield_single_examples=False)))
    np.testing.assert_allclose(found, X @ weight + bias, rtol=1e-4, atol=1e-5)


def test_losses_and_predictions_of_made_up_data_are_zeros(tmp_path, monkeypatch):
    """Programs send nothing then: training, evaluation and prediction go on all the same."""
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_synthetic_data --synthetic_data_initializer=random")
    run = IPURunConfig(iterations_per_loop=8, **selected(2, num_shards=2))
    pipelined = ipu.ipu_pipeline_estimator.IPUPipelineEstimator(
        pipeline_fn, str(tmp_path / "pipeline"), RunConfig(ipu_run_config=run), params={"rate": 1e-6}
    )
    for estimator in (pipelined, of_ipu(tmp_path / "loop", 4)):
        estimator.train(dataset, steps=16)
        assert estimator.get_variable_value("global_step") == 16
        assert np.any(estimator.get_variable_value("weight")), "the program has run"
        assert estimator.evaluate(dataset, steps=8)["loss"] == 0
        found = next(iter(estimator.predict(dataset)))
        assert not np.any(found["y"] if isinstance(found, dict) else found)


@pytest.mark.parametrize(
    ("release", "counting", "mini_batches"),
    [
        ("2.0", {}, 32),
        ("1.4", {}, 32),
        ("2.0", {"count_gradient_accumulation_as_iterations": True}, 8),
        ("2.1", {}, 8),
        ("3.4", {"count_gradient_accumulation_as_iterations": True}, 8),
    ],
)
def test_steps_of_older_sdks_are_updates(release, counting, mini_batches, tmp_path, monkeypatch):
    """Each update takes 4 mini-batches; every stage counts those that come by."""
    monkeypatch.setenv("TF_IPU_SHIM_SDK", release)

    def counting_fn(mode, params):
        spec = pipeline_fn(mode, params)
        options = {name: getattr(spec, name) for name in ("optimizer_function", "eval_metrics_fn")}
        stages = spec.computational_stages
        return IPUPipelineEstimatorSpec(mode, stages, gradient_accumulation_count=4, **options, **counting)

    taken = []

    def counted():
        def note(x, y):
            taken.append(len(x))
            return x

        return dataset().map(lambda x, y: (tf.ensure_shape(tf.numpy_function(note, [x, y], x.dtype), x.shape), y))

    options = ipu.config.IPUConfig()
    options.auto_select_ipus = 2
    run = IPURunConfig(iterations_per_loop=4, num_shards=2, ipu_options=options, prefetch_depth=1)
    estimator = ipu.ipu_pipeline_estimator.IPUPipelineEstimator(
        counting_fn, str(tmp_path), RunConfig(ipu_run_config=run), params={"rate": 0.05 / 4}
    )
    estimator.train(counted, steps=8)
    assert estimator.get_variable_value("global_step") == 8
    assert mini_batches <= len(taken) < mini_batches + 8  # some are fetched ahead
    weight, bias = np.zeros([3, 1], np.float32), np.zeros([1], np.float32)
    for update in range(mini_batches // 4):
        rows = np.arange(update * 8, update * 8 + 8) % 24
        error = X[rows] @ weight + bias - Y[rows]
        weight, bias = weight - 0.05 * 2 * X[rows].T @ error / 8, bias - 0.05 * 2 * error.mean(0)
    np.testing.assert_allclose(estimator.get_variable_value("weight"), weight, rtol=1e-4, atol=1e-6)
