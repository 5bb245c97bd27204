"""Pipelines against the same training done by hand on the CPU, mini-batch by mini-batch."""

import sys
import types

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python import tf2
from tf_ipu_shim.ipu import ipu_infeed_queue, ipu_outfeed_queue
from tf_ipu_shim.ipu.ops import pipelining_ops
from tf_ipu_shim.ipu.ops.pipelining_ops import OptimizerFunctionOutput, PipelineSchedule, PipelineStageOptions

from tf_ipu_shim import ipu, memory_report, plugin

v1 = tf.compat.v1
IPU = "/device:IPU:0"
WIDTHS = [6, 5, 4, 3, 2]
BATCHES = 10
random = np.random.RandomState(0)
FEATURES = random.rand(BATCHES, 8, WIDTHS[0]).astype("f")
TARGETS = random.rand(BATCHES, 8, WIDTHS[-1]).astype("f")
GRADIENT_DESCENT = v1.train.GradientDescentOptimizer


def configure(ipus):
    ipu.config.reset_ipu_configuration()
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = ipus
    config.configure_ipu_system()


@pytest.fixture(autouse=True)
def four_ipus():
    configure(4)
    plugin.load().reset_counters(0)
    with tf.Graph().as_default():
        yield


def weights(layer):
    initializer = v1.glorot_uniform_initializer(seed=layer)
    return v1.get_variable(f"w{layer}", WIDTHS[layer : layer + 2], initializer=initializer)


def stage(layer):
    def run(x, y):
        x = tf.matmul(x, weights(layer))
        return (tf.tanh(x), y) if layer < 3 else tf.reduce_mean(tf.square(x - y))

    return run


def feeds(mode=ipu_outfeed_queue.IPUOutfeedMode.ALL):
    dataset = tf.data.Dataset.from_tensor_slices((FEATURES, TARGETS)).repeat()
    return ipu_infeed_queue.IPUInfeedQueue(dataset), ipu_outfeed_queue.IPUOutfeedQueue(mode)


def learning_rate(decayed):
    return v1.train.exponential_decay(0.1, v1.train.get_or_create_global_step(), 1, 0.5) if decayed else 0.1


def minimise(optimizer, decayed):
    step = {"global_step": v1.train.get_or_create_global_step()} if decayed else None
    return lambda loss: OptimizerFunctionOutput(
        optimizer(learning_rate(decayed)), loss, apply_gradients_kwargs=step and dict(step)
    )


class Wrapper(v1.train.Optimizer):
    """An optimizer of a script's own around another one, as tutorials have it."""

    def __init__(self, rate):
        super().__init__(False, "Wrapper")
        self.other, self.itself = v1.train.GradientDescentOptimizer(rate), self

    def compute_gradients(self, *arguments, **keywords):
        return self.other.compute_gradients(*arguments, **keywords)

    def apply_gradients(self, *arguments, **keywords):
        return self.other.apply_gradients(*arguments, **keywords)


def pipelined(count, repeat=1, optimizer=GRADIENT_DESCENT, decayed=False, **options):
    """Losses in the form in which they come, and the weights."""
    infeed, outfeed = feeds()
    program = compiled(
        lambda: pipelining_ops.pipeline(
            [stage(layer) for layer in range(4)],
            count,
            repeat_count=repeat,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=minimise(optimizer, decayed),
            **options,
        )
    )
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), infeed.initializer])
        assert session.run(program) is None
        return session.run(dequeued), session.run(v1.trainable_variables())


def by_hand(count, repeat, optimizer, decayed, mean):
    """Losses of all mini-batches, and the weights, from TensorFlow's CPU."""
    with tf.Graph().as_default(), v1.Session() as session, v1.variable_scope("", use_resource=True):
        x, y = v1.placeholder(tf.float32, [8, WIDTHS[0]]), v1.placeholder(tf.float32, [8, WIDTHS[-1]])
        loss = (x, y)
        for layer in range(4):
            loss = stage(layer)(*loss)
        variables = v1.trainable_variables()
        gradients = tf.gradients(loss, variables)
        accumulated = [v1.placeholder(tf.float32, variable.shape) for variable in variables]
        step = v1.train.get_or_create_global_step() if decayed else None
        update = optimizer(learning_rate(decayed)).apply_gradients(zip(accumulated, variables), global_step=step)
        session.run(v1.global_variables_initializer())
        losses = []
        for execution in range(repeat):
            totals = [np.zeros(variable.shape, "f") for variable in variables]
            for number in range(execution * count, (execution + 1) * count):
                batch = {x: FEATURES[number % BATCHES], y: TARGETS[number % BATCHES]}
                value, new = session.run([loss, gradients], batch)
                losses.append(value)
                totals = [total + gradient for total, gradient in zip(totals, new)]
            if mean:
                totals = [total / count for total in totals]
            session.run(update, dict(zip(accumulated, totals)))
        return losses, session.run(variables)


