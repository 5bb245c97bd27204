"""Optimizers of `tf.compat.v1.train`, bare and wrapped, against the same training on the CPU."""

import harness
import numpy as np
import pytest
import tensorflow as tf
from optimizer_runs import (
    CONTROL,
    FEATURES,
    FIRST,
    OPTIMIZERS,
    SECOND,
    TARGETS,
    assert_same,
    by_hand,
    model,
    random,
    session,
    train,
)
from slow_cases import slowly
from tf_ipu_shim.ipu import ipu_compiler, ipu_infeed_queue, loops, optimizers, scopes

from tf_ipu_shim import ipu
from tf_ipu_shim.api.ipu.keras.optimizers import ipu_wrappers

v1 = tf.compat.v1
pytestmark = [pytest.mark.usefixtures("mostly_in_a_graph"), pytest.mark.one_version]


# `test_accumulated` runs each of them too.
@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_bare(name):
    assert_same(train(OPTIMIZERS[name], iterations=3), by_hand(OPTIMIZERS[name], updates=3, batches=1))


@pytest.mark.ci_cases(6)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_accumulated(name):
    def wrapped():
        return optimizers.GradientAccumulationOptimizerV2(OPTIMIZERS[name](), 4)

    assert_same(train(wrapped), by_hand(OPTIMIZERS[name]))


@pytest.mark.ci_cases(3)
@pytest.mark.parametrize("method", ["MEAN", "running_mean", optimizers.GradientAccumulationReductionMethod.MEAN])
@pytest.mark.parametrize("optimizer", CONTROL)
def test_reduction_methods(optimizer, method):
    def wrapped():
        return optimizers.GradientAccumulationOptimizerV2(optimizer(), 4, dtype=tf.float32, reduction_method=method)

    assert_same(train(wrapped), by_hand(optimizer, mean=True))


@pytest.mark.parametrize("optimizer", CONTROL)
def test_first_form(optimizer):
    assert_same(train(lambda: optimizers.GradientAccumulationOptimizer(optimizer(), 4)), by_hand(optimizer))


@pytest.mark.parametrize("optimizer", CONTROL)
def test_on_two_ipus_over_two_runs(optimizer):
    def wrapped():
        inner = optimizers.ShardedOptimizer(optimizer())
        return optimizers.GradientAccumulationOptimizerV2(inner, 4)

    assert_same(train(wrapped, runs=2, shards=2), by_hand(optimizer, updates=4))


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_keras_optimizers_in_a_wrapper_of_tensorflow_1(momentum):
    """What Graphcore's own tests of SDK 2.4 and 2.5 train by; steps are counted in the script's counter."""

    def wrapped():
        keras = tf.keras.optimizers.legacy.SGD(0.1, momentum=momentum)
        wrapper = ipu_wrappers._KerasOptimizerWrapper(None, keras)
        return optimizers.GradientAccumulationOptimizerV2(wrapper, 4)

    trained = train(wrapped)
    expected = by_hand(lambda: v1.train.MomentumOptimizer(0.1, momentum))
    for name in ("first", "second", "global_step"):
        harness.assert_close(trained[name], expected[name], what=name)


def test_one_mini_batch_is_the_bare_optimizer():
    def wrapped():
        return optimizers.GradientAccumulationOptimizerV2(CONTROL[1](), 1)

    assert_same(train(wrapped, iterations=3), by_hand(CONTROL[1], updates=3, batches=1))


def test_accumulators_of_another_type():
    """Sums of float16 accumulators lose what lies below their resolution."""
    seen = []

    def dtype(variable):
        seen.append(variable.shape.as_list())
        return tf.float16

    def wrapped():
        optimizer = v1.train.GradientDescentOptimizer(1.0)
        return optimizers.GradientAccumulationOptimizerV2(optimizer, 4, dtype=dtype)

    weights = train(wrapped, iterations=4)
    assert seen == [[3, 3], [3, 2]]
    exact = by_hand(lambda: v1.train.GradientDescentOptimizer(1.0), updates=1)
    for name, before in (("first", FIRST), ("second", SECOND)):
        np.testing.assert_allclose(weights[name], exact[name], 0, 5e-3)
        assert np.abs(weights[name] - exact[name]).max() > 1e-6
        moved = (before - weights[name]).astype("f")
        np.testing.assert_allclose(moved, moved.astype(np.float16), 0, 1e-7)


