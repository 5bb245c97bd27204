"""Cycles of vertices beside the figures of PopLibs' own estimators, in `published_cycles.csv`.

PopLibs' functions gave the figures: compiled as they stand for a target of six workers with 64-bit data paths. Random
numbers, activations and expressions (`operands x operations`) were added up by hand. `source` is the file below `lib/`
at 7eac0f2, and the line of the table's entry or of the function.
"""

import csv
import pathlib

import pytest

from tf_ipu_shim.cycle_model import Computation, library_vertices, phases_of, vertices
from tf_ipu_shim.cycle_model.sizes import ElementwiseSizes
from tf_ipu_shim.cycle_model.units import units_of, vertex_cycles
from tf_ipu_shim.machine.chips import CHIPS

pytestmark = pytest.mark.without_tensorflow

GC200 = CHIPS["gc200"]


def published():
    rows = {}
    with (pathlib.Path(__file__).parent / "published_cycles.csv").open() as file:
        for row in csv.DictReader(file):
            rows.setdefault(row["vertex"], []).append(row)
    return rows


ROWS = published()


def two(text):
    return map(int, text.split(" x "))


def elementwise(form):
    return lambda operation, dtype, size: vertices.elementwise(GC200, int(size), operation, dtype, form)


def named(name):
    return lambda operation, dtype, size: vertices.elementwise(GC200, int(size), name, dtype)


def expression(shape, dtype, size):
    operands, operations = two(shape)
    return vertices.elementwise(GC200, int(size), "expression", dtype, "expression", operands * operations)


def broadcast(form, name):
    def cycles(row, dtype, rows):
        elements = int(row) * int(rows)
        (found,) = vertices._vector_broadcasts(GC200, elements, name, dtype, form, int(row))
        # The fastest vertex is used: never a slower one than this.
        assert vertices.elementwise(GC200, elements, name, dtype, form, int(row)) <= found
        return found

    return cycles


def reduction(function, *, shapes=True, **options):
    takes_operation = function is not library_vertices.continuous_reduce_worker

    def cycles(operation, dtype, size):
        outputs, partials = two(size)
        adds = {"adds": operation == "add"} if takes_operation else {}
        return function(*((outputs, partials) if shapes else (partials,)), dtype, **adds, **options)

    return cycles


def swaps(has_values):
    return lambda distance, dtype, size: library_vertices.compare_and_swap(
        GC200, int(size), int(distance), dtype, has_values
    )


def pooling(kind):
    return lambda shape, dtype, window: library_vertices.pooling(GC200, *two(shape), int(window), dtype, kind)


def accumulating(positions):
    def cycles(shape, dtypes, count):
        operands, sums = dtypes.split("/")
        units = units_of(GC200, vertices.bytes_of(operands), sums == "float16")
        assert units.units == int(count)
        return vertex_cycles(GC200, units, *two(shape), positions)

    return cycles


def slic(shape, dtypes, chains):
    groups, channels, positions, kernels = map(int, shape.split())
    return library_vertices.slic(
        GC200, 6 * positions, kernels, groups, channels, dtypes.endswith("/float16"), int(chains)
    )


def added_up(shape, dtypes, _):
    sizes = [vertices.bytes_of(dtype) for dtype in dtypes.split("/")]
    return library_vertices.reduce_partial_sums(GC200, *two(shape), *sizes)


