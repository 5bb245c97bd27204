"""Strategies and collectives in a job of one process; tests/runtime/jobs/test_jobs.py has jobs of several."""

import importlib

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import distributed, horovod, ipu_multi_worker_strategy
from tf_ipu_shim.ipu.config import IPUConfig
from tf_ipu_shim.ipu.distributed import host_collective_ops, ipu_horovod_strategy, popdist_strategy
from tf_ipu_shim.ipu.ipu_multi_worker_strategy import IPUMultiWorkerStrategyV1

from tf_ipu_shim import errors, ipu

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def single(monkeypatch):
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "TF_IPU_SHIM_SIZE", "POPDIST_NUM_TOTAL_REPLICAS"):
        monkeypatch.delenv(name, raising=False)
    distributed.init()
    yield
    distributed.shutdown()


def cluster():
    return tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec({"worker": ["localhost:1"]}), task_type="worker", task_id=0
    )


STRATEGIES = {
    "multi worker": lambda: IPUMultiWorkerStrategyV1(cluster()),
    "multi worker, variables on host": lambda: IPUMultiWorkerStrategyV1(cluster(), variables_on_host=True),
    "horovod": ipu_horovod_strategy.IPUHorovodStrategy,
    "popdist": popdist_strategy.PopDistStrategy,
}


@pytest.mark.parametrize("name", [name for name in STRATEGIES if "host" not in name])
def test_training_in_a_job_of_one_process_is_training(name):
    strategy = STRATEGIES[name]()
    with strategy.scope():
        weight = tf.Variable([1.0, 2.0])
        optimizer = tf.keras.optimizers.legacy.SGD(0.5)

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight * weight * x)
        optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
        return loss

    assert float(strategy.run(step, args=[tf.constant(0.5)])) == 0.5 * (1 + 4)
    np.testing.assert_array_equal(weight, [0.5, 1.0])
    assert strategy.num_replicas_in_sync == 1
    assert strategy.extended.should_checkpoint and strategy.extended.should_save_summary
    with pytest.raises(ValueError, match="MAX"):
        strategy.reduce("MAX", weight, axis=None)


@pytest.mark.parametrize("name", STRATEGIES)
def test_training_in_a_graph(name):
    with tf.Graph().as_default():
        strategy = STRATEGIES[name]()
        with strategy.scope():

            def step(x):
                weight = v1.get_variable("weight", initializer=[1.0, 2.0], use_resource=True)
                loss = tf.reduce_sum(weight * weight * x)
                update = v1.train.GradientDescentOptimizer(0.5).minimize(loss)
                with tf.control_dependencies([update]):
                    return tf.identity(loss)

            if "host" in name:
                result = strategy.experimental_run_v2(step, args=[tf.constant(0.5)])
            else:
                compiled = strategy.experimental_run_v2(lambda: ipu.ipu_compiler.compile(step, [tf.constant(0.5)]))
                (result,) = compiled
        (weight,) = v1.global_variables()
        on_host = tf.DeviceSpec.from_string(weight.device).device_type == "CPU"
        assert on_host == ("host" in name)
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            assert session.run(result) == 2.5
            np.testing.assert_array_equal(session.run(weight), [0.5, 1.0])


def test_collectives_of_one_process():
    from tensorflow.compiler.plugin.poplar.ops import gen_popdist_ops

    x = tf.constant([1.0, 3.0])
    for result in (
        distributed.allreduce(x),
        distributed.allreduce(x, distributed.Sum),
        distributed.allreduce(value=x, reduce_op=tf.distribute.ReduceOp.MEAN, tensor_name="x"),
        distributed.allgather(x, name="gathered"),
        distributed.allgather(x)[0],
        distributed.allgather(value=x)[0],
        distributed.allgather(tensor_name="x", tensor=x)[0],
        horovod.allgather(x),
        distributed.broadcast(x, 0),
        host_collective_ops.allreduce(x, tf.distribute.ReduceOp.SUM, "y"),
        host_collective_ops.allgather(x)[0],
        host_collective_ops.broadcast(x),
        gen_popdist_ops.popdist_all_reduce(x, reduce_op="SUM", tensor_name="x"),
        gen_popdist_ops.popdist_all_gather(x, tensor_name="x")[0],
        gen_popdist_ops.popdist_broadcast(x, tensor_name="x"),
    ):
        np.testing.assert_array_equal(result, x)
    np.testing.assert_array_equal(distributed.allreduce(x, distributed.Sum, 2.0, 3.0), 6 * x)
    with pytest.raises(NotImplementedError, match="The Adasum reduction is not implemented"):
        distributed.allreduce(x, op=distributed.Adasum)
    with pytest.raises(ValueError, match="Unsupported reduce op: MAX"):
        host_collective_ops.allreduce(x, "MAX")
    with pytest.raises(ValueError, match="root_rank must be from 0 to 0"):
        distributed.broadcast(x, 1)
    with pytest.raises(TypeError, match="root_rank must be an integer, not '0'"):
        distributed.broadcast(x, "0")


@pytest.mark.parametrize(("ipus", "error"), [(0, ValueError), (-1, ValueError), ("2", TypeError), (2.5, TypeError)])
def test_replicas_have_a_whole_number_of_ipus(ipus, error):
    import popdist.tensorflow

    calls = [lambda given: popdist.tensorflow.set_ipu_config(IPUConfig(), given), popdist.checkNumIpusPerReplica]
    for call in [*calls, popdist.getDeviceId] if ipus else calls:
        with pytest.raises(error, match=f"ipus_per_replica must be .*{ipus}"):
            call(ipus)
    assert popdist.getDeviceId() == popdist.getDeviceId(ipusPerReplica=0)  # what it is told where nothing is said
    with pytest.raises(TypeError, match="config must be an ipu.config.IPUConfig, not int"):
        popdist.tensorflow.set_ipu_config(3)


