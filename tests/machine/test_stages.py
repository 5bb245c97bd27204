"""Splits into stages: against all cuts there are, and the names of layers in ops."""

import itertools
import random

import pytest

from tf_ipu_shim import fitting
from tf_ipu_shim.fitting import stages, text
from tf_ipu_shim.fitting.stages import Layer
from tf_ipu_shim.machine.chips import CHIPS

CHIP = CHIPS["gc200"].with_tiles(2)
LIMIT = 2 * 638_976


def bytes_of(part, stage, count):
    slots = 2 * (count - 1 - stage) + 1
    return sum(layer.kept_bytes + layer.weight_bytes + slots * layer.activation_bytes for layer in part)


def by_all_cuts(layers):
    """The number of stages and what the busiest has to do, of the best cut; None where none fits."""
    for count in (2, 4, 8, 16):
        best = None
        for cuts in itertools.combinations(range(1, len(layers)), count - 1):
            parts = [layers[first:end] for first, end in zip((0, *cuts), (*cuts, len(layers)))]
            if all(bytes_of(part, stage, count) <= LIMIT for stage, part in enumerate(parts)):
                longest = max(sum(layer.cycles for layer in part) for part in parts)
                best = longest if best is None else min(best, longest)
        if best is not None:
            return count, best
    return None


@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_all_cuts(seed):
    rng = random.Random(seed)
    layers = [
        Layer(str(number), rng.randrange(1, 100), rng.randrange(400_000), rng.randrange(100_000), rng.randrange(60_000))
        for number in range(rng.randrange(2, 9))
    ]
    found, expected = stages.split(layers, CHIP), by_all_cuts(layers)
    assert (found is None) == (expected is None)
    if found is not None:
        assert (len(found.stages), max(found.cycles)) == expected
        assert [name for part in found.stages for name in part] == [layer.name for layer in layers]
        assert max(found.bytes) <= LIMIT


def test_one_layer_cannot_be_split():
    assert stages.split([Layer("only", 1, 1, 1, 1)], CHIP) is None


def test_names_of_layers():
    names = stages._Names({"first", "second"})
    for name in (
        "while/model/drop/random_uniform/rng/uniform",
        "while/model/first/MatMul/dot",
        "while/model/drop/Mul/fusion",
        "gradient_tape/while/model/second/MatMul/dot",
        "while/model/second/MatMul/dot",
        "while/loss/Mean/reduce",
    ):
        names.see(name)
    assert names.order == ["first", "second"]
    assert names.layer_of("gradient_tape/while/model/drop/Mul/fusion") == "first"
    assert names.layer_of("gradient_tape/while/model/second/MatMul/dot") == "second"
    assert names.layer_of("while/loss/Mean/reduce") == ""


def test_the_first_chip_with_a_split_is_taken(monkeypatch):
    layers = [Layer("a", 1, 300 << 20, 0, 0), Layer("b", 1, 400 << 20, 0, 0)]  # more than the 304 MiB of a GC2
    monkeypatch.setattr(stages, "layers_of", lambda program, chip: layers)
    lines = text._stages(None, fitting.systems_for([], ["gc2", "gc200"], 2))
    assert lines[0] == "  As a pipeline of 2 stages on gc200, cycles balanced (Keras):"
    assert "    begins = {'a': 0, 'b': 1}" in lines
