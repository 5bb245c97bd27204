"""`pva` over a profile of a program that is written down by hand."""

import html.parser
import sqlite3

import pva
import pytest

from tf_ipu_shim.cycle_model import Computation, SyncPoint, timeline_of
from tf_ipu_shim.cycle_model.sizes import ElementwiseSizes, ExchangeSizes, HostSizes, MatmulSizes, Move
from tf_ipu_shim.errors import MissingAttributeError, UnsupportedError
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.memory import Block, MemoryPlan, Mode, Value, plan_of
from tf_ipu_shim.profiling import collect, writer

pytestmark = pytest.mark.without_tensorflow

CHIP = CHIPS["gc200"].with_tiles(4)
ADD = Computation("elementwise", "loop/add/Op/Add", ElementwiseSizes(100, 2))


def block():
    """Arguments from the host, then a loop of three iterations of an addition."""
    made = Block("IPU 0")
    weights = made.add(Value(800, "w", "weight", Mode.ALWAYS))
    fed = made.add(Value(400, "x", "argument"))
    made.run("from the host", (), (fed,), work=Computation("host", "from the host", HostSizes(400), 1))
    body = Block("body")
    body.run("loop/add", (), (body.add(Value(400, "loop/add", "temporary")),), work=ADD)
    given = made.add(Value(400, "loop", "temporary"))
    made.run("loop", (weights, fed), (given,), (body,), True, SyncPoint(0, 3, (0,)))
    return made


@pytest.fixture
def report(tmp_path):
    return opened(block(), tmp_path)


def opened(made, tmp_path, *others):
    """The report of a program of one IPU, or more."""
    blocks = dict(enumerate((made, *others)))
    plans = tuple(plan_of(ipu, one, CHIP) for ipu, one in blocks.items())
    plan = MemoryPlan(program="train", device="/device:IPU:0", chip=CHIP.title, ipus=plans)
    facts, count = {"sdk": "3.4", "is_model": True}, len(blocks)
    profile = collect.make_profile(
        plan, blocks, timeline_of(blocks, CHIP, count), CHIP, count, 1, {"loop/add": "train.py:3"}.get, {}, facts
    )
    tmp_path.mkdir(exist_ok=True)
    writer.write_profile(profile, tmp_path)
    (tmp_path / writer.RUNS).write_text("10 20\n30 45\n")
    return pva.openReport(str(tmp_path / writer.FILE))


def test_target(report):
    target = report.compilation.target
    assert (target.numIPUs, target.tilesPerIpu, target.numTiles, target.ipusPerReplica) == (1, 4, 4, 1)
    assert target.totalMemory == target.bytesPerIPU == target.memoryPerReplica == 4 * 638_976
    assert target.type is pva.Target.Type.IpuModel and target.architecture is pva.IPU.Architecture.Ipu2
    assert report.poplarVersion[1:4] == (3, 4, 0)


def test_categories_of_tiles(tmp_path):
    """A variable has 200 bytes on each of the four tiles, a constant 128, 128 and 8 on the first three."""
    made = Block("IPU 0")
    made.add(Value(800, "w", "weight", Mode.ALWAYS))
    made.add(Value(264, "c", "constant", Mode.ALWAYS))
    made.run("x", (), (made.add(Value(400, "x", "temporary")),))
    memory = [tile.memory for tile in opened(made, tmp_path).compilation.tiles]
    assert [one.category.constant.total for one in memory] == [128, 128, 8, 0]
    assert [one.alwaysLiveBytes for one in memory] == [328, 328, 208, 200]
    for name in ("vertexCode", "controlCode", "internalExchangeCode", "vertexInstanceState"):
        with pytest.raises(UnsupportedError, match=f"pva's Categories.{name} is not emulated: the code of programs"):
            getattr(memory[0].category, name)
    with pytest.raises(UnsupportedError, match="CategoryMemory.interleaved is not emulated: the memory elements"):
        assert memory[0].category.constant.interleaved
    with pytest.raises(AttributeError, match="no attribute 'constants'"):
        assert memory[0].category.constants


