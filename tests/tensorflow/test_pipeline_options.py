"""What a pipeline can be told, against NumPy or the same computation done by hand."""

import threading

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_infeed_queue, ipu_outfeed_queue, scopes
from tf_ipu_shim.ipu.eager import backprop
from tf_ipu_shim.ipu.ops import grad_util_ops, pipelining_ops
from tf_ipu_shim.ipu.ops.pipelining_ops import OptimizerFunctionOutput, PipelineSchedule, RecomputationMode

from tf_ipu_shim import ipu, memory_report, plugin
from tf_ipu_shim.lowering.pipelines import DESCRIPTION_ATTRIBUTE, PipelineDescription

v1 = tf.compat.v1
GRADIENT_DESCENT = v1.train.GradientDescentOptimizer
VALUES = np.arange(1, 9, dtype="f")  # elements of the infeed: batches of two rows
ELEMENTS = np.stack([VALUES, VALUES / 2], -1)[..., None]  # [element, row, column]


def configure(ipus):
    ipu.config.reset_ipu_configuration()
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = ipus
    config.configure_ipu_system()
    plugin.load().reset_counters(0)


@pytest.fixture(autouse=True)
def graph():
    configure(2)
    with tf.Graph().as_default():
        yield
    ipu.config.reset_ipu_configuration()


def variable(name, value):
    initializer = v1.constant_initializer(value)
    return v1.get_variable(name, np.shape(value), initializer=initializer, use_resource=True)


def descent(*outputs, rate=0.01):
    return OptimizerFunctionOutput(GRADIENT_DESCENT(rate), outputs[0])


def run(build, feeds=None, mode=ipu_outfeed_queue.IPUOutfeedMode.ALL):
    """Runs `build(infeed, outfeed, *fed)` in a session: what came out, and the variables by name."""
    infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(ELEMENTS).repeat())
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue(mode)
    with tf.device("/device:CPU:0"):
        fed = [v1.placeholder(value.dtype, value.shape) for value in feeds or []]
    with scopes.ipu_scope("/device:IPU:0"):
        program = ipu.ipu_compiler.compile(lambda *arguments: build(infeed, outfeed, *arguments), fed)
    dequeued = outfeed.dequeue()
    named = {one.op.name: one for one in v1.global_variables()}
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), infeed.initializer])
        session.run(program, dict(zip(fed, feeds or [])))
        return session.run(dequeued), session.run(named)


def two_layers(**options):
    """Squared products of the elements with two weights, summed, and trained."""
    stages = [lambda x: x * variable("first", 0.5), lambda x: tf.reduce_sum(tf.square(x * variable("second", 0.25)))]
    return lambda infeed, outfeed: pipelining_ops.pipeline(
        stages, infeed_queue=infeed, outfeed_queue=outfeed, optimizer_function=descent, **options
    )


def trained_by_hand(count, repeat=1, rate=0.01):
    """What `two_layers` does: losses, and both weights."""
    first, second, losses = 0.5, 0.25, []
    for execution in range(repeat):
        used = ELEMENTS[np.arange(execution * count, (execution + 1) * count) % len(ELEMENTS)].astype("d")
        squares = (used**2).sum((1, 2))
        losses.extend(squares * (first * second) ** 2)
        slope = 2 * squares.sum() * first * second
        first, second = first - rate * slope * second, second - rate * slope * first
    return losses, {"first": first, "second": second}


def check_training(got, expected):
    (losses,), weights = got
    np.testing.assert_allclose(np.ravel(losses), expected[0], rtol=1e-5)
    for name, value in expected[1].items():
        np.testing.assert_allclose(weights[name], value, rtol=1e-5)


def test_batch_serialization_runs_that_many_mini_batches_at_a_time():
    configure(1)  # all stages are on one IPU: two would be two replicas
    got = run(two_layers(gradient_accumulation_count=3, batch_serialization_iterations=4, repeat_count=2))
    check_training(got, trained_by_hand(12, 2))


def test_batch_serialization_in_inference():
    got, _ = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [lambda x: x * 2.0, lambda x: tf.reduce_sum(x)],
            gradient_accumulation_count=2,
            batch_serialization_iterations=3,
            device_mapping=[1, 1],
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            accumulate_outfeed=True,
        )
    )
    np.testing.assert_allclose(got, [[2 * ELEMENTS[:6].sum()]])


