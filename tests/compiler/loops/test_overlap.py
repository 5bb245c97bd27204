"""Several mini-batches of a pipeline in work together: when, and that nothing comes of it but time."""

import numpy as np
import pytest
import tensorflow as tf
from pipelines_by_hand import ELEMENTS, check_training, configure, run, trained_by_hand, two_layers, variable
from tf_ipu_shim.ipu.ops import pipelining_ops
from tf_ipu_shim.ipu.ops.pipelining_ops import PipelineSchedule

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.loops import overlap_iterations
from tf_ipu_shim.driver import planned_program as lowering

pytestmark = pytest.mark.one_version

STAGES = 2


@pytest.fixture(autouse=True)
def two_ipus(graph):
    configure(STAGES)


@pytest.fixture
def in_flight(monkeypatch):
    """`in_flight()` gives for each pipeline that was lowered its mini-batches in flight; 1 where each waits."""
    programs, stock = [], lowering.lower
    monkeypatch.setattr(lowering, "lower", lambda *arguments: programs.append(stock(*arguments)) or programs[-1])

    def found():
        library = {function.signature.name: function for program in programs for function in program.functions}
        loops = [
            node for one in library.values() for node in one.node_def if vocabulary.PIPELINE_ATTRIBUTE in node.attr
        ]
        return {
            1 if library[loop.attr["body"].func.name].signature.control_output else loop.attr["parallel_iterations"].i
            for loop in loops
        }

    return found


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [(PipelineSchedule.Grouped, STAGES), (PipelineSchedule.Interleaved, STAGES), (PipelineSchedule.Sequential, 1)],
)
def test_training(execution_mode, in_flight, schedule, expected):
    got = run(two_layers(gradient_accumulation_count=4, repeat_count=3, pipeline_schedule=schedule))
    check_training(got, trained_by_hand(4, repeat=3))
    assert in_flight() == {expected}


def test_the_bits_are_those_of_one_after_the_other(execution_mode, monkeypatch):
    together, weights = run(two_layers(gradient_accumulation_count=8, repeat_count=20))
    monkeypatch.setattr(overlap_iterations, "overlap_mini_batches", lambda functions: None)
    with tf.Graph().as_default():
        in_turn, weights_in_turn = run(two_layers(gradient_accumulation_count=8, repeat_count=20))
    np.testing.assert_array_equal(together, in_turn)
    assert weights == weights_in_turn


def test_results_come_out_in_the_order_of_the_infeed(execution_mode, in_flight):
    def stages(infeed, outfeed):
        return pipelining_ops.pipeline(
            [lambda x: x + 1.0, lambda x: x * 2.0], 400, infeed_queue=infeed, outfeed_queue=outfeed
        )

    got, _ = run(stages)
    np.testing.assert_array_equal(np.asarray(got).reshape(400, 2, 1), np.tile(2 * (ELEMENTS + 1), (50, 1, 1)))
    assert in_flight() == {STAGES}


def test_a_stage_that_writes_a_variable_waits_for_itself(execution_mode, in_flight):
    """Each mini-batch adds what it is given to what the ones before have left."""

    def adds_up(x):
        total = variable("total", 0.0)
        return x + total.assign_add(tf.reduce_sum(x))

    def stages(infeed, outfeed):
        return pipelining_ops.pipeline([adds_up, lambda x: x * 1.0], 8, infeed_queue=infeed, outfeed_queue=outfeed)

    got, left = run(stages)
    totals = np.cumsum(ELEMENTS.sum((1, 2)))
    np.testing.assert_allclose(np.asarray(got).reshape(8, 2, 1), ELEMENTS + totals[:, None, None], rtol=1e-6)
    np.testing.assert_allclose(left["total"], totals[-1], rtol=1e-6)
    assert in_flight() == {1}
