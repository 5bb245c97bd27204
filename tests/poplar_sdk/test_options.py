"""Options of engines, targets, devices and streams: those that act, and the errors of unknown names and values."""

import pathlib
import subprocess

import generate_poplibs
import pytest
from poplar_programs import compile_program
from slow_cases import slowly

from tf_ipu_shim.cycle_model import planning
from tf_ipu_shim.machine.environment import engine_options
from tf_ipu_shim.poplar_sdk import option_tables

pytestmark = [pytest.mark.without_tensorflow, pytest.mark.subprocess]

SOURCE = pathlib.Path(__file__).parent / "programs" / "option_cases.cpp"


@pytest.fixture(scope="module")
def run():
    program = compile_program(SOURCE, "poprand", "popops", "poputil")

    def run(case, name, value):
        return subprocess.run([program, case, name, value], capture_output=True, text=True, check=True).stdout.strip()

    return run


@pytest.mark.parametrize(
    ("case", "name", "message"),
    [
        ("library", "debug.alowOutOfMemory", "Unrecognised option 'debug.alowOutOfMemory' of Engine. Did you mean "),
        ("library", "allowOutOfMemory", "Did you mean 'debug.allowOutOfMemory'? If not, leave the option out."),
        ("cpu", "colourOfTheTiles", ", syncConfiguration. Or leave the option out."),
        (
            "target",
            "ipuLinkTopologie",
            "Unrecognised option 'ipuLinkTopologie' of Target::createIPUTarget. Did you mean ",
        ),
        ("devices", "colour", "Unrecognised option 'colour' of DeviceManager. Use one of these: gatewayMode, "),
        ("model", "ipuLink", "Unrecognised option 'ipuLink' of IPUModel::createDevice."),
        ("cpu", "threads", "Unrecognised option 'threads' of Device::createCPUDevice."),
        ("stream", "bufferDepth", "Unrecognised option 'bufferDepth' of addHostToDeviceFIFO. Did you mean "),
        ("summary", "showExecutionStep", "Unrecognised option 'showExecutionStep' of Engine::printProfileSummary."),
    ],
)
def test_unknown_options_are_errors(run, case, name, message):
    printed = run(case, name, "true").splitlines()[-1]
    assert printed.startswith("invalid_option: ")
    assert message in printed


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("debug.instrument", "yes", "expected one of: true, false"),
        ("opt.maxCompilationThreads", "many", "expected Integer"),
        ("target.hostSyncTimeout", "soon", "expected Decimal"),
        ("target.deterministicWorkers", "True", "expected one of: true, false, portable"),
    ],
)
def test_unknown_values_are_errors(run, name, value, expected):
    message = f"invalid_option: Engine: option '{name}' has the value '{value}'; {expected}. Pass such a value."
    assert run("library", name, value) == message


def _values(option):
    samples = {"Integer": "0x10", "Decimal": "1.5", "Text": "any words"}
    return [samples.get(value, value) for value in option.values]


def test_every_documented_value_is_accepted(run):
    tables = option_tables.read()
    cases = {
        "engine_options": "library in range",
        "target_options": "target",
        "stream_options": "stream",
        "summary_options": "summary",
    }
    options = [(cases[name], option) for name, table in tables.items() if name in cases for option in table.options]
    assert len(options) > 80
    for case, option in options:
        for value in _values(option):
            assert "invalid_option" not in run(case, option.name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("debug.executionProfile", "compute_sets"),
        ("debug.graphReportDestination", "stdout"),
        ("debug.workerStackSizeInBytes", "0x200"),
        ("device.clearAtomicFlagAfterExchange", "false"),
        ("exchange.multicastPolicy", "balanced"),
        ("opt.maxCopyMergeSize", "8388608"),
        ("profiler.replicaToProfile", "0"),
        ("target.hostSyncTimeout", "600.0"),
        ("target.saveOutputVertexGraph", "graph.txt"),
        ("target.textSectionSizeInBytes", "0xa000"),
        ("target.workerStackSizeInBytes", "0x200"),
    ],
)
def test_options_of_published_programs(run, name, value):
    assert "invalid_option" not in run("library in range", name, value)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("debug.nanOverflowMode", "a half that overflows is infinite"),
        ("prng.enable", "the arithmetic of the CPU rounds to the nearest value"),
        ("prng.enableStochasticRounding", "the arithmetic of the CPU rounds to the nearest value"),
    ],
)
def test_options_that_change_results_are_refused(run, name, why):
    message = f"invalid_option: Engine: option '{name}' has the value 'true'; expected false: {why}. Pass such a value."
    assert run("library in range", name, "true") == message
    assert run("library in range", name, "false") == "0.25 0.25"
    assert f"`{name}` (only `false`)" in generate_poplibs.options_page()