def test_results_do_not_depend_on_where_things_are_kept():
    options = {
        "offload_weight_update_variables": True,
        "replicated_optimizer_state_sharding": True,
        "offload_activations": True,
        "offload_gradient_accumulation_buffers": True,
        "replicated_weight_sharding": True,
        "offload_weights": True,
        "recomputation_mode": RecomputationMode.RecomputeThenBackpropagate,
        "weight_update_poplar_options": pipelining_ops.PipelineStageOptions(matmul_options={"a": "b"}),
        "forward_propagation_stages_poplar_options": [pipelining_ops.PipelineStageOptions()] * 2,
        "backward_propagation_stages_poplar_options": (pipelining_ops.PipelineStageOptions(),) * 2,
    }
    check_training(run(two_layers(gradient_accumulation_count=4, **options)), trained_by_hand(4))


def test_functions_of_a_concurrent_stage_are_on_their_own_ipus():
    configure(4)
    start = np.array([[0.5, -1.0], [2.0, 1.0]], "f")

    def branch(name):
        def run_branch(x):
            return tf.reduce_sum(x @ variable(name, start), 1), tf.reduce_sum(x)

        return run_branch

    def last(left, left_sum, right, right_sum):
        return tf.reduce_sum(left * right), left_sum + right_sum

    (losses, sums), weights = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [lambda x: tf.tile(x, [1, 2]), [branch("left"), branch("right")], last],
            gradient_accumulation_count=6,
            device_mapping=[0, [1, 3], 2],
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=descent,
        )
    )
    x = np.tile(ELEMENTS[:6], [1, 1, 2]).astype("d")
    products = (x @ start).sum(2)
    np.testing.assert_allclose(losses, (products**2).sum(1), rtol=1e-5)
    np.testing.assert_allclose(sums, 2 * x.sum((1, 2)), rtol=1e-5)
    gradient = np.einsum("brc,br->c", x, products)[:, None].repeat(2, 1)
    for name in ("left", "right"):
        np.testing.assert_allclose(weights[name], start - 0.01 * gradient, rtol=1e-4)
    (used,) = [program for program in memory_report().devices[0].programs if program.variables]
    assert {name: ipus for (ipus, name), size in used.variables.items() if size} == {"left": 1, "right": 3}


def test_a_first_and_a_last_stage_that_are_concurrent_get_ipus_one_after_another():
    configure(4)
    got, _ = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [[lambda x: x + 1.0, lambda x: x - 1.0], [lambda a, b: a * b, lambda a, b: {"sum": a + b}]],
            gradient_accumulation_count=2,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
        )
    )
    np.testing.assert_allclose(got[0], ELEMENTS[:2] ** 2 - 1)
    np.testing.assert_allclose(got[1]["sum"], ELEMENTS[:2] * 2)


def test_a_stage_on_all_ipus_marks_its_ops_itself():
    def spread(x):
        with scopes.ipu_shard(1):
            return x * variable("one", 3.0)

    (got,), _ = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [spread, lambda x: x * variable("zero", 2.0)],
            gradient_accumulation_count=2,
            device_mapping=[-1, 0],
            infeed_queue=infeed,
            outfeed_queue=outfeed,
        )
    )
    np.testing.assert_allclose(got, ELEMENTS[:2] * 6)
    (used,) = [program for program in memory_report().devices[0].programs if program.variables]
    assert {name: ipu for (ipu, name), size in used.variables.items() if size} == {"one": 1, "zero": 0}


def test_checkpoints_hand_on_values_and_gradients():
    def first(x):
        pair = pipelining_ops.recomputation_checkpoint({"x": x, "y": [x * variable("first", 0.5)]}, name="kept")
        return pair["y"][0]

    got = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [first, lambda x: tf.reduce_sum(tf.square(x * variable("second", 0.25)))],
            gradient_accumulation_count=4,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=descent,
        )
    )
    check_training(got, trained_by_hand(4))
    x = pipelining_ops.recomputation_checkpoint(tf.constant([1.0, 2.0]))
    assert isinstance(x, tf.Tensor) and x.shape == [2]


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
        batch_serialization_iterations=1,
        devices=((0,), (1,), (0,)),
        recomputation_mode="RecomputeAndBackpropagateInterleaved",
        input_bytes=(2 * 4, 2 * 5 * 4 + 2 * 4, 2 * 5 * 4 + 2 * 4),
        # Gradients need: x and what is squared; the result of tanh; the last product's input.
        kept_bytes=(2 * 4 + 2 * 5 * 4, 2 * 5 * 4, 2 * 5 * 4),
        checkpoint_bytes=(2 * 5 * 4, 0, 0),
        offload_activations=True,
        offload_gradient_accumulation_buffers=None,
        offload_weight_update_variables=None,
        offload_weights=None,
        replicated_optimizer_state_sharding=True,
        replicated_weight_sharding=None,
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
        batch_serialization_iterations=1,
        devices=((0,), (1,), (2,), (3,)),
        recomputation_mode="Auto",
        input_bytes=(0,) * 4,
        kept_bytes=(0,) * 4,
        checkpoint_bytes=(0,) * 4,
        offload_activations=None,
        offload_gradient_accumulation_buffers=None,
        offload_weight_update_variables=None,
        offload_weights=None,
        replicated_optimizer_state_sharding=False,
        replicated_weight_sharding=None,
    )
    assert [description.fifo_slots(stage) for stage in range(4)] == slots


