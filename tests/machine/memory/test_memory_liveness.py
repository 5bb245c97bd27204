"""Liveness of hand-made programs, against figures added up by hand."""

import random

import pytest

from tf_ipu_shim.machine.memory import Block, Mode, Step, Value, live, smallest
from tf_ipu_shim.machine.memory.schedule import greedy

pytestmark = pytest.mark.without_tensorflow


class Program(Block):
    """A block that is written down in few words."""

    def always(self, size, owner="weights"):
        return self.add(Value(size, owner, "weight", Mode.ALWAYS))

    def makes(self, owner, size, *takes, mode=Mode.NEW, home=-1, **inside):
        number = self.add(Value(size, owner, "temporary", mode, takes if mode is not Mode.NEW else (), home))
        self.run(owner, takes, (number,), **inside)
        return number


def sizes(found):
    return sorted(value.bytes for value in found.at_peak)


def test_a_chain_needs_two_neighbours_at_a_time():
    program = Program("chain")
    a = program.makes("a", 100)
    b = program.makes("b", 30, a)
    c = program.makes("c", 50, b)
    program.results.append(c)
    found = live(program)
    assert (found.peak_bytes, found.peak_step, sizes(found)) == (130, "b", [30, 100])


def test_what_is_used_again_later_stays():
    program = Program("skip")
    a = program.makes("a", 100)
    b = program.makes("b", 30, a)
    c = program.makes("c", 50, b)
    program.makes("d", 1, a, c)
    found = live(program)
    assert (found.peak_bytes, found.peak_step, sizes(found)) == (180, "c", [30, 50, 100])


def test_results_stay_until_the_end():
    program = Program("results")
    program.results.append(program.makes("a", 100))
    program.makes("b", 30)
    assert live(program).peak_bytes == 130


def test_always_live_values_are_in_no_step():
    program = Program("weight")
    weights = program.always(1000)
    program.makes("a", 10, weights)
    found = live(program)
    assert [value.bytes for value in found.always] == [1000]
    assert found.peak_bytes == 10


def test_a_view_needs_nothing_and_keeps_its_operand():
    program = Program("view")
    a = program.makes("a", 100)
    part = program.makes("part", 20, a, mode=Mode.VIEW)
    b = program.makes("b", 7, part)
    program.results.append(b)
    found = live(program)
    assert (found.peak_bytes, sizes(found)) == (107, [7, 100])


def test_a_view_of_two_keeps_both():
    program = Program("concatenation")
    a, b = program.makes("a", 100), program.makes("b", 50)
    both = program.makes("both", 150, a, b, mode=Mode.VIEW)
    program.makes("c", 8, both)
    assert live(program).peak_bytes == 158


def test_in_place_where_the_operand_dies():
    program = Program("in place")
    a = program.makes("a", 100)
    program.results.append(program.makes("b", 100, a, mode=Mode.IN_PLACE))
    found = live(program)
    assert found.peak_bytes == 100
    assert [value.owner for value in found.at_peak] == ["a"]  # the first step that needs so much


@pytest.mark.parametrize(("operand", "used_later", "expected"), [(100, True, 201), (60, False, 160), (400, False, 500)])
def test_new_memory_where_it_cannot_be_in_place(operand, used_later, expected):
    program = Program("copy")
    a = program.makes("a", operand)
    b = program.makes("b", 100, a, mode=Mode.IN_PLACE)
    if used_later:
        program.makes("c", 1, a, b)
    assert live(program).peak_bytes == expected


def test_a_slice_is_not_written_over():
    program = Program("slice")
    a = program.makes("a", 400)
    part = program.makes("part", 100, a, mode=Mode.VIEW)
    program.makes("b", 100, part, mode=Mode.IN_PLACE)
    assert live(program).peak_bytes == 500


def test_a_variable_is_written_over_by_its_next_value_only():
    program = Program("update")
    weights = program.always(100)
    step = program.makes("gradient", 100)
    program.results.append(program.makes("update", 100, weights, step, mode=Mode.IN_PLACE, home=weights))
    assert live(program).peak_bytes == 100
    other = Program("no update")
    other.results.append(other.makes("scaled", 100, other.always(100), mode=Mode.IN_PLACE))
    assert live(other).peak_bytes == 100