def compiled(function):
    with ipu.scopes.ipu_scope(IPU):
        return ipu.ipu_compiler.compile(function, [])


@pytest.mark.parametrize(
    ("schedule", "count", "method", "optimizer", "decayed"),
    [
        (PipelineSchedule.Grouped, 8, "SUM", GRADIENT_DESCENT, False),
        (PipelineSchedule.Interleaved, 4, "SUM", lambda rate: v1.train.MomentumOptimizer(rate, 0.9), False),
        (PipelineSchedule.Sequential, 3, "MEAN", v1.train.AdamOptimizer, False),
        (PipelineSchedule.Grouped, 8, "RUNNING_MEAN", GRADIENT_DESCENT, True),
        (PipelineSchedule.Grouped, 8, "MEAN", Wrapper, True),
    ],
)
def test_training_gives_the_cpu_s_weights(schedule, count, method, optimizer, decayed):
    options = {"pipeline_schedule": schedule, "reduction_method": method}
    (losses,), got = pipelined(count, 3, optimizer, decayed, **options)
    expected, variables = by_hand(count, 3, optimizer, decayed, mean=method != "SUM")
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for one, other in zip(got, variables):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


def test_the_optimizer_keeps_the_learning_rate_it_was_given():
    made = []

    def optimizer_function(loss):
        rate = learning_rate(decayed=True)
        inner = v1.train.MomentumOptimizer(rate, 0.9)
        made.append((inner, rate))
        return OptimizerFunctionOutput(ipu.optimizers.CrossReplicaOptimizer(inner), loss)

    infeed, outfeed = feeds()
    compiled(
        lambda: pipelining_ops.pipeline(
            [stage(layer) for layer in range(4)],
            8,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=optimizer_function,
        )
    )
    assert made and all(optimizer._learning_rate is rate for optimizer, rate in made)


def test_stages_meet_only_their_neighbours():
    pipelined(8, pipeline_schedule=PipelineSchedule.Grouped)
    moved = {pair: transfers.bytes for pair, transfers in memory_report().devices[0].exchange.items()}
    ipus = [0, 1, 3, 2]  # of the stages: up the ladder like a snake
    for near, (one, other) in enumerate(zip(ipus, ipus[1:])):
        activations = 8 * 8 * WIDTHS[near + 1] * 4  # eight mini-batches of eight rows, float32
        assert moved[one, other] >= activations and moved[other, one] >= activations
    stage = {ipu: number for number, ipu in enumerate(ipus)}
    far = [size for (one, other), size in moved.items() if abs(stage[one] - stage[other]) > 1]
    assert all(size < 500 for size in far), "counters at most"


def test_a_mapping_puts_two_stages_on_one_ipu():
    configure(2)
    (losses,), _ = pipelined(8, device_mapping=[1, 0, 0, 1])
    np.testing.assert_allclose(losses, by_hand(8, 1, GRADIENT_DESCENT, False, False)[0], rtol=1e-5)


def test_inference_with_inputs_and_a_dict():
    configure(2)
    infeed = ipu_infeed_queue.IPUInfeedQueue(
        tf.data.Dataset.from_tensor_slices({"x": np.arange(4.0, dtype="f"), "y": np.ones(4, "f")}).repeat()
    )
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
    program = compiled(
        lambda: pipelining_ops.pipeline(
            [lambda scale, x, y: (x * scale, y), lambda a, b: {"sum": a + b}],
            gradient_accumulation_count=4,
            repeat_count=2,
            inputs=[10.0],
            infeed_queue=infeed,
            outfeed_queue=outfeed,
        )
    )
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        session.run(infeed.initializer)
        session.run(program)
        got = session.run(dequeued)
    np.testing.assert_array_equal(got["sum"], [1, 11, 21, 31] * 2)