class Seeing(GRADIENT_DESCENT):
    """Casts what it is given to the variables' type, and remembers what type it was given."""

    seen: list = []

    def apply_gradients(self, pairs, *arguments, **keywords):
        pairs = list(pairs)
        Seeing.seen = [gradient.dtype for gradient, _ in pairs]
        pairs = [(tf.cast(gradient, v.dtype.base_dtype), v) for gradient, v in pairs]
        return super().apply_gradients(pairs, *arguments, **keywords)


@pytest.mark.parametrize("dtype", [tf.float32, lambda variable: tf.float32, None])
def test_gradients_reach_the_optimizer_in_the_accumulators_type(dtype):
    def first(x):
        weight = v1.get_variable("w", [], tf.float16, v1.constant_initializer(1.0, tf.float16), use_resource=True)
        return tf.cast(x, tf.float16) * weight

    _, weights = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [first, lambda x: tf.reduce_sum(x)],
            gradient_accumulation_count=4,
            gradient_accumulation_dtype=dtype,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=lambda loss: OptimizerFunctionOutput(Seeing(2.0**-10), loss),
        )
    )
    assert Seeing.seen == [tf.float32 if dtype else tf.float16]
    np.testing.assert_allclose(weights["w"], 1 - ELEMENTS[:4].sum() / 2**10, rtol=1e-3)


@pytest.mark.parametrize("dtype", [tf.float32, lambda tensor: tf.float32])
def test_the_sum_for_the_outfeed_has_a_type_of_its_own(dtype):
    # In float16 the sum of 2048 and ones stays 2048.
    (got,), _ = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [lambda x: x, lambda x: tf.cast(tf.reduce_sum(x) * 0 + 1024.5, tf.float16)],
            gradient_accumulation_count=4,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            accumulate_outfeed=True,
            accumulate_outfeed_dtype=dtype,
        )
    )
    assert got.dtype == np.float32 and got.tolist() == [4 * float(np.float16(1024.5))]


@pytest.mark.parametrize("masked", [[True, False], [False, True]])
def test_accumulated_and_masked(masked):
    got, _ = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [lambda x: x, lambda x: (tf.reduce_sum(x) * variable("w", 1.0), tf.reduce_max(x))],
            gradient_accumulation_count=4,
            repeat_count=2,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            accumulate_outfeed=True,
            outfeed_mask=masked,
            optimizer_function=lambda *outputs: descent(*outputs, rate=0.0),
        )
    )
    expected = [ELEMENTS.sum((1, 2)), ELEMENTS.max((1, 2))][masked.index(False)]
    np.testing.assert_allclose(got, [expected.reshape(2, 4).sum(1)])


def test_a_mask_that_keeps_everything_back_needs_no_queue():
    def compiled(mask):
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(ELEMENTS).repeat())

        def build():
            return pipelining_ops.pipeline(
                [lambda x: x * variable("w", 1.0), lambda x: tf.reduce_sum(x)],
                gradient_accumulation_count=4,
                infeed_queue=infeed,
                optimizer_function=descent,
                outfeed_mask=mask,
            )

        with scopes.ipu_scope("/device:IPU:0"):
            return infeed, ipu.ipu_compiler.compile(build, [])

    with tf.Graph().as_default(), pytest.raises(ValueError, match="has 1 outputs, but the outfeed_mask has 2"):
        compiled([True, True])
    with tf.Graph().as_default(), pytest.raises(ValueError, match="The last computational stage has tensor outputs"):
        compiled([False])
    infeed, program = compiled([True])
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), infeed.initializer])
        session.run(program)
        (weight,) = session.run(v1.trainable_variables())
    np.testing.assert_allclose(weight, 1 - 0.01 * ELEMENTS[:4].sum(), rtol=1e-6)


