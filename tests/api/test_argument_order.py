"""Positional arguments of functions that have another order in some releases."""

import numpy as np
import pytest
import tensorflow as tf

from tf_ipu_shim import ipu, sdk
from tf_ipu_shim.api.ipu.ops import normalization_ops, pipelining_ops
from tf_ipu_shim.api.poplar.ops import gen_popops_ops
from tf_ipu_shim.frontend.ops.collectives import cross_replica_ops
from tf_ipu_shim.frontend.ops.recurrent import rnn_ops
from tf_ipu_shim.frontend.optimizers import gradient_accumulation_optimizer as accumulation

pytestmark = pytest.mark.one_version


@pytest.fixture(autouse=True)
def _release(request, monkeypatch):
    marker = request.node.get_closest_marker("parametrize")
    if marker and "release" in request.fixturenames:
        monkeypatch.setenv(sdk.ENVIRONMENT_VARIABLE, request.getfixturevalue("release"))


@pytest.mark.parametrize(
    "release, arguments",
    [
        ("1.4", (4, tf.float32, tf.float32, None, None, None, "states", True)),
        ("2.1", (4, tf.float32, tf.float32, None, None, None, "tanh", "sigmoid", "states", True)),
        ("2.4", (4, tf.float32, tf.float32, None, None, None, "tanh", "sigmoid", "states", True, 0.2, 0.3)),
        ("2.6", (4, tf.float32, tf.float32, None, None, None, "tanh", "sigmoid", True, "states", True, 0.2)),
        ("3.4", (4, tf.float32, tf.float32, None, None, None, "tanh", "sigmoid", True, "states", True, {})),
    ],
)
def test_recurrent_layers(release, arguments):
    layer = rnn_ops.PopnnGRU(*arguments)
    assert layer.name == "states"
    assert layer.canonical_bias_shapes == [3, 2, 4]  # reset_after


@pytest.mark.parametrize("release, before", [("1.4", ()), ("2.4", ()), ("2.6", ("mean",)), ("3.4", ("mean",))])
@pytest.mark.parametrize(
    "optimizer",
    [accumulation.GradientAccumulationOptimizerV2, accumulation.CrossReplicaGradientAccumulationOptimizerV2],
)
def test_accumulating_optimizers(release, before, optimizer):
    descent = tf.compat.v1.train.GradientDescentOptimizer(0.1)
    assert optimizer(descent, 4, False, False, None, *before, "named")._name == "named"


@pytest.mark.parametrize("release, before", [("1.4", ([1, 2],)), ("2.1", ())])
def test_norms(release, before):
    x = np.random.RandomState(0).rand(2, 3, 4).astype(np.float32)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        result = session.run(normalization_ops.instance_norm(tf.constant(x), -1, *before, False, False, 1e-3))
    expected = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("release", ["1.4"])
def test_names_come_second(release):
    x = tf.constant([1.0, -2.0])
    np.testing.assert_allclose(ipu.nn_ops.gelu(x, "named"), ipu.nn_ops.gelu(x))
    assert ipu.outlined_function(lambda value: value + 1.0, "named")(x).numpy().tolist() == [2.0, -1.0]


@pytest.mark.parametrize(
    "release, arguments",
    [
        ("1.2", (4, 3, [])),  # pipeline_depth, repeat_count, inputs
        ("1.4", (4, None, None, 3, 1, [])),
        ("2.1", (4, None, 3, 1, [])),
        ("3.4", (4, None, 3, 1, [])),
        ("3.4", (4, None, True, 3, 1, [])),  # gradient_accumulation_for_captured_grads
    ],
)
def test_pipelines(release, arguments):
    options = ipu.config.IPUConfig()
    options.auto_select_ipus = 2
    options.configure_ipu_system()
    kwargs = {} if release < "2.1" else {"device_ordinal": 0}
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        names = iter("io") if release < "2.4" else None
        first = {"feed_name": next(names)} if names else {}
        data = tf.data.Dataset.range(100).map(lambda i: tf.cast(i, tf.float32) * 2.0)
        infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(data, **first, **kwargs)
        second = {"feed_name": next(names)} if names else {}
        outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue(**second, **kwargs)

        def run():
            stages = [lambda value: value + 1.0, lambda value: value * 10.0]
            return pipelining_ops.pipeline(stages, *arguments, infeed, outfeed)

        with ipu.scopes.ipu_scope("/device:IPU:0"):
            program = ipu.ipu_compiler.compile(run, [])
        dequeue = outfeed.dequeue()
        session.run(infeed.initializer)
        session.run(program)
        results = session.run(dequeue)
    np.testing.assert_allclose(np.ravel(results), (np.arange(12) * 2 + 1.0) * 10.0)


@pytest.mark.parametrize("release", ["1.4"])
def test_options_of_reports(release):
    options = ipu.utils.set_report_options(ipu.utils.create_ipu_config(), {"a": "b"}, {"c": "d"}, {"e": "f"})
    assert [(one.option, one.value) for one in options.profiling.graph_options] == [("a", "b"), ("c", "d")]
    assert [(one.option, one.value) for one in options.profiling.execution_options] == [("e", "f")]


@pytest.mark.parametrize("release", ["1.4", "2.1", "3.4"])
def test_what_calls_reordered_functions_itself(release):
    one, two = tf.constant([1.0, 2.0]), tf.constant([3.0])
    first, second = ipu.ops.reduce_scatter_op.reduce_scatter([one, two], 1)
    assert (first.numpy().tolist(), second.numpy().tolist()) == ([1.0, 2.0], [3.0])
    (scattered,) = gen_popops_ops.ipu_reduce_scatter([one], "COLLECTIVE_OP_MEAN", 1)
    assert scattered.numpy().tolist() == [1.0, 2.0]
    assert gen_popops_ops.ipu_cross_replica_sum(one).numpy().tolist() == [1.0, 2.0]
    assert cross_replica_ops.cross_replica_mean(one).numpy().tolist() == [1.0, 2.0]