@pytest.mark.parametrize(("of_1_15", "shape"), [(False, (4,)), (True, (1, 4))])
def test_one_inference_output_is_in_a_list_with_tensorflow_1(monkeypatch, of_1_15, shape):
    configure(2)
    infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(np.arange(4.0, dtype="f")))
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
    monkeypatch.setattr(tf2, "enabled", lambda: False)  # as `disable_v2_behavior` does, which tells no version
    monkeypatch.delitem(sys.modules, "tensorflow.contrib", raising=False)
    if of_1_15:
        monkeypatch.setitem(sys.modules, "tensorflow.contrib", types.ModuleType("tensorflow.contrib"))
    program = compiled(
        lambda: pipelining_ops.pipeline(
            [lambda x: x + 1.0, lambda x: x * 2.0], 4, infeed_queue=infeed, outfeed_queue=outfeed
        )
    )
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        session.run(infeed.initializer)
        session.run(program)
        np.testing.assert_array_equal(session.run(dequeued), np.reshape([2.0, 4.0, 6.0, 8.0], shape))


@pytest.mark.parametrize("what", ["loss", "masked", "accumulated"])
def test_what_goes_to_the_outfeed(what):
    configure(2)
    infeed, outfeed = feeds()

    def last(x, y):
        return tf.reduce_mean(x * weights(0)[0, 0]), tf.reduce_sum(y)

    options = {
        "loss": {"outfeed_loss": True},
        "masked": {"outfeed_mask": [True, False]},
        "accumulated": {"accumulate_outfeed": True},
    }[what]
    program = compiled(
        lambda: pipelining_ops.pipeline(
            [lambda x, y: (x, y), last],
            4,
            repeat_count=2,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=lambda loss, _: OptimizerFunctionOutput(GRADIENT_DESCENT(0.0), loss * 2),
            **options,
        )
    )
    dequeued = outfeed.dequeue()
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), infeed.initializer])
        session.run(program)
        got, (weight,) = session.run(dequeued), session.run(v1.trainable_variables())
    means = [FEATURES[i].mean() * weight[0, 0] for i in range(8)]
    sums = [TARGETS[i].sum() for i in range(8)]
    if what == "loss":
        np.testing.assert_allclose(got, np.multiply(means, 2), rtol=1e-5)
    elif what == "masked":
        np.testing.assert_allclose(got, [sums], rtol=1e-5)
    else:
        np.testing.assert_allclose(got[0], [sum(means[:4]), sum(means[4:])], rtol=1e-5)
        np.testing.assert_allclose(got[1], [sum(sums[:4]), sum(sums[4:])], rtol=1e-5)


@pytest.mark.parametrize(
    ("count", "schedule", "multiple"), [(6, None, 8), (6, PipelineSchedule.Interleaved, 4), (0, None, 8)]
)
def test_counts_that_a_schedule_cannot_run(count, schedule, multiple):
    with pytest.raises(
        tf.errors.FailedPreconditionError,
        match=f"The number of iterations of the pipeline must be a multiple of {multiple}, but it is {count}",
    ):
        pipelined(count, pipeline_schedule=schedule)


def identity(*values):
    return values


