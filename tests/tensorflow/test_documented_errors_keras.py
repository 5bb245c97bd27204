"""Errors that Graphcore documents of Keras models: data, options, methods of the user's own, stages."""

import contextlib
import functools

import documented_errors
import numpy as np
import pytest
import tensorflow as tf
from compiling import v1
from keras_models import X, Y, compiled, keras, strategy

from tf_ipu_shim import ipu
from tf_ipu_shim.building.keras import data_adapter

STAGE = keras.ipu.PipelineStage
IN_TURN = keras.ipu.SequentialLayerPipelineStageAssignment
OF_CALLS = keras.ipu.ModelLayerPipelineStageAssignment


def dense():
    return keras.layers.Dense(3)


def sequential(count=2):
    return keras.Sequential([keras.Input((6,)), *(dense() for _ in range(count))])


def functional(stages=(None, None)):
    inputs = outputs = keras.Input((6,))
    for stage in stages:
        with contextlib.nullcontext() if stage is None else STAGE(stage):
            outputs = dense()(outputs)
    return keras.Model(inputs, outputs)


class Own(keras.Model):
    def __init__(self, first=None):
        super().__init__()
        self.first, self.last = first or dense(), dense()

    def call(self, x):
        return self.last(self.first(x))


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


def built(first=None):
    model = Own(first)
    model.build((8, 6))
    return model


def nested_functional():
    inputs = keras.Input((6,))
    return keras.Model(inputs, dense()(functional()(inputs)))


def nested_sequential():
    return keras.Sequential([keras.Input((6,)), sequential(), dense()])


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


def model_of(make, use=None, **options):
    """Makes a model in the scope of a strategy, compiles it and uses it there."""

    def call():
        with strategy().scope():
            model = make()
            if use is not None:
                use(compiled(model, **options))

    return call


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


def stages_of(make, change):
    """Gives each call of a layer a stage, changes that, and sets it."""

    def use(model):
        stages = model.get_pipeline_stage_assignment()
        for number, one in enumerate(stages):
            if not one.is_nested_model:
                one.pipeline_stage = number
        changed = change(model, stages)
        model.set_pipeline_stage_assignment(stages if changed is None else changed)

    return model_of(make, use)


def at(place, stage):
    return lambda _, stages: setattr(stages[place], "pipeline_stage", stage)


def other_way_round(_, stages):
    stages[0].pipeline_stage, stages[1].pipeline_stage = 1, 0


def of_another_model(_, stages):
    kind, inner = type(stages[0]), stages[0].pipeline_stage_assignments
    index = [] if kind is keras.ipu.SequentialNestedModelPipelineStageAssignment else [0]
    return [kind(sequential(), *index, inner), *stages[1:]]


