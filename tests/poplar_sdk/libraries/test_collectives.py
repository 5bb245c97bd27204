"""Collectives of four replicas against NumPy: replica r has 10 r + i at element i."""

import pathlib
import subprocess

import numpy
import pytest
from poplar_programs import compile_program

pytestmark = [pytest.mark.without_tensorflow, pytest.mark.subprocess]

SOURCE = pathlib.Path(__file__).parents[1] / "programs" / "collectives.cpp"
DATA = 10.0 * numpy.arange(4)[:, None] + numpy.arange(6)
ALL, CONSECUTIVE, ORTHOGONAL = 0, 1, 2
GROUPS = {
    (ALL, 0): [[0, 1, 2, 3]],
    (CONSECUTIVE, 2): [[0, 1], [2, 3]],
    (ORTHOGONAL, 2): [[0, 2], [1, 3]],
    (CONSECUTIVE, 1): [[0], [1], [2], [3]],
}
REDUCTIONS = {
    "ADD": lambda x: x.sum(0),
    "MEAN": lambda x: x.mean(0),
    "MUL": lambda x: x.prod(0),
    "MIN": lambda x: x.min(0),
    "MAX": lambda x: x.max(0),
    "SQUARE_ADD": lambda x: (x * x).sum(0),
    "in place": lambda x: x.max(0),
}


def run(name, group):
    words = [compile_program(SOURCE, "gcl", "popnn", "poplin", "popops", "poputil"), name, *map(str, group)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


def numbers(name, group):
    return numpy.array([[float(value) for value in line.split()] for line in run(name, group)])


def of_members(group, function):
    """function(data of the group, place in it) for each replica."""
    wanted = {}
    for members in GROUPS[group]:
        for place, replica in enumerate(members):
            wanted[replica] = function(DATA[members], place)
    return numpy.array([wanted[replica] for replica in range(4)])


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name, group):
    wanted = of_members(group, lambda data, _: REDUCTIONS[name](data))
    numpy.testing.assert_allclose(numbers(name, group), wanted, rtol=1e-6)


def whitened(data):
    """Means, inverse deviations and whitened activations {replicas, 2, 3} of the channels of a group."""
    acts = data.reshape(-1, 2, 3)
    means = acts.mean((0, 2))
    inverse = 1 / numpy.sqrt(acts.var((0, 2), ddof=1) + 0.5)
    return means, inverse, (acts - means[:, None]) * inverse[:, None]


@pytest.mark.parametrize("group", GROUPS)
def test_statistics_over_replicas(group):
    wanted = of_members(group, lambda data, _: numpy.concatenate(whitened(data)[:2]))
    numpy.testing.assert_allclose(numbers("norm statistics", group), wanted, rtol=1e-4)


@pytest.mark.parametrize("group", GROUPS)
def test_gradients_of_norms_over_replicas(group):
    def slopes(data, place):
        _, inverse, white = whitened(data)
        gradients = data.reshape(-1, 2, 3) ** 2 * numpy.array([2, 3])[:, None]
        means = [part.mean((0, 2))[:, None] for part in (gradients, gradients * white)]
        return ((gradients - means[0] - white * means[1]) * inverse[:, None])[place].ravel()

    wanted = of_members(group, slopes)
    numpy.testing.assert_allclose(numbers("norm gradients", group), wanted, rtol=1e-3, atol=1e-2)


def test_local_data_stay():
    numpy.testing.assert_array_equal(numbers("LOCAL", (ALL, 0)), DATA)


def test_reductions_of_the_rows_within_a_replica():
    wanted = DATA.reshape(4, 2, 3).mean(1, keepdims=True).repeat(2, 1)
    numpy.testing.assert_array_equal(numbers("within", (ALL, 0)), wanted.reshape(4, 6))


@pytest.mark.parametrize("group", GROUPS)
def test_gathers(group):
    numpy.testing.assert_array_equal(numbers("gather", group), of_members(group, lambda data, _: data.reshape(-1)))


@pytest.mark.parametrize("group", [(ALL, 0), (CONSECUTIVE, 2), (ORTHOGONAL, 2)])
def test_scattered_sums(group):
    def part(data, place):
        size = -(-5 // len(data))
        whole = numpy.zeros(size * len(data))
        whole[:5] = data[:, :5].sum(0)
        return whole[place * size : (place + 1) * size]

    numpy.testing.assert_array_equal(numbers("scatter", group), of_members(group, part))


@pytest.mark.parametrize("group", [(CONSECUTIVE, 2), (ORTHOGONAL, 2)])
def test_rows_to_all(group):
    wanted = of_members(group, lambda data, place: data.reshape(2, 2, 3)[:, place].reshape(-1))
    numpy.testing.assert_array_equal(numbers("to all", group), wanted)


@pytest.mark.parametrize("group", [(ALL, 0), (ORTHOGONAL, 2)])
def test_broadcasts(group):
    numpy.testing.assert_array_equal(numbers("broadcast", group), of_members(group, lambda data, _: data[1]))


@pytest.mark.parametrize(
    ("name", "group", "words"),
    [
        ("ADD", (CONSECUTIVE, 3), ["gcl::allReduceCrossReplica", "3 of 4 replicas", "replicaGroupSize"]),
        ("to all", (ALL, 0), ["gcl::allToAllCrossReplica", "expected 4 rows"]),
        ("broadcast", (CONSECUTIVE, 1), ["gcl::broadcastCrossReplica", "the root is 1 of 1"]),
        ("SUM", (ALL, 0), ["'SUM'", "ADD"]),
    ],
)
def test_wrong_collectives(name, group, words):
    (line,) = run(name, group)
    assert line.startswith("error ")
    assert [word for word in words if word not in line] == []
