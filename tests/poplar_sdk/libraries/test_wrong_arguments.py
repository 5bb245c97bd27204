"""Calls with one wrong argument, which `programs/wrong_arguments.cpp` generates: each is refused or computes."""

import collections
import pathlib
import subprocess

import pytest
from poplar_programs import compile_program

pytestmark = [pytest.mark.without_tensorflow, pytest.mark.subprocess]

SOURCE = pathlib.Path(__file__).parent / "programs" / "wrong_arguments.cpp"
LIBRARIES = ("popnn", "poplin", "poprand", "popops", "poputil")
EMPTY, FOREIGN = "an empty Tensor()", "a tensor of another graph"

Outcome = collections.namedtuple("Outcome", "call argument change result type message")


@pytest.fixture(scope="module")
def outcomes():
    program = compile_program(SOURCE, *LIBRARIES)
    printed = subprocess.run([program], capture_output=True, text=True, check=True, timeout=600).stdout
    found = [Outcome(*line.split("\t")) for line in printed.splitlines() if line.count("\t") == 5]
    assert len(found) > 2000
    return found


def test_right_calls_are_accepted(outcomes):
    assert not [each for each in outcomes if each.argument == "-" and each.result != "accepted"]


def test_no_call_crashes_or_throws_what_poplar_does_not(outcomes):
    assert not [each for each in outcomes if each.result not in ("accepted", "refused")]


def test_messages_are_short_sentences(outcomes):
    refused = [each for each in outcomes if each.result == "refused"]
    assert len(refused) > 1000
    assert not [each for each in refused if len(each.message) > 400 or not each.message.endswith(".")]


def test_empty_tensors_are_refused(outcomes):
    assert not [each for each in outcomes if each.change == EMPTY and each.result != "refused"]


# Functions that make views, or that look at the shape and type only.
VIEWS = {
    *("operator[]", "index", "slice", "slice of all", "slices", "flatten", "reshape", "reshapePartial", "expand"),
    *("squeeze", "dimShuffle", "dimShufflePartial", "dimRoll", "transpose", "reverse", "subSample", "broadcast"),
    *("upsample", "reinterpret", "getConstantData", "views of a tensor", "getNonReplicatedTensor", "reorderToSimplify"),
    *("pad by the edge", "pad by mirrors", "broadcastToMatch", "broadcastToMatch of two", "factorDims", "unfactorDims"),
    *("createSliceTensor", "createSliceableTensorFromSlice", "getSliceMapping", "cloneAndExpandAliasing"),
    *("detectInnermostGrouping", "detectDimGroupings", "transposeGroupedMatrix", "createBiases", "createNormParams"),
    "meshgrid2d",
}


def test_tensors_of_other_graphs_are_refused(outcomes):
    used = [each for each in outcomes if each.change == FOREIGN and each.call not in VIEWS]
    assert len(used) > 100
    assert not [each for each in used if each.result != "refused"]


REFUSED = {
    ("multiSlice", "flattened", "3"): "the offsets have the shape {3}; expected {number of slices,1}",
    ("multiUpdate", "rank + 1", "2"): "the offsets have the shape {3,1,1}; expected {number of slices,1}",
    ("createVirtualGraph of tiles", "no numbers", "0"): "there are no tiles",
    ("createVirtualGraph of tiles", "tens", "0"): "a tile is named twice",
    ("addVariable", "largest", "0"): "has more than 2^62 elements",
    ("sequenceSlice", "64 bits", "0"): "has the type long long; expected unsigned int",
    ("gather of windows", "zeros", "0"): "has dimension 0 twice",
    ("createIPUTarget", "0", "2"): "0 IPUs with",
    ("weightsTransposeChansFlipXY", "flattened", "0"): "the output weights has the shape {72}; expected {1,4,3,3,2}",
    ("normStatistics", "bool", "0"): "the partials have the type bool; expected float or half",
    ("getVariable", "10", "0"): "the graph has no variable 10",
}


@pytest.mark.parametrize(("call", "change", "argument"), REFUSED)
def test_refusals_say_what_was_received(outcomes, call, change, argument):
    found = [each for each in outcomes if (each.call, each.change, each.argument) == (call, change, argument)]
    assert [each.result for each in found] == ["refused"]
    assert REFUSED[call, change, argument] in found[0].message
