"""Layers of pipelines on other IPUs: what the advice says they need, beside what the pipelines then need.

The chip is a GC200 with four tiles. Programs are lowered and planned, and not run.
"""

import re

import pytest
from advice_models import deep, few_tiles, fitted, keras, layers, planned, staged  # noqa: F401 - a fixture

from tf_ipu_shim import ipu
from tf_ipu_shim.frontend.pipelines import step
from tf_ipu_shim.memory_model.advice import partitioning, recommendations

pytestmark = pytest.mark.one_version

DENSE = {"activation": "tanh"}


@pytest.fixture(autouse=True)
def layers_alone(monkeypatch):
    """Of what would help only layers elsewhere are planned, on two numbers of IPUs."""
    monkeypatch.setattr(recommendations, "_changes", lambda *_: [])
    monkeypatch.setattr(recommendations, "_MAX_PARTITIONS", 2)


def plain():
    return deep()


def handed_on():
    """What the first layer makes is taken by the last one, and by none between."""
    x = keras.Input([64])
    first = made = layers.Dense(64, name="layer0", **DENSE)(x)
    for number in range(1, 7):
        made = layers.Dense(64, name=f"layer{number}", **DENSE)(made)
    return keras.Model(x, layers.Dense(64, name="layer7", **DENSE)(layers.Add(name="add")([made, first])))


def two_paths():
    """Layers of different widths, each with dropout, and one that two others take."""
    x = keras.Input([64])
    made = x
    for number, width in enumerate((96, 32, 64, 64)):
        made = layers.Dense(width, name=f"layer{number}", **DENSE)(made)
        made = layers.Dropout(0.1, name=f"drop{number}")(made)
    left, right = (layers.Dense(64, name=f"layer{number}", **DENSE)(made) for number in (4, 5))
    return keras.Model(x, layers.Dense(64, name="layer6")(layers.Multiply(name="times")([left, right])))


def checkpoints():
    x = made = keras.Input([64])
    for number in range(8):
        made = layers.Dense(64, name=f"layer{number}", **DENSE)(made)
        if number in (2, 5):
            made = ipu.keras.layers.RecomputationCheckpoint(name=f"checkpoint{number}")(made)
    return keras.Model(x, made)


def places(model, names):
    """At which of a model's layers those of some names are, as stages are assigned."""
    with ipu.ipu_strategy.IPUStrategy().scope():
        order = [one.layer.name for one in model().get_pipeline_stage_assignment()]
    return [order.index(name) for name in names]


MODELS = [plain, handed_on, two_paths, checkpoints]


@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.slow
def test_what_is_advised_is_what_it_then_needs(model, recompute):
    last = len([one for one in model().layers if one.weights]) - 1

    def run(names, ipus):
        return planned(fitted(model, 1500, options=staged(places(model, names))), ipus, recompute)

    before = run([f"layer{last}"], 2)
    full = max(one.peak_bytes for one in before.ipus)
    told = 0
    for saving in before.savings:
        match = re.search(r"(?:same (\d)|(\d) IPUs to a replica) .*, stages? 1.* from (.*) on$", saving.action)
        if match:
            told += 1
            after = run(match[3].split(", "), int(match[1] or match[2]))
            needs = max(one.peak_bytes for one in after.ipus)
            assert full - saving.bytes == pytest.approx(needs, rel=0.01), saving
            assert saving.fits == after.fits
    assert told


@pytest.mark.ci_cases(2)
@pytest.mark.parametrize("begins", [[4], [2, 4, 5]])
@pytest.mark.parametrize("model", MODELS)
def test_the_program_s_own_cut_is_counted_as_when_it_was_built(model, begins, monkeypatch):
    """What a stage keeps is counted from TensorFlow's ops when it is built, from the program when cut anew."""
    monkeypatch.setattr(recommendations, "_MAX_PARTITIONS", 1)
    built, counted = [], []
    footprint = step.measure_footprint
    monkeypatch.setattr(step, "measure_footprint", lambda *given: built.append(footprint(*given)) or built[-1])
    changed, names = partitioning.Layers.apply, [f"layer{number}" for number in begins]

    def at_the_same_places(self, cut):
        found = [one.name for one in self.all]
        made = changed(self, partitioning.Partition((0, *map(found.index, names)), 0))
        counted.extend(
            partitioning.PipelineDescription.of(node) for one in made.library.values() for node in one.node_def
        )
        return made

    monkeypatch.setattr(partitioning.Layers, "apply", at_the_same_places)
    planned(fitted(model, 3000, options=staged(places(model, names))), len(begins) + 1, recompute=True)
    description = next(one for one in counted if one is not None)
    for ours, theirs in (
        (built[0].inputs, description.input_bytes),
        (built[0].stashed, description.kept_bytes),
        (built[0].checkpoints, description.checkpoint_bytes),
    ):
        assert theirs == pytest.approx(ours, abs=64)
