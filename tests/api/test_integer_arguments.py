"""Arguments that count: integers of NumPy are as good as Python's, booleans and floating-point numbers are not."""

import json

import keras_models
import numpy as np
import pipelines_by_hand
import pytest
import tensorflow as tf
from ipu_tensorflow_addons.keras import layers
from tf_ipu_shim.ipu.ipu_infeed_queue import IPUInfeedQueue
from tf_ipu_shim.ipu.ipu_outfeed_queue import IPUOutfeedQueue

from tf_ipu_shim import ipu

pytestmark = pytest.mark.one_version

INTEGERS = (np.int64, np.int32, np.uint8)
NO_INTEGERS = (True, 2.0, np.float32(2), "2")


def keras_model():
    with keras_models.strategy().scope():
        return keras_models.sequential()


def elements():
    return tf.data.Dataset.from_tensors(np.ones(2, "f")).repeat()


def set_options(method, *names):
    """`method` of a Keras model with one value for all of these arguments."""
    return lambda value: getattr(keras_model(), method)(**dict.fromkeys(names, value))


def device_mapping(value):
    keras_model().set_pipelining_options(gradient_accumulation_steps_per_replica=4, device_mapping=[value] * 4)


def queue_options(kind, name):
    def use(value):
        with keras_models.strategy().scope():
            model = keras_models.compiled(keras_models.sequential(), steps_per_execution=2)
            getattr(model, f"set_{kind}_queue_options")(**{name: value})
            model.fit(keras_models.X[:16], keras_models.Y[:16], batch_size=8, verbose=0)

    return use


def benchmark(name):
    numbers = {"number_of_epochs": 1, "elements_per_epochs": 1, "print_stats": False}

    def use(value):
        text = ipu.dataset_benchmark.dataset_benchmark(elements(), **{**numbers, name: value}).numpy()[0]
        found = json.loads(text)["epochs"]
        assert (len(found) if name == "number_of_epochs" else found[0]["elements_processed"]) == value

    return use


def old_selection(value):
    options = ipu.utils.auto_select_ipus(ipu.utils.create_ipu_config(), value)
    assert [one.auto_count for one in options.device_config] == [value]


def run_config(name):
    def use(value):
        pytest.importorskip("tensorflow_estimator", reason="TensorFlow has estimators up to 2.15")
        from tf_ipu_shim.ipu import ipu_run_config

        config = ipu.config.IPUConfig()
        config.auto_select_ipus = 1 if name == "iterations_per_loop" else 2
        made = ipu_run_config.IPURunConfig(**{"ipu_options": config, name: value})
        assert type(getattr(made, name)) is int

    return use


COUNTS = {
    "gradient accumulation": set_options(
        "set_gradient_accumulation_options", "gradient_accumulation_steps_per_replica"
    ),
    "pipelining": set_options("set_pipelining_options", "gradient_accumulation_steps_per_replica"),
    "device mapping": device_mapping,
    "prefetch depth of a model": queue_options("infeed", "prefetch_depth"),
    "buffer depth of a model": queue_options("outfeed", "buffer_depth"),
    "prefetch depth": lambda value: IPUInfeedQueue(elements(), prefetch_depth=value),
    "buffer depth": lambda value: IPUOutfeedQueue(buffer_depth=value),
    "ordinal of an infeed": lambda value: IPUInfeedQueue(elements(), device_ordinal=value),
    "ordinal of an outfeed": lambda value: IPUOutfeedQueue(device_ordinal=value),
    "epochs of a benchmark": benchmark("number_of_epochs"),
    "elements of a benchmark": benchmark("elements_per_epochs"),
    "selection of old SDKs": old_selection,
    "iterations of an estimator": run_config("iterations_per_loop"),
    "replicas of an estimator": run_config("num_replicas"),
    "shards of an estimator": run_config("num_shards"),
}


SLOW = {"buffer depth of a model": pytest.mark.slow}  # that of the infeed goes the same way


@pytest.mark.parametrize("use", [pytest.param(use, id=name, marks=SLOW.get(name, ())) for name, use in COUNTS.items()])
def test_integers_of_numpy_count(use):
    for integer in INTEGERS:
        use(integer(2))


@pytest.mark.parametrize("use", COUNTS.values(), ids=COUNTS)
@pytest.mark.parametrize("value", NO_INTEGERS, ids=repr)
def test_what_is_no_integer_counts_nothing(use, value):
    with pytest.raises(Exception, match="integer"):
        use(value)


def test_a_pipeline_of_keras_by_integers_of_numpy(ipus):
    """Stages, their IPUs and the mini-batches of an update; the weights are those of stock Keras."""
    ipus(2)
    with keras_models.strategy().scope():
        model = keras_models.compiled(keras_models.sequential(), steps_per_execution=8)
        model.set_pipeline_stage_assignment(list(np.arange(4) // 2))
        model.set_pipelining_options(
            gradient_accumulation_steps_per_replica=np.int64(4),
            device_mapping=list(np.array([1, 0])),
            gradient_accumulation_reduction_method="mean",
        )
        assert [one.pipeline_stage for one in model.get_pipeline_stage_assignment()] == [0, 0, 1, 1]
        model.fit(keras_models.X, keras_models.Y, batch_size=np.int64(2), epochs=2, shuffle=False, verbose=0)
        got = model.get_weights()
        assert json.loads(json.dumps(model.get_config()))
    for one, other in zip(got, keras_models.on_the_cpu(keras_models.sequential)[3]):
        keras_models.assert_close(one, other)


def test_stages_of_functional_models_by_integers_of_numpy(ipus):
    ipus(2)
    with keras_models.strategy().scope():
        model = keras_models.functional()
        assignments = model.get_pipeline_stage_assignment()
        for place, one in enumerate(assignments):
            one.pipeline_stage = np.int64(place // 3)
        model.set_pipeline_stage_assignment(assignments)
        model.set_pipelining_options(np.int32(4), gradient_accumulation_reduction_method="mean")
        keras_models.compiled(model, steps_per_execution=8)
        model.fit(keras_models.X, keras_models.Y, batch_size=2, epochs=2, shuffle=False, verbose=0)
        got = model.get_weights()
    for one, other in zip(got, keras_models.on_the_cpu(keras_models.functional)[3]):
        keras_models.assert_close(one, other)


def test_axes_by_integers_of_numpy():
    values = np.random.RandomState(0).rand(4, 6).astype("f")
    layer = layers.LayerNormalization(axis=np.int64(-1), epsilon=0.0)
    assert json.loads(json.dumps(layer.get_config()))["axis"] == -1
    expected = (values - values.mean(-1, keepdims=True)) / values.std(-1, keepdims=True)
    np.testing.assert_allclose(layer(values), expected, atol=1e-4)


def test_a_batch_in_parts_by_integers_of_numpy(graph, ipus):
    """As `batch_serialization_iterations`, which the description of the pipeline says too."""
    ipus(1)
    options = {"gradient_accumulation_count": np.int64(2), "batch_serialization_iterations": np.int64(4)}
    built = pipelines_by_hand.two_layers(**options, device_mapping=[np.int64(0)] * 2)
    pipelines_by_hand.check_training(pipelines_by_hand.run(built), pipelines_by_hand.trained_by_hand(8))