LIST = "`pipeline_stage_assignment` needs to be a list"
LENGTH = "The length of the provided `pipeline_stage_assignment` (1)"
ORDER = "The order of `pipeline_stage_assignment` does not match"
NESTED = "The pipeline stage assignment for nested model"
STAGES = [
    *(
        row
        for make, nested in ((functional, nested_functional), (built, lambda: built(sequential())))
        for row in [
            (make.__name__, LIST, stages_of(make, lambda model, stages: tuple(stages))),
            (make.__name__, LENGTH, stages_of(make, lambda model, stages: stages[:1])),
            (make.__name__, NESTED, stages_of(nested, lambda model, stages: [stages[1], stages[1]])),
            (make.__name__, ORDER, stages_of(nested, of_another_model)),
            (
                make.__name__,
                "The pipeline stage assignment for layer",
                stages_of(make, lambda model, stages: [IN_TURN(model.layers[-1], 0), stages[1]]),
            ),
            (make.__name__, ORDER, stages_of(make, lambda model, stages: stages[::-1])),
            (make.__name__, "Layer … with node_index 0 has not", stages_of(make, at(1, None))),
            (make.__name__, "Layer … in pipeline stage 0 has", stages_of(make, other_way_round)),
        ]
    ),
    (
        "built",
        "Layer … has 1 invocation(s) in the",
        stages_of(built, lambda model, stages: [OF_CALLS(model.first, 7, 0), stages[1]]),
    ),
    ("sequential", LIST, stages_of(sequential, lambda model, stages: 1)),
    ("sequential", LENGTH, stages_of(sequential, lambda model, stages: stages[:1])),
    (
        "sequential",
        "All elements of `pipeline_stage_assignment` must be instances",
        stages_of(sequential, lambda model, stages: ["0", "1"]),
    ),
    ("sequential", "Layer … has not been assigned a", stages_of(sequential, at(1, None))),
    (
        "sequential",
        "The provided assignment at index 0 `pipeline_stage_assignment`",
        stages_of(sequential, lambda model, stages: stages[::-1]),
    ),
    ("sequential", "The first layer in a pipelined sequential", stages_of(sequential, at(0, 1))),
    ("sequential", "Layer … has been assigned to pipeline", stages_of(sequential, at(1, 2))),
    (
        "sequential",
        NESTED,
        stages_of(nested_sequential, lambda model, stages: [IN_TURN(model.layers[0], 0), stages[1]]),
    ),
    ("sequential", ORDER, stages_of(nested_sequential, of_another_model)),
    (
        "sequential",
        "The pipeline stage assignment for layer",
        stages_of(nested_sequential, lambda model, stages: [stages[0], stages[0]]),
    ),
    ("sequential", ORDER, stages_of(nested_sequential, lambda model, stages: [stages[0], IN_TURN(dense(), 1)])),
]


@documented_errors.cases([(what, ValueError, words, call) for what, words, call in STAGES])
def test_stages(error, words, call):
    documented_errors.check(error, words, call)


NEED = "All elements of `pipeline_stage_assignment` need to be instances"


@documented_errors.cases(
    [
        ("length", ValueError, "The size of the provided", stages_of(functional, lambda model, stages: stages[:1])),
        ("functional", ValueError, NEED, stages_of(functional, lambda model, stages: [1, stages[1]])),
        ("functional", ValueError, "Layer … with node index 0 has", stages_of(functional, at(1, None))),
        (
            "functional",
            ValueError,
            "Duplicate assignment for layer … with node index 0",
            stages_of(functional, lambda model, stages: [stages[0], stages[0]]),
        ),
        ("functional", ValueError, "Pipeline stages in the graph need to", stages_of(functional, at(1, 2))),
        ("sequential", ValueError, NEED, stages_of(sequential, lambda model, stages: ["0", "1"])),
    ]
)
def test_stages_of_sdk_2_4(monkeypatch, error, words, call):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.4")
    documented_errors.check(error, words, call)


def test_stages_in_any_order_of_sdk_2_4(monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.4")
    with strategy().scope():
        model = functional()
        stages = model.get_pipeline_stage_assignment()
        for number, one in enumerate(stages):
            one.pipeline_stage = number
        model.set_pipeline_stage_assignment(stages[::-1])
        found = model.get_pipeline_stage_assignment()
        assert [(one.layer.name, one.pipeline_stage) for one in found] == [
            (layer.name, number) for number, layer in enumerate(model.layers[1:])
        ]


def enter(stage):
    with STAGE(stage):
        pass


def enter_two():
    with STAGE(0), STAGE(1):
        pass


def test_scopes_of_stages():
    documented_errors.check(RuntimeError, "PipelineStage may only be used from within", lambda: enter(0))
    with strategy().scope():
        documented_errors.check(ValueError, "-1 is not a valid pipeline stage", lambda: enter(-1))
        documented_errors.check(RuntimeError, "Pipeline stages must not be nested", enter_two)


def test_an_empty_array(ipus):
    """Keras' own class of that time."""
    ipus(1)
    nothing = np.zeros((0, 6), "f"), np.zeros(0, "i")
    words = "Expect x to be a non-empty array"
    documented_errors.check(TypeError, words, model_of(sequential, lambda model: model.fit(*nothing, verbose=0)))