def test_a_seed_of_the_generator(run):
    first, second = run("draws", "prng.seed", "7").splitlines()
    assert first == second
    assert run("draws", "prng.seed", "7").splitlines()[0] == first
    assert run("draws", "prng.seed", "0x8").splitlines()[0] != first
    without = run("draws", "debug.instrument", "false").splitlines()
    assert without[0] != without[1]


def test_published_target_options(run):
    assert run("target", "syncConfiguration", "ipuAndInstanceAndIntraReplicaAndAll") == ""
    assert run("target", "ipuLinkConfiguration", "slidingWindow") == ""


def test_python_and_cpp_know_the_same_names():
    tables = option_tables.read()
    assert {option.name for option in tables["engine_options"].options} == set(engine_options.known())
    for name in ("convolution_options", "matmul_options"):
        assert {option.name for option in tables[name].options} >= planning.READ


@pytest.mark.parametrize("case", ["vertex", "library"])
def test_float_exceptions_stop_the_program(run, case):
    place = {
        "vertex": "Vertex Divide in compute set 'quotients' on tile 1",
        "library": "compute set 'quotients/Op/Divide'",
    }[case]
    printed = run(case, "debug.floatPointOpException", "true")
    assert printed.startswith(f"application_runtime_error: Floating-point exception: {place}")
    assert "made a division by zero" in printed
    assert run(case, "debug.floatPointOpException", "false") == "inf inf"
    assert run(case, "debug.nanOverflowException", "true") == "inf inf"
    assert run(f"{case} in range", "debug.floatPointOpException", "true") == "0.25 0.25"


@pytest.mark.parametrize(
    ("kind", "option"),
    [
        ("float", "debug.floatPointOpException"),
        ("half", "debug.nanOverflowException"),
        slowly("float", "debug.nanOverflowException"),
        slowly("half", "debug.floatPointOpException"),
    ],
)
def test_overflows_stop_the_program(run, kind, option):
    by_library, by_vertex = run(kind, option, "true").splitlines()
    assert "compute set 'squares" in by_library and "made an overflow" in by_library
    assert "Vertex Square<" in by_vertex and "made an overflow" in by_vertex
    assert run(kind, option, "false").splitlines() == ["no exception", "no exception"]
    assert run("half in range", option, "true").splitlines() == ["no exception", "no exception"]


def test_environment_overrides_engine_options(run, monkeypatch):
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", '{"debug.floatPointOpException": true}')
    assert "division by zero" in run("library", "debug.floatPointOpException", "false")
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", '{"debug.floatPointException": true}')
    assert "Did you mean 'debug.floatPointOpException'?" in run("library", "debug.instrument", "false")
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", "debug.trace")
    assert run("library", "debug.instrument", "false").startswith("parse_error: POPLAR_ENGINE_OPTIONS: ")


def test_execution_steps_are_shown_on_demand(run):
    assert "Execution steps:" in run("summary", "showExecutionSteps", "true")
    assert "Execution steps:" not in run("summary", "showExecutionSteps", "false")


def test_page_lists_options_without_effect():
    page = generate_poplibs.options_page()
    assert "`debug.trace`, `debug.traceFile` | programs run on the CPU" in page
    assert "| `debug.floatPointOpException` | `true`, `false` |" in page
    for table in option_tables.read().values():
        assert all(f"`{option.name}`" in page for option in table.options)


def test_options_without_a_reason_are_read():
    sources = pathlib.Path(option_tables.__file__).parent / "csrc"
    text = "".join(source.read_text() for source in sources.rglob("*.cc"))
    for table in option_tables.read().values():
        for option in table.options:
            assert option.without_effect or f'"{option.name}"' in text, option.name
