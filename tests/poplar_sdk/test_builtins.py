"""Built-in functions of IPU compilers in codelets: random numbers by their statistics, others against NumPy."""

import pathlib
import subprocess

import numpy
import pytest
from poplar_programs import compile_codelets, compile_program

pytestmark = [pytest.mark.without_tensorflow, pytest.mark.subprocess]

PROGRAMS = pathlib.Path(__file__).parent / "programs"
TILES, COUNT = 3, 4000


@pytest.fixture(scope="module")
def run():
    program = compile_program(PROGRAMS / "builtin_cases.cpp")
    codelets = compile_codelets(PROGRAMS / "builtin_codelets.cpp")

    def run(case, dtype=float):
        done = subprocess.run([program, case, codelets], capture_output=True, text=True, check=True)
        lines = done.stdout.splitlines()
        return lines if dtype is str else [numpy.array(line.split(), dtype) for line in lines]

    return run


def test_random_numbers_have_their_distributions(run):
    uniform, normal, bits, tiles = run("draws")
    assert uniform.min() >= -0.5
    assert uniform.max() < 0.5
    drawn = TILES * COUNT
    assert abs(uniform.mean()) < 5 / numpy.sqrt(12 * drawn)
    assert abs(uniform.std() - 12**-0.5) < 0.01
    assert abs(normal.mean()) < 5 / numpy.sqrt(drawn)
    assert abs(normal.std() - 1) < 0.05
    ones = numpy.unpackbits(bits.astype(numpy.uint32).view(numpy.uint8)).mean()
    assert abs(ones - 0.5) < 5 * 0.5 / numpy.sqrt(32 * drawn)
    assert tiles.tolist() == [0, 2, 4]


def test_tiles_and_runs_draw_different_numbers(run):
    first, again, same_seed, same_again, other_seed, _ = run("seeds", numpy.uint32)
    rows = first.reshape(TILES, COUNT)
    for a, b in [(rows[0], rows[1]), (rows[1], rows[2]), (first, again), (first, other_seed)]:
        assert (a == b).mean() < 0.01
    numpy.testing.assert_array_equal(first, same_seed)
    numpy.testing.assert_array_equal(again, same_again)


def test_workers_draw_different_numbers(run):
    (bits,) = run("workers", numpy.uint32)
    assert len(set(bits.tolist())) == 6


def test_registers_and_the_clock_of_workers(run):
    sums, clocks, error = run("registers", str)
    assert list(map(int, sums.split())) == [sum(range(worker, 20, 6)) for worker in range(6)]
    assert any(map(int, clocks.split()))
    assert "__builtin_ipu_get(1): the CPU does not have this register of a tile" in error


def test_short_vectors_are_clamped_and_masked(run):
    given, quantised = (line.view(numpy.float16) for line in run("quantise", numpy.uint16))
    clamped = numpy.clip(given, -4, 4).view(numpy.uint16)
    numpy.testing.assert_array_equal(quantised.view(numpy.uint16), clamped & ~numpy.uint16(0x3F))


def test_functions_of_elements(run):
    (found,) = run("functions")
    x, y = numpy.float32([0.3, 1.5])
    expected = [numpy.exp(x), numpy.log(x), max(x, y), min(x, y), numpy.float16(x), 0.25]
    numpy.testing.assert_allclose(found, numpy.float64(expected), rtol=1e-6)


def test_members_and_conversions_of_short_vectors(run):
    (found,) = run("vectors")
    x = numpy.float32([3, -1.7])
    total = x * 2 - x / numpy.float32([4, 8])
    total[1] += x[0]
    narrow = numpy.float16([*x, total[0], 0])
    squares = narrow * narrow
    expected = [
        *total,
        *squares[1:],
        *-numpy.float32(x < total),
        1,
        squares[0],
        *numpy.float16(x) * numpy.float16([2, 4]),
    ]
    numpy.testing.assert_allclose(found, numpy.float64(expected), rtol=1e-6)


def test_outputs_are_assigned_to(run):
    (found,) = run("assigned")
    assert found.tolist() == [7, 1.25]
