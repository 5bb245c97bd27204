"""Errors that Graphcore documents of exports for serving: raised before anything is written."""

import documented_errors
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import serving

from tf_ipu_shim import ipu, keras2

pytestmark = pytest.mark.one_version

keras = keras2.public_module()
SPEC = tf.TensorSpec([2], tf.float32, name="x")
ROWS = tf.TensorSpec([1, 2], tf.float32, name="x")


@tf.function
def of_no_signature(x):
    return 2.0 * x


def doubled(x):
    return 2.0 * x


def single_step(step=doubled, **options):
    return serving.export_single_step(step, "exported", 16, **options)


def pipeline(step=doubled, **options):
    return serving.export_pipeline([step, tf.abs], "exported", 16, **options)


def before(function, **options):
    return {"predict_step_signature": [SPEC], "preprocessing_step": function, **options}


def after(function, **options):
    return {"predict_step_signature": [SPEC], "postprocessing_step": function, **options}


GIVEN = {"preprocessing_step_signature": [SPEC]}
SIGNED = {"predict_step_signature": [SPEC]}
STEPS = [
    (TypeError, "output_names must be either a string or", {**SIGNED, "output_names": 1}),
    (
        ValueError,
        "The number of the `preprocessing_step` outputs does",
        before(lambda x: (x, x), **GIVEN),
    ),
    (
        ValueError,
        "The number of the `predict_step` outputs does",
        after(lambda a, b: a, postprocessing_step_signature=[SPEC, SPEC]),
    ),
    (ValueError, "`preprocessing_step` returned value at position 0 it", before(lambda x: None, **GIVEN)),
    (
        ValueError,
        "`preprocessing_step` returned Tensor at postion 0 does",
        before(lambda x: tf.tile(x, [2]), **GIVEN),
    ),
    (
        ValueError,
        "`preprocessing_step` returned Tensor at postion 0 does",
        before(lambda x: tf.cast(x, tf.int32), **GIVEN),
    ),
    (
        ValueError,
        "`predict_step` returned Tensor at postion 0 does",
        after(tf.abs, postprocessing_step_signature=[tf.TensorSpec([3], tf.float32)]),
    ),
    (
        ValueError,
        "Length of input_signature does not match the",
        {"predict_step_signature": [SPEC, tf.TensorSpec([2], tf.float32, name="y")]},
    ),
    (ValueError, "`input_signature` deduction from given `predict_step` is not", {}),
    (ValueError, "`input_signature` deduction from given `preprocessing_step` is not", before(tf.abs)),
    (ValueError, "`input_signature` deduction from given `postprocessing_step` is not", after(tf.abs)),
    (TypeError, "`predict_step_signature` must be an instance of tuple", {"predict_step_signature": SPEC}),
    (ValueError, "`predict_step_signature` must be not empty.", {"predict_step_signature": ()}),
    (TypeError, "`predict_step_signature[0]` is not an instance of TensorSpec", {"predict_step_signature": [1]}),
    (
        ValueError,
        "Both `predict_step_signature` and `input_dataset` cannot be provided.",
        {**SIGNED, "input_dataset": 1},
    ),
    (
        ValueError,
        "Both `preprocessing_step_signature` and `input_dataset` cannot be provided.",
        before(tf.abs, **GIVEN, input_dataset=1),
    ),
    (TypeError, "If `input_dataset` is provided, it should be", {"input_dataset": 1}),
]


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("export", [single_step, pipeline])
@pytest.mark.parametrize(("error", "words", "options"), STEPS, ids=[f"{words}" for _, words, _ in STEPS])
def test_an_export(ipus, directory, export, error, words, options):
    ipus(2)
    documented_errors.check(error, words, lambda: export(**options))
    assert not (directory / "exported").exists()