TWO = [identity, identity]
TRAIN = {"optimizer_function": lambda x: OptimizerFunctionOutput(GRADIENT_DESCENT(0.1), x)}


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"computational_stages": TWO}, ValueError, "gradient_accumulation_count must be specified"),
        ({"gradient_accumulation_count": -1}, ValueError, "must be >= 0"),
        ({"gradient_accumulation_count": 2**31}, ValueError, "must be < max int32"),
        ({"computational_stages": identity}, TypeError, "computational_stages argument needs to be a list"),
        ({"computational_stages": [identity]}, ValueError, "at least two computational stages"),
        ({"computational_stages": [identity, 3]}, TypeError, "needs to be a list or a tuple of functions.*stage 1"),
        ({"computational_stages": [identity, []]}, ValueError, "concurrent stage 1 has 0 functions"),
        (
            {"computational_stages": [identity, [identity] * 2], "device_mapping": [0, 1]},
            ValueError,
            "Each stage must be mapped to an IPU: the concurrent stage 1 has 2",
        ),
        (
            {"computational_stages": [identity, [identity] * 2], "device_mapping": [0, [1]]},
            ValueError,
            "Each stage must be mapped to an IPU: the concurrent stage 1 has 2",
        ),
        (
            {
                "computational_stages": [identity, [identity] * 2],
                "device_mapping": [0, [1, 0]],
                "pipeline_schedule": PipelineSchedule.Interleaved,
                **TRAIN,
            },
            NotImplementedError,
            "'Interleaved' does not currently support multiple",
        ),
        (
            {"pipeline_schedule": "Grouped"},
            TypeError,
            "is not a member .*PipelineSchedule.Grouped, PipelineSchedule.Inter",
        ),
        ({"recomputation_mode": 1}, TypeError, "is not a member .*one of RecomputationMode.Auto, "),
        ({"infeed_queue": 1}, TypeError, "infeed_queue is not an instance"),
        ({"outfeed_queue": 1}, TypeError, "outfeed_queue is not an instance"),
        ({"repeat_count": "2"}, TypeError, "repeat_count is a string; expected an integer number of iterations"),
        ({"gradient_accumulation_count": 2.0}, TypeError, "gradient_accumulation_count is a float32"),
        (
            {"batch_serialization_iterations": 1.5},
            TypeError,
            "batch_serialization_iterations must be an integer, not 1.5",
        ),
        (
            {"batch_serialization_iterations": 2**30},
            ValueError,
            "gradient_accumulation_count times batch_serialization_iterations must be up to 2147483647, .* 4 times 107",
        ),
        ({"inputs": 3}, TypeError, "inputs must be a list or a tuple of tensors for the first stage, not 3"),
        ({"name": 3}, TypeError, "name must be a string, not 3"),
        ({"device_mapping": 1}, TypeError, "device_mapping argument needs to be a list"),
        ({"device_mapping": [0]}, ValueError, "Each stage must be mapped to an IPU"),
        ({"device_mapping": [0, -2]}, ValueError, "the entry of stage 1 in device_mapping is -2"),
        ({"device_mapping": [0, [1]]}, ValueError, r"the entry of stage 1 in device_mapping is \[1\]"),
        (
            {"device_mapping": [0, 0], "pipeline_schedule": PipelineSchedule.Interleaved, **TRAIN},
            NotImplementedError,
            "'Interleaved' does not currently support multiple",
        ),
        ({"continuous_weight_updates": True}, NotImplementedError, "Continuous weight updates"),
        (
            {"batch_serialization_iterations": 2, "pipeline_schedule": PipelineSchedule.Grouped},
            NotImplementedError,
            "Batch serialization is only supported with the `Sequential` schedule",
        ),
        (
            {"batch_serialization_iterations": 2, "device_mapping": [0, 1]},
            NotImplementedError,
            "When using batch serialization, all the pipeline stages need to be mapped to a single IPU",
        ),
        ({"batch_serialization_iterations": 0}, ValueError, "must be at least 1, not 0"),
        (
            {"batch_serialization_iterations": 2, "reduction_method": "MEAN"},
            ValueError,
            "only supported when reduction_method is SUM",
        ),
        ({"reduction_method": "MEDIAN"}, ValueError, "Cannot parse MEDIAN as one of"),
        ({"outfeed_loss": True}, ValueError, "optimizer_function must be provided when outfeed_loss"),
        ({"outfeed_mask": [True]}, ValueError, "optimizer_function must be provided when outfeed_mask"),
        ({"outfeed_mask": [True], "outfeed_loss": True, **TRAIN}, ValueError, "Only one of `outfeed_loss`"),
        ({"outfeed_mask": [True, False], **TRAIN}, ValueError, "no outfeed_queue has been provided"),
        ({"outfeed_loss": True, **TRAIN}, ValueError, "outfeed_queue must be provided when outfeed_loss"),
        ({"accumulate_outfeed": True}, ValueError, "outfeed_queue must be provided when accumulate_outfeed"),
        ({"forward_propagation_stages_poplar_options": 1}, TypeError, "must be a list or a tuple"),
        ({"forward_propagation_stages_poplar_options": [PipelineStageOptions()]}, ValueError, "of 2 options"),
        ({"backward_propagation_stages_poplar_options": [1, 2]}, TypeError, "Expected all elements"),
        ({"weight_update_poplar_options": 1, **TRAIN}, TypeError, "of type PipelineStageOptions"),
        (
            {"replicated_optimizer_state_sharding": True, "offload_weight_update_variables": False, **TRAIN},
            ValueError,
            "To use replicated_optimizer_state_sharding, optimizer state must be offloaded",
        ),
        (
            {"computational_stages": [lambda x: x, lambda x, y: x], "inputs": [1.0]},
            TypeError,
            r"Pipeline stage 1 cannot be called: `<lambda>`, defined at .*test_pipeline.py:\d+, is given what stage 0 "
            r"returned, arguments: 1. Missing a required argument: 'y'\. Change",
        ),
        (
            {"computational_stages": [lambda: 1.0, identity], "inputs": [1.0]},
            TypeError,
            "Pipeline stage 0 cannot be called: .* is given the pipeline's inputs and infeed, arguments: 1. Too many",
        ),
        ({"inputs": [1.0]}, ValueError, "no outfeed_queue has been provided"),
        ({"inputs": [1.0], "optimizer_function": lambda x: x}, TypeError, "must return a .*OptimizerFunctionOutput"),
        ({"inputs": [1.0], **TRAIN}, ValueError, "No gradients provided|No variables to optimize"),
    ],
)
def test_wrong_arguments(arguments, error, text):
    if "computational_stages" not in arguments:
        arguments = {"computational_stages": TWO, "gradient_accumulation_count": 4, **arguments}
    elif arguments["computational_stages"] is not TWO:
        arguments = {"gradient_accumulation_count": 4, **arguments}
    with pytest.raises(error, match=text):
        compiled(lambda: pipelining_ops.pipeline(**arguments))