def test_an_update_of_ones_own_gets_the_accumulators_type():
    """TensorFlow's optimizers want their variables' type; a script's own class may keep what it accumulated in."""
    seen = []

    class Own(v1.train.Optimizer):
        def __init__(self):
            super().__init__(False, "Own")

        def apply_gradients(self, grads_and_vars, global_step=None, name=None):
            pairs = list(grads_and_vars)
            seen.extend(gradient.dtype for gradient, _ in pairs)
            return tf.group(*[variable.assign_sub(tf.cast(gradient, tf.float32)) for gradient, variable in pairs])

    weights = train(lambda: optimizers.GradientAccumulationOptimizerV2(Own(), 4, dtype=tf.float16), iterations=4)
    assert seen == [tf.float16, tf.float16]
    exact = by_hand(lambda: v1.train.GradientDescentOptimizer(1.0), updates=1)
    for name in ("first", "second"):
        np.testing.assert_allclose(weights[name], exact[name], 0, 5e-3)


def test_gradients_begin_anew_in_every_loop():
    """A loop whose count is not known when it is built leaves gradients behind, which belong to no other run."""
    harness.configure()
    queue = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices((FEATURES, TARGETS)).repeat())
    with tf.device(harness.CPU):
        times = v1.placeholder(tf.int32, [])

    def net(n):
        optimizer = optimizers.GradientAccumulationOptimizerV2(v1.train.GradientDescentOptimizer(0.1), 2)
        return loops.repeat(n, lambda x, y: optimizer.minimize(model(x, y)), [], queue)

    with scopes.ipu_scope(harness.IPU):
        program = ipu_compiler.compile(net, [times])
    with v1.Session() as running:
        running.run(v1.global_variables_initializer())
        running.run(queue.initializer)
        running.run(program, {times: 1})
        before = running.run(v1.trainable_variables())
        running.run(program, {times: 1})
        for one, other in zip(before, running.run(v1.trainable_variables())):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("optimizer", CONTROL)
@pytest.mark.parametrize("shards", [slowly(1), 2])
def test_replicas_average(optimizer, shards):
    """Each replica takes a batch of its own; all apply the same gradient."""

    def wrapped():
        return optimizers.CrossReplicaOptimizer(optimizer())

    actual = train(wrapped, iterations=3, shards=shards, replicas=2)
    assert_same(actual, by_hand(optimizer, updates=3, batches=2, mean=True))


@pytest.mark.parametrize("optimizer", CONTROL)
@pytest.mark.parametrize(
    ("wrapper", "options", "count"),
    [
        slowly(optimizers.CrossReplicaGradientAccumulationOptimizer, {}, 1),
        (optimizers.CrossReplicaGradientAccumulationOptimizerV2, {}, 1),
        (optimizers.CrossReplicaGradientAccumulationOptimizerV2, {"reduction_method": "mean"}, 4),
    ],
)
def test_replicas_accumulate_and_average(wrapper, options, count, optimizer):
    """The gradients of four batches are reduced on each of two replicas, then averaged."""
    actual = train(lambda: wrapper(optimizer(), 4, **options), replicas=2)

    def reduce(gradient, variable):
        return gradient / 2 / count

    assert_same(actual, by_hand(optimizer, updates=2, batches=8, change=reduce))


@pytest.mark.parametrize("optimizer", CONTROL)
def test_one_replica_is_its_own_average(optimizer):
    def wrapped():
        return optimizers.CrossReplicaOptimizer(optimizer())

    assert_same(train(wrapped, iterations=3), by_hand(optimizer, updates=3, batches=1))

    def accumulated():
        return optimizers.CrossReplicaGradientAccumulationOptimizerV2(optimizer(), 4)

    with tf.Graph().as_default():
        assert_same(train(accumulated), by_hand(optimizer))


def test_loops_in_loops():
    def wrapped():
        return optimizers.GradientAccumulationOptimizerV2(CONTROL[0](), 4)

    def outer(queue):
        return lambda: loops.repeat(2, lambda: loops.repeat(4, body, [], queue), [])

    def body(x, y):
        return wrapped().minimize(model(x, y), global_step=v1.train.get_or_create_global_step())

    harness.configure()
    queue = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices((FEATURES, TARGETS)).repeat())
    with scopes.ipu_scope(harness.IPU):
        program = ipu_compiler.compile(outer(queue))
    assert_same(session(program, queue, 1), by_hand(CONTROL[0]))


