"""Modelled memory of compiled programs, against bytes added up by hand from the shapes."""

import gc
import time

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.framework import function_pb2
from tensorflow.python.eager import context
from tf_ipu_shim.ipu import config, ipu_compiler, scopes

from tf_ipu_shim import plugin
from tf_ipu_shim.errors import AccountingFaultWarning
from tf_ipu_shim.memory_model.hlo import compiler_ir
from tf_ipu_shim.memory_model.hlo.compiler_ir import ConversionError
from tf_ipu_shim.memory_model.shapes.shape_inference import ShapeInferenceError
from tf_ipu_shim.memory_model.walk import memory_walk
from tf_ipu_shim.memory_reports import memory_report
from tf_ipu_shim.runtime import devices

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
IPU = "/device:IPU:0"
SCALARS = 128  # more bytes than the few scalar constants and counters of a program here


def nbytes(*shape, dtype=np.float32):
    return np.zeros(shape, dtype).nbytes


def train(model, *inputs, runs=1, wanted=lambda report: True):
    """Compiles and runs a model with variables in a session; returns its results and the report after the last run.

    TensorFlow frees what a run was fed in threads of its own: a `wanted` report is waited for, ten seconds at most.
    """
    plugin.load().reset_counters(0)  # they count for the whole process
    with tf.Graph().as_default():
        fed = [v1.placeholder(value.dtype, value.shape) for value in inputs]
        with scopes.ipu_scope(IPU):
            built = ipu_compiler.compile(model, fed)
        with v1.Session() as session:
            initialise(session)
            for _ in range(runs):
                results = session.run(built, dict(zip(fed, inputs)))
            end, report = time.monotonic() + 10, memory_report()
            while not wanted(report) and time.monotonic() < end:
                time.sleep(0.01)
                report = memory_report()
            return results, report


def initialise(session):
    """Feeds all variables: a constant initial value would stay in the arena with the session's kernels."""
    values = {v1.placeholder(one.dtype, one.shape): one for one in v1.global_variables()}
    assigned = [one.assign(value) for value, one in values.items()]
    session.run(assigned, {value: np.ones(one.shape, one.dtype.as_numpy_dtype) for value, one in values.items()})


def modelled(report, ipu=0):
    return report.devices[0].ipus[ipu].modelled


def variable(name, shape, dtype=tf.float32):
    return v1.get_variable(name, shape, dtype, use_resource=True, initializer=v1.ones_initializer())


X = np.ones((32, 64), np.float32)


def inference(x):
    hidden = tf.nn.relu(tf.matmul(x, variable("w1", [64, 256])))
    return tf.matmul(hidden, variable("w2", [256, 10]))


def training(x):
    loss = tf.reduce_sum(inference(x))
    return loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss)


def test_inference_of_an_mlp(ipus):
    ipus(1)
    plan = modelled(train(inference, X)[1])
    assert plan.categories["weight"] == nbytes(64, 256) + nbytes(256, 10)
    # The largest step is the first product; the ReLU works in place, and the second product is smaller.
    assert plan.not_always_live_bytes == nbytes(32, 64) + nbytes(32, 256)
    assert plan.largest_step == "MatMul"
    assert plan.categories["argument"] == nbytes(32, 64)


def test_training_of_an_mlp(ipus):
    ipus(1)
    plan = modelled(train(training, X)[1])
    assert plan.categories["weight"] == nbytes(64, 256) + nbytes(256, 10)
    assert 0 <= plan.always_live_bytes - plan.categories["weight"] <= SCALARS
    # The gradient of the first weights: the input, what comes back through the ReLU, the gradient itself, and the
    # loss, which waits for the end. The gradient of the second weights is applied before that.
    assert plan.not_always_live_bytes == nbytes(32, 64) + nbytes(32, 256) + nbytes(64, 256) + nbytes()
    assert plan.largest_step == "gradients/MatMul_grad/MatMul_1"
    assert plan.categories["gradient"] == nbytes(32, 256) + nbytes(64, 256)
    assert [owner.name for owner in plan.owners[:2]] == ["gradients/MatMul_grad/MatMul_1", "w1"]