def test_memory(report):
    compilation = report.compilation
    assert [(one.name, one.size) for one in compilation.alwaysLiveVariables] == [("w", 800)]
    assert sum(tile.memory.alwaysLiveBytes for tile in compilation.tiles) == 800
    # The argument, what the loop gives, and the addition in it.
    assert sum(tile.memory.total.excludingGaps for tile in compilation.tiles) == 800 + 3 * 400
    assert sum(tile.memory.total.includingGaps for tile in compilation.ipus[0].tiles) == 800 + 3 * 400
    assert all(tile.memory.overflowed.includingGaps == 0 for tile in compilation.tiles)
    assert [step.notAlwaysLiveMemory.bytes for step in compilation.livenessProgramSteps] == [400, 1200, 800]
    largest = max(compilation.livenessProgramSteps, key=lambda step: step.notAlwaysLiveMemory.bytes)
    assert sorted(one.name for one in largest.notAlwaysLiveMemory.variables) == ["loop", "loop/add", "x"]
    assert largest.notAlwaysLiveMemoryForIpu(0).bytes == 1200
    assert largest.program.name == "loop/add"


def two_ipus():
    """An IPU is fed 400 bytes, adds to them and sends 300 to another, which adds to these and gives 200 to the host."""
    sender, receiver = Block("IPU 0"), Block("IPU 1")
    moved = SyncPoint(1, computation=Computation("exchange", "move", ExchangeSizes((Move(300, 0, 1),)), 1))
    fed = sender.add(Value(400, "x", "argument"))
    sender.run("from the host", (), (fed,), work=Computation("host", "from the host", HostSizes(400), 1))
    made = sender.add(Value(300, "first", "temporary"))
    sender.run("first", (fed,), (made,), work=ADD)
    sender.run("move", (made,), (), work=moved)
    received = receiver.add(Value(300, "move", "exchange"))
    receiver.run("move", (), (received,), work=moved)
    result = receiver.add(Value(200, "second", "temporary"))
    receiver.run("second", (received,), (result,), work=ADD)
    receiver.run("to the host", (result,), (), work=Computation("host", "to the host", HostSizes(-200), 1))
    return sender, receiver


def test_what_is_alive_on_all_ipus(tmp_path):
    sender, receiver = two_ipus()
    steps = opened(sender, tmp_path, receiver).compilation.livenessProgramSteps
    assert [step.notAlwaysLiveMemory.bytes for step in steps if step.name == "second"] == [300 + 500]
    for step in steps:
        memory, on_each = step.notAlwaysLiveMemory, [step.notAlwaysLiveMemoryForIpu(ipu) for ipu in (0, 1)]
        assert sum(one.size for one in memory.variables) == memory.bytes == sum(one.bytes for one in on_each)
        assert all(sum(one.size for one in here.variables) == here.bytes for here in on_each)
    first = next(step for step in steps if step.name == "first")
    assert [one.name for one in first.notAlwaysLiveMemoryForIpu(0).variables] == ["x", "first"]
    assert first.notAlwaysLiveMemoryForIpu(1).variables == []
    assert repr(first) == "<LivenessStep 'first': 700 bytes not always live>"


def test_what_ipus_receive_and_send(tmp_path):
    sender, receiver = two_ipus()
    report = opened(sender, tmp_path, receiver)
    kinds = pva.Program.Type
    moved = {kind: [] for kind in kinds}
    for step in report.execution.runs[0].steps:
        moved[step.program.type].append([(ipu.dataIn, ipu.dataOut) for ipu in step.ipus])
    assert moved[kinds.GlobalExchange] == [[(0, 300), (300, 0)]]
    assert moved[kinds.StreamCopyMid] == [[(400, 0), (0, 0)], [(0, 0), (0, 200)]]
    assert moved[kinds.StreamCopyBegin] == [[(0, 0), (0, 0)]] * 2
    step = next(step for step in report.execution.steps if step.computeSets)
    assert repr(step) == f"<Step 'loop/add/Op/Add', OnTileExecute: {(29 + 3 * 3) * 6 + 11} cycles>"
    assert repr(step.program) == "<Program 'loop/add/Op/Add', OnTileExecute>"


