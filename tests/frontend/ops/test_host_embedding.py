"""Host embeddings: training with tables on the host against the same training in NumPy."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from tf_ipu_shim.ipu import ipu_compiler, loops, scopes
from tf_ipu_shim.ipu.ops import embedding_ops
from tf_ipu_shim.poplar.ops import gen_pop_datastream_ops

from tf_ipu_shim import ipu

v1 = tf.compat.v1
TABLE = np.arange(12, dtype=np.float32).reshape(6, 2) / 8
IDS = np.array([[1, 4, 1], [5, 0, 9]], np.int32)  # 9 is beyond the table: clipped to 5
W = np.array([[2.0], [-1.0]], np.float32)


@pytest.fixture(autouse=True)
def _one_ipu():
    configure()


def make_table(spec, strategy="TOKEN"):
    return embedding_ops.create_host_embedding(
        "table", TABLE.shape, tf.float32, strategy, spec, v1.constant_initializer(TABLE)
    )


def test_a_tensor_is_an_initializer():
    with tf.Graph().as_default(), v1.Session() as session:
        table = embedding_ops.create_host_embedding("made", TABLE.shape, tf.float32, initializer=tf.constant(TABLE))
        session.run(v1.global_variables_initializer())
        np.testing.assert_array_equal(session.run(table.get_embedding_tensor()), TABLE)
        with pytest.raises(ValueError, match="initializer has the shape .*; expected "):
            embedding_ops.create_host_embedding("other", TABLE.T.shape, tf.float32, initializer=TABLE)


def in_numpy(steps, rate, weight_rate=0.1, every=1):
    """The loss is half the sum of squares of (rows . w); the table moves after each `every` gradients."""
    table, w, losses, held = TABLE.copy(), W.copy(), [], np.zeros_like(TABLE)
    ids = np.minimum(IDS, 5)
    for step in range(1, steps + 1):
        rows = table[ids]
        y = rows @ w
        losses.append(0.5 * np.sum(y**2))
        np.add.at(held, ids, y * w[:, 0])
        w = w - weight_rate * np.einsum("abi,abo->io", rows, y)
        if step % every == 0:
            table, held = table - rate * held, np.zeros_like(held)
    return losses, table, w


def train(table, steps, looped=True):
    """Losses, the table and the weights after training in a compiled TensorFlow 1 program."""

    def step(total, ids):
        w = v1.get_variable("w", initializer=W, use_resource=True)
        loss = 0.5 * tf.reduce_sum((table.lookup(ids) @ w) ** 2)
        with tf.control_dependencies([v1.train.GradientDescentOptimizer(0.1).minimize(loss)]):
            return total + loss, tf.identity(ids)

    with tf.device("/device:CPU:0"):
        ids = v1.placeholder(tf.int32, IDS.shape)

    def program(ids):
        if looped:
            return loops.repeat(steps, step, [0.0, ids])
        return step(0.0, ids)

    with scopes.ipu_scope(IPU):
        compiled = ipu_compiler.compile(program, [ids])
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        with table.register(session):
            totals = [session.run(compiled, {ids: IDS})[0] for _ in range(1 if looped else steps)]
        w = next(variable for variable in v1.global_variables() if variable.op.name == "w")
        return totals, *session.run([table.get_embedding_tensor(), w])


@pytest.mark.parametrize("strategy", ["TOKEN", "ENCODING"])
@pytest.mark.parametrize("looped", [True, False])
def test_training(strategy, looped):
    with tf.Graph().as_default():
        totals, table, w = train(make_table(ipu.embedding_ops.HostEmbeddingOptimizerSpec(0.05), strategy), 4, looped)
    losses, expected, expected_w = in_numpy(4, 0.05)
    np.testing.assert_allclose(totals, [sum(losses)] if looped else losses, rtol=1e-5)
    np.testing.assert_allclose(table, expected, rtol=1e-5)
    np.testing.assert_allclose(w, expected_w, rtol=1e-5)


def test_accumulated_updates():
    spec = embedding_ops.HostEmbeddingSGDGAOptimizerSpec(0.05, accumulation_factor=2)
    assert (spec.get_learning_rate(), spec.get_accumulation_factor()) == (0.05, 2)
    with tf.Graph().as_default():
        totals, table, w = train(make_table(spec), 5)
    losses, expected, expected_w = in_numpy(5, 0.05, every=2)
    np.testing.assert_allclose(totals, [sum(losses)], rtol=1e-5)
    np.testing.assert_allclose(table, expected, rtol=1e-5)
    np.testing.assert_allclose(w, expected_w, rtol=1e-5)


def test_a_table_that_is_only_read():
    with tf.Graph().as_default():
        table = make_table(None)
        totals, after, w = train(table, 2)
    assert np.array_equal(after, TABLE)
    np.testing.assert_allclose(totals, [sum(in_numpy(2, 0.0)[0])], rtol=1e-5)


def test_pipelined_lookup():
    """The table in the first of two stages; each batch's gradient comes back to the same rows once."""
    spec = embedding_ops.HostEmbeddingOptimizerSpec(0.01)
    configure(2)
    count = 4
    with tf.Graph().as_default():
        table = make_table(spec)
        data = tf.data.Dataset.from_tensors(IDS).repeat()
        infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(data)
        outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

        def first(ids):
            return table.lookup(ids)

        def second(rows):
            w = v1.get_variable("w", initializer=W, use_resource=True)
            return 0.5 * tf.reduce_sum((rows @ w) ** 2)

        def optimizer(loss):
            return ipu.pipelining_ops.OptimizerFunctionOutput(v1.train.GradientDescentOptimizer(0.0), loss)

        def program():
            return ipu.pipelining_ops.pipeline(
                [first, second],
                gradient_accumulation_count=count,
                infeed_queue=infeed,
                outfeed_queue=outfeed,
                optimizer_function=optimizer,
                pipeline_schedule=ipu.pipelining_ops.PipelineSchedule.Sequential,
                reduction_method="sum",
            )

        with scopes.ipu_scope(IPU):
            compiled = ipu_compiler.compile(program, [])
        dequeue = outfeed.dequeue()
        with v1.Session() as session:
            session.run([v1.global_variables_initializer(), infeed.initializer])
            with table.register(session):
                session.run(compiled)
            losses, after = session.run([dequeue, table.get_embedding_tensor()])
    expected_losses, expected, _ = in_numpy(count, 0.01, weight_rate=0.0)
    np.testing.assert_allclose(np.ravel(losses[0] if isinstance(losses, list) else losses), expected_losses, rtol=1e-5)
    np.testing.assert_allclose(after, expected, rtol=1e-5)


