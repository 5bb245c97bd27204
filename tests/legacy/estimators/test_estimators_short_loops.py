"""Estimators whose dataset ends within a loop: what has run counts, and nothing else has happened."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

pytestmark = pytest.mark.estimator
estimators = pytest.importorskip("tensorflow_estimator")  # TensorFlow has it up to 2.15

from estimator_models import counting  # noqa: E402  needs the line above
from slow_cases import slowly  # noqa: E402
from tensorflow.python import ipu  # noqa: E402
from tensorflow.python.ipu.ipu_estimator import IPUEstimator, IPUEstimatorSpec  # noqa: E402
from tensorflow.python.ipu.ipu_pipeline_estimator import IPUPipelineEstimator, IPUPipelineEstimatorSpec  # noqa: E402
from tensorflow.python.ipu.ipu_run_config import IPURunConfig, RunConfig  # noqa: E402

X = np.random.default_rng(11).standard_normal((26, 3)).astype(np.float32)
Y = X @ np.float32([[1], [2], [3]]) + 0.5


def dataset(batches=13):
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(2, drop_remainder=True).take(batches)


def model_fn(features, labels, mode):
    weight = tf.get_variable("weight", [3, 1], initializer=tf.zeros_initializer())
    predictions = features @ weight
    loss = tf.losses.mean_squared_error(labels, predictions)
    metrics = {
        "error": tf.metrics.mean_absolute_error(labels, predictions),
        "recall": tf.metrics.recall(labels > 0, predictions > 0),
        "auc": tf.metrics.auc(labels > 0, tf.sigmoid(predictions)),
    }
    train_op = tf.train.MomentumOptimizer(0.02, 0.9).minimize(loss) if mode == "train" else None
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


stock_model_fn = counting(model_fn)


def config(loop, ipus=1, saving=100, **options):
    selection = ipu.config.IPUConfig()
    selection.auto_select_ipus = ipus
    run = IPURunConfig(loop, selection, **options)
    return RunConfig(ipu_run_config=run, save_checkpoints_steps=saving)


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    return tf.estimator.Estimator(stock_model_fn, str(tmp_path_factory.mktemp("stock"))).train(dataset)


@pytest.fixture(scope="module")
def stock_scores(stock):
    return stock.evaluate(dataset)


class Seen(tf.train.SessionRunHook, tf.train.CheckpointSaverListener):
    """What a script's hooks and listeners see of the step when training ends."""

    def begin(self):
        self.step, self.saved = tf.train.get_global_step(), []

    def end(self, session, *of_listeners):
        self.last = session.run(self.step)

    def after_save(self, session, step):
        self.saved.append(int(step))


@pytest.mark.ci_cases(2)
@pytest.mark.parametrize(
    ("loop", "own_saver"),
    [(1, False), slowly(4, False), (4, True), slowly(5, True), (13, False), (20, False), slowly(20, True)],
)
def test_steps_of_a_short_loop_are_counted(stock, loop, own_saver, tmp_path):
    """13 batches."""
    estimator = IPUEstimator(model_fn, str(tmp_path), config(loop))
    seen, listener, hooks = Seen(), Seen(), []
    if own_saver:
        hooks.append(tf.train.CheckpointSaverHook(str(tmp_path), save_steps=100))
    estimator.train(dataset, hooks=[seen, *hooks], saving_listeners=[listener])
    assert estimator.get_variable_value("global_step") == seen.last == 13
    assert estimator.latest_checkpoint().endswith("model.ckpt-13") and listener.saved[-1] == 13
    for name in ("weight", "weight/Momentum"):
        np.testing.assert_allclose(estimator.get_variable_value(name), stock.get_variable_value(name), rtol=1e-4)
    estimator.train(dataset, max_steps=13)  # all is done already
    assert estimator.get_variable_value("global_step") == 13


def test_training_goes_on_after_a_short_loop(tmp_path):
    estimator = IPUEstimator(model_fn, str(tmp_path / "ipu"), config(4))
    other = tf.estimator.Estimator(stock_model_fn, str(tmp_path / "stock"))
    for one in (estimator, other):
        one.train(lambda: dataset(6))
        one.train(lambda: dataset(9))
    assert estimator.get_variable_value("global_step") == 15
    np.testing.assert_allclose(estimator.get_variable_value("weight"), other.get_variable_value("weight"), rtol=1e-4)


