"""Errors that Graphcore documents of estimators."""

import documented_errors
import pytest
import tensorflow as tf
from compiling import IPU

from tf_ipu_shim import ipu

pytestmark = pytest.mark.estimator
pytest.importorskip("tensorflow_estimator")  # TensorFlow has it up to 2.15

from tensorflow.python.ipu.ipu_estimator import IPUEstimator, IPUEstimatorSpec  # noqa: E402
from tensorflow.python.ipu.ipu_pipeline_estimator import IPUPipelineEstimator, IPUPipelineEstimatorSpec  # noqa: E402
from tensorflow.python.ipu.ipu_run_config import IPURunConfig, RunConfig  # noqa: E402
from tensorflow.python.ipu.ipu_session_run_hooks import IPULoggingTensorHook  # noqa: E402

STAGES = {"computational_stages": [tf.abs, tf.negative]}
PIPELINE = {**STAGES, "gradient_accumulation_count": 4}


def configured(ipus):
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = ipus
    return config


def model(features, labels, mode):
    return tf.estimator.EstimatorSpec(mode, loss=tf.reduce_sum(features), train_op=tf.no_op(), predictions=features)


def on_one(directory):
    return IPUEstimator(model, config=RunConfig(ipu_run_config=IPURunConfig(), model_dir=directory))


def on_two(directory):
    run = IPURunConfig(num_shards=2, ipu_options=configured(2))
    config = RunConfig(ipu_run_config=run, model_dir=directory)
    return IPUPipelineEstimator(lambda mode: IPUPipelineEstimatorSpec(mode, **PIPELINE), config=config)


def calls(name, value):
    return lambda: IPUEstimatorSpec("eval", loss=tf.constant(1.0), **{name: value})


def logged_twice():
    hook = IPULoggingTensorHook(at_end=True)
    with ipu.scopes.ipu_scope(IPU):
        hook.log({"x": tf.constant(1.0)})
        hook.log({"x": tf.constant(1.0)})


PARTS = [
    *(
        row
        for name in ("eval_metrics", "host_call")
        for row in [
            (name, TypeError, f"`{name}` must be a tuple", calls(name, [len, []])),
            (name, ValueError, f"`{name}` must have two elements", calls(name, (len,))),
            (name, TypeError, f"first element in `{name}` must be callable", calls(name, (1, []))),
            (name, TypeError, f"second element in `{name}` must be a", calls(name, (len, 1))),
        ]
    ),
    (
        "pipeline",
        ValueError,
        "`IPUPipelineEstimatorSpec` must contain `optimizer_function` when training",
        lambda: IPUPipelineEstimatorSpec("train", **PIPELINE),
    ),
    (
        "pipeline",
        ValueError,
        "`IPUPipelineEstimatorSpec` must contain `eval_metrics_fn` when evaluating",
        lambda: IPUPipelineEstimatorSpec("eval", **PIPELINE),
    ),
    (
        "pipeline",
        ValueError,
        "`IPUPipelineEstimatorSpec` must contain `gradient_accumulation_count`",
        lambda: IPUPipelineEstimatorSpec("infer", **STAGES),
    ),
    (
        "pipeline",
        ValueError,
        "The `accumulate_outfeed` pipeline keyword argument cannot be",
        lambda: IPUPipelineEstimatorSpec("infer", **PIPELINE, accumulate_outfeed=True),
    ),
    *(
        ("run", ValueError, "IPU configuration requires more than one device,", lambda n=name: IPURunConfig(**{n: 2}))
        for name in ("num_replicas", "num_shards")
    ),
    ("run", TypeError, "ipu_options must be an IPUConfig instance", lambda: IPURunConfig(ipu_options=1)),
    (
        "run",
        ValueError,
        "Only 1 device(s) available to choose from.",
        lambda: IPURunConfig(ipu_options=configured(1), ordinal=1),
    ),
    (
        "run",
        ValueError,
        "`IPURunConfig` configured with 2 devices (2 replicas",
        lambda: IPURunConfig(ipu_options=configured(1), num_replicas=2),
    ),
    (
        "hook",
        ValueError,
        "Cannot provide both every_n_iter and every_n_secs",
        lambda: IPULoggingTensorHook(every_n_iter=1, every_n_secs=1),
    ),
    ("hook", ValueError, "Either every_n_iter, every_n_secs or at_end should be provided", IPULoggingTensorHook),
    (
        "hook",
        RuntimeError,
        "This logging hook's outfeed was not enqueued. Did you forget to call the log function?",
        lambda: IPULoggingTensorHook(at_end=True).begin(),
    ),
    ("hook", RuntimeError, "Cannot use this hook object's log function", logged_twice),
    ("hook", TypeError, "Expected `tf.Tensor`, got", lambda: IPULoggingTensorHook(at_end=True).log([1.0])),
]


@documented_errors.cases(PARTS)
def test_a_part_of_an_estimator(graph, error, words, call):
    documented_errors.check(error, words, call)


@pytest.mark.parametrize("make", [on_one, on_two])
def test_an_estimator(tmp_path, make):
    estimator = make(str(tmp_path))
    words = "input_fn must return Dataset"
    documented_errors.check(ValueError, words, lambda: estimator.train(lambda: tf.zeros([2]), steps=4))
    with tf.Graph().as_default():
        data = tf.data.Dataset.from_tensors(tf.zeros([2]))
        words = "Unknown mode: nonsense"
        documented_errors.check(
            ValueError, words, lambda: estimator._call_model_fn(data, None, "nonsense", estimator.config)
        )


def test_a_pipeline_of_another_specification(tmp_path):
    run = IPURunConfig(num_shards=2, ipu_options=configured(2))
    config = RunConfig(ipu_run_config=run, model_dir=str(tmp_path))
    estimator = IPUPipelineEstimator(lambda mode: STAGES, config=config)
    words = "must return `IPUPipelineEstimatorSpec`"
    documented_errors.check(
        TypeError, words, lambda: estimator.train(lambda: tf.data.Dataset.from_tensors(tf.zeros([2])), steps=4)
    )
