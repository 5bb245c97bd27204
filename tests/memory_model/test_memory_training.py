"""Modelled memory of training, against bytes worked out by hand: variables by their use, pipelines, offloading."""

import json
import re
import sys

import numpy as np
import pytest
import tensorflow as tf
from harness import configure, configure_for_plans
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_cases import slowly
from tf_ipu_shim.ipu import ipu_infeed_queue, ipu_outfeed_queue
from tf_ipu_shim.ipu.ops import pipelining_ops
from tf_ipu_shim.ipu.ops.pipelining_ops import OptimizerFunctionOutput, PipelineSchedule
from tf_ipu_shim.ipu.optimizers import GradientAccumulationOptimizerV2

from tf_ipu_shim import ipu, memory_report
from tf_ipu_shim.compiler.loops.pipeline_description import PipelineDescription
from tf_ipu_shim.machine.memory.byte_text import format_bytes
from tf_ipu_shim.memory_model.variables.pipeline_memory import stashes
from tf_ipu_shim.memory_model.variables.storage import Storage

pytestmark = [pytest.mark.one_version, pytest.mark.usefixtures("graph")]

v1 = tf.compat.v1
WIDTH, ROWS, FLOAT = 16, 8, 4
VALUES = ROWS * WIDTH * FLOAT  # what a layer gives
WEIGHTS = WIDTH * WIDTH * FLOAT


def run(model, infeed=None):
    """The modelled figures of each shard, replica by replica."""
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        program = ipu.ipu_compiler.compile(model, [])
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), *([infeed.initializer] if infeed else [])])
        session.run(program)
    (plan,) = memory_report().devices[0].programs
    assert not plan.coarse
    by_ipu = {one.ipu: one for one in plan.ipus}
    return [by_ipu[ipu] for ipus in plan.shard_ipus for ipu in ipus if ipu in by_ipu]


def feed():
    data = tf.data.Dataset.from_tensors(np.ones((ROWS, WIDTH), "f")).repeat()
    return ipu_infeed_queue.IPUInfeedQueue(data), ipu_outfeed_queue.IPUOutfeedQueue()


def layer(x, number, checkpoint=False, shape=(WIDTH, WIDTH)):
    x = tf.matmul(x, v1.get_variable(f"w{number}", shape, use_resource=True))
    return tf.tanh(pipelining_ops.recomputation_checkpoint(x) if checkpoint else x)


def momentum(loss):
    return OptimizerFunctionOutput(v1.train.MomentumOptimizer(0.1, 0.9), loss)


def adam(loss):
    return OptimizerFunctionOutput(v1.train.AdamOptimizer(0.1), loss)


def pipelined(stages, optimizer=momentum, checkpoint=False, devices=None, **options):
    """Stages of a layer each: the backward stage needs what came in, for the weights, and what tanh gave."""
    infeed, outfeed = feed()

    def stage(number):
        def forward(x):
            x = layer(x, number, checkpoint)
            return tf.reduce_sum(x) if number == stages - 1 else x

        return forward

    return run(
        lambda: pipelining_ops.pipeline(
            [stage(number) for number in range(stages)],
            2 * stages,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=optimizer,
            device_mapping=devices,
            **options,
        ),
        infeed,
    )


def test_convolutions_in_a_pipeline_are_looked_into():
    """Their gradients take a shape that another program gives; `run` sees to it that no figure is coarse."""
    configure_for_plans(2)
    infeed, outfeed = feed()

    def convolution(x):
        kernel = v1.get_variable("kernel", [3, 3, 1, 4], use_resource=True)
        return tf.nn.relu(tf.nn.conv2d(tf.reshape(x, [2, 8, 8, 1]), kernel, 1, "VALID"))

    plans = run(
        lambda: pipelining_ops.pipeline(
            [convolution, lambda x: tf.reduce_sum(x * x)],
            4,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=momentum,
        ),
        infeed,
    )
    assert [plan.categories["weight"] for plan in plans] == [3 * 3 * 4 * FLOAT, 0]


