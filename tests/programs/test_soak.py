"""A short look at what `make soak` looks at for hours."""

import faulthandler
import os
import random
import re
import threading

import numpy as np
import pytest
import random_graphs
import tensorflow as tf
from hypothesis import Phase
from slow_cases import slowly
from soak import __main__ as soak_command
from soak import (
    abrupt_ends,
    families,
    lanes,
    legacy_graphs,
    models,
    modes,
    parts,
    steadiness,
    tables,
)
from soak.ops import (
    hostile,
    op_cases,
    op_lane,
    op_outcomes,
    op_runs,
)
from soak.programs import feed_programs, list_programs, size_programs, slice_programs
from tensorflow.python.ops import control_flow_util

v1 = tf.compat.v1
pytestmark = pytest.mark.one_version

# Some of each kind: arithmetic, sums, products, indices, windows, variables, random numbers, and what IPUs refuse.
FEW_OPS = (
    "AddV2 Bincount Cast Cholesky ConcatV2 ConjugateTranspose Conv2D Equal GatherV2 MatMul MaxPool OneHot Pad "
    "RandomUniform ResourceApplyAdam ResourceGather Softmax SplitV StridedSlice StringUpper Sum TopKV2 Unique"
).split()

# Comparisons, casts, sums, selections and functions, whose results NaN, infinities and edges of types change.
OPS_AT_EDGES = "Cast ClipByValue Exp Max Relu6 Softmax TopKV2".split()


@pytest.mark.parametrize("mode", feed_programs.MODES)
@pytest.mark.parametrize("seed", range(5))
def test_random_programs_with_feeds(seed, mode):
    assert feed_programs.difference(feed_programs.Program.draw(random.Random(seed)), mode) == ""


@pytest.mark.parametrize("seed", [slowly(0), slowly(3), 4, 700])  # stock XLA runs a loop of the last one twice
def test_random_graphs_of_tensorflow_1(monkeypatch, seed):
    monkeypatch.setattr(control_flow_util, "ENABLE_CONTROL_FLOW_V2", False)
    op_runs.configure()
    assert legacy_graphs.difference(seed) == ""


def test_graphs_of_tensorflow_1_are_told_one_by_one(monkeypatch, tmp_path):
    """The stand-in for Python gives two nets and ends; then one that it does not come to; then it waits."""
    script = tmp_path / "python"
    script.write_text(
        "#!/bin/sh\n"
        "case $3,$6 in\n"
        "  0,*) echo net: ; echo net: net 1 differs ;;\n"
        "  2,*) echo other words ;;\n"
        "  3,xla) echo net: ; exec sleep 600 ;;\n"
        "esac\n"
    )
    script.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(script))
    nets = legacy_graphs.found(0, 9)
    off = "V2 behaviour off, net"
    assert [next(nets), next(nets)] == ["", f"{off} 1 differs"]
    assert next(nets) == f"{off} 2 ends its process: python -m soak.legacy_graphs 2 1 off session"
    assert next(nets) == ""
    nets.close()


def test_repeated_effects_of_stock_xla():
    """Only what stock does once in a function, as ours does, may be more often in stock XLA; a session may omit it."""
    once, twice = np.array([3.75, 2.5]), np.array([7.5, 5.0])
    assert legacy_graphs.is_repeated(twice, once, in_session=once, in_function=once)
    assert legacy_graphs.is_repeated(twice, once, in_session=0 * once, in_function=once)
    assert not legacy_graphs.is_repeated(twice, once, in_session=once, in_function=twice)
    assert not legacy_graphs.is_repeated(twice, once, in_session=0 * once, in_function=twice)
    assert not legacy_graphs.is_repeated(twice, once, in_session=twice, in_function=once)
    assert not legacy_graphs.is_repeated(once, twice, in_session=once, in_function=once)
    assert not legacy_graphs.is_repeated(once * 2.5, once, in_session=once, in_function=once)
    assert not legacy_graphs.is_repeated(0 * once, 0 * once, in_session=0 * once, in_function=0 * once)