def loop_of(body_temporary, in_place):
    body = Program("body")
    carried = body.add(Value(100, "state", "temporary", Mode.CARRIED))
    temporary = body.makes("temporary", body_temporary, carried)
    body.results.append(body.makes("next", 100, carried, temporary, mode=Mode.IN_PLACE if in_place else Mode.NEW))
    return body


@pytest.mark.parametrize(("in_place", "expected"), [(True, 100 + 70), (False, 100 + 70 + 100)])
def test_a_loop_needs_what_it_carries_and_its_body(in_place, expected):
    program = Program("loop")
    start = program.makes("start", 100)
    program.makes("loop", 100, start, mode=Mode.IN_PLACE, inside=[loop_of(70, in_place)], loops=True)
    found = live(program)
    assert found.peak_bytes == expected
    assert found.peak_step in ("temporary", "next")


def test_a_loop_copies_what_is_needed_after_it():
    program = Program("loop")
    start = program.makes("start", 100)
    end = program.makes("loop", 100, start, mode=Mode.IN_PLACE, inside=[loop_of(70, True)], loops=True)
    program.makes("both", 1, start, end)
    assert live(program).peak_bytes == 100 + 100 + 70


def test_of_two_branches_the_larger_one_counts():
    program = Program("conditional")
    given = program.makes("given", 10)
    branches = []
    for size in (40, 500):
        branch = Program(f"branch {size}")
        argument = branch.add(Value(10, "given", "temporary", Mode.BORROWED))
        branch.results.append(branch.makes("result", 20, branch.makes("temporary", size, argument)))
        branches.append(branch)
    program.makes("conditional", 20, given, inside=branches)
    found = live(program)
    assert (found.peak_bytes, sizes(found)) == (10 + 500 + 20, [10, 20, 500])


def test_a_branch_that_needs_less_than_its_result():
    program = Program("conditional")
    given = program.makes("given", 10)
    branch = Program("branch")
    branch.results.append(branch.makes("result", 20, branch.add(Value(10, "given", "temporary", Mode.BORROWED))))
    program.makes("conditional", 80, given, inside=[branch])
    found = live(program)
    assert (found.peak_bytes, sizes(found), found.peak_step) == (90, [10, 80], "conditional")


def test_a_branch_writes_over_what_it_is_given():
    """One branch hands on what it is given, the other changes it where it is, unless something still needs it."""

    def conditional(needed_later):
        program = Program("conditional")
        given = program.makes("given", 100)
        other = Program("other branch")
        other.results.append(other.add(Value(100, "given", "temporary", Mode.CARRIED)))
        end = program.makes("conditional", 100, given, mode=Mode.IN_PLACE, inside=[loop_of(70, True), other])
        program.makes("both", 1, end, *[given] * needed_later)
        return program

    assert live(conditional(False)).peak_bytes == 100 + 70
    found = live(conditional(True))
    assert (found.peak_bytes, sizes(found)) == (100 + 70 + 100, [70, 100, 100])


def test_constants_inside_a_loop_are_always_live():
    body = loop_of(70, True)
    body.add(Value(64, "table", "constant", Mode.ALWAYS))
    program = Program("loop")
    start = program.makes("start", 100)
    program.makes("loop", 100, start, mode=Mode.IN_PLACE, inside=[body], loops=True)
    assert [value.owner for value in live(program).always] == ["table"]


def two_chains():
    """Two chains that each shrink at their end; side by side they need twice as much."""
    program = Program("chains")
    starts = [program.makes(f"start {n}", 100) for n in range(2)]
    program.results += [program.makes(f"end {n}", 1, start) for n, start in enumerate(starts)]
    return program


def test_the_schedule_finishes_a_chain_before_it_begins_another():
    program = two_chains()
    assert greedy(program) == [0, 2, 1, 3]
    assert live(program).peak_bytes == 201
    assert smallest(program).peak_bytes == 102


def test_the_scheduler_finds_what_a_run_in_its_order_finds():
    def both():
        program = two_chains()
        of_loop = Program("body")
        of_loop.makes("inside", 50)
        left = program.add(Value(7, "loop", "temporary"))
        program.run("loop", program.steps[0].outputs, (left,), (of_loop,), True)
        return program

    program, other = both(), both()
    assert smallest(program) == live(other, greedy(other))