@pytest.mark.parametrize(("replicas", "every"), [(2, 1), (4, 1), (2, 2)])
def test_replicas_share_a_table(replicas, every):
    """All look up rows before one updates them; each replica has its own samples, some in the same rows."""
    configure(replicas)
    ids = np.array([[number % 6, number % 4] for number in range(16)], np.int32)
    spec = embedding_ops.HostEmbeddingOptimizerSpec(0.05)
    if every > 1:
        spec = embedding_ops.HostEmbeddingSGDGAOptimizerSpec(0.05, every)
    with tf.Graph().as_default(), v1.Session() as session:
        table = make_table(spec)
        infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(ids))
        outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

        def step(index):
            rows = table.lookup(index)
            loss = 0.5 * tf.reduce_sum(rows * rows)
            return v1.train.GradientDescentOptimizer(0.0).minimize(loss), outfeed.enqueue(rows)

        with scopes.ipu_scope(IPU):
            compiled = ipu_compiler.compile(lambda: loops.repeat(16 // replicas, step, [], infeed), [])
        found = outfeed.dequeue()
        session.run([v1.global_variables_initializer(), infeed.initializer])
        with table.register(session):
            session.run(compiled)
        rows, after = session.run([found, table.get_embedding_tensor()])
    expected, held, looked_up = TABLE.copy(), np.zeros_like(TABLE), []
    for number, together in enumerate(ids.reshape(-1, replicas, 2), 1):
        looked_up.append(expected[together])
        np.add.at(held, together, expected[together])
        if number % every == 0:
            expected, held = expected - 0.05 * held, np.zeros_like(held)
    np.testing.assert_allclose(np.reshape(rows, [-1, replicas, 2, 2]), looked_up, rtol=1e-5)
    np.testing.assert_allclose(after, expected, rtol=1e-5)


@pytest.mark.parametrize(("every", "replicas"), [(1, 1), (2, 1), (2, 2)])
def test_training_in_a_compiled_function(every, replicas):
    """Each replica has the same samples, and so adds the same gradients."""
    configure(replicas)
    specs = {1: embedding_ops.HostEmbeddingOptimizerSpec, 2: embedding_ops.HostEmbeddingSGDGAOptimizerSpec}
    table = make_table(specs[every](0.05, *([2] if every == 2 else [])))
    with tf.device(IPU):
        w = tf.Variable(W)

    def step(ids):
        with tf.GradientTape() as tape:
            loss = 0.5 * tf.reduce_sum((table.lookup(ids) @ w) ** 2)
        variables = tape.watched_variables()
        assert len(variables) == 2
        for variable, gradient in zip(variables, tape.gradient(loss, variables)):
            variable.assign_sub(0.1 * gradient)
        return loss

    @tf.function(autograph=False)
    def compiled(ids):
        with scopes.ipu_scope(IPU):
            return ipu_compiler.compile(step, [ids])

    with table.register():
        found = [compiled(tf.constant(IDS))[0].numpy() for _ in range(3)]
    losses, expected, expected_w = in_numpy(3, 0.05 * replicas, every=every)
    np.testing.assert_allclose(found, losses, rtol=1e-5)
    np.testing.assert_allclose(table.get_embedding_tensor(), expected, rtol=1e-5)
    np.testing.assert_allclose(w, expected_w, rtol=1e-5)


def test_eager_lookup_and_update():
    table = make_table(embedding_ops.HostEmbeddingOptimizerSpec(0.5))
    with table.register(), tf.GradientTape() as tape:
        rows = table.lookup([2, 2])
        loss = tf.reduce_sum(rows)
    np.testing.assert_array_equal(rows, TABLE[[2, 2]])
    assert [gradient.numpy() for gradient in tape.gradient(loss, tape.watched_variables())] == [0.0]
    expected = TABLE.copy()
    expected[2] -= 1.0
    np.testing.assert_array_equal(table.get_embedding_tensor(), expected)


def test_arguments_are_checked():
    variable = tf.Variable(TABLE)
    with pytest.raises(ValueError, match="HostEmbedding embedding_tensor is not a tensorflow tensor"):
        embedding_ops.HostEmbedding("t", [1.0])
    with pytest.raises(ValueError, match="HostEmbedding optimizer_spec is not a HostEmbeddingOptimizerSpec or"):
        embedding_ops.HostEmbedding("t", variable, optimizer_spec="SGD")
    with pytest.raises(ValueError, match="Unknown partition strategy"):
        embedding_ops.HostEmbedding("t", variable, partition_strategy="ROWS")
    with pytest.raises(ValueError, match=r"shape \[6\]: expected \[tokens, encoding\]"):
        embedding_ops.create_host_embedding("t", [6], tf.float32)
    with pytest.raises(ValueError, match="type string; expected float16 or float32"):
        embedding_ops.create_host_embedding("t", [6, 2], tf.string)
    for rate in ("0.1", None, True):
        with pytest.raises(TypeError, match="learning_rate of a host embedding's optimizer must be a number"):
            embedding_ops.HostEmbeddingOptimizerSpec(rate)
    with pytest.raises(TypeError, match="accumulation_factor must be an integer, not 1.5"):
        embedding_ops.HostEmbeddingSGDGAOptimizerSpec(0.1, 1.5)
    with pytest.raises(ValueError, match="accumulation_factor must be at least 1, but -2 was given"):
        embedding_ops.HostEmbeddingSGDGAOptimizerSpec(0.1, -2)
    table = embedding_ops.HostEmbedding("t", variable)
    with pytest.raises(NotImplementedError, match="HostEmbedding.__call__ is not supported. Please use the"):
        table()
    with tf.Graph().as_default(), pytest.raises(ValueError, match="HostEmbedding.register requires a session when"):
        with table.register():
            pass


def test_ops_know_tables_by_their_ids():
    ops = gen_pop_datastream_ops
    ids = np.int32([1, 4, 1])
    with tf.Graph().as_default(), v1.Session() as session:
        table = make_table(None)
        dummy = v1.get_variable("dummy", [], tf.float32, v1.zeros_initializer(), use_resource=True)

        def step():
            rows = ops.ipu_device_embedding_lookup_trainable(dummy, ids, "table", TABLE.shape, "SGD", 0.5)
            (moved,) = v1.gradients(tf.reduce_sum(rows * rows), [dummy])
            with tf.control_dependencies([moved]):
                added = ops.ipu_device_embedding_update_add(rows, tf.ones([1, 2]), [0], "table", TABLE.shape)
            with tf.control_dependencies([added, ops.ipu_device_embedding_notify("table")]):
                return ops.ipu_device_embedding_lookup(ids, "table", TABLE.shape, tf.float32) * 2.0

        with scopes.ipu_scope(IPU):
            (rows,) = ipu_compiler.compile(step, [])
        session.run(v1.global_variables_initializer())
        expected = TABLE.copy()
        np.add.at(expected, ids, -0.5 * 2 * TABLE[ids])
        expected[0] += 1
        np.testing.assert_allclose(session.run(rows), 2 * expected[ids], rtol=1e-6)
        np.testing.assert_allclose(session.run(table.get_embedding_tensor()), expected, rtol=1e-6)


def test_variables_registered_by_an_id():
    ops, table = gen_pop_datastream_ops, tf.Variable(TABLE)
    np.testing.assert_array_equal(ops.ipu_host_embedding_register(table, "mine"), TABLE)
    np.testing.assert_array_equal(ops.ipu_device_embedding_lookup([2], "mine", [6, 2], tf.float32), TABLE[[2]])
    with pytest.raises(ValueError, match=r"is float32 of the shape \(6, 2\), and the op was given float16"):
        ops.ipu_device_embedding_lookup([2], "mine", [6, 2], tf.float16)
    np.testing.assert_array_equal(ops.ipu_host_embedding_deregister(table, "mine"), TABLE)
    with pytest.raises(ValueError, match="There is no host embedding 'mine'"):
        ops.ipu_device_embedding_notify("mine")
    with pytest.raises(ValueError, match="expected 'SGD'"):
        ops.ipu_host_embedding_register(table, "mine", 0, "Adam")
    with pytest.raises(ValueError, match="expected a resource variable"):
        ops.ipu_host_embedding_register(tf.ones([2, 2]), "mine")


def test_a_table_outlives_the_graph_that_named_it():
    ops = gen_pop_datastream_ops

    def step():
        return ops.ipu_device_embedding_lookup([1], "two", TABLE.shape, tf.float32)

    def lookup():
        with scopes.ipu_scope(IPU):
            return ipu_compiler.compile(step, [])

    before = tf.Graph()
    with before.as_default():
        lookup()
    with tf.Graph().as_default(), v1.Session() as session:
        (rows,) = lookup()
        del before
        gc.collect()
        table = v1.get_variable("table", initializer=tf.constant(TABLE), use_resource=True)
        session.run(v1.global_variables_initializer())
        session.run(ops.ipu_host_embedding_register(table, "two"))
        np.testing.assert_array_equal(session.run(rows), TABLE[[1]])
        session.run(ops.ipu_host_embedding_deregister(table, "two"))


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("optimizer", ["SGD", "SGD+GA"])
def test_tables_registered_after_the_program_is_built(optimizer, use_resource):
    ops = gen_pop_datastream_ops
    ids = np.int32([1, 4, 1])
    with tf.Graph().as_default(), v1.Session() as session:

        def step():
            rows = ops.ipu_device_embedding_lookup(ids, "later", TABLE.shape, tf.float32)
            added = ops.ipu_device_embedding_update_add(rows, rows, ids, "later", TABLE.shape)
            with tf.control_dependencies([added]):
                between = ops.ipu_device_embedding_lookup(ids, "later", TABLE.shape, tf.float32)
            with tf.control_dependencies([between]):
                told = ops.ipu_device_embedding_notify("later")
            with tf.control_dependencies([told]):
                after = ops.ipu_device_embedding_lookup(ids, "later", TABLE.shape, tf.float32)
            return rows, between, after

        with scopes.ipu_scope(IPU):
            run = ipu_compiler.compile(step, [])
        with tf.device("cpu"):
            table = v1.get_variable("table", initializer=tf.constant(TABLE), use_resource=use_resource)
        session.run(v1.global_variables_initializer())
        with pytest.raises(tf.errors.NotFoundError, match="host_embedding/later/table"):
            session.run(run)
        np.testing.assert_array_equal(
            session.run(ops.ipu_host_embedding_register(table, "later", optimizer=optimizer)), TABLE
        )
        new = TABLE.copy()
        np.add.at(new, ids, TABLE[ids])
        rows, between, after = session.run(run)
        np.testing.assert_array_equal(rows, TABLE[ids])
        np.testing.assert_array_equal(between, (new if optimizer == "SGD" else TABLE)[ids])
        np.testing.assert_array_equal(after, new[ids])
        np.testing.assert_array_equal(session.run(ops.ipu_host_embedding_deregister(table, "later")), new)
        np.testing.assert_array_equal(session.run(table), new)
        with pytest.raises(tf.errors.NotFoundError, match="host_embedding/later/table"):
            session.run(run)
        with pytest.raises(ValueError, match=r"'later' is float32 of the shape \(6, 2\), and the op was given float16"):
            ops.ipu_device_embedding_lookup([2], "later", [6, 2], tf.float16)


def test_a_program_of_only_lookups_returns_zeros_if_nothing_runs():
    ops = gen_pop_datastream_ops
    with tf.Graph().as_default(), v1.Session() as session:
        configuration = ipu.config.IPUConfig()
        configuration.auto_select_ipus = 1
        configuration.device_connection.type = ipu.config.DeviceConnectionType.PRE_COMPILE
        configuration.device_connection.version = "ipu2"
        configuration.configure_ipu_system()

        def step(indices):
            rows = ops.ipu_device_embedding_lookup(indices, "compiled", TABLE.shape, tf.float32)
            ops.ipu_device_embedding_update_add(rows, rows, indices, "compiled", TABLE.shape)
            ops.ipu_device_embedding_notify("compiled")
            return rows

        with tf.device("cpu"):
            table = v1.get_variable("table", initializer=tf.constant(TABLE), use_resource=False)
        with scopes.ipu_scope(IPU):
            (rows,) = ipu_compiler.compile(step, [tf.constant([1, 2, 2])])
        session.run(v1.global_variables_initializer())
        session.run(ops.ipu_host_embedding_register(table, "compiled"))
        np.testing.assert_array_equal(session.run(rows), np.zeros([3, 2]))
        np.testing.assert_array_equal(session.run(ops.ipu_host_embedding_deregister(table, "compiled")), TABLE)


def test_what_a_program_does_with_a_table_and_no_result_needs():
    ops = gen_pop_datastream_ops
    with tf.Graph().as_default(), v1.Session() as session:

        def step():
            rows = ops.ipu_device_embedding_lookup([1, 1], "unneeded", TABLE.shape, tf.float32)
            ops.ipu_device_embedding_update_add(rows, rows, [1, 1], "unneeded", TABLE.shape)
            ops.ipu_device_embedding_notify("unneeded")
            return rows

        with scopes.ipu_scope(IPU):
            (rows,) = ipu_compiler.compile(step, [])
        with tf.device("cpu"):
            table = v1.get_variable("table", initializer=tf.constant(TABLE), use_resource=False)
        session.run(v1.global_variables_initializer())
        session.run(ops.ipu_host_embedding_register(table, "unneeded", optimizer="SGD+GA"))
        np.testing.assert_array_equal(session.run(rows), TABLE[[1, 1]])
        session.run(ops.ipu_host_embedding_deregister(table, "unneeded"))
        np.testing.assert_array_equal(session.run(table)[1], 3 * TABLE[1])


@pytest.mark.parametrize("execution_mode", ["xla", "kernels"])
def test_lookups_that_wait_by_their_indices(execution_mode, monkeypatch):
    """TensorFlow has the constant alone wait for the update, and the lookup for the constant."""
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", execution_mode)
    ops = gen_pop_datastream_ops
    with tf.Graph().as_default(), v1.Session() as session:

        def step():
            found = [ops.ipu_device_embedding_lookup([0], "waits", TABLE.shape, tf.float32)]
            for _ in range(8):
                added = ops.ipu_device_embedding_update_add(found[-1], tf.ones([1, 2]), [0], "waits", TABLE.shape)
                with tf.control_dependencies([added]):
                    found.append(ops.ipu_device_embedding_lookup(np.int32([0]), "waits", TABLE.shape, tf.float32))
            return tf.concat(found, 0)

        with scopes.ipu_scope(IPU):
            (rows,) = ipu_compiler.compile(step, [])
        with tf.device("cpu"):
            table = v1.get_variable("table", initializer=tf.constant(TABLE), use_resource=True)
        session.run(v1.global_variables_initializer())
        session.run(ops.ipu_host_embedding_register(table, "waits"))
        np.testing.assert_array_equal(session.run(rows), TABLE[0] + np.arange(9)[:, None])


@pytest.mark.parametrize("shape", [[3, 2], [5, 4]])
def test_each_graph_has_its_own_table_of_an_id(shape):
    """Another graph's table of that id, of another shape, does not count."""
    ops = gen_pop_datastream_ops
    with tf.Graph().as_default(), v1.Session() as session:
        with scopes.ipu_scope(IPU):
            looked_up = ipu_compiler.compile(lambda: ops.ipu_device_embedding_lookup([1], "again", shape, tf.float32))
        with tf.device("/device:CPU:0"):
            values = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
            table = v1.get_variable("table", initializer=values, use_resource=False)
        session.run(v1.global_variables_initializer())
        session.run(ops.ipu_host_embedding_register(table, "again"))
        np.testing.assert_array_equal(session.run(looked_up)[0], values[1:2])
