"""What an optimizer function may hand to a pipeline: arguments, tapes, captured gradients, and what is refused."""

import numpy as np
import pytest
import tensorflow as tf
from pipelines_by_hand import (
    ELEMENTS,
    GRADIENT_DESCENT,
    configure,
    in_eager_thread,
    keras_descent,
    run,
    variable,
)
from tf_ipu_shim.ipu import ipu_infeed_queue, ipu_outfeed_queue
from tf_ipu_shim.ipu.eager import backprop
from tf_ipu_shim.ipu.ops import grad_util_ops, pipelining_ops
from tf_ipu_shim.ipu.ops.pipelining_ops import OptimizerFunctionOutput

from tf_ipu_shim import ipu

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def two_ipus(graph):
    configure(2)


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

    if form not in ("context", "capture tape"):
        with pytest.raises(RuntimeError, match="may only be used within the context of a GradientCaptureTape"):
            in_eager_thread(train)
        return
    losses, first, second, seen = in_eager_thread(train)
    sums = ELEMENTS.sum((1, 2)).reshape(2, 4)
    one, two, expected, hidden = 0.5, 0.25, [], []
    for row in sums:
        expected.extend(row * one * two)
        hidden.append(4 * two if accumulated else two)
        one, two = one - 0.01 * row.sum() * two, two - 0.01 * row.sum() * one
    np.testing.assert_allclose(np.ravel(losses), expected, rtol=1e-5)
    np.testing.assert_allclose([first, second], [one, two], rtol=1e-5)
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


@pytest.mark.parametrize("listed", [True, False])
def test_an_optimizer_of_tensorflow_1_in_a_strategy(listed):
    """Variables made eagerly are in no collection, so the optimizer finds those that it is given."""

    def train():
        strategy = ipu.ipu_strategy.IPUStrategyV1()
        with strategy.scope():
            first, second, optimizer = tf.Variable(0.5), tf.Variable(0.25), v1.train.MomentumOptimizer(0.01, 0.9)
            infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(ELEMENTS).repeat())
            outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
        variables = {"compute_gradients_kwargs": {"var_list": [first, second]}} if listed else {}

        @tf.function
        def step():
            pipelining_ops.pipeline(
                [lambda x: tf.reduce_sum(x) * first, lambda x: x * second],
                gradient_accumulation_count=4,
                repeat_count=2,
                infeed_queue=infeed,
                outfeed_queue=outfeed,
                optimizer_function=lambda loss: OptimizerFunctionOutput(optimizer, loss, **variables),
            )

        strategy.run(step)
        return first.numpy(), second.numpy()

    if not listed:
        with pytest.raises(ValueError, match=r"No variables to optimize\. The MomentumOptimizer .* Pass .*var_list"):
            in_eager_thread(train)
        return
    first, second, momenta = 0.5, 0.25, np.zeros(2)
    for total in ELEMENTS.sum((1, 2)).reshape(2, 4).sum(1):
        momenta = 0.9 * momenta + total * np.array([second, first])
        first, second = np.array([first, second]) - 0.01 * momenta
    np.testing.assert_allclose(in_eager_thread(train), [first, second], rtol=1e-5)