@pytest.mark.parametrize(
    ("schedule", "slots"),
    [("Grouped", [6, 4, 2, 0]), ("Interleaved", [3, 2, 1, 0]), ("Sequential", [0] * 4), ("Grouped", [2, 0])],
)
def test_fifos_of_each_schedule(schedule, slots):
    configure_for_plans(len(slots))
    plans = pipelined(len(slots), pipeline_schedule=PipelineSchedule[schedule])
    assert [plan.categories["fifo"] for plan in plans] == [number * 2 * VALUES for number in slots]
    for plan in plans:
        sizes = plan.categories
        assert sizes["weight"] == sizes["accumulator"] == sizes["optimizer_state"] == WEIGHTS
        assert sizes["stash"] == 0 and plan.remote == {}
        assert sum(sizes.values()) == plan.peak_bytes == sum(plan.tile_bytes)


@pytest.mark.parametrize("checkpoint", [False, True])
def test_recomputation_stashes_inputs_instead(checkpoint):
    configure_for_plans(4, recompute=True)
    plans = pipelined(4, checkpoint=checkpoint)
    assert [plan.categories["fifo"] for plan in plans] == [0] * 4
    each = (2 if checkpoint else 1) * VALUES  # the input, and the product that the script wants to be kept
    assert [plan.categories["stash"] for plan in plans] == [6 * each, 4 * each, 2 * each, 0]
    report = memory_report()
    assert "allow_recompute" not in [option for option, _ in report.without_effect]
    assert all(f"stash of stage {stage}" in report.to_text() for stage in range(3))
    assert ">stash<" in report.to_svg() and ">fifo<" not in report.to_svg()