@pytest.mark.ci_cases(2)
@pytest.mark.parametrize("loop", [1, 5, 13, 20])
def test_evaluation_takes_a_short_loop_in(stock, stock_scores, loop):
    scores = IPUEstimator(model_fn, stock.model_dir, config(loop)).evaluate(dataset, name=f"of_{loop}")
    expected = stock_scores
    assert scores.keys() == expected.keys() == {"loss", "error", "recall", "auc", "global_step"}
    for name in expected:
        np.testing.assert_allclose(scores[name], expected[name], rtol=1e-5, err_msg=name)


@pytest.mark.ci_cases(1)
@pytest.mark.parametrize("loop", [1, 5, 20])
def test_metrics_on_the_host_take_a_short_loop_in(stock, stock_scores, loop):
    def on_host(labels, predictions):
        difference = tf.keras.metrics.MeanAbsoluteError()
        difference.update_state(labels, predictions)
        return {"error": tf.metrics.mean_absolute_error(labels, predictions), "of_keras": difference}

    def with_host(features, labels, mode):
        spec = model_fn(features, labels, mode)
        predictions = features @ tf.trainable_variables()[0]
        return IPUEstimatorSpec(mode, loss=spec.loss, eval_metrics=(on_host, [labels, predictions]))

    scores = IPUEstimator(with_host, stock.model_dir, config(loop)).evaluate(dataset, name=f"host_{loop}")
    np.testing.assert_allclose(scores["loss"], stock_scores["loss"], rtol=1e-5)
    for name in ("error", "of_keras"):
        np.testing.assert_allclose(scores[name], stock_scores["error"], rtol=1e-5)


def test_metrics_of_replicas_take_a_short_loop_in(stock):
    """12 batches are 6 for each of two replicas: a loop of 4 and half of another."""

    def mean_only(features, labels, mode):
        spec = model_fn(features, labels, mode)
        return spec._replace(eval_metric_ops={"error": spec.eval_metric_ops["error"]})

    estimator = IPUEstimator(mean_only, stock.model_dir, config(4, 2, num_replicas=2))
    scores, expected = (one.evaluate(lambda: dataset(12), name="replicas") for one in (estimator, stock))
    for name in ("loss", "error"):
        np.testing.assert_allclose(scores[name], expected[name], rtol=1e-5, err_msg=name)


def pipeline_fn(mode):
    def first(features, labels):
        return features @ tf.get_variable("weight", [3, 1], initializer=tf.zeros_initializer()), labels

    def last(predictions, labels):
        loss = tf.losses.mean_squared_error(labels, predictions)
        return loss if mode == "train" else (loss, predictions, labels)

    def optimizer_function(loss):
        return ipu.pipelining_ops.OptimizerFunctionOutput(tf.train.GradientDescentOptimizer(0.02), loss)

    def eval_metrics_fn(loss, predictions, labels):
        return {"loss": tf.reduce_mean(loss), "error": tf.metrics.mean_absolute_error(labels, predictions)}

    return IPUPipelineEstimatorSpec(
        mode,
        computational_stages=[first, last],
        gradient_accumulation_count=4,
        optimizer_function=optimizer_function,
        eval_metrics_fn=eval_metrics_fn,
    )


@pytest.mark.ci_cases(2)
@pytest.mark.parametrize(("batches", "updates"), [(12, 3), (13, 3), (11, 2), (3, 0), (8, 2)])
def test_pipelines_count_the_updates_of_a_short_loop(batches, updates, tmp_path):
    """A loop is two updates of four mini-batches; gradients whose update has not come are lost."""
    estimator = IPUPipelineEstimator(pipeline_fn, str(tmp_path), config(8, 2, num_shards=2))
    estimator.train(lambda: dataset(batches))
    weight = np.zeros([3, 1], np.float32)
    for update in range(updates):
        x, y = X[8 * update : 8 * update + 8], Y[8 * update : 8 * update + 8]
        weight = weight - 0.02 * x.T @ (x @ weight - y)
    assert estimator.get_variable_value("global_step") == 4 * updates
    np.testing.assert_allclose(estimator.get_variable_value("weight"), weight, rtol=1e-4, atol=1e-6)
    scores = estimator.evaluate(lambda: dataset(12))
    np.testing.assert_allclose(scores["loss"], np.square(X[:24] @ weight - Y[:24]).mean(), rtol=1e-4)
    np.testing.assert_allclose(scores["error"], np.abs(X[:24] @ weight - Y[:24]).mean(), rtol=1e-4)