@pytest.mark.parametrize("compiled", [False, True])
def test_stock_xla_copies_a_loop_of_a_cond(monkeypatch, compiled):
    """Stock alone: the loop of one branch runs twice if the other branch has a cond and there are gradients."""
    monkeypatch.setattr(control_flow_util, "ENABLE_CONTROL_FLOW_V2", False)

    def model(flag, x):
        effects = v1.get_variable("effects", [], initializer=v1.zeros_initializer(), use_resource=True)

        def step(i, y):
            with tf.control_dependencies([effects.assign_add(1.0)]):
                return i + 1, tf.identity(y)

        def loop():
            return v1.while_loop(lambda i, _: i < 3, step, (0, x), maximum_iterations=3)[1]

        y = v1.cond(flag, loop, lambda: v1.cond(flag, lambda: x * 0.5, lambda: x * 2.0))
        return [y, *v1.gradients(y, [x])]

    with tf.Graph().as_default(), v1.Session() as session:
        flag, x = v1.placeholder(tf.bool, []), v1.placeholder(tf.float32, [])
        results = tf.xla.experimental.compile(model, [flag, x]) if compiled else model(flag, x)
        session.run(v1.global_variables_initializer())
        session.run(results, {flag: True, x: 1.0})
        assert session.run(v1.global_variables()) == [6.0 if compiled else 3.0]


def test_what_the_programs_are_compared_with():
    """By hand: two replicas, elements 0 to 6; each iteration takes two."""
    loops = (feed_programs.Loop(2, 3, 0, False), feed_programs.Loop(1, 1, 0, True))
    first, second = feed_programs.expected(feed_programs.Program(2, 1, loops, 7, 2))
    assert (first.totals, first.sent.tolist(), first.steps) == ([3 * (0 + 2), 4 + 5], [[0, 3], [6, 12]], 2)
    assert (second.totals, second.sent.tolist(), second.steps) == (None, [], 2)


def test_few_ops():
    """Values and gradients here; what is wrong with input takes `make soak`."""
    op_runs.configure()
    lines = []
    for op in FEW_OPS:
        op_runs.look_at(op, lambda op=op, **line: lines.append({"op": op, **line}), most=1, inputs="valid")
    report = op_lane.Report()
    for line in lines:
        report.add(line)
    assert (report.differences, report.not_run, report.ran) == ([], {}, set(FEW_OPS))
    assert report.refused == {"StringUpper", "Unique"}


@pytest.mark.parametrize("op", OPS_AT_EDGES)
def test_ops_at_the_edges_of_their_types(monkeypatch, op):
    """On the IPU Model: there float16 overflows to infinity, as on the CPU."""
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model")
    op_runs.configure()
    report = op_lane.Report()
    op_runs.look_at(op, lambda **line: report.add({"op": op, **line}), most=2, inputs="edges")
    assert (report.differences, report.not_run) == ([], {})
    assert min(report.counts[mode, "same"] for mode in op_runs.MODES) > 10


def test_edges_of_types():
    attributes = {"SrcT": tf.float32.as_datatype_enum, "DstT": tf.int32.as_datatype_enum, "Truncate": False}
    case = op_cases.Case("Cast", (np.ones((2, 4), np.float32),), attributes)
    found = {one.what: one.arguments[0] for one in hostile.cases(case)}
    assert np.isnan(found["NaN"]).tolist() == [[True, False, False, False]] * 2
    assert found["infinities"].tolist() == [[np.inf, 1, -np.inf, 1]] * 2
    assert found["largest"].max() == np.finfo(np.float32).max and not np.isinf(found["largest"]).any()
    assert 0 < found["denormals"].max() < np.finfo(np.float32).tiny
    assert {-2.0, 300.0, 3e9} <= set(found["out of range"].ravel().tolist())
    assert (found["first axis empty"].shape, found["one element"].shape) == ((0, 4), (1, 1))
    integers = op_cases.Case("Neg", (np.ones(6, np.int8),), {"T": tf.int8.as_datatype_enum})
    assert {-128, 127} <= set(next(hostile.mixed(integers)).arguments[0].tolist())


def test_non_finite_elements_are_compared_by_place_and_sign():
    case = next(op_cases.candidates("Sqrt"))
    given = [np.float32(values) for values in ([np.nan, np.inf, 1], [np.inf, np.nan, 1], [np.nan, -np.inf, 1])]
    outcomes = [op_outcomes.Outcome(values=[values]) for values in given]
    by = [op_outcomes.compared(case, "xla", outcomes[0], other).status for other in outcomes]
    assert by == ["same", "different", "different"]