def deep(stages, layers, checkpoint=False, **options):
    """A pipeline on one IPU whose stages have several layers each; the memory of the IPU."""
    infeed, outfeed = feed()

    def stage(number):
        def forward(x):
            for index in range(layers):
                x = layer(x, f"{number}_{index}", checkpoint and index + 1 == layers // 2)
            return tf.reduce_sum(x) if number == stages - 1 else x

        return forward

    (plan,) = run(
        lambda: pipelining_ops.pipeline(
            [stage(number) for number in range(stages)],
            2 * stages,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=momentum,
            device_mapping=[0] * stages,
            **options,
        ),
        infeed,
    )
    return plan


@pytest.mark.parametrize("mode", ["Auto", slowly("RecomputeThenBackpropagate")])
def test_a_sequential_pipeline_on_one_ipu_needs_one_stage(monkeypatch, mode):
    """Each layer's tanh is kept: 24 of them. With recomputation 4 that go from stage to stage, 5 inside one.

    It needs most in the stage before the last one: while that is computed anew, the gradient that came into it waits,
    and so do those of the last stage's weights.
    """
    monkeypatch.setattr(sys.modules[__name__], "ROWS", 40 * ROWS)  # what a layer gives is more than its weights
    recomputation = pipelining_ops.RecomputationMode[mode]
    options = {"pipeline_schedule": PipelineSchedule.Sequential, "recomputation_mode": recomputation}
    configure_for_plans(1)
    kept = deep(4, 6, **options)
    configure_for_plans(1, recompute=True)
    with tf.Graph().as_default():
        anew = deep(4, 6, **options)
    assert kept.peak_bytes - anew.peak_bytes == (24 - 4 - 5 - 1) * 40 * VALUES - 6 * WEIGHTS
    assert anew.categories["fifo"] == anew.categories["stash"] == 0


def test_stages_that_share_an_ipu_have_fifos_of_their_own():
    configure_for_plans(2)
    first, second = pipelined(4, devices=[0, 1, 1, 0])
    assert first.categories["fifo"] == 6 * 2 * VALUES
    assert second.categories["fifo"] == (4 + 2) * 2 * VALUES


def test_a_view_is_kept_with_what_it_is_of():
    configure_for_plans(2)
    infeed, outfeed = feed()

    def first(x):
        x = tf.reshape(layer(x, 0), [ROWS // 2, 2 * WIDTH])  # its tanh, and the product after it, want the same bytes
        return tf.reshape(layer(x, 1, shape=(2 * WIDTH, WIDTH)), [-1])[: ROWS * WIDTH // 2]

    plan, _ = run(
        lambda: pipelining_ops.pipeline(
            [first, tf.reduce_sum],
            4,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=momentum,
        ),
        infeed,
    )
    # Two slots of the input, the first tanh and the second, which is half as large.
    assert plan.categories["fifo"] == 2 * (2 * VALUES + VALUES // 2)


def test_stages_that_work_through_several_mini_batches():
    configure_for_plans(1)
    (plan,) = pipelined(2, pipeline_schedule=PipelineSchedule.Sequential, batch_serialization_iterations=3)
    # Both stages are on the same IPU then. Two mini-batches besides the one in work, at each stage.
    assert plan.categories["fifo"] == 2 * (2 * VALUES + 2 * VALUES)


def test_a_pipeline_that_is_one_xla_program_has_its_fifos_too():
    configure_for_plans(1)
    inputs = [tf.constant(np.ones((ROWS, WIDTH), "f"))]
    (plan,) = run(
        lambda: pipelining_ops.pipeline(
            [lambda x: layer(x, 0), lambda x: tf.reduce_sum(layer(x, 1))],
            4,
            inputs=inputs,
            optimizer_function=momentum,
            outfeed_mask=[True],
            device_mapping=[0, 0],
        )
    )
    assert plan.categories["fifo"] == 2 * 2 * VALUES
    assert plan.categories["weight"] == plan.categories["optimizer_state"] == 2 * WEIGHTS


def test_inference_has_no_fifos():
    configure_for_plans(2)
    plans = pipelined(2, optimizer=None)
    assert [plan.categories["fifo"] + plan.categories["accumulator"] for plan in plans] == [0, 0]


def test_adam_has_two_values_for_each_weight():
    configure_for_plans(2)
    first, second = pipelined(2, adam)
    powers = 2 * FLOAT  # of both betas, which are on the IPU of the first weights
    assert first.categories["optimizer_state"] == 2 * WEIGHTS + powers
    assert second.categories["optimizer_state"] == 2 * WEIGHTS


def test_accumulators_have_their_own_type():
    configure_for_plans(2)

    class Casting(v1.train.MomentumOptimizer):
        def apply_gradients(self, pairs, *args, **options):
            return super().apply_gradients([(tf.cast(g, tf.float32), v) for g, v in pairs], *args, **options)

    def optimizer(loss):
        return OptimizerFunctionOutput(Casting(0.1, 0.9), loss)

    for plan in pipelined(2, optimizer, gradient_accumulation_dtype=tf.float16):
        assert plan.categories["accumulator"] == WEIGHTS // 2


def test_what_is_offloaded_is_in_remote_memory():
    configure_for_plans(2)
    first, second = pipelined(
        2,
        adam,
        offload_activations=True,
        offload_weight_update_variables=True,
        offload_gradient_accumulation_buffers=True,
        offload_weights=True,
    )
    parts = {"weight": WEIGHTS, "optimizer_state": 2 * WEIGHTS, "accumulator": WEIGHTS}
    assert first.remote == {**parts, "fifo": 2 * 2 * VALUES}
    assert second.remote == parts
    for plan, powers in ((first, 2 * FLOAT), (second, 0)):  # too small to be worth it
        assert plan.always_live_bytes - plan.categories["constant"] == powers
        assert plan.categories["fifo"] == 0
    assert f"and {format_bytes(sum(parts.values()) + 4 * VALUES)} in Streaming Memory" in memory_report().to_svg()
    text, (device,) = memory_report().to_text(), json.loads(memory_report().to_json())["devices"]
    assert "In Streaming Memory" in text and max(map(len, text.splitlines())) <= 100
    assert device["modelled"]["programs"][0]["ipus"][0]["remote"] == first.remote


def test_remote_buffers_take_optimizer_state_unless_refused():
    for asked, remote in ((None, {"optimizer_state": WEIGHTS}), (False, {})):
        with tf.Graph().as_default():
            configure_for_plans(2, remote_buffers=True)
            assert [plan.remote for plan in pipelined(2, offload_weight_update_variables=asked)] == [remote] * 2


@pytest.mark.parametrize(("asked", "remote"), [(True, True), (False, False), (None, True)])
def test_ipus_that_are_attached_have_remote_buffers(asked, remote):
    """The guide, "Optimizer state offloading": by default, where the machine has remote buffers."""
    with tf.Graph().as_default():
        configure(2)
        plans = pipelined(2, offload_weight_update_variables=asked)
        assert [plan.remote for plan in plans] == [{"optimizer_state": WEIGHTS} if remote else {}] * 2


@pytest.mark.parametrize("offload", [None, True])
def test_replicas_share_the_optimizer_s_state(offload):
    configure_for_plans(4)
    infeed, outfeed = feed()
    shape = (WIDTH, 15)  # 240 elements and a bias of 15, whose 60 bytes are too few to be shared by two
    odd = (15, 17)  # 255 elements: 128 on each replica, one of them padding

    def first(x):
        return layer(x, 0, shape=shape) + v1.get_variable("bias", [15], use_resource=True)

    def last(x):
        return tf.reduce_sum(layer(x, 1, shape=odd))

    def optimizer(loss):
        return OptimizerFunctionOutput(ipu.optimizers.CrossReplicaOptimizer(v1.train.MomentumOptimizer(0.1, 0.9)), loss)

    plans = run(
        lambda: pipelining_ops.pipeline(
            [first, last],
            4,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=optimizer,
            replicated_optimizer_state_sharding=True,
            offload_weight_update_variables=offload,
        ),
        infeed,
    )
    assert [plan.ipu for plan in plans] == [0, 1, 2, 3]
    for plan, part, whole in zip(plans, [120 * FLOAT, 128 * FLOAT] * 2, [15 * FLOAT, 0] * 2):
        assert plan.categories["optimizer_state"] == whole + (0 if offload else part)
        assert plan.remote == ({"optimizer_state": part} if offload else {})


def test_accumulation_without_a_pipeline():
    configure_for_plans(1)
    infeed, _ = feed()

    def step(x):
        loss = tf.reduce_sum(layer(x, 0))
        optimizer = GradientAccumulationOptimizerV2(
            v1.train.MomentumOptimizer(0.1, 0.9), 2, offload_weight_update_variables=True, dtype=tf.float16
        )
        return optimizer.minimize(loss)

    (plan,) = run(lambda: ipu.loops.repeat(4, step, [], infeed), infeed)
    assert plan.categories["weight"] == WEIGHTS
    assert plan.categories["accumulator"] == WEIGHTS // 2 + 4  # and a counter
    assert plan.remote == {"optimizer_state": WEIGHTS}


@pytest.mark.parametrize("shared", [slowly(False), True])
def test_the_state_of_one_variable_at_a_time_is_on_the_chip(shared):
    """Stages of six layers: while Adam updates one, the others' moments are in remote memory, or parts of them."""
    configure_for_plans(4 if shared else 2)
    infeed, outfeed = feed()

    def stage(number):
        def forward(x):
            for place in range(6):
                x = layer(x, 6 * number + place)
            return tf.reduce_sum(x) if number else x

        return forward

    def optimizer(loss):
        return OptimizerFunctionOutput(ipu.optimizers.CrossReplicaOptimizer(v1.train.AdamOptimizer(0.1)), loss)

    option = "replicated_optimizer_state_sharding" if shared else "offload_weight_update_variables"
    plans = run(
        lambda: pipelining_ops.pipeline(
            [stage(0), stage(1)], 4, infeed_queue=infeed, outfeed_queue=outfeed, optimizer_function=optimizer,
            pipeline_schedule=PipelineSchedule.Sequential, **{option: True},
        ),
        infeed,
    )  # fmt: skip
    kept = 6 * 2 * WEIGHTS + (6 * WEIGHTS if shared else 0)  # weights, accumulators, half of the moments
    for plan in plans:
        # The mini-batch in work, or two moments and the work of one update; all moments would be 12 more.
        assert kept < plan.peak_bytes < kept + 9 * WEIGHTS


def test_what_the_forward_pass_writes_is_no_optimizer_state():
    configure_for_plans(1)

    def model():
        x = layer(tf.constant(np.ones((ROWS, WIDTH), "f")), 0)
        average = v1.get_variable("average", [WIDTH], trainable=False, use_resource=True)
        moved = average.assign_sub(0.1 * (average - tf.reduce_mean(x, 0)))
        loss = tf.reduce_sum(tf.square(x))
        with tf.control_dependencies([moved]):
            step = v1.train.get_or_create_global_step()
            return v1.train.AdamOptimizer(0.1).minimize(loss, global_step=step)

    (plan,) = run(model)
    assert plan.categories["optimizer_state"] == 2 * WEIGHTS + 2 * FLOAT
    assert plan.categories["weight"] == WEIGHTS + WIDTH * FLOAT + 8  # with the average, and the step's number


def waiting(schedule, stages, stage, count):
    """How many mini-batches wait while one goes backward: found by going through all of them."""
    pace = {"Grouped": 1, "Interleaved": 2, "Sequential": 2 * stages}[schedule]
    times = [(pace * number + stage, pace * number + 2 * stages - 1 - stage) for number in range(count)]
    return max(sum(there < now < back for there, back in times) for _, now in times)


@settings(max_examples=60, deadline=None)
@given(
    schedule=st.sampled_from(["Grouped", "Interleaved", "Sequential"]),
    stages=st.integers(2, 8),
    times=st.integers(1, 3),
    recomputes=st.booleans(),
    data=st.data(),
)
def test_slots_are_the_mini_batches_that_wait(schedule, stages, times, recomputes, data):
    sizes = st.lists(st.integers(1, 10**6), min_size=stages, max_size=stages).map(tuple)
    inputs, values, checkpoints = data.draw(sizes), data.draw(sizes), data.draw(sizes)
    description = PipelineDescription(
        name="pipeline",
        schedule=schedule,
        training=True,
        count=2 * stages * times,
        repeat_count=1,
        devices=tuple((stage,) for stage in range(stages)),
        input_bytes=inputs,
        kept_bytes=values,
        checkpoint_bytes=checkpoints,
    )
    found = {one.ipu: one.bytes for one in stashes(description, recomputes, range(stages))}
    for stage in range(stages):
        each = inputs[stage] + checkpoints[stage] if recomputes else values[stage]
        assert found.get(stage, 0) == each * waiting(schedule, stages, stage, 2 * stages * times)


@given(replicas=st.integers(1, 16), elements=st.integers(0, 5000), size=st.sampled_from([2, 4]), remote=st.booleans())
def test_parts_of_all_replicas_make_the_whole(replicas, elements, size, remote):
    kind = "optimizer_state"
    storage = Storage(replicas, 128, False, frozenset({kind} if remote else ()), frozenset({kind}))
    stored = storage.of(kind, elements, size)
    if elements * size < 128 * replicas:
        assert (stored.on_chip, stored.remote) == (elements * size, 0)
    else:
        part = stored.remote if remote else stored.on_chip
        assert stored.on_chip + stored.remote == part
        assert 0 <= part * replicas - elements * size < replicas * size
    assert storage.of("weight", elements, size).on_chip == elements * size


def test_out_of_memory_says_what_recomputation_saves(monkeypatch):
    """The figure is the difference of the two peaks, each planned by itself."""
    monkeypatch.setattr(sys.modules[__name__], "ROWS", 4000)  # 256,000 bytes a value, twelve of them in the FIFO
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model --ipu_model_tiles=4")
    monkeypatch.setenv("TF_IPU_SHIM_EXACT_BYTES", "1")
    configure_for_plans(4)
    with pytest.raises(tf.errors.InternalError) as caught:
        pipelined(4)
    found = re.search(r"([\d,]+) B +recomputation \(allow_recompute=True\): fits then", str(caught.value))
    assert "The actions that save most on IPU 0, by a new memory plan for each:" in str(caught.value)
    (before,) = memory_report().devices[0].programs
    configure_for_plans(4, recompute=True)
    with tf.Graph().as_default():
        after = pipelined(4)
    assert int(found[1].replace(",", "")) == before.ipus[0].peak_bytes - after[0].peak_bytes > 0