def test_numbers_of_numpy_s_are_integers():
    """Each stage works through two mini-batches, so that four times two take the first eight rows."""
    configure(1)
    infeed, outfeed = feeds()

    def model():
        return pipelining_ops.pipeline(
            [lambda x, y: tf.reduce_sum(x), lambda x: 2.0 * x],
            np.int64(4),
            batch_serialization_iterations=np.int64(2),
            infeed_queue=infeed,
            outfeed_queue=outfeed,
        )

    program, dequeued = compiled(model), outfeed.dequeue()
    with v1.Session() as session:
        session.run(infeed.initializer)
        session.run(program)
        np.testing.assert_allclose(session.run(dequeued), 2 * FEATURES[:8].sum(axis=(1, 2)), rtol=1e-5)


def test_a_tensor_from_outside_is_refused():
    _, outfeed = feeds()

    def model():
        outside = tf.random.uniform([2])
        stages = [lambda: outside * 2, lambda x: x]
        return pipelining_ops.pipeline(stages, 4, outfeed_queue=outfeed)

    with pytest.raises(ValueError, match="Trying to capture the tensor .* not a resource"):
        compiled(model)


def test_stage_options():
    assert PipelineStageOptions({"a": "1"}).convolution_options == {"a": "1"}
    for name in ("convolution_options", "matmul_options", "slice_options"):
        with pytest.raises(TypeError, match=f"PipelineStageOptions.{name} must be dictionary"):
            PipelineStageOptions(**{name: 1})


def test_a_loss_that_no_weight_has_to_do_with():
    """The pipeline runs, and the weights stay."""
    configure(2)
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()

    def first(x):
        return x, x * v1.get_variable("weight", initializer=3.0, use_resource=True)

    def program(x):
        return pipelining_ops.pipeline(
            [first, lambda x, y: (x, y + 1.0)],
            gradient_accumulation_count=4,
            inputs=[x],
            outfeed_queue=outfeed,
            outfeed_mask=[True, False],
            optimizer_function=lambda x, y: OptimizerFunctionOutput(v1.train.GradientDescentOptimizer(0.1), x),
        )

    with v1.Session() as session:
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            built = ipu.ipu_compiler.compile(program, [tf.constant(2.0)])
        dequeued = outfeed.dequeue()
        session.run(v1.global_variables_initializer())
        session.run(built)
        np.testing.assert_array_equal(np.ravel(session.run(dequeued)), [7.0] * 4)
        assert session.run(v1.global_variables()) == [3.0]