def test_activations_are_kept_for_the_backward_pass(ipus):
    ipus(1)

    def model(x):
        w = variable("w", [64, 64])
        for _ in range(4):
            x = tf.tanh(tf.matmul(x, w))
        loss = tf.reduce_sum(x)
        return loss, tf.gradients(loss, w)

    plan = modelled(train(model, X)[1])
    one = nbytes(32, 64)
    # At the first product of the backward pass all four layers' results are alive but the last one, which the
    # gradient of its own tanh was the last to need.
    assert plan.categories["activation"] in (3 * one, 4 * one)
    assert plan.categories["activation"] + plan.categories["gradient"] >= 4 * one


def test_views_and_work_in_place_need_nothing(ipus):
    ipus(1)

    def model(x):
        return tf.transpose(tf.reshape(x, [64, 32])) * 2.0 + tf.ones([32, 64])

    plan = modelled(train(model, X)[1])
    assert plan.not_always_live_bytes == nbytes(32, 64)


def test_a_loop_works_in_place(ipus):
    ipus(1)

    def model(x):
        return tf.while_loop(lambda i, a: i < 10, lambda i, a: (i + 1, a * 2.0), [0, x])[1]

    plan = modelled(train(model, X)[1])
    assert 0 <= plan.not_always_live_bytes - nbytes(32, 64) <= SCALARS


def test_a_loop_keeps_what_is_needed_after_it(ipus):
    ipus(1)

    def model(x):
        return x * tf.while_loop(lambda i, a: i < 10, lambda i, a: (i + 1, a * 2.0), [0, x])[1]

    plan = modelled(train(model, X)[1])
    assert 0 <= plan.not_always_live_bytes - 2 * nbytes(32, 64) <= SCALARS


def test_a_training_loop_counts_its_variables_once(ipus):
    ipus(1)

    def model(x):
        w = variable("w", [64, 64])

        def body(i):
            loss = tf.reduce_sum(tf.matmul(x, w))
            with tf.control_dependencies([w.assign_sub(0.1 * tf.gradients(loss, w)[0])]):
                return i + 1

        return tf.while_loop(lambda i: i < 3, body, [0])

    plan = modelled(train(model, X)[1])
    assert plan.categories["weight"] == nbytes(64, 64)
    # The input, the gradient and the product it does not need; the variable's next value is made where the last was.
    assert plan.not_always_live_bytes <= nbytes(32, 64) + nbytes(64, 64) + SCALARS


def unrolled(steps, is_read_inside):
    """The modelled plan of training a recurrent cell of so many time steps, whose weight the loop may read itself."""

    def model(x):
        w = variable("w", [64, 64])
        read = tf.identity(w)

        def body(i, state):
            return i + 1, tf.tanh(tf.matmul(state, w.read_value() if is_read_inside else read))

        last = tf.while_loop(lambda i, state: i < steps, body, [0, x], maximum_iterations=steps)[1]
        return tf.gradients(tf.reduce_sum(last), w)

    return modelled(train(model, X)[1])


def test_a_weight_that_a_loop_reads_is_kept_once(ipus):
    ipus(1)
    few, many = unrolled(4, True), unrolled(12, True)
    # A time step more keeps its state and its activation, and no weight.
    assert many.not_always_live_bytes - few.not_always_live_bytes <= 8 * 2 * nbytes(32, 64) + SCALARS
    outside = unrolled(12, False)
    assert many.not_always_live_bytes - outside.not_always_live_bytes <= nbytes(64, 64) + SCALARS