def test_learning_rate_that_changes():
    def decayed():
        step = v1.train.get_or_create_global_step()
        return v1.train.GradientDescentOptimizer(v1.train.exponential_decay(0.1, step, 1, 0.5))

    assert_same(train(lambda: optimizers.GradientAccumulationOptimizerV2(decayed(), 4)), by_hand(decayed))


def test_map_gradient():
    def decay(gradient, variable):
        return gradient + 0.1 * variable

    def wrapped():
        return optimizers.MapGradientOptimizer(CONTROL[0](), decay)

    assert_same(train(wrapped, iterations=3), by_hand(CONTROL[0], updates=3, batches=1, change=decay))


def test_embedding_gradients():
    ids = np.array([[0, 2, 2], [4, 2, 0], [1, 1, 1], [3, 4, 0]], np.int32)
    table = random.rand(5, 2).astype("f")

    def loss(chosen):
        weights = v1.get_variable("table", table.shape, initializer=v1.constant_initializer(table), use_resource=True)
        return tf.reduce_sum(tf.square(tf.nn.embedding_lookup(weights, chosen)))

    harness.configure()
    queue = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(ids).repeat())
    with scopes.ipu_scope(harness.IPU):
        optimizer = optimizers.GradientAccumulationOptimizerV2(v1.train.GradientDescentOptimizer(0.1), 4)
        program = ipu_compiler.compile(lambda: loops.repeat(4, lambda i: optimizer.minimize(loss(i)), [], queue))
    gradient = np.zeros_like(table)
    np.add.at(gradient, ids.ravel(), 2 * table[ids.ravel()])
    np.testing.assert_allclose(session(program, queue, 1)["table"], table - 0.1 * gradient, 1e-5)


def test_checkpoints_hold_the_model_alone():
    wrapped = optimizers.GradientAccumulationOptimizerV2(CONTROL[0](), 2)
    names = sorted(train(lambda: wrapped, iterations=2))
    assert names == ["first", "first/Momentum", "global_step", "second", "second/Momentum"]
    assert sorted(wrapped.get_slot_names()) == ["momentum"]
    assert {variable.op.name for variable in wrapped.variables()} == {"first/Momentum", "second/Momentum"}
    assert wrapped.get_name() == "Momentum"


def test_iterations_have_to_be_a_multiple():
    with pytest.raises(tf.errors.FailedPreconditionError, match="with 4 number of mini batches inside a loop with 10"):
        train(lambda: optimizers.GradientAccumulationOptimizerV2(CONTROL[0](), 4), iterations=10)


def test_in_a_function_without_a_loop_of_ours(eager):
    """The accumulators are variables then, and live from call to call."""
    results = {}
    for where in (harness.CPU, harness.IPU):
        with tf.device(where):
            weight = tf.Variable([1.0, 2.0])
        optimizer = v1.train.MomentumOptimizer(0.1, 0.9)
        if where == harness.IPU:
            optimizer = optimizers.GradientAccumulationOptimizerV2(optimizer, 2)

        @tf.function(jit_compile=where == harness.IPU, autograph=False)
        def step(x, optimizer=optimizer, weight=weight):
            optimizer.apply_gradients([(x * weight, weight)])

        inputs = [[1.0, 2.0], [3.0, 4.0]] * 2 if where == harness.IPU else [[4.0, 6.0]] * 2
        with tf.device(where):
            for x in inputs:
                step(tf.constant(x))
        results[where] = weight.numpy()
    np.testing.assert_allclose(results[harness.IPU], results[harness.CPU], 1e-6, 1e-6)


def test_without_a_function(eager):
    weight = tf.Variable([1.0, 2.0])
    optimizer = optimizers.GradientAccumulationOptimizerV2(v1.train.GradientDescentOptimizer(0.5), 2)
    seen = []
    for gradient in ([1.0, 0.0], [2.0, 1.0], [1.0, 1.0], [1.0, 1.0]):
        optimizer.apply_gradients([(tf.constant(gradient), weight)])
        seen.append(weight.numpy().tolist())
    assert seen == [[1, 2], [-0.5, 1.5], [-0.5, 1.5], [-1.5, 0.5]]


@pytest.mark.parametrize(
    "wrapper",
    [
        optimizers.GradientAccumulationOptimizer,
        optimizers.GradientAccumulationOptimizerV2,
        optimizers.CrossReplicaGradientAccumulationOptimizer,
        optimizers.CrossReplicaGradientAccumulationOptimizerV2,
    ],
)
def test_accumulating_optimizers_check(wrapper):
    with pytest.raises(ValueError, match="num_mini_batches must be a positive number"):
        wrapper(CONTROL[0](), 0)
    with pytest.raises(ValueError, match="num_mini_batches must be a positive number. It is 2.5"):
        wrapper(CONTROL[0](), 2.5)
    with pytest.raises(TypeError, match="wraps a tf.compat.v1.train.Optimizer and was given 'adam'"):
        wrapper("adam", 2)


