"""The exchanges of a pipeline's mini-batch: all stages send and receive at once, at the end of each slot."""

import collections

import pytest

from tf_ipu_shim.cycle_model import Computation, SyncPoint, phases_of, timeline_of
from tf_ipu_shim.cycle_model.matmuls import SYNC_CYCLES
from tf_ipu_shim.cycle_model.sizes import ElementwiseSizes, ExchangeSizes, Move
from tf_ipu_shim.machine import links
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.memory import Block

pytestmark = pytest.mark.without_tensorflow

CHIP = CHIPS["gc200"]
STAGES, COUNT, BYTES = 4, 16, 1 << 20
WORK = Computation("elementwise", "stage", ElementwiseSizes(100_000, 2))
WORK_CYCLES = sum(phase.cycles for phase in phases_of(WORK, CHIP))
NEIGHBOURS = [(stage, stage + 1) for stage in range(STAGES - 1)]
SENT = [*NEIGHBOURS, *((later, earlier) for earlier, later in reversed(NEIGHBOURS))]
"""Sources and targets of a mini-batch of training: forward from stage to stage, and back again."""


def pipeline(schedule):
    """The loop of a pipeline in training; each IPU works once before it sends, forward and backward."""
    bodies = [Block(f"IPU {ipu}") for ipu in range(STAGES)]
    for key, (source, target) in enumerate(SENT, 1):
        bodies[source].run("stage", (), (), work=WORK)
        moved = Computation("exchange", "", ExchangeSizes((Move(BYTES, source, target),)), 1)
        for ipu in (source, target):
            bodies[ipu].run("exchange", (), (), work=SyncPoint(key, computation=moved))
    blocks = {}
    for ipu, body in enumerate(bodies):
        work = SyncPoint(0, COUNT, (0,), schedule=schedule, stages=STAGES, training=True)
        blocks[ipu] = Block("around")
        blocks[ipu].run("pipeline", (), (), (body,), True, work)
    return timeline_of(blocks, CHIP, STAGES)


def exchange(moves):
    sync = links.sync_cycles(CHIP, STAGES) + SYNC_CYCLES
    return sync + CHIP.cycles(links.phase_seconds(moves, STAGES))


@pytest.mark.parametrize(
    "schedule, slots, works, size",
    [("Grouped", COUNT + 2 * STAGES - 1, 2, BYTES), ("Interleaved", 2 * (COUNT + STAGES - 1), 1, BYTES // 2)],
)
def test_a_slot_has_one_exchange_of_all_copies(schedule, slots, works, size):
    found = pipeline(schedule)
    slot = works * WORK_CYCLES + exchange([(size, *ends) for ends in SENT])
    assert found.cycles == slots * slot
    assert max(found.busy.values()) <= COUNT * slot * 2 / works


def test_all_copies_together_have_the_slots_exchange():
    (loop,) = pipeline("Grouped").entries
    (mini_batch,) = loop.children
    each = collections.Counter()
    for entry in mini_batch.children:
        if entry.name == "exchange":
            each.update(dict.fromkeys(entry.ipus, entry.cycles))
    assert max(each.values()) == pytest.approx(exchange([(BYTES, *ends) for ends in SENT]), abs=len(SENT))


def test_sequential_stages_wait_for_each_exchange():
    one = exchange([(BYTES, 0, 1)])
    across = exchange([(BYTES, 1, 2)])
    assert pipeline("Sequential").cycles == COUNT * (6 * WORK_CYCLES + 4 * one + 2 * across)