def test_of_two_branches_the_larger_one_counts(ipus):
    ipus(1)

    def model(x):
        def small():
            return tf.reduce_sum(x)

        def large():
            return tf.reduce_sum(tf.matmul(x, tf.transpose(tf.matmul(x, tf.ones([64, 64])))))

        return tf.cond(tf.reduce_sum(x) > 0, small, large)

    plan = modelled(train(model, X)[1])
    # Both products of the large branch, and their operand.
    assert 0 <= plan.not_always_live_bytes - (2 * nbytes(32, 64) + nbytes(32, 32)) <= SCALARS


def test_a_branch_gives_in_place_what_it_is_given(ipus):
    ipus(1)

    def model(x):
        wide = tf.matmul(x, tf.ones([64, 512]))
        return tf.reduce_sum(tf.cond(x[0, 0] > 0, lambda: tf.exp(wide * 2), lambda: wide))

    plan = modelled(train(model, X)[1])
    # The argument, its product with ones, of which there is one number, and nothing more for what the branches give.
    assert 0 <= plan.not_always_live_bytes - nbytes(32, 64) - nbytes(32, 512) <= SCALARS


def test_a_branch_updates_a_variable_where_it_is(ipus):
    ipus(1)

    def model(x):
        weights = variable("w", [256, 256])
        update = tf.cond(x[0, 0] > 0, lambda: weights.read_value() * 0.5 + 1, weights.read_value)
        with tf.control_dependencies([weights.assign(update)]):
            return tf.reduce_sum(x)

    plan = modelled(train(model, X)[1])
    assert plan.always_live_bytes - nbytes(256, 256) <= SCALARS
    assert plan.not_always_live_bytes <= nbytes(32, 64) + SCALARS


def test_half_precision_needs_half(ipus):
    ipus(1)

    def model(x):
        return tf.matmul(x, variable("w", [64, 256], tf.float16))

    plan = modelled(train(model, X.astype(np.float16))[1])
    assert plan.categories["weight"] == nbytes(64, 256, dtype=np.float16)
    assert plan.not_always_live_bytes == nbytes(32, 64, dtype=np.float16) + nbytes(32, 256, dtype=np.float16)


def test_halves_are_summed_without_a_copy_of_them_in_float32(ipus):
    ipus(1)
    halves = np.ones([512, 64], np.float16)
    plan = modelled(train(lambda x: tf.reduce_sum(x * x[0, 0], axis=1), halves)[1])
    assert 0 <= plan.not_always_live_bytes - nbytes(512, 64, dtype=np.float16) - nbytes(512) <= SCALARS
    kept = modelled(train(lambda x: tf.cast(x, tf.float32) - tf.reduce_sum(tf.cast(x, tf.float32)), halves)[1])
    assert kept.not_always_live_bytes >= nbytes(512, 64, dtype=np.float16) + nbytes(512, 64)  # it is a result too


def sharded(x):
    with scopes.ipu_shard(0):
        hidden = tf.nn.relu(tf.matmul(x, variable("w1", [64, 256])))
    with scopes.ipu_shard(1):
        logits = tf.matmul(hidden, variable("w2", [256, 10]))
        loss = tf.reduce_sum(logits * logits)
    return loss, v1.train.MomentumOptimizer(0.01, 0.9).minimize(loss)


def test_each_shard_has_its_own_variables_and_exchanges(ipus):
    ipus(2)
    report = train(sharded, X)[1]
    first, second = modelled(report, 0), modelled(report, 1)
    for plan, weights in ((first, nbytes(64, 256)), (second, nbytes(256, 10))):
        assert plan.categories["weight"] == plan.categories["optimizer_state"] == weights  # the state is the momentum
    (plan,) = report.devices[0].programs
    assert dict(plan.exchanges) == {(0, 1): nbytes(32, 256), (1, 0): nbytes(32, 256)}
    measured = {pair: moved.bytes for pair, moved in report.devices[0].exchange.items()}
    assert measured == dict(plan.exchanges)


