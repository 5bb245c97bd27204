"""Recomputation within a mini-batch: programs by hand, against figures added up by hand. Pipelines: memory_training."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_ipu_shim.cycle_model import Computation, SyncPoint
from tf_ipu_shim.cycle_model.sizes import ExchangeSizes, Move
from tf_ipu_shim.machine.memory import Block, LoopResults, Mode, Value, smallest
from tf_ipu_shim.memory_model.walk.recomputation import StageOp, recompute

pytestmark = pytest.mark.one_version

SIZE = 100


class MiniBatch(Block):
    """Chains of ops, and their gradients from the last one to the first."""

    def __init__(self):
        super().__init__("mini-batch")
        self.marks = {}

    def op(self, name, *takes, kind="temporary", mark=None, mode=Mode.NEW, work=None):
        number = self.add(Value(SIZE, name, kind, mode, takes if mode is not Mode.NEW else ()))
        self.run(name, takes, (number,), work=work)
        if mark is not None:
            self.marks[name] = mark
        return number

    def chain(self, lengths, keeps=()):
        """A stage for each length; `keeps` are the ops after which there is a checkpoint."""
        last = self.op("x", kind="argument")
        made = []
        for stage, length in enumerate(lengths):
            part = 0
            for _ in range(length):
                name = f"op{len(made)}"
                is_kept = len(made) in keeps
                given, last = last, self.op(name, last, mark=StageOp((stage, part), is_kept))
                made.append((name, given, last))
                part += is_kept
        gradient = self.op("gradients/loss", last, kind="gradient")
        for name, took, gave in reversed(made):
            gradient = self.op(f"gradients/{name}", gradient, took, gave, kind="gradient")
        self.results.append(gradient)
        return self

    def recomputed(self, stages, interleaved):
        recompute(self, self.marks, stages, interleaved, itertools.count(1000).__next__)
        return self

    def owners(self):
        return [step.owner for step in self.steps]


def check(block):
    """Each value is made before it is taken, and once."""
    made = {number for number, value in enumerate(block.values) if value.mode in (Mode.ALWAYS, Mode.BORROWED)}
    for step in block.steps:
        assert made.issuperset(step.inputs), step
        assert made.isdisjoint(step.outputs), step
        made.update(step.outputs)


def test_what_only_gradients_need_is_written_with_them():
    block = MiniBatch()
    x = block.op("x", kind="argument")
    y = block.op("op0", x, mark=StageOp((0, 0)))
    zeros = block.add(Value(SIZE, "zeros", "temporary"))
    block.run("zeros", (), (zeros,), late=True)
    last = block.op("op2", block.op("op1", y, mark=StageOp((0, 0))), mark=StageOp((1, 0)))
    loss = block.op("gradients/loss", last, kind="gradient")
    block.results.append(block.op("gradients/op0", loss, y, zeros, kind="gradient"))
    block.recomputed(2, interleaved=False)
    check(block)
    assert block.owners() == ["x", "op0", "op1", "op2", "gradients/loss", "op0", "zeros", "gradients/op0"]


@pytest.mark.parametrize("state", [4, SIZE])
def test_a_checkpoint_of_a_loop_keeps_its_state_alone(state):
    """Not the list of what each time step made, even one of the state's size, nor the constant that the loop hands on.

    XLA leaves out the loop's first result, which is a constant, and a list has a counter.
    """
    block = MiniBatch()
    x = block.op("x", kind="argument")
    constant = block.add(Value(8, "zero", "constant", Mode.ALWAYS))
    sizes = [SIZE, 4, state]  # a list, its counter, and the state
    listed, counter, last = (block.add(Value(size, "loop", "temporary")) for size in sizes)
    view = block.add(Value(8, "loop", "constant", Mode.VIEW, (constant,)))
    places = LoopResults((0, 0, 1, 2), (None, state, 8))
    block.run("loop", (x, constant), (listed, counter, last, view), loops=True, loop_results=places)
    block.marks["loop"] = StageOp((0, 0), True, kept_results=frozenset({2}), result_bytes=(4, None, state, 8))
    after = block.op("op1", last, mark=StageOp((0, 1)))
    loss = block.op("gradients/loss", block.op("op2", after, mark=StageOp((1, 0))), kind="gradient")
    gradient = block.op("gradients/op1", loss, last, kind="gradient")
    block.results.append(block.op("gradients/loop", gradient, listed, kind="gradient"))
    block.recomputed(2, interleaved=True)
    check(block)
    assert block.owners() == [
        "x", "loop", "op1", "op2", "gradients/loss", "gradients/op1", "loop", "gradients/loop"
    ]  # fmt: skip


def test_a_stage_runs_again_before_its_first_gradient():
    block = MiniBatch().chain([3, 1])
    assert smallest(block).peak_bytes == 7 * SIZE  # x, the four ops' values, two gradients
    block.recomputed(2, interleaved=False)
    check(block)
    # What the last stage makes is kept; op2's value came into it.
    assert block.owners() == [
        "x", "op0", "op1", "op2", "op3", "gradients/loss", "gradients/op3",
        "op0", "op1", "gradients/op2", "gradients/op1", "gradients/op0",
    ]  # fmt: skip
    # x, op2 and a gradient, op0 and op1 again, the next gradient.
    assert smallest(block).peak_bytes == 6 * SIZE


def test_interleaved_recomputation_begins_at_the_last_checkpoint():
    block = MiniBatch().chain([6, 1], keeps=[2]).recomputed(2, interleaved=True)
    check(block)
    first = block.owners().index("gradients/op6") + 1
    assert block.owners()[first:] == [
        "op3", "op4", "gradients/op5", "gradients/op4", "gradients/op3",
        "op0", "op1", "gradients/op2", "gradients/op1", "gradients/op0",
    ]  # fmt: skip
    # x, op2 and op5 wait; op3 and op4 are made again, with the gradient that came and the one that is made of it.
    assert smallest(block).peak_bytes == 7 * SIZE
    whole = MiniBatch().chain([6, 1], keeps=[2]).recomputed(2, interleaved=False)
    check(whole)
    assert smallest(whole).peak_bytes == 9 * SIZE  # op0 and op1 too


def test_random_numbers_are_kept_in_their_used_form():
    block = MiniBatch()
    x = block.op("x", kind="argument")
    seed = block.add(Value(8, "seed", "constant", Mode.ALWAYS))
    drawn = block.op("draw", seed, mark=StageOp((0, 0), draws=True))
    mask = block.op("mask", drawn, mark=StageOp((0, 0)))
    doubled = block.op("double", x, mark=StageOp((0, 0)))
    dropped = block.op("drop", doubled, mask, mark=StageOp((0, 0)))
    last = block.op("last", dropped, mark=StageOp((1, 0)))
    gradient = block.op("gradients/last", last, kind="gradient")
    block.results.append(block.op("gradients/drop", gradient, mask, doubled, kind="gradient"))
    owners = block.recomputed(2, interleaved=False).owners()
    check(block)
    assert owners.count("double") == 2
    assert owners.count("draw") == owners.count("mask") == owners.count("drop") == 1


def test_what_depends_on_weights_alone_makes_no_gradient_wait():
    block = MiniBatch()
    weight = block.add(Value(SIZE, "w", "weight", Mode.BORROWED))
    x = block.op("x", kind="argument")
    cast = block.op("cast", weight, mark=StageOp((0, 0)))
    a = block.op("a", x, cast, mark=StageOp((0, 0), keeps=True))
    b = block.op("b", a, cast, mark=StageOp((0, 1)))
    c = block.op("c", b, mark=StageOp((0, 1)))
    last = block.op("last", c, mark=StageOp((1, 0)))
    gradient = block.op("gradients/last", last, kind="gradient")
    gradient = block.op("gradients/c", gradient, b, cast, kind="gradient")
    block.results.append(block.op("gradients/a", gradient, x, cast, kind="gradient"))
    block.recomputed(2, interleaved=True)
    check(block)
    assert block.owners()[-4:] == ["cast", "b", "gradients/c", "gradients/a"]


def test_exchanges_and_updates_run_once_and_loops_draw_their_own():
    block = MiniBatch()
    variable = block.add(Value(SIZE, "v", "weight", Mode.BORROWED))
    x = block.op("x", kind="argument")
    sent = block.op(
        "sent",
        x,
        mark=StageOp((0, 0)),
        work=SyncPoint(7, computation=Computation("exchange", "e", ExchangeSizes((Move(1, 0, 1),)))),
    )
    assigned = block.add(Value(SIZE, "assign", "temporary", Mode.IN_PLACE, (sent,), variable))
    block.run("assign", (sent,), (assigned,))
    block.marks["assign"] = StageOp((0, 0))
    looped = block.op("loop", assigned, mark=StageOp((0, 0)), work=SyncPoint(8, trip_count=3))
    after = block.op("after", looped, mark=StageOp((0, 0)))
    last = block.op("last", after, mark=StageOp((1, 0)))
    gradient = block.op("gradients/last", last, kind="gradient")
    block.results.append(block.op("gradients/after", gradient, looped, kind="gradient"))
    block.recomputed(2, interleaved=False)
    check(block)
    assert block.owners().count("sent") == block.owners().count("assign") == 1
    assert [step.work.key for step in block.steps if step.owner == "loop"] == [8, 1000]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_program_still_makes_what_it_takes(data):
    """Random graphs: each gradient is still made of the same, and each value before it is taken."""
    block = MiniBatch()
    values = [block.op("x", kind="argument")]
    stages = data.draw(st.integers(2, 4))
    stage = part = 0
    for index in range(data.draw(st.integers(1, 12))):
        takes = data.draw(st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True))
        keeps = data.draw(st.booleans())
        mode = data.draw(st.sampled_from([Mode.NEW, Mode.VIEW, Mode.IN_PLACE]))
        values.append(block.op(f"op{index}", *takes, mark=StageOp((stage, part), keeps), mode=mode))
        part += keeps
        if data.draw(st.booleans()) and stage < stages - 1:
            stage, part = stage + 1, 0
    gradients = [block.op("gradients/loss", values[-1], kind="gradient")]
    for index in range(data.draw(st.integers(1, 8))):
        takes = data.draw(st.lists(st.sampled_from(values), max_size=2, unique=True))
        takes.append(data.draw(st.sampled_from(gradients)))
        gradients.append(block.op(f"gradients/{index}", *takes, kind="gradient"))
    block.results.append(gradients[-1])
    before = expressions(block)
    block.recomputed(stages, data.draw(st.booleans()))
    check(block)
    after = expressions(block)
    assert {name: after[name] for name in before if name.startswith("gradients")} == {
        name: before[name] for name in before if name.startswith("gradients")
    }


def expressions(block):
    """What each op computes, as a formula of names."""
    formulas, named = {}, {}
    for step in block.steps:
        formula = (step.owner, tuple(formulas[number] for number in step.inputs))
        for number in step.outputs:
            formulas[number] = formula
        assert named.setdefault(step.owner, formula) == formula
    return named
