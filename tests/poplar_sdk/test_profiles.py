"""Programs of `programs/profile_cases.cpp`: profiles and descriptions against the graph that the program builds."""

import json
import pathlib
import subprocess

import pytest
from poplar_programs import compile_program

pytestmark = [pytest.mark.without_tensorflow, pytest.mark.subprocess]

PROGRAMS = pathlib.Path(__file__).parent / "programs"
CODELETS = PROGRAMS / "codelets.cpp"


@pytest.fixture(scope="module")
def run():
    program = compile_program(PROGRAMS / "profile_cases.cpp")

    def run(case):
        done = subprocess.run([program, case, CODELETS], capture_output=True, text=True, check=True)
        return done.stdout

    return run


def test_runs_count_while_execution_is_profiled(run):
    profile, after_reset = map(json.loads, run("execution").splitlines())
    copies, additions = profile["programs"]
    assert (copies["program"], copies["runs"]) == (0, 1)
    assert (additions["program"], additions["runs"]) == (1, 2)
    (step,) = additions["steps"]
    assert step["type"] == "OnTileExecute"
    assert step["name"] == "sums/add"
    assert step["times"] == 3
    assert step["vertices"] == {"AddRows": 1}
    assert step["cycles"] >= 100
    assert additions["cycles"] == 3 * step["cycles"]
    assert profile["cycles"] == copies["cycles"] + 2 * additions["cycles"]
    assert after_reset == {"programs": [], "cycles": 0}


def test_functions_estimate_the_cycles_of_vertices(run):
    profiles = [json.loads(line) for line in run("estimates").splitlines()]
    assert profiles[0]["programs"] == profiles[1]["programs"]
    cycles = [step["cycles"] for step in profiles[0]["programs"][0]["steps"]]
    workers = 6  # a tile's workers take turns: one vertex has a sixth of its tile's cycles
    assert cycles == [workers * (3000 + 500 + 5), workers * (70 + 5), workers * 8, workers * 77]


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("no field", "Vertex type Scale<float> has no field 'out2'; it has: in, out, factor."),
        ("no row", "Field 'in' of vertex type Scale<float> has 0 vectors; there is no 0."),
        ("no value", "Field 'factor' of vertex type Scale<float> has no value."),
        ("no function", "there is no function for 'AddRows'"),
    ],
)
def test_wrong_estimates_are_messages(run, case, message):
    assert message in run(case)


def test_copies_exchange_the_bytes_between_tiles(run):
    copies, _ = json.loads(run("execution").splitlines()[0])["programs"]
    assert [step["exchangedBytes"] for step in copies["steps"]] == [2 * 8 * 4]


def test_a_graph_profile_has_the_bytes_of_tiles(run):
    profile = json.loads(run("graph"))
    bytes_of = {variable["name"]: variable["bytes"] for variable in profile["graph"]["variables"]}
    assert bytes_of == {"sums/from": 64, "sums/to": 64, "sums/sums": 32, "sums/calls": 4}
    tiles = profile["memory"]["byTile"]
    assert tiles[:2] == [64, 64]
    assert tiles[2] > 32 + 4  # the vertex's state, too
    assert profile["memory"]["total"] == sum(tiles)
    assert profile["graph"]["numVertices"] == 1
    assert profile["target"]["tilesPerIPU"] == 4


def test_a_serialized_graph_names_the_parts_of_variables(run):
    graph = json.loads(run("serialize"))
    names = [variable["name"] for variable in graph["variables"]]
    assert names == ["sums/from", "sums/to", "sums/sums", "sums/calls"]
    assert graph["variables"][1]["shape"] == [2, 8]
    assert graph["variables"][1]["tileMapping"] == [{"begin": 0, "end": 16, "tile": 1}]
    (computed,) = graph["computeSets"]
    assert computed["name"] == "sums/add"
    (vertex,) = computed["vertices"]
    assert (vertex["type"], vertex["tile"]) == ("AddRows", 2)
    rows = [[{"variable": 1, "begin": begin, "length": 8, "step": 1}] for begin in (0, 8)]
    assert vertex["fields"]["rows"] == rows


def test_all_vertices_are_drawn_without_programs(run):
    assert 'label="AddRows on tile 2"' in run("drawing")


def test_a_vector_of_values_is_written(run):
    assert run("typed values").split() == ["2.5"] * 16


def test_a_cpu_device_has_any_number_of_ipus(run):
    assert run("devices") == "1 3"
    assert run("no devices") == "Device::createCPUDevice: the number of IPUs is 0; expected 1 or more."


def test_abort_says_its_message(run):
    assert "the loss is not finite" in run("abort")


def test_messages_of_the_codelet_compiler_are_returned(run):
    assert run("compiler output") == "1"