def test_variables_agree_with_what_the_arenas_hold(ipus, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "xla")  # kernels hold the program's constants there, too
    ipus(2)
    gc.collect()  # sessions of other tests, with their variables
    before = [ipu.measured_live_bytes for ipu in memory_report().devices[0].ipus]
    sizes_of = (2 * nbytes(64, 256), 2 * nbytes(256, 10))

    def grown(report):
        return tuple(report.devices[0].ipus[ipu].measured_live_bytes - before[ipu] for ipu in range(2))

    report = train(sharded, X, runs=2, wanted=lambda report: grown(report) == sizes_of)[1]
    assert grown(report) == sizes_of
    for ipu, expected in enumerate(sizes_of):
        one = report.devices[0].ipus[ipu]
        sizes = one.modelled.categories
        assert one.variable_bytes == sizes["weight"] + sizes["optimizer_state"] == expected


@pytest.mark.parametrize("held", [False, True])
def test_an_update_needs_memory_only_if_old_values_are_held(ipus, monkeypatch, held):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "xla")
    ipus(1)
    with context.eager_mode(), tf.device(IPU):
        numbers = tf.Variable(tf.range(1 << 18, dtype=tf.float32))

        @tf.function(jit_compile=True)
        def step():
            numbers.assign(numbers * 0.5 + 1.0)

        step()
        old = numbers.read_value() if held else None
        before = numbers.numpy()
        gc.collect()
        devices.load_library().reset_counters(0)
        live = memory_report().devices[0].ipus[0].measured_live_bytes
        step()
        needed = memory_report().devices[0].ipus[0].measured_peak_bytes - live
        np.testing.assert_array_equal(numbers.numpy(), before * 0.5 + 1.0)
        if old is not None:
            np.testing.assert_array_equal(old.numpy(), before)
    assert (needed >= nbytes(1 << 18)) == held


def test_a_program_with_value_dependent_shapes_runs_op_by_op(ipus):
    ipus(1)

    def model(x, shape):
        return tf.reshape(tf.matmul(x, variable("w", [64, 256])), shape)

    report = train(model, X, np.array([256, 32], np.int32))[1]
    (plan,) = report.devices[0].programs
    ((name, reason),) = plan.coarse
    assert name.startswith(f"model, from {__file__}:")
    assert "constant" in reason and name in " ".join(report.to_text().split())
    assert plan.ipus[0].categories["weight"] == nbytes(64, 256)
    assert plan.ipus[0].not_always_live_bytes >= nbytes(32, 64) + nbytes(32, 256)


def test_a_shape_from_another_shard_is_known(ipus):
    ipus(2)

    def model(x):
        with scopes.ipu_shard(0):
            wide = tf.matmul(x, variable("w", [64, 256]))
            shape = tf.shape(wide)
        with scopes.ipu_shard(1):
            return tf.reduce_sum(tf.broadcast_to(tf.reduce_sum(x), shape) * 2.0)

    report = train(model, X)[1]
    (plan,) = report.devices[0].programs
    assert plan.coarse == ()


def test_host_ops_between_programs(ipus):
    ipus(1)

    def model(x):
        hidden = tf.matmul(x, variable("w", [64, 64]))
        with scopes.outside_compilation_scope():
            doubled = hidden * 2.0
        return tf.reduce_sum(doubled + hidden)

    plan = modelled(train(model, X)[1])
    assert plan.not_always_live_bytes >= 2 * nbytes(32, 64)