MODELLED = {
    "unary": elementwise(""),
    "binary": elementwise(""),
    "scalar": elementwise("scalar"),
    "activation": elementwise(""),
    "expression": expression,
    "select": named("select"),
    "clamp": named("clamp"),
    "scaled_add": named("scaled_add"),
    "cast": lambda _, dtypes, size: vertices.cast(GC200, int(size), *dtypes.split(">")),
    **{f"inner_{name}": broadcast("inner", name) for name in ("add", "multiply", "divide")},
    **{f"outer_{name}": broadcast("outer", name) for name in ("add", "subtract", "multiply")},
    "slice": lambda row, dtype, size: library_vertices.multi_slice(GC200, int(size), int(row), dtype),
    "update": lambda row, dtype, size: library_vertices.multi_slice(GC200, int(size), int(row), dtype, writes=True),
    "update_add": lambda row, dtype, size: library_vertices.multi_update_add(GC200, int(size), int(row), dtype),
    "dynamic_slice": lambda size, dtype, rows: library_vertices.dynamic_slice(GC200, int(size), dtype, int(rows)),
    "strided": reduction(library_vertices.strided_reduce_worker),
    "continuous": reduction(library_vertices.continuous_reduce_worker),
    "regions": reduction(library_vertices.regions_reduce_worker),
    "single": reduction(library_vertices.single_reduce_worker, shapes=False),
    "strided_interleaved": reduction(library_vertices.strided_reduce_worker, interleaved=True),
    "continuous_interleaved": reduction(library_vertices.continuous_reduce_worker, interleaved=True),
    "single_interleaved": reduction(library_vertices.single_reduce_worker, shapes=False, interleaved=True),
    "random": lambda name, dtype, size: library_vertices.random_numbers(GC200, int(size), dtype, name),
    "pool_max": pooling("max"),
    "pool_sum": pooling("sum"),
    "pool_max_grad": pooling("max_grad"),
    "amp_1x1": accumulating(1),
    "amp_nx1": accumulating(9),
    "slic": slic,
    "outer_product": lambda shape, dtype, group: library_vertices.outer_product(*two(shape), int(group), dtype),
    "reduce_add": added_up,
    "heap_sort": lambda _, dtype, size: library_vertices.heap_sort(int(size)),
    "heap_sort_values": lambda _, dtype, size: library_vertices.heap_sort(int(size), True),
    "compare_and_swap": swaps(False),
    "compare_and_swap_values": swaps(True),
    "triangular_solve": lambda side, dtype, size: library_vertices.triangular_solve(
        GC200, int(size), dtype, side == "lower"
    ),
    "triangular_inverse": lambda _, dtype, size: library_vertices.triangular_inverse(int(size), dtype),
    "cholesky": lambda _, dtype, size: library_vertices.cholesky(int(size), dtype),
    "inverse_deviations": lambda _, dtype, size: library_vertices.inverse_deviations(int(size)),
}


def test_every_published_vertex_is_compared():
    assert ROWS.keys() == MODELLED.keys()
    assert {len(ROWS[form]) for form in ("unary", "binary", "scalar")} == {79, 129, 133}


@pytest.mark.parametrize("vertex", MODELLED)
def test_cycles_are_within_a_tenth_of_the_estimator(vertex):
    far = []
    for row in ROWS[vertex]:
        ours = MODELLED[vertex](row["operation"], row["dtype"], row["size"])
        if not 0.9 <= ours / int(row["cycles"]) <= 1.1:
            far.append((row["operation"], row["dtype"], row["size"], ours, row["cycles"], row["source"]))
    assert not far


@pytest.mark.parametrize(
    ("operation", "dtype", "operands", "cycles"),
    [
        ("exponent", "float32", 1, 18_218),
        ("exponent", "float16", 1, 6_218),
        ("sin", "float32", 1, 13_824_122),
        ("divide", "int32", 2, 1_662_167),
        ("power", "float16", 2, 1_950_167),
        ("greater_than", "float32", 2, 21_185),
        ("gelu_erf", "float16", 1, 96_122),
    ],
)
def test_a_compute_set_takes_its_vertex_time(operation, dtype, operands, cycles):
    sizes = ElementwiseSizes(6000 * 1472, operands, operation, dtype)
    (phase,) = phases_of(Computation("elementwise", "", sizes, vertices.bytes_of(dtype)), GC200)
    assert phase.cycles == pytest.approx(cycles, rel=0.01)


def test_a_type_without_vertices_uses_a_similar_one():
    alike = {"float64": "float32", "bfloat16": "float16", "int8": "int32", "uint16": "int32"}
    for dtype, used in alike.items():
        assert vertices.elementwise(GC200, 6000, "add", dtype) == vertices.elementwise(GC200, 6000, "add", used)
    assert vertices.elementwise(GC200, 6000, "unheard_of") > vertices.elementwise(GC200, 6000, "add")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("interleaved", [False, True])
def test_interleaved_memory_never_makes_a_reduction_slower(dtype, interleaved):
    for function in (library_vertices.strided_reduce_worker, library_vertices.continuous_reduce_worker):
        assert function(128, 64, dtype, interleaved=True) <= function(128, 64, dtype, interleaved=interleaved)
    half = library_vertices.strided_reduce_worker(128, 64, dtype, interleaved=True)
    assert half == pytest.approx(library_vertices.strided_reduce_worker(128, 64, dtype) / 2, rel=0.05)
    # Only sums have accumulators that are twice as wide as the data path.
    largest = [library_vertices.strided_reduce_worker(128, 64, dtype, False, within) for within in (False, True)]
    assert largest[0] == largest[1]
