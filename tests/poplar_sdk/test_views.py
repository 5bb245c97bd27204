"""Views of Poplar tensors against NumPy's: the same operations on an array of the elements' numbers."""

import math
import pathlib
import subprocess

import hypothesis
import numpy
import pytest
from hypothesis import strategies
from poplar_programs import compile_program

pytestmark = pytest.mark.without_tensorflow


@pytest.fixture(scope="module")
def views():
    with subprocess.Popen(
        [compile_program(pathlib.Path(__file__).parent / "programs" / "views.cpp")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as process:
        yield process
        process.stdin.close()


def ask(process, case):
    process.stdin.write(case + "\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


def listed(values):
    return " ".join(map(str, [len(values), *values]))


def dimension(draw, array):
    return draw(strategies.integers(0, array.ndim - 1))


def sliced(draw, array):
    at = dimension(draw, array)
    begin = draw(strategies.integers(0, array.shape[at]))
    end = draw(strategies.integers(begin, array.shape[at]))
    return f"slice {begin} {end} {at}", array.take(range(begin, end), at)


def indexed(draw, array):
    if array.shape[0] == 0:
        return "flatten", array.reshape(-1)
    at = draw(strategies.integers(0, array.shape[0] - 1))
    return f"index {at}", array[at]


def reshaped(draw, array):
    rest, shape = array.size, []
    while rest > 1 and draw(strategies.booleans()):
        divisors = [size for size in range(1, rest + 1) if rest % size == 0]
        shape.append(draw(strategies.sampled_from(divisors)))
        rest //= shape[-1]
    shape.append(rest)
    return f"reshape {listed(shape)}", array.reshape(shape)


def shuffled(draw, array):
    order = draw(strategies.permutations(range(array.ndim)))
    return f"dimShuffle {listed(order)}", array.transpose(order)


def rolled(draw, array):
    at, to = dimension(draw, array), dimension(draw, array)
    return f"dimRoll {at} {to}", numpy.moveaxis(array, at, to)


def reversed_(draw, array):
    at = dimension(draw, array)
    return f"reverse {at}", numpy.flip(array, at)


def subsampled(draw, array):
    at, step = dimension(draw, array), draw(strategies.integers(1, 4))
    return f"subSample {step} {at}", numpy.moveaxis(numpy.moveaxis(array, at, 0)[::step], 0, at)


def broadcast(draw, array):
    at, count = dimension(draw, array), draw(strategies.integers(0, 3))
    return f"broadcast {count} {at}", numpy.concatenate(
        [array] * count or [array[:0] if at == 0 else array.take([], at)], at
    )


def upsampled(draw, array):
    at, scale = dimension(draw, array), draw(strategies.integers(0, 3))
    return f"upsample {scale} {at}", array.repeat(scale, at)


def expanded(draw, array):
    at = draw(strategies.integers(0, array.ndim))
    return f"expand 1 {at}", numpy.expand_dims(array, at)


def squeezed(draw, array):
    ones = [at for at, size in enumerate(array.shape) if size == 1]
    return f"squeeze {listed(ones)}", array.squeeze(tuple(ones))


OPERATIONS = [
    sliced,
    indexed,
    reshaped,
    shuffled,
    rolled,
    reversed_,
    subsampled,
    broadcast,
    upsampled,
    expanded,
    squeezed,
]


@strategies.composite
def tensors(draw, first=0, shape=None):
    """A variable and operations on it: (text, the elements that it should have)."""
    shape = shape or draw(strategies.lists(strategies.integers(1, 4), min_size=1, max_size=4))
    text, array = [f"variable {listed(shape)}"], numpy.arange(first, first + math.prod(shape)).reshape(shape)
    for operation in draw(strategies.lists(strategies.sampled_from(OPERATIONS), max_size=5)):
        if array.ndim > 0 and array.size < 500:
            words, array = operation(draw, array)
            text.append(words)
    return " ".join(text), array, first + math.prod(shape)


@strategies.composite
def cases(draw):
    """A tensor, perhaps joined with an equally shaped one, and what follows."""
    text, array, used = draw(tensors())
    if array.ndim == 0 or not draw(strategies.booleans()):
        return text, array
    shape = [max(1, size) for size in array.shape]
    other, second, _ = f"variable {listed(shape)}", numpy.arange(used, used + math.prod(shape)).reshape(shape), None
    at = dimension(draw, array)
    cut = [1 if here == at else size for here, size in enumerate(array.shape)]
    for here, size in enumerate(cut):
        other += f" slice 0 {size} {here}"
        second = second.take(range(size), here)
    text, array = f"{text} {other} concat {at}", numpy.concatenate([array, second], at)
    for operation in draw(strategies.lists(strategies.sampled_from(OPERATIONS), max_size=3)):
        if array.ndim > 0 and array.size < 500:
            words, array = operation(draw, array)
            text += " " + words
    return text, array


def contiguous_regions(elements, ends):
    """Where a new region begins: after a step other than one, and at each variable's end."""
    begins = [0, *(i for i in range(1, len(elements)) if elements[i] != elements[i - 1] + 1 or elements[i] in ends)]
    return [bound for pair in zip(begins, [*begins[1:], len(elements)]) for bound in pair] if elements else []


def ends_of(text):
    """The first element of each variable after the first."""
    words, ends, used = text.split(), set(), 0
    for at, word in enumerate(words):
        if word == "variable":
            count = int(words[at + 1])
            used += math.prod(map(int, words[at + 2 : at + 2 + count]))
            ends.add(used)
    return ends


@hypothesis.given(case=cases())
@hypothesis.settings(max_examples=400, deadline=None, suppress_health_check=list(hypothesis.HealthCheck))
def test_views_are_numpys(views, case):
    text, array = case
    elements = array.reshape(-1).tolist()
    regions = contiguous_regions(elements, ends_of(text))
    shape, found, flags, found_regions = ask(views, text).split("|")
    assert list(map(int, shape.split())) == list(array.shape), text
    assert list(map(int, found.split())) == elements, text
    assert flags.split() == [str(int(len(set(elements)) < len(elements))), str(int(len(regions) <= 2))], text
    assert list(map(int, found_regions.split())) == regions, text


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("variable 1 2 slice 1 3 0", "slice: the tensor has shape {2}; [1,3) is not within dimension 0."),
        ("variable 1 2 slice 0 1 1", "slice: the tensor has shape {2}; dimension 1 is not below its rank."),
        ("variable 1 2 index 2", "operator[]: the tensor has shape {2}; index 2 is outside dimension 0."),
        (
            "variable 2 2 3 reshape 1 5",
            "reshape: the tensor has shape {2,3}; shape {5} does not have as many elements.",
        ),
        ("variable 2 2 3 dimShuffle 2 0 0", "the permutation does not name each dimension once."),
        ("variable 2 2 3 squeeze 1 0", "squeeze: the tensor has shape {2,3}; dimension 0 is not of size 1."),
        (
            "variable 2 2 3 variable 2 3 3 concat 1",
            "concat: the tensor has shape {2,3}; another one is float of shape {3,3}",
        ),
        ("variable 1 4 subSample 0 0", "subSample: the tensor has shape {4}; the stride is 0"),
    ],
)
def test_wrong_arguments_are_errors(views, case, message):
    assert message in ask(views, case)