def test_accounting_can_be_switched_off(ipus, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_MEMORY_PLAN", "off")
    ipus(1)
    results, report = train(inference, X)
    assert results[0].shape == (32, 10)
    assert not any(device.programs for device in report.devices)


def broken(monkeypatch, name, error):
    def failing(self, *_):
        raise error

    monkeypatch.setattr(memory_walk.MemoryAnalyzer, name, failing)


def test_a_bug_of_ours_is_reported_and_the_program_runs(ipus, monkeypatch):
    broken(monkeypatch, "run", KeyError("lost"))
    ipus(1)
    with pytest.warns(AccountingFaultWarning, match="counted for its variables only") as caught:
        results, report = train(inference, X)
    assert results[0].shape == (32, 10)
    assert modelled(report).peak_bytes == nbytes(64, 256) + nbytes(256, 10)
    assert "lost" in report.to_text()
    (text,) = [str(one.message) for one in caught]
    (plan,) = report.devices[0].programs
    for sent in (tf.__version__, "SDK 3.4", plan.program, "DT_FLOAT[32, 64]", "Traceback", "in failing", "'lost'"):
        assert sent in text
    assert "TF_IPU_SHIM_DEBUG_DIR=DIRECTORY" in text


def test_the_graph_of_a_report(ipus, monkeypatch, tmp_path):
    broken(monkeypatch, "run", KeyError("lost"))
    monkeypatch.setenv("TF_IPU_SHIM_DEBUG_DIR", str(tmp_path / "new"))
    ipus(1)
    with pytest.warns(AccountingFaultWarning, match=f"written to {tmp_path}"):
        train(inference, X)
    (file,) = (tmp_path / "new").iterdir()
    library = text_format.Parse(file.read_text(), function_pb2.FunctionDefLibrary())
    assert {"MatMul", "Relu"} <= {node.op for function in library.function for node in function.node_def}


def test_a_graph_that_cannot_be_written(ipus, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    broken(monkeypatch, "run", KeyError("lost"))
    monkeypatch.setenv("TF_IPU_SHIM_DEBUG_DIR", str(tmp_path / "file"))
    ipus(1)
    with pytest.warns(AccountingFaultWarning, match="could not be written to"):
        assert train(inference, X)[0][0].shape == (32, 10)


def test_a_bug_where_variables_are_counted(ipus, monkeypatch):
    broken(monkeypatch, "place_variables", IndexError("astray"))
    ipus(1)
    with pytest.warns(AccountingFaultWarning, match="astray") as caught:
        results, report = train(inference, X)
    assert results[0].shape == (32, 10)
    assert "for its variables only" in str(caught[0].message) and "not at all" in str(caught[1].message)
    assert not report.devices[0].programs


@pytest.mark.parametrize("error", [ConversionError("dynamic"), ShapeInferenceError("ragged")])
def test_what_tensorflow_cannot_tell_is_coarse_in_silence(ipus, monkeypatch, error):
    broken(monkeypatch, "run", error)
    ipus(1)
    results, report = train(inference, X)  # a warning would be an error
    assert results[0].shape == (32, 10)
    (plan,) = report.devices[0].programs
    assert [reason for _, reason in plan.coarse] == [str(error)]
    assert modelled(report).peak_bytes == nbytes(64, 256) + nbytes(256, 10)


def test_a_program_that_xla_has_no_form_of(ipus, monkeypatch):
    def none(self, function, *_):
        raise ConversionError("depends on a value")

    monkeypatch.setattr(compiler_ir.CompilerIr, "hlo", none)
    ipus(1)
    results, report = train(inference, X)
    (plan,) = report.devices[0].programs
    assert [reason for _, reason in plan.coarse] == ["depends on a value"]
    assert modelled(report).peak_bytes >= nbytes(64, 256) + nbytes(256, 10) + nbytes(32, 256)


def test_a_new_configuration_begins_a_new_report(ipus):
    ipus(1)
    train(inference, X)
    config.reset_ipu_configuration()
    ipus(2)
    report = train(sharded, X)[1]
    assert len(report.devices[0].programs) == 1
    assert len(report.devices[0].ipus) == 2


def test_what_xla_refuses_is_reported_by_xla_alone(ipus):
    ipus(1)
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, None)
        with scopes.ipu_scope("/device:IPU:0"):
            result = ipu_compiler.compile(lambda x: tf.matmul(tf.reshape(x, [2, -1]), tf.ones([2, 2])), [fed])
        with pytest.raises(tf.errors.InvalidArgumentError, match="Matrix size-incompatible"):
            session.run(result, {fed: np.ones(6)})
