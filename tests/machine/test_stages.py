"""Splits into stages: against all cuts there are, and the names of layers in ops."""

import itertools
import random
import types

import pytest

from tf_ipu_shim.capacity import names, stages, text
from tf_ipu_shim.capacity.layers import Layer, Passed
from tf_ipu_shim.machine import links
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.pipelines.stage_memory import consumed_by_layers

pytestmark = pytest.mark.without_tensorflow

CHIP = CHIPS["gc200"].with_tiles(2)
LIMIT = 2 * 638_976


def bytes_of(part, stage, count, recomputes, comes_in):
    """By the moments of the backward pass, from the last layer to the first: all that is there at each."""
    waiting = 2 * (count - 1 - stage)
    again = recomputes and stage < count - 1
    slot = comes_in + sum(layer.fed_bytes if again else layer.activation_bytes for layer in part)
    moments = []
    for at in reversed(range(len(part))):
        there = [layer.weight_bytes for layer in part[at:]] + [layer.activation_bytes for layer in part[: at + 1]]
        if at:  # the gradient for the layer before it
            there.append(part[at - 1].activation_bytes - part[at - 1].fed_bytes)
        moments.append(sum(there))
    always = sum(layer.kept_bytes + layer.weight_bytes for layer in part)
    return always + waiting * slot + comes_in + max(moments)


def cycles_of(part, stage, count, recomputes):
    again = sum(layer.forward_cycles for layer in part) if recomputes and stage < count - 1 else 0
    return sum(layer.cycles for layer in part) + again


def given(values, first, end):
    """Bytes of what layers before a stage make and some of its own take."""
    return sum(size for maker, users, size in values if maker < first and any(first <= user < end for user in users))


def by_all_cuts(layers, recomputes, values):
    """The number of stages and what the busiest has to do, of the best cut; None where none fits."""
    for count in (2, 4, 8, 16):
        best = None
        for cuts in itertools.combinations(range(1, len(layers)), count - 1):
            bounds = list(zip((0, *cuts), (*cuts, len(layers))))
            parts = [layers[first:end] for first, end in bounds]
            sizes = [given(values, *bound) for bound in bounds]
            if all(bytes_of(parts[stage], stage, count, recomputes, sizes[stage]) <= LIMIT for stage in range(count)):
                longest = max(cycles_of(part, stage, count, recomputes) for stage, part in enumerate(parts))
                best = longest if best is None else min(best, longest)
        if best is not None:
            return count, best
    return None


def random_layer(name, takes, rng):
    forward = rng.randrange(1, 50)
    kept, weights = rng.randrange(400_000), rng.randrange(100_000)
    activations = rng.randrange(60_000)
    fed = rng.randrange(activations + 1)
    return Layer(name, forward + rng.randrange(1, 100), kept, weights, activations, 0, forward, takes, fed)


def random_values(count, rng):
    """What layers make and others behind them take, some of it several times."""
    makers = [rng.randrange(count) for _ in range(2 * count)]
    return [(maker, {rng.randrange(count) for _ in range(3)}, rng.randrange(40_000)) for maker in makers]


