"""Parts of consecutive layers: compared with all partitions there are, for random layers."""

import copy
import itertools
import random

import pytest

from tf_ipu_shim.machine.pipelines.partitioner import balanced_parts, bytes_of, smallest_parts
from tf_ipu_shim.machine.pipelines.stage_memory import StageLayer, StageMemory

pytestmark = pytest.mark.without_tensorflow


class Sum:
    """A part's memory: the sum of its layers, of which some are counted several times."""

    def __init__(self, times=1):
        self.times, self.bytes = times, 0

    def add(self, layer):
        self.bytes += self.times * layer


def partitions(layers, count):
    """All partitions into non-empty parts, as the places where these begin."""
    return ([0, *cuts] for cuts in itertools.combinations(range(1, layers), count - 1))


def parts(layers, begins):
    return [layers[first:end] for first, end in zip(begins, [*begins[1:], len(layers)])]


def largest(layers, begins, memories):
    return max(bytes_of(part, memory) for part, memory in zip(parts(layers, begins), memories))


@pytest.mark.parametrize("seed", range(20))
def test_smallest_parts_are_the_smallest_there_are(seed):
    drawn = random.Random(seed)
    layers = [drawn.randrange(1, 1000) for _ in range(drawn.randrange(3, 9))]
    memories = [Sum() for _ in range(drawn.randrange(2, 4))]
    found, needed = smallest_parts(layers, memories, Sum(), 1e-6)
    best = min(largest(layers, begins, memories) for begins in partitions(len(layers), len(memories)))
    assert largest(layers, found, memories) <= needed
    assert needed <= best + 1
    assert len(found) == len(memories)


def test_parts_that_count_layers_several_times_get_fewer():
    assert smallest_parts([10] * 6, [Sum(2), Sum()], Sum(2), 1e-6)[0] == [0, 2]


def test_too_few_layers_make_no_parts():
    assert smallest_parts([1, 2], [Sum()] * 3, Sum(), 1e-6) is None
    assert balanced_parts([1, 2], [Sum()] * 3, 100, lambda part, layer: 1.0, lambda part, first, end: 0.0) is None


@pytest.mark.parametrize("seed", range(20))
def test_balanced_parts_are_the_least_busy_that_fit(seed):
    drawn = random.Random(seed)
    count = drawn.randrange(3, 9)
    layers = [StageLayer(n, drawn.randrange(90), drawn.randrange(90), drawn.randrange(90)) for n in range(count)]
    memories = [StageMemory(waiting, False) for waiting in (4, 2, 0)]
    cycles = [drawn.randrange(1, 100) for _ in layers]
    limit = drawn.choice([400, 700, 10_000])

    def work(part, layer):
        return cycles[layer] * (1.0 + part / 10)

    def copies(part, first, end):
        return 5.0 * (first > 0) + 7.0 * (end < count) + part * (end - first)

    def busiest(begins):
        ends = [*begins[1:], count]
        return max(
            sum(work(part, layer) for layer in range(first, end)) + copies(part, first, end)
            for part, (first, end) in enumerate(zip(begins, ends))
        )

    fitting = [begins for begins in partitions(count, 3) if largest(layers, begins, memories) <= limit]
    found = balanced_parts(layers, memories, limit, work, copies)
    assert (found is None) == (not fitting)
    if found is not None:
        assert found[-1] == count
        assert found[:-1] in fitting
        assert busiest(found[:-1]) == pytest.approx(min(map(busiest, fitting)))


def test_empty_memories_are_copied():
    memories = [Sum(), Sum()]
    smallest_parts([3, 4, 5], memories, Sum(), 1e-6)
    bytes_of([1, 2], memories[0])
    assert [copy.copy(one).bytes for one in memories] == [0, 0]
