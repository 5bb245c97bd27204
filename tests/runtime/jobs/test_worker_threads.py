"""Workers of a cluster that are threads of one process: their strategies share variables, reads and collectives."""

import json

import numpy as np
import pytest
import worker_threads

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

# Two workers are threads of this process: a graph, a server and a session each.
THREADS = (
    worker_threads.CLUSTER
    + """
from tensorflow.python.distribute import cross_device_utils


def work(rank, on_host):
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, task_type="worker", task_id=rank)
    strategy = IPUMultiWorkerStrategyV1(resolver, variables_on_host=on_host)
    # Ops of the second run are others than those of the first, which the servers still know.
    start = 100 if on_host else 1000
    strategy.extended._collective_keys = cross_device_utils.CollectiveKeys(
        group_key_start=start, op_instance_key_start=start + 5, variable_instance_key_start=start + 70
    )
    mine = found[rank]["host" if on_host else "ipu"] = {}
    with strategy.scope():
        optimizer = v1.train.MomentumOptimizer(0.5, momentum=0.0)

        def model(x):
            weight = v1.get_variable("weight", initializer=2.0 + rank)
            loss = weight * weight * x
            return [*tf.gradients(loss, v1.trainable_variables()), loss]

        def step(x):
            with ipu.scopes.ipu_scope("/device:IPU:0"):
                gradient, loss = ipu.ipu_compiler.compile(model, [x])
            (weight,) = v1.trainable_variables()
            seen = v1.get_variable(
                "seen",
                initializer=0.0,
                trainable=False,
                synchronization=tf.VariableSynchronization.ON_READ,
                aggregation=tf.VariableAggregation.MEAN,
            )
            mine["devices"] = [device.replace("task:%d" % rank, "task:N") for device in (weight.device, seen.device)]
            with tf.control_dependencies([optimizer.apply_gradients([(gradient, weight)])]):
                return seen.assign_add(x), tf.identity(loss)

        x = v1.placeholder(tf.float32, [])
        seen, loss = strategy.experimental_run_v2(step, args=[x])
        total = strategy.reduce(tf.distribute.ReduceOp.SUM, loss, axis=None)
        elements = strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4))
        iterator = v1.data.make_initializable_iterator(elements)
        element = iterator.get_next()
        batch = strategy.experimental_local_results(element)[0]
        doubled = strategy.experimental_run_v2(lambda x: 2 * x, args=[element])  # of this worker's part
        keys = [node.attr["instance_key"].i for node in v1.get_default_graph().as_graph_def().node]
        mine["first key"] = min(key for key in keys if key)
        try:
            ipu.ipu_compiler.compile(lambda x: strategy.reduce("SUM", x, axis=None), [x])
        except NotImplementedError as error:
            mine["refused"] = str(error)
        config = strategy.update_config_proto(v1.ConfigProto())
        with v1.Session(servers[rank].target, config=config) as session:
            session.run([v1.global_variables_initializer(), iterator.initializer])
            mine["losses"] = [float(session.run([total, seen], {x: rank + 1.0})[0]) for _ in range(2)]
            (weight,) = v1.trainable_variables()
            mine["weight"] = float(session.run(weight))
            means = [one for one in v1.global_variables() if one.name.startswith("seen")]
            mine["seen"] = [float(value) for value in session.run(means)]
            mine["batch"], mine["doubled"] = (value.tolist() for value in session.run([batch, doubled]))


def between_graphs(rank, on_host):
    with tf.Graph().as_default():
        work(rank, on_host)


for on_host in (True, False):
    threads = [threading.Thread(target=between_graphs, args=[rank, on_host]) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print(json.dumps(found))
"""
)


def test_workers_that_are_threads_of_one_process(forked):
    found = json.loads(forked.succeeds(forked.script(THREADS)).splitlines()[-1])
    worker = "/job:worker/replica:0/task:N/device:"
    for rank, of_variables in enumerate(found):
        assert sorted(of_variables) == ["host", "ipu"]
        for place, mine in of_variables.items():
            # Both begin with the first one's 2; gradients of w^2 x with x = 1 and 2 are summed.
            weight, losses = np.float32(2.0), []
            for _ in range(2):
                losses.append(float(weight**2 * 3))
                weight -= np.float32(0.5) * 2 * weight * 3
            assert mine["losses"] == losses and mine["weight"] == weight
            assert mine["seen"] == [np.mean([2 * 1.0, 2 * 2.0])], "each adds up its own, a read takes the mean"
            assert mine["devices"] == [worker + ("CPU:0" if place == "host" else "IPU:0"), worker + "IPU:0"]
            assert len(mine["batch"]) == 2 and mine["batch"][0] == 2 * rank
            assert mine["doubled"] == [2 * element for element in mine["batch"]]
            assert mine["first key"] == (170 if place == "host" else 1070), "past what the script leaves out"
            assert "only such workers meet inside a program" in mine["refused"]