def test_arguments_for_the_optimizer():
    step = v1.train.get_or_create_global_step()

    def optimizer_function(loss):
        return OptimizerFunctionOutput(
            GRADIENT_DESCENT(0.01),
            loss,
            compute_gradients_args=([v1.trainable_variables()[0]],),
            compute_gradients_kwargs={"gate_gradients": v1.train.Optimizer.GATE_OP},
            apply_gradients_args=(step,),
            apply_gradients_kwargs={"name": "update"},
        )

    stages = [lambda x: x * variable("first", 0.5), lambda x: tf.reduce_sum(x * variable("second", 0.25))]
    _, weights = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            stages,
            gradient_accumulation_count=4,
            repeat_count=2,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=optimizer_function,
        )
    )
    assert weights["global_step"] == 2 and weights["second"] == 0.25
    np.testing.assert_allclose(weights["first"], 0.5 - 0.01 * 0.25 * ELEMENTS.sum(), rtol=1e-5)


def test_the_last_mini_batch_alone():
    last = ipu_outfeed_queue.IPUOutfeedMode.LAST

    def build(infeed, outfeed, **options):
        return pipelining_ops.pipeline(
            [lambda x: (x, tf.reduce_sum(x)), lambda x, total: (x * 2.0, (total, {"more": total + 1.0}))],
            gradient_accumulation_count=4,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            **options,
        )

    (doubled, (total, more)), _ = run(build, mode=last)
    np.testing.assert_allclose(doubled, 2 * ELEMENTS[3])
    assert [total, more["more"]] == [ELEMENTS[3].sum(), ELEMENTS[3].sum() + 1]
    with tf.Graph().as_default(), pytest.raises(ValueError, match="it must be in IPUOutfeedMode ALL"):
        run(lambda infeed, outfeed: build(infeed, outfeed, accumulate_outfeed=True), mode=last)


def test_its_name():
    operations = []

    def build(infeed, outfeed):
        operations.append(
            pipelining_ops.pipeline(
                [lambda x: x * 2.0, lambda x: tf.reduce_sum(x)],
                gradient_accumulation_count=2,
                infeed_queue=infeed,
                outfeed_queue=outfeed,
                name="part/whole",
            )
        )
        return operations[0]

    (got,), _ = run(build)
    assert isinstance(operations[0], tf.Operation) and operations[0].name == "part/whole"
    np.testing.assert_allclose(got, 2 * ELEMENTS[:2].sum((1, 2)))


def test_types_that_are_none():
    for options in ({"gradient_accumulation_dtype": object()}, {"gradient_accumulation_dtype": lambda _: object()}):
        with tf.Graph().as_default(), pytest.raises(TypeError, match="(?i)cannot convert"):
            run(two_layers(gradient_accumulation_count=4, **options))


def test_a_count_that_the_session_feeds():
    def build(infeed, outfeed, count):
        return pipelining_ops.pipeline(
            [lambda x: x * 2.0, lambda x: tf.reduce_sum(x)],
            gradient_accumulation_count=count,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            accumulate_outfeed=True,
        )

    got, _ = run(build, [np.int32(6)])
    np.testing.assert_allclose(got, [[2 * ELEMENTS[:6].sum()]])


def test_a_pipeline_in_a_loop_runs_anew_each_time():
    inner = two_layers(gradient_accumulation_count=4)
    got = run(lambda infeed, outfeed: ipu.loops.repeat(3, lambda: inner(infeed, outfeed), []))
    check_training(got, trained_by_hand(4, 3))


def test_each_stage_is_traced_once():
    calls = []

    def stage(number):
        def run_stage(x):
            calls.append(number)
            return x * variable(f"w{number}", 1.5) if number < 2 else tf.reduce_sum(x)

        return run_stage

    def optimizer_function(loss):
        calls.append("optimizer")
        return descent(loss)

    run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [stage(0), stage(1), stage(2)],
            gradient_accumulation_count=12,
            repeat_count=2,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=optimizer_function,
            device_mapping=[0, 1, 0],
            pipeline_schedule=PipelineSchedule.Sequential,
        )
    )
    assert calls == [0, 1, 2, "optimizer"]