def test_files_of_the_first_format_are_read(report, tmp_path):
    expected = [(step.program.name, step.ipus[0].cycles) for step in report.execution.runs[0].steps]
    file = tmp_path / writer.FILE
    connection = sqlite3.connect(file)
    connection.execute("ALTER TABLE programs DROP COLUMN moves")
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    steps = pva.openReport(file).execution.runs[0].steps
    assert [(step.program.name, step.ipus[0].cycles) for step in steps] == expected
    connection.execute("PRAGMA user_version = 3")
    connection.commit()
    with pytest.raises(ValueError, match="a profile of format 3; expected format 1 and 2"):
        pva.openReport(file)


def test_compute_sets(report):
    found, seeds = report.compilation.computeSets
    assert found.name == "loop/add/Op/Add" and report.compilation.graph == (2, 4 + 4)
    assert seeds.name == "__seed/set/setMasterSeed"
    (vertices,) = found.vertices
    assert vertices.type.name == "popops::BinaryOp1D" and vertices.countByTile == [1] * 4
    assert max(vertices.estimatedCyclesByTile) == (29 + 3 * 3) * 6 + 11


def test_programs(report):
    kinds = [program.type.name for program in report.compilation.programs]
    assert kinds.count("Repeat") == 1 and kinds.count("OnTileExecute") == 1
    assert kinds.count("StreamCopyBegin") == kinds.count("StreamCopyMid") == 3  # two of them of variables
    (loop,) = (one for one in report.compilation.programs if one.type is pva.Program.Type.Repeat)
    (execute,) = loop.leaves()
    assert execute.computeset.name == "loop/add/Op/Add" and execute.line == "train.py:3"

    class Visitor(pva.ProgramVisitor):
        seen = 0

        def visitOnTileExecute(self, program):
            self.seen += 1

    visitor = Visitor()
    for program in report.compilation.programs:
        program.accept(visitor)
    assert visitor.seen == 1


def test_execution(report):
    execution = report.execution
    add = (29 + 3 * 3) * 6 + 11  # 32 numbers on the fullest tile: three vectors of a worker
    host = next(step for step in execution.runs[0].steps if step.program.type is pva.Program.Type.StreamCopyMid)
    assert report.facts["cycles"] == host.ipus[0].cycles + 3 * add
    assert [(run.microseconds.start, run.microseconds.end) for run in execution.runs] == [(10, 20), (30, 45)]
    assert execution.totalCycles.total == 2 * report.facts["cycles"]
    steps = execution.runs[0].steps
    assert len(steps) == 5 == len(list(steps)) and len(execution.steps) == 10  # begin and copy, three iterations
    adds = [step for step in steps if step.computeSets]
    starts = [step.ipus[0].activeCycles.cyclesFrom.max for step in adds]
    assert starts == [host.ipus[0].cycles + iteration * add for iteration in range(3)]
    assert [steps[number].program for number in range(5)] == [step.program for step in steps]
    assert steps[-1].ipus[0].activeCycles.cyclesTo.max == report.facts["cycles"]
    with pytest.raises(IndexError):
        steps[5]


def test_what_is_not_there_is_refused(report):
    with pytest.raises(UnsupportedError, match="code of programs is not modelled"):
        assert report.compilation.tiles[0].memory.vertices
    with pytest.raises(UnsupportedError, match="OperationAnalysis is not emulated"):
        pva.OperationAnalysis(report)
    with pytest.raises(MissingAttributeError, match=r"pva.openTrace is not emulated: it reads traces .* `libpvti`"):
        pva.openTrace("trace.pvti")
    assert not hasattr(pva, "nothing")
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        assert report.compilation.nothing
    assert not hasattr(report.compilation, "loweredVariables")


