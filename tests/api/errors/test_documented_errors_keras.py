"""Errors that Graphcore documents of Keras models: data, options, methods of the user's own, stages."""

import functools

import documented_errors
import numpy as np
import pytest
import tensorflow as tf
from compiling import v1
from keras_models import X, Y, compiled, keras, strategy
from wrong_models import STAGE, Own, dense, functional, model_of, sequential

from tf_ipu_shim import ipu
from tf_ipu_shim.frontend.keras.training import data_adapter

pytestmark = pytest.mark.one_version


class HalfInAStage(Own):
    def call(self, x):
        with STAGE(0):
            x = self.first(x)
        return self.last(x)


class OfNames(keras.Model):
    def call(self, x):
        return x["first"]


class WithoutCall(keras.Model):
    pass


def staged(model):
    model.set_pipeline_stage_assignment([0, 1])
    model.set_pipelining_options(1, device_mapping=[0, 0])
    return model


def fit(model, **options):
    model.fit(X, Y, batch_size=8, verbose=0, **options)


def evaluate(model):
    model.evaluate(X, Y, batch_size=8, verbose=0)


def predict(model):
    model.predict(X, batch_size=8, verbose=0)


def overridden(method, pipelined=False):
    kind = type("Mine", (keras.Sequential,), {method: lambda self, *args, **kwargs: None})

    def make():
        model = kind([keras.Input((6,)), dense(), dense()])
        return staged(model) if pipelined else model

    return make


def on_the_cpu():
    with ipu.ipu_strategy.IPUStrategy(ipu_device="/device:CPU:0").scope():
        fit(compiled(sequential()))


def too_far(model):
    model.set_pipeline_stage_assignment([0, 1])
    model.set_pipelining_options(1)
    fit(model)


def without_steps(model):
    model.set_pipeline_stage_assignment([0, 1])
    model.set_pipelining_options(device_mapping=[0, 0])
    fit(model)


def accumulating(model):
    model.set_gradient_accumulation_options(4)
    fit(model)


def accumulating_of_tensorflow_1():
    with strategy().scope():
        model = sequential()
        model.compile(v1.train.GradientDescentOptimizer(0.1), "mse", steps_per_execution=2)
        model.set_gradient_accumulation_options(2, use_v2_gradient_accumulation_optimizer=True)
        model.fit(X, X[:, :3], batch_size=8, verbose=0)


def reduced(model):
    model.set_replication_options(replicated_metric_reduction_method="middle")
    fit(model)


RUNS = [
    *(
        (
            "eager",
            RuntimeError,
            "Keras models cannot run eagerly when using",
            model_of(sequential, use, run_eagerly=True),
        )
        for use in (fit, evaluate, predict)
    ),
    ("device", ValueError, "can only be used on an IPU", on_the_cpu),
    ("device", ValueError, "Current device has 1 IPUs attached, however", model_of(sequential, too_far)),
    *(
        (
            "overridden",
            RuntimeError,
            f"The function `make_{mode}_function` for the model",
            model_of(overridden(f"make_{mode}_function"), use),
        )
        for mode, use in (("train", fit), ("test", evaluate), ("predict", predict))
    ),
    *(
        ("overridden", RuntimeError, f"The function `{step}` for the model", model_of(overridden(step, True), use))
        for step, use in (("train_step", fit), ("test_step", evaluate), ("predict_step", predict))
    ),
    (
        "metrics",
        ValueError,
        "Cannot parse 'middle' as a ReplicatedMetricReductionMethod. Valid",
        model_of(sequential, reduced),
    ),
    ("steps", ValueError, "The model which you are attempting to", model_of(sequential, without_steps)),
    (
        "steps",
        RuntimeError,
        "The model has been configured to use",
        model_of(sequential, accumulating, steps_per_execution=2),
    ),
    (
        "optimizer",
        ValueError,
        "use_v2_gradient_accumulation_optimizer may only be set to True",
        accumulating_of_tensorflow_1,
    ),
    (
        "weights",
        ValueError,
        "Weights for model … have not yet",
        model_of(lambda: keras.Sequential([dense()]), lambda model: model.weights),
    ),
    (
        "build",
        NotImplementedError,
        "The function `call` for the model",
        model_of(WithoutCall, lambda m: m.build((8, 6))),
    ),
    ("build", NotImplementedError, "The function `call` for the model", model_of(WithoutCall, fit)),
    ("build", ValueError, "Specified input shape is not one of", model_of(Own, lambda model: model.build("8"))),
    ("build", ValueError, "You cannot pass a plain shape to", model_of(OfNames, lambda model: model.build((8, 6)))),
    (
        "build",
        ValueError,
        "You cannot pass a plain shape to … if your layers do not support float type",
        model_of(OfNames, lambda model: model.build((8, 6))),
    ),
    (
        "build",
        ValueError,
        "All layers of a pipelined model must",
        model_of(HalfInAStage, lambda model: model.build((8, 6))),
    ),
    ("stages", ValueError, "All layers of a pipelined model must", model_of(lambda: functional([0, None]))),
    ("stages", ValueError, "Layer … in pipeline stage 0 has", model_of(lambda: functional([1, 0]))),
    (
        "stages",
        RuntimeError,
        "Cannot get pipeline stage assignments for model",
        model_of(Own, lambda model: model.get_pipeline_stage_assignment()),
    ),
    (
        "stages",
        RuntimeError,
        "Cannot set pipeline stage assignments for model",
        model_of(Own, lambda model: model.set_pipeline_stage_assignment([])),
    ),
]