def in_eager_thread(function):
    """Runs a function where eager execution is on."""
    result = []
    thread = threading.Thread(target=lambda: result.append(function()))
    thread.start()
    thread.join()
    return result[0]


def keras_descent():
    return getattr(tf.keras.optimizers, "legacy", tf.keras.optimizers).SGD(0.01)


@pytest.mark.parametrize("form", ["context", "capture tape", "plain tape", "variables"])
@pytest.mark.parametrize("accumulated", [True, False])
def test_captured_gradients_in_a_strategy(form, accumulated):
    def train():
        strategy = ipu.ipu_strategy.IPUStrategyV1()
        with strategy.scope():
            first, second, optimizer = tf.Variable(0.5), tf.Variable(0.25), keras_descent()
            infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(ELEMENTS).repeat())
            outfeed, captured = ipu_outfeed_queue.IPUOutfeedQueue(), ipu_outfeed_queue.IPUOutfeedQueue()

        def stage(x):
            return grad_util_ops.capture_upstream_gradients(tf.reduce_sum(x) * first, tag="hidden")

        @tf.function
        def step():
            tape = {"capture tape": backprop.GradientCaptureTape, "plain tape": tf.GradientTape}.get(
                form, lambda: None
            )()
            context = backprop.GradientCaptureContext() if form == "context" else None
            sent = {"captured_gradient_outfeed": captured} if form in ("context", "capture tape") else {}

            def optimizer_function(loss):
                how = {"tape": tape} if tape else {"variables": [first, second], "gradient_capture_context": context}
                return OptimizerFunctionOutput(optimizer, loss, **how, **sent)

            def pipeline():
                pipelining_ops.pipeline(
                    [stage, lambda x: x * second],
                    gradient_accumulation_count=4,
                    gradient_accumulation_for_captured_grads=accumulated,
                    repeat_count=2,
                    infeed_queue=infeed,
                    outfeed_queue=outfeed,
                    optimizer_function=optimizer_function,
                )

            if tape:
                with tape:
                    pipeline()
            else:
                pipeline()

        strategy.run(step)
        seen = captured.dequeue() if captured.enqueued else None
        return tf.nest.map_structure(np.asarray, (outfeed.dequeue(), first.numpy(), second.numpy(), seen))

    losses, first, second, seen = in_eager_thread(train)
    sums = ELEMENTS.sum((1, 2)).reshape(2, 4)
    one, two, expected, hidden = 0.5, 0.25, [], []
    for row in sums:
        expected.extend(row * one * two)
        hidden.append(4 * two if accumulated else two)
        one, two = one - 0.01 * row.sum() * two, two - 0.01 * row.sum() * one
    np.testing.assert_allclose(np.ravel(losses), expected, rtol=1e-5)
    np.testing.assert_allclose([first, second], [one, two], rtol=1e-5)
    if form in ("context", "capture tape"):
        np.testing.assert_allclose(seen["hidden"], hidden, rtol=1e-5)


def test_an_optimizer_that_wants_captured_gradients():
    given = []

    class Wanting(GRADIENT_DESCENT):
        supports_captured_grads = True

        def apply_gradients(self, pairs, captured_grads=None, **keywords):
            given.append(sorted(captured_grads))
            pairs = [(gradient + captured_grads["pair"][1], v) for gradient, v in pairs]
            return super().apply_gradients(pairs, **keywords)

    def first(x):
        x = tf.reduce_sum(x) * variable("w", 0.5)
        return tuple(grad_util_ops.capture_upstream_gradients([x, x * 3.0], tag="pair"))

    _, weights = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [first, lambda a, b: a + 2.0 * b],
            gradient_accumulation_count=4,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=lambda loss: OptimizerFunctionOutput(
                Wanting(0.01), loss, gradient_capture_context=backprop.GradientCaptureContext()
            ),
        )
    )
    assert given == [["pair"]]
    np.testing.assert_allclose(weights["w"], 0.5 - 0.01 * (7 * ELEMENTS[:4].sum() + 4 * 2), rtol=1e-5)


def test_not_eagerly():
    def call():
        with pytest.raises(RuntimeError, match="cannot run eagerly.*IPUStrategy.run"):
            pipelining_ops.pipeline([tf.identity, tf.identity], 4, inputs=[1.0])
        with pytest.raises(ValueError, match="at least two computational stages"):
            pipelining_ops.pipeline([tf.identity], 4, inputs=[1.0])
        return True

    assert in_eager_thread(call)


