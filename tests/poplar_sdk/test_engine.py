"""Programs of `programs/engine_cases.cpp` against NumPy: vertices, control flow, copies, streams, errors."""

import pathlib
import re
import subprocess

import numpy
import pytest
from poplar_programs import compile_codelets, compile_program

from tf_ipu_shim.machine.systems import SYSTEMS

pytestmark = [pytest.mark.without_tensorflow, pytest.mark.subprocess]

PROGRAMS = pathlib.Path(__file__).parent / "programs"


@pytest.fixture(scope="module")
def run():
    program = compile_program(PROGRAMS / "engine_cases.cpp")
    codelets = compile_codelets(PROGRAMS / "codelets.cpp", "--checked")

    def run(case):
        done = subprocess.run([program, case, codelets], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    return run


def numbers(lines):
    return [[float(value) for value in line.split()] for line in lines]


def test_vertices_read_and_write_strided_views(run):
    x, y = numpy.arange(24.0).reshape(4, 6), numpy.zeros((6, 4))
    y.T[:, :3] = 2 * x[::-1, ::2]
    y[3:6, 1:3] = 3 * x[1, 0]
    assert numbers(run("strided views")) == [y.reshape(-1).tolist()]


def test_vertices_read_values_from_before_the_compute_set(run):
    assert numbers(run("old values")) == [[1, 2, 3, 4, 5, 6, 7, 7]]


def test_types_by_reference_and_bounds_of_intervals(run):
    assert numbers(run("types and intervals")) == [[0, 2, 2, 6]]


def test_half_vertices_round_as_numpy(run):
    expected = numpy.arange(5, dtype=numpy.float16) * numpy.float16(0.1)
    numpy.testing.assert_allclose(numbers(run("halves"))[0], expected.astype(float), rtol=1e-5)


def test_vectors_of_vectors_and_state_of_vertices(run):
    x = numpy.arange(12.0).reshape(3, 4)
    sums = (numpy.arange(4.0)[::-1] + 3 * (x[0] + x[2] + x[1, ::-1]))[::-1]
    assert numbers(run("rows and state")) == [sums.tolist(), [3]]


def test_fields_connected_by_index_and_constants(run):
    x, sums = numpy.arange(12.0).reshape(3, 4), numpy.arange(4.0)
    added = x[2] + numpy.tile(x[:, 1], 2)[:4]
    sums += numpy.concatenate([added[2:], added[:2]])
    assert numbers(run("indexed fields")) == [sums.tolist(), (2 * x.diagonal()).tolist(), [42], [10, 20, 30]]


def test_multi_vertex_runs_each_worker(run):
    assert numbers(run("workers")) == [[0, 1, 2, 3, 4, 5, 0, 1]]


def test_control_flow(run):
    loops = next(value for value in range(0, 100, 3) if value >= 10)
    assert numbers(run("control flow")) == [[loops], [7], [20], [4 * 2 * 2]]


def test_copies(run):
    x, z = numpy.arange(12.0).reshape(3, 4), numpy.arange(10.0)
    y = x.T.copy()
    z[2:] = z[:8].copy()
    x[:, 0:2] = x[::-1, 1:3].copy()
    y[1] = y[0]
    assert numbers(run("copies")) == [y.reshape(-1).tolist(), z.tolist(), x.reshape(-1).tolist()]


def test_streams_and_remote_buffers(run):
    values = numpy.arange(12.0).reshape(2, 3, 2)
    sent = [values[step].T for step in (0, 1, 0)]
    out, called, row, remote = numbers(run("streams"))
    assert out == numpy.stack(sent).reshape(-1).tolist()
    assert called == [sum(step[0, 1] for step in sent)]
    assert row == [7, 8, 9, 0, 0, 0]
    assert remote == sent[-1][1].tolist()


def test_replicas_exchange(run):
    assert numbers(run("replicas")) == [[10, 11], [11, 10]]


def test_kernels_see_views_and_old_values(run):
    x, y, z = numpy.arange(6.0), numpy.zeros((3, 2)), numpy.arange(8.0)
    y.T[:] = x.cumsum().reshape(2, 3)
    z[1:] = z[:7].cumsum()
    assert numbers(run("kernels")) == [y.reshape(-1).tolist(), x.cumsum().tolist(), z.tolist()]


def test_account(run):
    vertices, workers, estimate = 7, 6, 10 + 3 * 2
    cycles = workers * -(-vertices // workers) * estimate
    exchanged = vertices * 6 * 4
    *lines, counted = run("account")
    assert counted.split() == [str(5 * (cycles + 6 * 4 // 4)), "0"]
    assert lines == [
        f"account 5 {cycles} {exchanged} AddRows {vertices}",
        f"move 5 {6 * 4 // 4} {6 * 4}",
        "16 24 8 ",
    ]


def test_mappings_of_views_clones_and_virtual_graphs(run):
    views, whole, clone, virtual, regions, reordered = run("mappings")
    assert views.split() == whole.split() == ["0:0-4", "1:4-8", "2:8-12"]
    assert clone.split() == ["1:0-4", "2:4-6"]
    assert virtual.split() == ["3:0-3"]
    assert regions.split(" ; ") == ["6-9", "0-2", "4-6", ""]
    assert reordered == "1"


def test_engines_of_one_executable_run_in_threads(run):
    assert numbers(run("threads")) == [[0, 0, 0, 0]]


def test_print_tensor(run):
    assert run("printed") == [
        "counted: [",
        "  [0.0000000 1.0000000 2.0000000]",
        "  [3.0000000 4.0000000 5.0000000]",
        "]",
        "x: [",
        "  [ 0.000000 12.500000 25.000000]",
        "  [37.500000 50.000000 62.500000]",
        "]",
        "big: [   0.0000    1.0000    2.0000 ... 1997.0000 1998.0000 1999.0000]",
    ]


def test_tensors_have_the_names_of_their_variables(run):
    assert run("names") == ["counted, z, zeros", "z"]


def test_compute_graphs_have_what_programs_run(run):
    first, *lines, last = run("drawn")
    assert (first, last) == ("digraph compute_graph {", "}")
    text = "\n".join(line.strip() for line in lines)
    assert 'label="scaled";' in text
    assert "unused" not in text
    assert '[shape=box, label="Scale<float> on tile 1"];' in text
    edges = [line.partition(";")[0] for line in text.splitlines() if "->" in line]
    assert sorted(edges) == [
        "kernel_0 -> variable_0",
        'variable_0 -> vertex_0 [label="in"]',
        "variable_1 -> kernel_0",
        'vertex_0 -> variable_1 [label="out"]',
    ]


@pytest.mark.parametrize("name", SYSTEMS)
def test_devices_are_those_of_the_system(run, monkeypatch, name):
    monkeypatch.setenv("TF_IPU_SHIM_SYSTEM", name)
    system = SYSTEMS[name]
    chip = system.chip
    clock = int(chip.clock_hz / 1e6)
    expected = f"{chip.target} {chip.tiles} {chip.bytes_per_tile} {clock} {chip.worker_contexts} "
    expected += f"{chip.exchange_bytes_per_cycle} {chip.vector_width_fp16} {chip.amp_units_fp16} {chip.amp_units_fp32} "
    assert run("devices") == [expected, " ".join(str(device.num_ipus) for device in system.devices) + " "]


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("unmapped", "invalid_tile_mapping: Elements [3:4) of variable 'x' (float, shape {4})"),
        ("unmapped vertex", "invalid_tile_mapping: The vertex type Thrower in compute set 'set' is not mapped"),
        (
            "overlap",
            "graph_cycle_error: Field Scale<float>.out writes to elements [0:4) of variable 'zeros' that are written "
            "to elsewhere in same compute set",
        ),
        (
            "unconnected",
            "graph_connection_error: Field 'in' of vertex type Thrower in compute set 'set' is not connected",
        ),
        ("wrong type", "type_error: Field 'in' of vertex type Thrower has type float; the tensor has type int"),
        ("unknown field", "unknown_field: Vertex type Thrower has no field 'input'; it has: in"),
        (
            "unknown vertex",
            "unknown_vertex_type: addVertex: vertex type 'Scale<int>' is in none of the 1 codelet files of the graph; "
            "they have Scale<float>, Scale<half>. Call addCodelets with the file that has it; a template must be "
            "instantiated there. "
            "A vertex within #ifdef __IPU__ is left out: codelets run on this CPU.",
        ),
        (
            "throws",
            "application_runtime_error: Vertex Thrower in compute set 'set' on tile 6 threw an exception: no luck",
        ),
        (
            "out of bounds",
            "application_runtime_error: Vertex Scale<float> in compute set 'set' on tile 2 accesses field 'in' out of "
            "bounds: index 3 of a vector of 3 elements",
        ),
        ("constant written", "control_program_error: Copy: the destination contains constants"),
        ("float predicate", "control_program_error: If: the predicate has type float; expected bool or an integer"),
        ("unconnected stream", "stream_connection_error: Stream 'in' is not connected"),
        ("tile too high", "invalid_tile_mapping: The tile is 8; this graph has 8 tiles"),
    ],
)
def test_errors_name_what_is_wrong(run, case, message):
    assert run(case)[0].startswith(message)


@pytest.fixture(scope="module")
def refusals(tmp_path_factory):
    codelets = tmp_path_factory.mktemp("refused") / "codelets.gp"
    codelets.write_bytes(compile_codelets(PROGRAMS / "codelets.cpp").read_bytes())
    words = [compile_program(PROGRAMS / "refused_cases.cpp"), codelets]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    return dict(line.split(": ", 1) for line in printed.splitlines())


REFUSALS = {
    "codelets cut short": "graph_object_load_error: .* cannot be loaded: it was cut short: it has \\d+ bytes",
    "dimension of a field": "index_error: .* field 'in' .* has 1 dimensions; the dimension is 1",
    "field of a type": "unknown_field: getMaxFieldDim: vertex type 'Scale<float>' has no field 'input'",
    "index beyond a tile": "graph_connection_error: Field 'in' .* the index is 1073741824; a tile has memory for",
    "index of one value": "poplar_error: .* has 1 elements; the index is 1",
    "load on another device": "poplar_error: Engine::load: the device has 1 IPUs of 4 tiles",
    "matrix for a vector": r"graph_connection_error: Field 'in' .* is a vector; the tensor has shape \{2,3\}\. .*flat",
    "matrix for an element": r"graph_connection_error: Field 'in' .* is a single element; the tensor has shape \{2,3\}",
    "no compute set": "control_program_error: Execute: the reference is empty",
    "no function": "control_program_error: Call: the reference is empty",
    "no vertex": "poplar_error: setTileMapping: the vertex is not of this graph",
    "null buffer": "stream_connection_error: connectStream: the buffer for 'in' is a null pointer",
    "null tensor": "stream_connection_error: writeTensor: the buffer for 'x' is a null pointer",
    "other program": "poplar_error: Engine::run: the program is 1; the engine has 1 programs",
    "other replica": "stream_connection_error: .* stream 'in' has no replica 1; the graph has 1",
    "other vertex": "poplar_error: setPerfEstimate: the vertex is not of this graph",
    "read before load": "poplar_error: Engine::readTensor: the engine is not on a device. Call Engine::load before",
    "run before load": "poplar_error: Engine::run: the engine is not on a device. Call Engine::load before",
    "similar vertex": "unknown_vertex_type: .* they have Scale<float>, Scale<half>",
    "size beyond a tile": "graph_connection_error: .* the size is 18446744073709551615; a tile has memory for",
    "size of one value": "graph_connection_error: .* has 1 elements; setFieldSize was passed 3",
    "tensor of another graph": r"poplar_error: connect: the tensor with shape \{3\} is of another graph",
    "tensors of two graphs": "poplar_error: concat: .* another one is of another graph",
    "write before load": "poplar_error: Engine::writeTensor: the engine is not on a device. Call Engine::load before",
}


def test_each_refusal_is_known(refusals):
    assert refusals.keys() == REFUSALS.keys()


@pytest.mark.parametrize("case", REFUSALS)
def test_calls_that_are_refused(refusals, case):
    assert re.match(REFUSALS[case], refusals[case])