@pytest.mark.parametrize("number", [1, slowly(2)])
@pytest.mark.parametrize("kind", parts.COMPARED)
def test_programs_in_all_execution_modes(kind, number):
    op_runs.configure()
    program = parts.COMPARED[kind].Program.draw(random.Random(number))
    finding = parts.COMPARED[kind].compare(program, modes.FORMS[number])
    assert finding.status in ("same", "refused"), finding.detail


def test_what_the_programs_draw():
    """By hand: `state[1:] = state[:-1] / 2` twice, an array that grows to four rows, a range of a value's length."""
    shifted = slice_programs.Statement("slice", (1, 1, 0, 1, 0, 0))
    slices = slice_programs.Program((5,), (slice_programs.Statement("loop", (2,), ((shifted,),)),), 1)
    assert modes.eagerly(slices).values[-1][0].tolist() == [1, 0.5, 0.25, 0.5, 0.75]
    lists = list_programs.Program(1, 4, 0, "in turn", False, True, "stack", False, False, False, runs=1)
    assert modes.eagerly(lists).values[0][0].tolist() == [2, 3, 4, 5]
    elements = (3.0, 4.0, 1.0, 2.0, 3.0, 5.0)
    sizes = size_programs.Program("an element", "range", "itself", "nothing", False, elements, runs=1)
    assert modes.eagerly(sizes).values[0][0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("found", "status"),
    [
        ([1.0, 1.0, 1.0], "same"),
        ([1.0, 1.0, 2.0], "different"),
        ([1.0, 1.0, ValueError("no")], "different"),
        ([ValueError("no"), TypeError("no"), ValueError("no")], "different"),
        ([ValueError("no")] * 3, "refused"),
        ([ValueError("Run with TF_DUMP_GRAPH_PREFIX=")] * 3, "different"),
    ],
)
def test_what_programs_are_compared_by(monkeypatch, found, status):
    def outcome(value):
        return modes.Outcome(error=value) if isinstance(value, Exception) else modes.Outcome([[np.float32(value)]])

    outcomes = dict(zip(modes.MODES, map(outcome, found)))
    monkeypatch.setattr(modes, "compiled", lambda program, form, mode: outcomes[mode])
    monkeypatch.setattr(modes, "eagerly", lambda program: outcome(1.0))
    assert modes.compare(None, "function").status == status


def test_figures_as_a_table(tmp_path):
    for wrong in ([], ["another result"]):
        tables.append(
            tmp_path / "results" / "soak.csv", {"lists": parts.Found(7, "programs", wrong, refused=2)}, "soak"
        )
    header, first, second = (tmp_path / "results" / "soak.csv").read_text().splitlines()
    assert header == "kind,runs,wrong,refused,command,tensorflow,date"
    assert first.startswith("lists,7,0,2,soak,2.") and second.startswith("lists,7,1,2,soak,2.")