@pytest.mark.parametrize("recomputes", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_the_best_of_all_cuts(seed, recomputes):
    rng = random.Random(seed)
    count = rng.randrange(2, 9)
    values = random_values(count, rng)
    taken = consumed_by_layers(values, count)
    layers = [random_layer(str(number), takes, rng) for number, takes in enumerate(taken)]
    found, expected = stages.split(layers, CHIP, recomputes=recomputes), by_all_cuts(layers, recomputes, values)
    assert (found is None) == (expected is None)
    if found is not None:
        assert (len(found.stages), max(found.cycles)) == expected
        assert [name for part in found.stages for name in part] == [layer.name for layer in layers]
        parts = [[layer for layer in layers if layer.name in part] for part in found.stages]
        ends = list(itertools.accumulate(map(len, parts)))
        sizes = [given(values, first, end) for first, end in zip([0, *ends], ends)]
        expected = [bytes_of(part, stage, len(parts), recomputes, sizes[stage]) for stage, part in enumerate(parts)]
        assert list(found.bytes) == expected
        assert max(found.bytes) <= LIMIT


def exchange(*moves):
    """Cycles of an exchange on four IPUs, with the syncs of IPUs and of tiles before."""
    return links.sync_cycles(CHIP, 4) + 126 + CHIP.cycles(links.phase_seconds(moves, 4))


@pytest.mark.parametrize("trains", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_what_goes_over_links_while_stages_are_looked_for(seed, trains):
    rng = random.Random(seed)
    count = rng.randrange(2, 8)
    values = [
        (
            rng.randrange(count - 1),
            {rng.randrange(count): rng.randrange(1, 4) for _ in range(3)},
            rng.randrange(1, 9999),
        )
        for _ in range(2 * count)
    ]
    layers = []
    for number in range(count):
        behind = [
            (sorted(one for one in takers.items() if one[0] > number), n) for m, takers, n in values if m == number
        ]
        gives = tuple(Passed(tuple(takers), size) for takers, size in behind if takers)
        layers.append(Layer(str(number), 1, 0, int(trains), 0, outputs=gives))
    handed = stages.StageTransfers(layers, CHIP, 3)
    for first, end in itertools.combinations(range(count + 1), 2):
        sizes = [0] * 4
        for maker, takers, size in values:
            inside = {one: ops for one, ops in takers.items() if first <= one < end}
            behind = {one: ops for one, ops in takers.items() if one >= end}
            for place, these in ((0, inside if maker < first else {}), (1, behind if first <= maker < end else {})):
                sizes[place] += size * bool(these)
                sizes[place + 2] += size * sum(these.values())
        largest = max(sizes[: 4 if trains else 2])
        expected = 3 * exchange((largest, 0, 1)) if largest else 0
        assert handed.cycles(first, end, 4) == expected


def test_tensors_between_found_stages_go_to_several_at_once():
    """The first gives one tensor to both others, two ops of the third take it: two gradients come back from there."""
    gives = (Passed(((1, 1), (2, 2)), 1000),), (Passed(((2, 1),), 5000),), ()
    layers = [Layer(name, 1, 0, 1, 0, outputs=given) for name, given in zip("abc", gives)]
    # Three stages are on the IPUs 0, 1 and 3 of a ladder.
    phases = both, on, back, last = (
        ((1000, 0, 1), (1000, 0, 3)),
        ((5000, 1, 3),),
        ((1000, 1, 0),),
        ((2000, 3, 0), (5000, 3, 1)),
    )
    of_stages = (both, last, back), (both, on, last, back), (both, on, last)
    separate = [sum(exchange(*phase) for phase in phases) for phases in of_stages]
    # All are one exchange. The busiest stage takes as long, the others a part of that, as if they came alone.
    together = exchange(*(move for phase in phases for move in phase))
    expected = [together * cycles / max(separate) for cycles in separate]
    bounds = [(0, 1), (1, 2), (2, 3)]
    found = stages.StageTransfers(layers, CHIP, 7).cycles_of_stages(bounds)
    assert found == pytest.approx([7 * one for one in expected], abs=7 * 8)  # each of up to four is rounded down twice
    assert max(found) == pytest.approx(7 * together, abs=7 * 8)


def test_one_layer_cannot_be_split():
    assert stages.split([Layer("only", 1, 1, 1, 1)], CHIP) is None


def test_names_of_layers():
    made = names.LayerNames({"first", "second"})
    for name in (
        "while/model/drop/random_uniform/rng/uniform",
        "while/model/first/MatMul/dot",
        "while/model/drop/Mul/fusion",
        "gradient_tape/while/model/second/MatMul/dot",
        "while/model/second/MatMul/dot",
        "while/loss/Mean/reduce",
    ):
        made.register_op(name)
    assert made.order == ["first", "second"]
    assert made.layer_of("gradient_tape/while/model/drop/Mul/fusion") == "first"
    assert made.layer_of("gradient_tape/while/model/second/MatMul/dot") == "second"
    assert made.layer_of("while/loss/Mean/reduce") == ""


def test_names_of_layers_in_stages():
    made = names.LayerNames({"first", "second"}, in_stages=True)
    for name in (
        "while/while/add/add.1/Op/Add",
        "drop/random_uniform/rng/uniform",
        "loss/Cast/convert",
        "first/MatMul/dot",
        "drop/Mul/fusion",
        "second/MatMul/dot",
        "loss/Mean/reduce",
        "gradients/second/MatMul_grad/MatMul/dot",
        "drop/Mul/fusion",  # recomputed
    ):
        made.register_op(name)
    assert made.order == ["first", "second"]
    assert made.layer_of("gradients/drop/Mul_grad/Mul/fusion") == "first"
    assert made.layer_of("gradients/second/MatMul_grad/MatMul/dot") == "second"
    assert made.layer_of("loss/Cast/convert") == "second"


def test_a_pipeline_is_cut_into_no_fewer_stages():
    layers = [Layer(str(number), 1, 0, 0, 0) for number in range(6)]
    assert [len(stages.split(layers, CHIP, least).stages) for least in (2, 3, 5)] == [2, 3, 5]


@pytest.mark.parametrize(
    "now, fits, expected",
    [
        ([0, 1, 1, 1], True, (("a", "b"), ("c", "d"))),  # 2 of work where the busiest had 3
        ([0, 0, 1, 1], True, None),  # it is balanced
        ([0, 0, 1, 1], False, (("a", "b"), ("c", "d"))),  # but does not fit
    ],
)
def test_when_a_pipeline_is_cut_anew(monkeypatch, now, fits, expected):
    layers = [Layer(name, 1, 0, 0, 0, ipu) for name, ipu in zip("abcd", now)]
    monkeypatch.setattr(stages, "layers_of", lambda program, chip: layers)
    busy = {place: float(now.count(place)) for place in set(now)}
    monkeypatch.setattr(stages, "timeline_of", lambda *_: types.SimpleNamespace(busy=busy))
    program = types.SimpleNamespace(blocks={0: None, 1: None}, recomputes=False, steps=0, ipus=2)
    found = stages.better_split(program, CHIP, fits)
    assert (None if found is None else found.stages) == expected


def test_a_pipeline_that_fits_gets_no_more_stages(monkeypatch):
    layers = [Layer(name, 1, 0, LIMIT // 4, LIMIT // 16, ipu) for name, ipu in zip("abcd", (0, 1, 1, 1))]
    monkeypatch.setattr(stages, "layers_of", lambda program, chip: layers)
    program = types.SimpleNamespace(blocks={0: None, 1: None}, recomputes=False, steps=0, ipus=2)
    assert len(stages.split(layers, CHIP, 2).stages) == 4
    assert stages.better_split(program, CHIP, fits=True) is None
    assert len(stages.better_split(program, CHIP, fits=False).stages) == 4


@pytest.mark.parametrize("title, taken", [("GC2 (Mk1)", "gc200"), (CHIPS["bow"].title, "bow")])
def test_the_lowered_chip_comes_first_then_one_with_a_split(monkeypatch, title, taken):
    layers = [Layer("a", 1, 300 << 20, 0, 0), Layer("b", 1, 400 << 20, 0, 0)]  # more than the 304 MiB of a GC2
    monkeypatch.setattr(stages, "layers_of", lambda program, chip: layers)
    program = types.SimpleNamespace(blocks={0: None}, recomputes=False, steps=0, plan=types.SimpleNamespace(chip=title))
    estimates = [types.SimpleNamespace(chip=CHIPS[name], fits=True) for name in ("gc2", "gc200", "bow")]
    lines = text._stages(program, estimates)
    assert lines[0] == f"  As a pipeline of 2 stages on {taken}, cycles balanced (Keras):"
    assert "    begins = {'a': 0, 'b': 1}" in lines
