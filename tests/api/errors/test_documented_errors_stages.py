"""Errors that Graphcore documents of the stages of Keras models."""

import documented_errors
import pytest
from keras_models import keras, strategy
from wrong_models import STAGE, Own, dense, functional, model_of, sequential

pytestmark = pytest.mark.one_version

IN_TURN = keras.ipu.SequentialLayerPipelineStageAssignment

OF_CALLS = keras.ipu.ModelLayerPipelineStageAssignment


def built(first=None):
    model = Own(first)
    model.build((8, 6))
    return model


def nested_functional():
    inputs = keras.Input((6,))
    return keras.Model(inputs, dense()(functional()(inputs)))


def nested_sequential():
    return keras.Sequential([keras.Input((6,)), sequential(), dense()])


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
        (
            "length",
            ValueError,
            "The size of the provided `pipeline_stage_assignment` (1) does not match the total number of "
            "invocations of layers in the model (currently 2).",
            stages_of(functional, lambda model, stages: stages[:1]),
        ),
        (
            "length of a sequential model",
            ValueError,
            "The size of the provided `pipeline_stage_assignment` (1) does not match the number of layers in the model "
            "(currently 2).",
            stages_of(sequential, lambda model, stages: stages[:1]),
        ),
        ("functional", ValueError, NEED, stages_of(functional, lambda model, stages: [1, stages[1]])),
        ("functional", ValueError, "Layer … with node index 0 has", stages_of(functional, at(1, None))),
        (
            "functional",
            ValueError,
            "Duplicate assignment for layer … with node index 0",
            stages_of(functional, lambda model, stages: [stages[0], stages[0]]),
        ),
        (
            "gap",
            ValueError,
            "Pipeline stages in the graph need to be strictly increasing, found pipeline stages 0, 2, however the "
            "following pipeline stages are missing 1.",
            stages_of(functional, at(1, 2)),
        ),
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