def test_what_ops_are_compared_by():
    case = next(op_cases.candidates("Sqrt"))
    same, other = (op_outcomes.Outcome(values=[np.float32([value])]) for value in (2, 3))
    failed, failed_otherwise = op_outcomes.Outcome(error=ValueError("no")), op_outcomes.Outcome(error=TypeError("no"))
    by = [op_outcomes.compared(case, "kernels", *pair).status for pair in [(same, same), (same, other), (same, failed)]]
    assert by == ["same", "different", "different"]
    assert op_outcomes.compared(case, "eager", failed, failed).status == "same error"
    assert op_outcomes.compared(case, "eager", failed, failed_otherwise).status == "different"
    assert [op_outcomes.compared(case, mode, failed, same).status for mode in op_runs.MODES] == [
        "different", "unchecked", "different",
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.no_sanitizer  # it limits the memory of a process to less than the sanitizer's shadow takes
def test_a_process_that_an_op_ends_is_a_difference(monkeypatch):
    """The op that follows it runs in another process."""
    monkeypatch.setenv(op_runs.ENDED_BY, "Neg")
    report = op_lane.run(["Neg", "Abs"], most=1)
    assert report.ran == {"Neg", "Abs"}
    (difference,) = report.differences
    assert difference.startswith("Neg(") and "eager: the process was ended by SIGKILL" in difference


@pytest.mark.parametrize(
    ("op", "tensors", "what", "mode", "detail", "fails"),
    [
        ("SparseAdd", "", "values", "kernels", "result 1", False),
        ("SparseAdd", "", "values", "xla", "result 1", True),
        ("SparseAdd", "", "NaN", "kernels", "result 1", True),
        ("SparseAdd", "", "values", "kernels", "the process was ended by SIGABRT", True),
        ("Conv3D", "float32[1, 4, 4, 4, 2]", "values", "eager", "result 0", True),
        ("Conv3D", "float16[1, 4, 4, 4, 2]", "values", "eager", "result 0", False),
        ("SqrtGrad", "", "largest", "xla", "result 0", False),
        ("SqrtGrad", "", "NaN", "xla", "result 0", True),
        ("Abs", "", "values", "xla", "result 0", True),
        ("MaxPoolGrad", "", "values", "xla", "result 0", True),
        ("MaxPoolGrad", "", "NaN in input 0", "xla", "result 0", False),
    ],
)
def test_known_differences_are_told_and_do_not_fail(op, tensors, what, mode, detail, fails):
    report = op_lane.Report()
    case = f"{op}({tensors})"
    report.add({"op": op, "case": case, "what": what, "mode": mode, "status": "different", "detail": detail})
    assert (report.differences, report.known) == ([f"{case} {mode}: {detail}"], [])[:: 1 if fails else -1]


def test_why_ops_are_not_run():
    reasons = op_lane.run(["Abort", "Assign", "While", "IteratorGetNext", "_Arg", "IpuRecvAtHost"]).not_run
    assert reasons["Abort"] == "ends the process"
    assert "reference variables" in reasons["Assign"] and "runs functions" in reasons["While"]
    assert len(reasons) == 6 and "op of this plugin" in reasons["IpuRecvAtHost"]


@pytest.mark.parametrize("times", [1, slowly(4)])
@pytest.mark.slow
def test_steadiness(times):
    assert steadiness.grown(50 * times) == ""
    assert steadiness.restarted(5 * times) == ""
    assert steadiness.recompiled(5 * times) == ""
    assert steadiness.modelled(2 * times) == ""
    assert steadiness.closed_while_running(times) == ""
    assert steadiness.beside_reconfiguration(5 * times, threads=2) == ""


@pytest.mark.slow
def test_what_grows_is_told():
    kept: list[bytearray] = []
    grown = steadiness._growth(lambda: kept.append(bytearray(b"x" * (8 << 20))), 8, wait=0)
    assert "memory, threads and files" in grown
    files = []
    assert "after as many more" in steadiness._growth(lambda: files.append(open(os.devnull)), 2, wait=1)
    for file in files:
        file.close()
    goes_on = threading.Event()
    many = 60  # threads of earlier tests may end meanwhile
    grown = steadiness._growth(lambda: threading.Thread(target=goes_on.wait).start(), many, wait=1)
    assert "after as many more" in grown
    goes_on.set()


def test_threads_that_are_about_to_end_are_waited_for():
    assert steadiness._growth(lambda: threading.Timer(1.5, int).start(), 6, wait=30) == ""


@pytest.mark.slow
def test_processes_that_are_ended_and_their_kin():
    """One that a signal ends, one without it, and one whose disk takes next to nothing; spawned workers, and forks."""
    assert [*abrupt_ends.found(1, seed=3), *abrupt_ends.without_room([5_000]), *families.found()] == [""] * 6


def test_models_say_that_they_go_on_and_what_failed(tmp_path, monkeypatch):
    tests = tmp_path / "test_models.py"
    tests.write_text(
        "import os\nfrom hypothesis import given, settings, strategies\n\n"
        "few = settings(max_examples=int(os.environ['NEW_MODELS']) + 1, database=None)\n\n\n"
        "def test_of_no_models():\n    assert False\n\n\n"
        "@few\n@given(strategies.integers())\ndef test_right(drawn):\n    pass\n\n\n"
        "@few\n@given(strategies.integers(1))\ndef test_wrong(drawn):\n    assert drawn == 1\n"
    )
    monkeypatch.setattr(models, "_FILES", (str(tests),))
    *words, last = models.found(3, 4)
    assert words and set(words) == {models.End()}
    assert "test_wrong" in last.failed and "1 failed, 1 passed" in last.failed
    assert "Test case: test_wrong(\n    drawn=" in last.failed.split("Failing test case")[0]
    (*_, again), (*_, other) = models.found(3, 4), models.found(4, 4)
    drawn, same, different = (re.findall(r"drawn=(\d+)", end.failed) for end in (last, again, other))
    assert drawn == same != different
    assert last.models >= 4


@pytest.mark.parametrize(
    ("new", "expected"),
    [("0", (20, (Phase.explicit, Phase.generate), True)), ("4", (5, (Phase.generate,), False))],
)
def test_how_many_models_a_test_draws(monkeypatch, new, expected):
    monkeypatch.setenv("NEW_MODELS", new)
    drawn = random_graphs.examples(20)
    assert (drawn.max_examples, drawn.phases, drawn.derandomize) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", (10_000, 500, 1_000, 10_000)),
        ("--size 0.02", (200, 10, 40, 200)),
        ("--size 0.02 --compared 50", (200, 50, 40, 200)),
        ("--size 0.00001", (2, 2, 40, 100)),
    ],
)
def test_a_size_scales_the_counts_that_are_not_given(arguments, expected):
    options = soak_command._parsed(arguments.split())
    assert (options.programs, options.compared, options.calls, options.runs) == expected