KERAS = keras_descent
WRONG = [
    ("opt", GRADIENT_DESCENT, 1, TypeError, "opt must be a TensorFlow Optimizer or Keras OptimizerV2"),
    ("loss", GRADIENT_DESCENT, 1, TypeError, "loss must be a TensorFlow Tensor"),
    ("compute_gradients_args", GRADIENT_DESCENT, [1], TypeError, "compute_gradients_args must be a tuple"),
    ("compute_gradients_kwargs", GRADIENT_DESCENT, [1], TypeError, "compute_gradients_kwargs must be a dict"),
    ("apply_gradients_args", GRADIENT_DESCENT, [1], TypeError, "apply_gradients_args must be a tuple"),
    ("apply_gradients_kwargs", GRADIENT_DESCENT, [1], TypeError, "apply_gradients_kwargs must be a dict"),
    ("variables", GRADIENT_DESCENT, 1, TypeError, "variables must be a tuple or list"),
    ("variables", GRADIENT_DESCENT, [1], ValueError, "variables may only be used with OptimizerV2"),
    ("tape", KERAS, 1, TypeError, "tape must be a GradientTape"),
    ("tape", GRADIENT_DESCENT, tf.GradientTape, ValueError, "tape may only be used with OptimizerV2"),
    ("gradient_capture_context", KERAS, 1, TypeError, "gradient_capture_context must be an"),
    ("captured_gradient_outfeed", KERAS, 1, TypeError, "must be an instance of IPUOutfeedQueue"),
    (
        "captured_gradient_outfeed",
        KERAS,
        ipu_outfeed_queue.IPUOutfeedQueue,
        ValueError,
        "captured_gradient_outfeed may not be used when neither",
    ),
    ("compute_gradients_args", KERAS, (1,), ValueError, "compute_gradients_args may not be used with OptimizerV2"),
    ("compute_gradients_kwargs", KERAS, {"a": 1}, ValueError, "compute_gradients_kwargs may not be used with Opt"),
]


@pytest.mark.parametrize(("name", "optimizer", "value", "error", "text"), WRONG)
@pytest.mark.parametrize("later", [False, True])
def test_wrong_parts_of_an_optimizer_output(name, optimizer, value, error, text, later):
    value = value() if isinstance(value, type) else value
    given = {"opt": optimizer(0.1) if optimizer is GRADIENT_DESCENT else optimizer(), "loss": tf.constant(1.0)}
    if later:
        output = OptimizerFunctionOutput(**given)
        with pytest.raises(error, match=text):
            setattr(output, name, value)
    else:
        with pytest.raises(error, match=text):
            OptimizerFunctionOutput(**{**given, name: value})


def test_parts_that_exclude_each_other():
    def output(**parts):
        return OptimizerFunctionOutput(KERAS(), tf.constant(1.0), **parts)

    tape, context = backprop.GradientCaptureTape(), backprop.GradientCaptureContext()
    with pytest.raises(ValueError, match="tape may not be used when OptimizerFunctionOutput.variables"):
        output(variables=[1], tape=tape)
    with pytest.raises(ValueError, match="variables must be empty when OptimizerFunctionOutput.tape is"):
        output(tape=tape).variables = [1]
    with pytest.raises(ValueError, match="gradient_capture_context may not be used when OptimizerFunctionOutput.tape"):
        output(tape=tape, gradient_capture_context=context)
    with pytest.raises(ValueError, match="tape may not be used when OptimizerFunctionOutput.gradient_capture_context"):
        output(gradient_capture_context=context).tape = tape
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
    assert output(tape=tape, captured_gradient_outfeed=outfeed).captured_gradient_outfeed is outfeed


def test_a_keras_optimizer_without_variables():
    with pytest.raises(RuntimeError, match="No variables to optimize"):
        run(
            lambda infeed, outfeed: pipelining_ops.pipeline(
                [lambda x: x * variable("w", 1.0), lambda x: tf.reduce_sum(x)],
                gradient_accumulation_count=4,
                infeed_queue=infeed,
                outfeed_queue=outfeed,
                optimizer_function=lambda loss: OptimizerFunctionOutput(KERAS(), loss),
            )
        )


def test_the_description_is_on_the_loop_alone():
    node = v1.NodeDef(name="n", op="NoOp")
    assert PipelineDescription.of(node) is None and DESCRIPTION_ATTRIBUTE not in node.attr