@pytest.mark.parametrize("kind", ["Mirrored", "SyncOnRead"])
def test_variables_of_both_strategies_have_one_class(kind):
    """As up to SDK 2.5, where `horovod.popdist_strategy` has none of its own."""
    on_read = tf.VariableSynchronization.ON_READ if kind == "SyncOnRead" else tf.VariableSynchronization.AUTO
    with popdist_strategy.PopDistStrategy().scope():
        weight = tf.Variable(1.0, synchronization=on_read, aggregation=tf.VariableAggregation.MEAN)
    other = {"Mirrored": "SyncOnRead", "SyncOnRead": "Mirrored"}[kind]
    for module in (ipu_multi_worker_strategy, popdist_strategy):
        assert isinstance(weight, getattr(module, f"IPU{kind}Variable"))
        assert not isinstance(weight, getattr(module, f"IPU{other}Variable"))
        assert not isinstance(tf.Variable(1.0), getattr(module, f"IPU{kind}Variable"))


@pytest.mark.parametrize(("device", "name"), [("/device:IPU:0", "IPU:0"), ("/cpu:0", "CPU:0")])
def test_variables_of_a_horovod_graph_name_the_task(device, name):
    with tf.Graph().as_default():
        with ipu_horovod_strategy.IPUHorovodStrategy(ipu_device=device).scope():
            weight = v1.get_variable("weight", initializer=1.0)
        assert weight.device == f"/replica:0/task:0/device:{name}"


def test_the_processes_of_a_job(monkeypatch):
    assert (distributed.rank(), distributed.size(), distributed.local_rank(), distributed.local_size()) == (0, 1, 0, 1)
    assert distributed.is_homogeneous() and distributed.mpi_threads_supported()
    assert distributed.mpi_built() and distributed.mpi_enabled()
    assert not (distributed.gloo_built() or distributed.gloo_enabled() or distributed.nccl_built())
    distributed.shutdown()
    for name in ("rank", "size", "local_rank", "local_size", "mpi_threads_supported"):
        with pytest.raises(ValueError, match=r"Horovod has not been initialized; use hvd.init\(\)"):
            getattr(distributed, name)()
    with pytest.raises(ValueError, match="Horovod has not been initialized"):
        ipu_horovod_strategy.IPUHorovodStrategy()
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "2")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    distributed.init()
    assert (distributed.rank(), distributed.size()) == (2, 4)
    with pytest.raises(errors.UnsupportedError, match="leave out some of the 4 processes"):
        distributed.init(comm=[0, 1])
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2")
    with pytest.raises(errors.UnsupportedError, match="4 processes, 2 of them on this machine"):
        distributed.init()
    monkeypatch.setenv("TF_IPU_SHIM_RANK", "7")
    monkeypatch.setenv("TF_IPU_SHIM_SIZE", "4")
    with pytest.raises(ValueError, match="from 0 to 3, but TF_IPU_SHIM_RANK is 7"):
        distributed.init()


def test_popdist_s_configuration_and_replicas(monkeypatch):
    config = IPUConfig()
    strategy = popdist_strategy.PopDistStrategy()
    assert strategy.update_ipu_config(config) is config
    distribution = config.experimental.multi_replica_distribution
    assert (distribution.process_count, distribution.process_index) == (1, 0)
    monkeypatch.setenv("POPDIST_NUM_TOTAL_REPLICAS", "4")
    assert strategy.num_replicas_in_sync == 4
    assert strategy.supports_loss_scaling


def test_a_cluster_that_is_no_job_is_refused():
    spec = tf.train.ClusterSpec({"worker": ["localhost:1", "localhost:2"]})
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(spec, task_type="worker", task_id=1)
    with pytest.raises(errors.UnsupportedError, match="worker 1 of 2 of the cluster, but process 0 of 1"):
        IPUMultiWorkerStrategyV1(resolver)


@pytest.mark.parametrize("module", ["", ".basics", ".ipu_horovod_strategy", ".popdist_strategy"])
def test_horovod_is_the_older_name(module):
    old = importlib.import_module(f"tensorflow.python.ipu.horovod{module}")
    new = importlib.import_module(f"tensorflow.python.ipu.distributed{module}")
    for name in old.__all__:
        if "MultiReplica" not in name:
            # Horovod concatenates; for TensorFlow 2 `distributed` stacks.
            assert getattr(old, name) == getattr(new, f"horovod_{name}" if name == "allgather" else name)


def test_multi_replica_is_the_older_name_of_popdist():
    from tensorflow.python.ipu.horovod import ipu_multi_replica_strategy

    strategy = ipu_multi_replica_strategy.IPUMultiReplicaStrategy()
    assert isinstance(strategy, popdist_strategy.PopDistStrategy)
    assert isinstance(strategy.extended, ipu_multi_replica_strategy.IPUMultiReplicaExtended)


def test_an_open_server_of_tensorflows_is_named_once(monkeypatch, capfd):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "1")
    workers = tf.train.ClusterSpec({"worker": ["localhost:1", "localhost:2347"]})
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(workers, task_type="worker", task_id=1)
    for _ in range(2):
        with tf.Graph().as_default():
            IPUMultiWorkerStrategyV1(resolver)
    said = [line for line in capfd.readouterr().err.splitlines() if "tf.distribute.Server" in line]
    assert len(said) == 1
    assert "localhost:2347, listens on all interfaces at port 2347 without a password. Anyone who reaches it" in said[0]
    assert "Use it only if you trust all users" in said[0]
