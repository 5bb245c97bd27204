"""What a pipeline says of its schedule to the memory model."""

import numpy as np
import pytest
import tensorflow as tf
from pipelines_by_hand import (
    configure,
    descent,
    run,
    variable,
)
from tf_ipu_shim.ipu.ops import pipelining_ops
from tf_ipu_shim.ipu.ops.pipelining_ops import RecomputationMode

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.loops.pipeline_description import PipelineDescription

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def two_ipus(graph):
    configure(2)


def test_the_loop_says_what_its_schedule_keeps():
    def first(x):
        return pipelining_ops.recomputation_checkpoint(tf.square(x * variable("first", np.ones((1, 5), "f")))), x

    found = []

    def build(infeed, outfeed):
        operation = pipelining_ops.pipeline(
            [first, lambda x, y: (tf.tanh(x), y), lambda x, _: tf.reduce_sum(x * variable("last", 2.0))],
            gradient_accumulation_count=12,
            repeat_count=3,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=descent,
            device_mapping=[0, 1, 0],
            offload_activations=True,
            replicated_optimizer_state_sharding=True,
            recomputation_mode=RecomputationMode.RecomputeAndBackpropagateInterleaved,
            name="described",
        )
        library = tf.compat.v1.get_default_graph().as_graph_def().library
        found.extend(PipelineDescription.of(node) for function in library.function for node in function.node_def)
        return operation

    run(build)
    (description,) = [one for one in found if one is not None]
    assert description == PipelineDescription(
        name="described",
        schedule="Grouped",
        training=True,
        count=12,
        repeat_count=3,
        devices=((0,), (1,), (0,)),
        recomputation_mode="RecomputeAndBackpropagateInterleaved",
        # The second stage hands x on without reading it, the third ignores it.
        input_bytes=(2 * 4, 2 * 5 * 4, 2 * 5 * 4),
        # Gradients need: x and what is squared; the result of tanh; the last product's input.
        kept_bytes=(2 * 4 + 2 * 5 * 4, 2 * 5 * 4, 2 * 5 * 4),
        checkpoint_bytes=(2 * 5 * 4, 0, 0),
        offload_activations=True,
        replicated_optimizer_state_sharding=True,
        kept_tensors=(2, 1, 1),
        stashed_tensors=(2, 1, 1),
    )
    assert [description.fifo_slots(stage) for stage in range(3)] == [4, 2, 0]
    assert description == PipelineDescription.from_json(description.to_json())


@pytest.mark.parametrize(
    ("schedule", "training", "slots"),
    [
        ("Grouped", True, [6, 4, 2, 0]),
        ("Interleaved", True, [3, 2, 1, 0]),
        ("Sequential", True, [0] * 4),
        ("Grouped", False, [0] * 4),
    ],
)
def test_fifo_slots_of_the_schedules(schedule, training, slots):
    description = PipelineDescription(
        name="p",
        schedule=schedule,
        training=training,
        count=8,
        repeat_count=1,
        devices=((0,), (1,), (2,), (3,)),
        input_bytes=(0,) * 4,
        kept_bytes=(0,) * 4,
        checkpoint_bytes=(0,) * 4,
    )
    assert [description.fifo_slots(stage) for stage in range(4)] == slots


def test_the_description_is_on_the_loop_alone():
    node = v1.NodeDef(name="n", op="NoOp")
    assert PipelineDescription.of(node) is None and vocabulary.PIPELINE_ATTRIBUTE not in node.attr