def random_program(seed):
    """Steps that take some of what there is, of sizes that are often the same, some in place or as views."""
    generator = random.Random(seed)
    program, made = Program("random"), []
    for number in range(generator.randrange(2, 40)):
        takes = generator.sample(made, min(len(made), generator.randrange(3)))
        mode = generator.choice([Mode.NEW, Mode.NEW, Mode.VIEW, Mode.IN_PLACE]) if takes else Mode.NEW
        size = generator.choice([1, 10, 100, 100])
        of = (takes[0],) if mode is not Mode.NEW else ()
        made.append(program.add(Value(size, f"value {number}", "temporary", mode, of)))
        program.run(f"step {number}", takes, (made[-1],))
    program.results += generator.sample(made, 1)
    return program


def test_the_order_with_the_lower_peak_is_kept_or_the_given_one():
    kept = set()
    for seed in range(300):
        as_they_stand, ordered = live(random_program(seed)), live(other := random_program(seed), greedy(other))
        wanted = ordered if ordered.peak_bytes < as_they_stand.peak_bytes else as_they_stand
        assert smallest(random_program(seed)) == wanted, seed
        kept.add((wanted is ordered, ordered.peak_bytes == as_they_stand.peak_bytes))
    assert kept == {(True, False), (False, True), (False, False)}


def test_the_schedule_keeps_to_segments():
    program = Program("segments")
    starts = [program.makes(f"start {n}", 100) for n in range(2)]
    program.begin_segment()
    for start in starts:
        program.makes("end", 1, start)
    assert greedy(program)[:2] == [0, 1]


def with_a_load(late, *takers):
    """A load of 10 bytes, and a chain of which some steps take what it brings."""
    program = Program("load")
    loaded = program.add(Value(10, "load", "temporary"))
    program.steps.append(Step("load", (), (loaded,), late=late))
    before = ()
    for index in range(1, 5):
        before = (program.makes(f"step {index}", 100, *before, *((loaded,) if index in takers else ())),)
    return program


@pytest.mark.parametrize(
    ("late", "takers", "expected"),
    [
        (False, (3,), [0, 1, 2, 3, 4]),
        (True, (3,), [1, 2, 0, 3, 4]),
        (True, (2, 4), [1, 0, 2, 3, 4]),
        (True, (), [0, 1, 2, 3, 4]),
    ],
)
def test_loads_run_right_before_their_use(late, takers, expected):
    assert greedy(with_a_load(late, *takers)) == expected


@pytest.mark.parametrize(("late", "peak"), [(False, 511), (True, 501)])
def test_what_comes_late_is_not_alive_before(late, peak):
    program = Program("load")
    loaded = program.add(Value(10, "load", "temporary"))
    program.steps.append(Step("load", (), (loaded,), late=late))
    small = program.makes("small", 1, program.makes("large", 500))
    program.makes("taker", 1, small, loaded)
    assert live(program, greedy(program)).peak_bytes == peak


def test_what_comes_late_keeps_to_its_segment():
    program = with_a_load(True)
    program.begin_segment()
    program.makes("taker", 1, 0)
    assert greedy(program) == [0, 1, 2, 3, 4, 5]


def test_schedule_and_liveness_take_linear_time():
    """A wide and deep program of 40,000 steps: a quadratic algorithm would take minutes."""
    program = Program("large")
    layers = [program.makes("x", 8)]
    for index in range(20_000):
        layers.append(program.makes(f"layer {index}", 8, layers[-1]))
    for index in range(20_000, 0, -1):
        program.makes(f"gradient {index}", 8, layers[index], layers[index - 1])
    assert sorted(greedy(program)) == list(range(40_001))
    assert live(program).peak_bytes == 8 * 20_002


def test_a_block_that_keeps_its_order_needs_its_steps_peak():
    """Two chains side by side: 100 and 100 at once as they stand, one after the other if they may be put so."""

    def chains():
        program = Program("chains")
        a, b = program.makes("a", 100), program.makes("b", 100)
        program.makes("end of a", 1, a)
        program.makes("end of b", 1, b)
        return program

    assert smallest(chains()).peak_bytes == 101
    kept, around = chains(), Program("around")
    around.makes("call", 1, inside=(kept,))
    around.keep_order()
    assert smallest(kept).peak_bytes == 201
    assert smallest(around).order is None and smallest(kept).order is None