@documented_errors.cases(RUNS)
def test_a_model(ipus, error, words, call):
    ipus(1)
    documented_errors.check(error, words, call)


def dataset(size=8, remainder=True):
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(size, drop_remainder=remainder)


def generator():
    yield X[:8], Y[:8]


@pytest.mark.parametrize(
    ("words", "data", "options", "execution"),
    [
        ("The provided set of data is of", generator, {"steps_per_epoch": 1}, 1),
        ("The provided set of data has a", lambda: (X, Y), {"batch_size": 12}, 1),
        ("Could not infer the size of the", lambda: dataset().filter(lambda x, y: True), {}, 1),
        ("`steps_per_execution` (3) must be a divisor of", lambda: (X, Y), {"batch_size": 8}, 3),
        ("Your input does not have enough data.", dataset, {"steps_per_epoch": 12}, 1),
        ("The provided set of data contains a", lambda: dataset(12, False), {}, 1),
        ("Expect x to be a non-empty array", lambda: dataset().take(0), {}, 1),
    ],
)
def test_data(ipus, words, data, options, execution):
    ipus(1)

    def use(model):
        given = data()
        model.fit(*(given if isinstance(given, tuple) else [given]), verbose=0, **options)

    documented_errors.check(ValueError, words, model_of(sequential, use, steps_per_execution=execution))


def test_data_before_there_are_replicas():
    handler = data_adapter.IPUDataHandler(X, Y, batch_size=8, replication_factor=None)
    words = "Cannot call … before the replication factor"
    documented_errors.check(RuntimeError, words, lambda: handler.inferred_steps)


def told(method, *args, **kwargs):
    return model_of(sequential, lambda model: getattr(model, method)(*args, **kwargs))


accumulation = functools.partial(told, "set_gradient_accumulation_options")

pipelining = functools.partial(told, "set_pipelining_options")

POSITIVE = "Expected `gradient_accumulation_steps_per_replica` to be a positive integer,"

NORMALISED = {"experimental_normalize_gradients": True}

TOLD = [
    *(("accumulation", ValueError, POSITIVE, accumulation(steps)) for steps in (0, -1, "4", 1.5)),
    *(("pipelining", ValueError, POSITIVE, pipelining(steps)) for steps in (0, -1, "4", 1.5)),
    (
        "accumulation",
        ValueError,
        "Found `opt` key in `gradient_accumulation_optimizer_kwargs`. This is",
        accumulation(2, opt=1),
    ),
    (
        "accumulation",
        ValueError,
        "Found `num_mini_batches` key in `gradient_accumulation_optimizer_kwargs`. Set the",
        accumulation(2, num_mini_batches=2),
    ),
    (
        "accumulation",
        ValueError,
        "Found `experimental_normalize_gradients` argument to `set_gradient_accumulation_options`. This argument",
        accumulation(2, **NORMALISED),
    ),
    (
        "pipelining",
        ValueError,
        "Found `experimental_normalize_gradients` argument to `set_pipelining_options`. This argument",
        pipelining(2, **NORMALISED),
    ),
    *(
        ("mapping", ValueError, "Expected `device_mapping` to be a list of", pipelining(2, device_mapping=mapping))
        for mapping in (1, (0, 1), ["0"], [0.5])
    ),
    *(
        ("pipelining", ValueError, f"Found `{name}` key in `pipelining_kwargs`. Set the", pipelining(2, **{name: 2}))
        for name in ("gradient_accumulation_count", "reduction_method")
    ),
    *(
        (
            "pipelining",
            ValueError,
            f"Found `{name}` key in `pipelining_kwargs`. This argument",
            pipelining(2, **{name: 2}),
        )
        for name in ("computational_stages", "infeed_queue", "optimizer_function", "name", "continuous_weight_updates")
    ),
    *(
        (
            "queues",
            ValueError,
            f"Found `{name}` key in `kwargs`. This argument",
            told(f"set_{kind}_queue_options", **{name: 1}),
        )
        for kind, name in (("infeed", "dataset"), ("infeed", "feed_name"), ("outfeed", "outfeed_mode"))
    ),
]


@documented_errors.cases(TOLD)
def test_what_a_model_is_told(error, words, call):
    documented_errors.check(error, words, call)


def test_an_empty_array(ipus):
    """Keras' own class of that time."""
    ipus(1)
    nothing = np.zeros((0, 6), "f"), np.zeros(0, "i")
    words = "Expect x to be a non-empty array"
    documented_errors.check(TypeError, words, model_of(sequential, lambda model: model.fit(*nothing, verbose=0)))