def test_wrong_options_are_refused():
    wrap = optimizers.GradientAccumulationOptimizerV2
    with pytest.raises(ValueError, match="To use replicated_optimizer_state_sharding, optimizer state must be"):
        wrap(CONTROL[0](), 2, offload_weight_update_variables=False, replicated_optimizer_state_sharding=True)
    with pytest.raises(ValueError, match="Cannot parse"):
        wrap(CONTROL[0](), 2, reduction_method="median")
    with pytest.raises(TypeError, match="num_mini_batches must be a positive number, not '2'"):
        wrap(CONTROL[0](), "2")
    for name in ("offload_weight_update_variables", "replicated_optimizer_state_sharding"):
        with pytest.raises(TypeError, match=f"{name} must be True or False, not 'no'"):
            wrap(CONTROL[0](), 2, **{name: "no"})
    with pytest.raises(ValueError, match=r"Should use optimizer in keras.ipu.optimizers \(in the"):
        optimizers.CrossReplicaOptimizer(tf.keras.optimizers.legacy.SGD(0.1))
    with pytest.raises(TypeError, match="a function of a gradient and its variable, not 0.5"):
        optimizers.MapGradientOptimizer(CONTROL[0](), 0.5)
    with tf.Graph().as_default(), pytest.raises(ValueError, match="cannot be accumulated in int32"):
        wrap(CONTROL[0](), 2, dtype=tf.int32).minimize(tf.square(v1.get_variable("w", initializer=2.0)))


def test_names_of_all_sdks():
    from tensorflow.python import ipu as graphcore

    assert graphcore.gradient_accumulation_optimizer.GradientAccumulationOptimizerV2 is (
        optimizers.GradientAccumulationOptimizerV2
    )
    assert graphcore.optimizers.cross_replica_optimizer is graphcore.cross_replica_optimizer
    assert graphcore.sharded_optimizer.ShardedOptimizer is optimizers.ShardedOptimizer


@pytest.mark.parametrize("scales, expected", [((), 14.0), ((0.5, 3.0), 31.5)])
def test_gradients_summed_by_a_loop(scales, expected):
    """The gradient of x * w is x. With scales ((0 + 3 * 2) / 2 + 3 * 4) / 2 + 3 * 8. Each run begins anew."""

    def body(_, x):
        weight = v1.get_variable("w", [], tf.float16, v1.ones_initializer(), use_resource=True)
        sgd = v1.train.GradientDescentOptimizer(0.1)
        pairs = [*sgd.compute_gradients(tf.cast(x, tf.float16) * weight), (None, weight)]
        (total, trained), nothing = ipu.ops.op_util.accumulate_gradients(pairs, tf.float32, *scales)
        assert total.dtype == tf.float32 and trained is weight and nothing == (None, weight)
        return total

    with tf.Graph().as_default():
        queue = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices([2.0, 4.0, 8.0]).repeat())
        with scopes.ipu_scope("/device:IPU:0"):
            result = ipu_compiler.compile(lambda: loops.repeat(3, body, [0.0], queue), [])
        harness.configure(1)
        with v1.Session() as session:
            session.run([v1.global_variables_initializer(), queue.initializer])
            for _ in range(2):
                assert session.run(result) == [expected]


def test_gradients_summed_outside_a_loop():
    """In the type of each variable; the sums grow from run to run."""
    with tf.Graph().as_default():
        weights = [
            v1.get_variable(f"w{index}", initializer=tf.ones([2], kind), use_resource=True)
            for index, kind in enumerate([tf.float16, tf.float32])
        ]
        loss = sum(tf.reduce_sum(tf.cast(weight, tf.float32) * 3.0) for weight in weights)
        pairs = v1.train.GradientDescentOptimizer(0.1).compute_gradients(loss)
        summed = ipu.ops.op_util.accumulate_gradients(pairs, None)
        assert [total.dtype for total, _ in summed] == [tf.float16, tf.float32]
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            for run in (1, 2):
                for total in session.run([total for total, _ in summed]):
                    np.testing.assert_array_equal(total, [3.0 * run] * 2)