def test_a_small_soak_runs_some_of_the_ops():
    chosen = [parts._some_ops(soak_command._parsed(["--size", size])) for size in ("1", "0.02", "0.00001")]
    assert chosen[0] == op_lane.all_ops() and len(chosen[1]) == round(len(chosen[0]) * 0.02) and len(chosen[2]) == 1


@pytest.mark.parametrize(("seconds", "expected"), [("0", (1, 0, [])), ("1e9", (3, 1, ["another value"]))])
def test_a_part_ends_after_its_seconds_with_what_it_found(seconds, expected):
    findings = ["", modes.Finding("refused", "no"), modes.Finding("different", "another value")]
    part = parts._each(lambda options: iter(findings), "things")
    found = part(soak_command._parsed(["--seconds", seconds]))
    assert (found.count, found.refused, found.wrong) == expected


@pytest.mark.parametrize(("seconds", "expected"), [("0", (2, [])), ("1e9", (7, ["test_wrong"]))])
def test_models_end_with_a_file_after_their_seconds(monkeypatch, seconds, expected):
    ends = [models.End(), models.End(2), models.End(), models.End(5, "test_wrong")]
    monkeypatch.setattr(models, "found", lambda first, count: iter(ends))
    found = parts.random_models(soak_command._parsed(["--seconds", seconds]))
    assert (found.count, found.wrong) == expected


@pytest.mark.parametrize(
    "part",
    [
        parts._each(lambda options: iter([""]), "things"),
        parts._one(lambda count: "", "runs", "things"),
        pytest.param(parts.random_models, id="models"),
    ],
)
def test_no_watch_outlives_its_part(monkeypatch, part):
    """It would end the process minutes later, whatever runs there then."""
    events = []
    monkeypatch.setattr(models, "found", lambda first, count: iter([models.End(1)]))
    monkeypatch.setattr(faulthandler, "dump_traceback_later", lambda silence, exit: events.append(silence))
    monkeypatch.setattr(faulthandler, "cancel_dump_traceback_later", lambda: events.append("over"))
    assert part(soak_command._parsed(["--silence", "7"])).count > 0
    assert {*events[:-1]} == {7} and events[-1] == "over"


@pytest.mark.parametrize("size", ["0", "-1", "2"])
def test_sizes_that_are_no_part_are_refused(size, capsys):
    with pytest.raises(SystemExit):
        soak_command._parsed(["--size", size])
    assert "expected more than 0 and at most 1" in capsys.readouterr().err


def test_a_long_part_is_cut_by_the_numbers_of_its_programs():
    options = soak_command._parsed("--first 7 --models 9 --compared 50".split())
    pieces = [piece.arguments for piece in lanes.pieces(["models", "seeds", "keras"], options)]
    assert pieces[:4] == [
        (),
        ("--models", "4", "--first", "7"),
        ("--models", "4", "--first", "11"),
        ("--models", "1", "--first", "15"),
    ]
    assert pieces[4:] == [("--compared", "50", "--first", "7")]


@pytest.mark.slow
def test_pieces_are_processes_and_one_that_ends_early_is_wrong(capsys):
    """A program that is right, and an option that there is not, with which the process ends."""
    right, wrong = lanes.Piece("programs", ("--programs", "1")), lanes.Piece("programs", ("--unknown",))
    found, whole = lanes.run([right, wrong], ["--seed", "3"], at_once=2)
    assert whole and found["programs"].count == 1
    (text,) = found["programs"].wrong
    assert text.startswith("it ended with 2") and "--unknown" in text
    assert "programs: 0 wrong of 1 programs" in capsys.readouterr().out