def test_a_profile_without_runs(report, tmp_path):
    (tmp_path / writer.RUNS).unlink()
    with pytest.raises(UnsupportedError, match="no execution report"):
        assert pva.openReport(tmp_path).execution


def test_a_notebook_shows_the_page_in_a_frame(report):
    class Frames(html.parser.HTMLParser):
        def handle_starttag(self, tag, attributes):
            found.append((tag, dict(attributes)))

    found = []
    Frames().feed(report._repr_html_())
    ((tag, attributes),) = found
    assert tag == "iframe" and attributes["srcdoc"].startswith("<!DOCTYPE html>")
    assert "train" in attributes["srcdoc"] and "loop/add" in attributes["srcdoc"]


def test_tiles_have_what_a_product_needs_beside_the_tensors(tmp_path):
    """As Poplar's do: [4, 8] by [8, 4] on each of four tiles takes a row, coefficients for 16 units, and their sums."""
    made = Block("IPU 0")
    x = made.add(Value(512, "x", "argument"))
    made.run("from the host", (), (x,), work=Computation("host", "from the host", HostSizes(512), 1))
    y = made.add(Value(256, "y", "temporary"))
    made.run("y", (x,), (y,), work=Computation("product", "y/dot/Conv_1", MatmulSizes(1, 4, 8, 4)))
    compilation = opened(made, tmp_path).compilation
    each = 4 * (8 + 8 * 16 + 16)
    memory = [tile.memory for tile in compilation.tiles]
    assert [one.total.excludingGaps for one in memory] == [128 + 128 + each] * 2 + [128 + each] * 2
    assert [one.notAlwaysLiveBytes for one in memory] == [one.total.excludingGaps for one in memory]
    before, at_the_product = [step.notAlwaysLiveMemory for step in compilation.livenessProgramSteps]
    assert (before.bytes, at_the_product.bytes) == (512, 512 + 256 + 4 * each)
    found = {one.name: one.size for one in at_the_product.variables}
    assert found == {"x": 512, "y": 256, "y/dot/Conv_1/Convolve": 4 * each}


def test_what_overflows_are_tensors(tmp_path):
    """A program fits by its tensors: what a library call needs is known within a factor of three."""
    made = Block("IPU 0")
    x = made.add(Value(4 * 600_000, "x", "argument"))
    made.run("from the host", (), (x,), work=Computation("host", "from the host", HostSizes(2_400_000), 1))
    made.run("y", (x,), (), work=Computation("product", "y/dot/Conv_1", MatmulSizes(1, 1024, 1024, 1024)))
    memory = [tile.memory for tile in opened(made, tmp_path).compilation.tiles]
    assert max(one.total.excludingGaps for one in memory) > CHIP.bytes_per_tile
    assert all(one.overflowed.excludingGaps == 0 for one in memory)


def test_an_engine_chooses_one_of_three_programs(tmp_path):
    """Variables to the IPUs, the run, variables back, as Graphcore's driver compiles them; weights are one copy."""
    made = block()
    made.add(Value(200, "b", "weight", Mode.ALWAYS))
    programs = opened(made, tmp_path).compilation.programs
    kinds = pva.Program.Type
    load, main, store = next(one for one in programs if one.type is kinds.OnEveryTileSwitch).children
    for copies in (load, store):
        assert [one.type for one in copies.children] == [kinds.StreamCopyBegin, kinds.StreamCopyMid]
    assert [one.type for one in main.children] == [kinds.StreamCopyBegin, kinds.StreamCopyMid, kinds.Repeat]
    assert not any(one.type is kinds.GlobalExchange for one in programs)
    # Several IPUs are told which of the three it is, and their seeds.
    sender, receiver = two_ipus()
    programs = opened(sender, tmp_path / "two", receiver).compilation.programs
    names = [one.name for one in programs if one.type is kinds.GlobalExchange]
    assert names == ["switchControlBroadcast/GlobalPre", "__seed/set/setMasterSeed/GlobalPre", "move"]