@pytest.mark.parametrize("export", [single_step, pipeline])
def test_a_directory_with_something_in_it(ipus, directory, export):
    ipus(2)
    (directory / "exported").mkdir()
    (directory / "exported" / "mine").touch()
    documented_errors.check(ValueError, 'Directory "exported" is not empty. Please specify', lambda: export(**SIGNED))


def test_a_function_without_a_signature():
    words = "Empty `input_signature` inside provided tf.function `predict_step`. Please"
    documented_errors.check(ValueError, words, lambda: single_step(of_no_signature))


@documented_errors.cases(
    [
        (
            "type",
            TypeError,
            "`predict_step_signature` has to be an instance of",
            lambda: single_step(input_signature=SPEC),
        ),
        ("type", ValueError, "`predict_step_signature` cannot be empty", lambda: single_step(input_signature=[])),
        (
            "function",
            ValueError,
            "Empty `input_signature` in the provided tf.function `predict_step`.",
            lambda: single_step(of_no_signature),
        ),
        (
            "names",
            ValueError,
            "Length of output_names does not match the",
            lambda: single_step(**SIGNED, output_names=["a", "b"]),
        ),
    ]
)
def test_in_tensorflow_1(graph, error, words, call):
    """Some begin with other words there."""
    documented_errors.check(error, words, call)


def test_a_directory_without_a_checkpoint(graph, directory):
    (directory / "empty").mkdir()
    words = 'Directory "empty" passed as "checkpoint_restore_dir" param is'
    documented_errors.check(ValueError, words, lambda: single_step(**SIGNED, checkpoint_restore_dir="empty"))


def model(batch=1):
    with ipu.ipu_strategy.IPUStrategy().scope():
        inputs = keras.Input((2,), batch_size=batch, name="x")
        made = keras.Model(inputs, keras.layers.Dense(2)(inputs))
        made.compile(steps_per_execution=16)
    return made


def unknown_model():
    class Own(keras.Model):
        def call(self, x):
            return x

    with ipu.ipu_strategy.IPUStrategy().scope():
        made = Own()
        made.compile(steps_per_execution=16)
    return made


def exported(make=model, function=None, signature=None, **options):
    if function is not None:
        options["preprocessing_step"] = function
    if signature is not None:
        options["preprocessing_step_signature"] = signature
    return lambda: make().export_for_ipu_serving("exported", **options)


@documented_errors.cases(
    [
        ("inputs", ValueError, "Not all dimensions of inputs can be", exported(lambda: model(None))),
        (
            "inputs",
            RuntimeError,
            "Cannot get model's input signature. Please specify",
            exported(unknown_model, batch_size=1),
        ),
        ("names", TypeError, "output_names must be either a string or", exported(output_names=1)),
        (
            "step",
            ValueError,
            "The number of the `preprocessing_step` outputs does",
            exported(function=lambda x: (x, x), signature=[ROWS]),
        ),
        (
            "step",
            ValueError,
            "`preprocessing_step` returned Tensor at postion 0 does",
            exported(function=lambda x: tf.tile(x, [2, 1]), signature=[ROWS]),
        ),
        (
            "step",
            ValueError,
            "`input_signature` deduction from given `preprocessing_step` is",
            exported(function=tf.abs),
        ),
        (
            "step",
            TypeError,
            "`preprocessing_step_signature` must be an instance of tuple",
            exported(function=tf.abs, signature=ROWS),
        ),
        (
            "step",
            ValueError,
            "`preprocessing_step_signature` must be not empty.",
            exported(function=tf.abs, signature=[]),
        ),
        (
            "step",
            TypeError,
            "`preprocessing_step_signature[0]` is not an instance of TensorSpec",
            exported(function=tf.abs, signature=[1]),
        ),
    ]
)
def test_a_keras_model(ipus, error, words, call):
    ipus(1)
    documented_errors.check(error, words, call)


def test_a_model_of_no_strategy():
    words = "Provided model was not created inside an"
    documented_errors.check(ValueError, words, lambda: serving.export_keras(keras.Sequential(), "exported"))
