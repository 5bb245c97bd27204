"""The copies of a pipeline's FIFOs, beside a published trace."""

from tf_ipu_shim.cycle_model import Computation, phases_of
from tf_ipu_shim.cycle_model.sizes import FIFO_WORD
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.memory_model.variables.pipeline_memory import Stash

WIDTHS = (784, 256, 128, 64)
"""Of what the first stage of Graphcore's tutorial keeps for its gradients, 32 rows of float32 each."""


def cycles(stash):
    return sum(phase.cycles for phase in phases_of(Computation("fifo", "", stash.copies, FIFO_WORD), CHIPS["gc200"]))


def stash(slots, tensors=4):
    return Stash(0, "fifo", "fifo", slots * 32 * sum(WIDTHS) * 4, False, slots, tensors)


def test_fifos_of_the_published_pipeline():
    """The trace has 6,000 to 8,000 cycles of FIFOs in a slot; slices have an error factor of 3 in themselves."""
    assert 6000 / 1.5 <= cycles(stash(slots=2)) <= 8000


def test_a_ring_is_as_fast_with_more_mini_batches():
    assert cycles(stash(slots=2)) == cycles(stash(slots=6)) > cycles(stash(slots=1)) > 0


def test_unknown_tensors_have_no_copies():
    assert cycles(stash(slots=2, tensors=0)) == 0
