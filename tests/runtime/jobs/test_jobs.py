"""Jobs of several processes: collectives by themselves, and training under the strategies."""

import concurrent.futures
import json
import tempfile

import numpy as np
import pytest

from tf_ipu_shim.runtime.jobs import job, rendezvous

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

COLLECTIVES = """
import json, sys, threading
import numpy as np
from tf_ipu_shim.runtime.jobs import collectives, job

rank = job.current().rank
found = {
    "sum": collectives.run("sum", "a", [np.arange(3, dtype=np.float32) * rank, np.int32(rank)]),
    "mean": collectives.run("mean", "b", [np.float32(rank)]),
    "gather": collectives.run("gather", "c", [np.full([rank + 1, 2], rank, np.int8)]),
    "broadcast": collectives.run("broadcast", "d", [np.array([rank, 7])], root=1),
}
found = {kind: [array.tolist() for array in arrays] for kind, arrays in found.items()}

# Each process begins with another one: nobody waits for a call that comes later elsewhere.
order = np.roll(["x", "y", "z"], rank)
results = {}
def call(name):
    results[name] = float(collectives.run("sum", name, [np.float32(ord(name))])[0])
threads = [threading.Thread(target=call, args=[str(name)]) for name in order]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
found["concurrent"] = results

# More than the first exchange of a call holds, of another length in each process.
(many,) = collectives.run("gather", "many", [np.full([1000 * (rank + 1), 3], rank, np.float64)])
found["many"] = [many.shape[0], float(many.sum())]
# Calls of one name, longer, as long and shorter than the one before.
found["lengths"] = []
for rows in (4000, 4000, 3, 0, 9000):
    (many,) = collectives.run("gather", "lengths", [np.full([rows * (rank + 1)], rank + 1.0)])
    found["lengths"] += [[many.shape[0], float(many.sum())]]
(weights,) = collectives.run("broadcast", "weights", [np.full([5000], rank, np.float32)], root=1)
found["weights"] = float(weights.sum())
# Sums in the order of ranks: in another order the 1 is lost.
found["order"] = float(collectives.run("sum", "order", [np.float32([1e8, -1e8, 1.0][rank])])[0])

try:
    collectives.run("sum", "shape", [np.zeros(rank + 1)])
except collectives.CollectiveError as error:
    found["mismatch"] = str(error)
found["after"] = float(collectives.run("sum", "shape", [np.float32(1)])[0])
if rank != 1:
    for name in ("gone", "later"):
        try:
            collectives.run("sum", name, [np.zeros(1)])
        except collectives.CollectiveError as error:
            found[name] = str(error)
print(json.dumps(found))
"""

TRAINING = """
import json, os
import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu import distributed
from tensorflow.python.ipu.distributed import host_collective_ops, ipu_horovod_strategy, popdist_strategy

distributed.init()
rank = distributed.rank()
data = np.random.RandomState(0).rand(8, 2, 4).astype("f")[rank::2]
found = {}


def on_tf2(strategy):
    with strategy.scope():
        weight = tf.Variable(tf.random.stateless_normal([4, 1], [rank, 0]))
        optimizer = tf.keras.optimizers.legacy.SGD(0.1)
        iterator = ipu.ipu_infeed_queue.IPUIterator(tf.data.Dataset.from_tensor_slices(data).repeat())

    @tf.function(jit_compile=True)
    def train(iterator):
        for _ in tf.range(4):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.matmul(next(iterator), weight) - 1.0))
            optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])

    strategy.run(train, args=[iterator])
    return weight.numpy().tolist()


def on_tf1(strategy):
    with tf.Graph().as_default(), strategy.scope():
        x = tf.compat.v1.placeholder(tf.float32, [2, 4])

        def step(x):
            weight = tf.compat.v1.get_variable(
                "weight", [4, 1], initializer=lambda shape, **_: tf.random.stateless_normal(shape, [rank, 0])
            )
            loss = tf.reduce_mean(tf.square(tf.matmul(x, weight) - 1.0))
            return tf.compat.v1.train.GradientDescentOptimizer(0.1).minimize(loss)

        update = strategy.experimental_run_v2(lambda: ipu.ipu_compiler.compile(step, [x]))
        with tf.compat.v1.Session() as session:
            session.run(tf.compat.v1.global_variables_initializer())
            for batch in data:
                session.run(update, {x: batch})
            return session.run(tf.compat.v1.global_variables()[0]).tolist()


def synchronized(strategy):
    on_read, kinds = tf.VariableSynchronization.ON_READ, tf.VariableAggregation
    with strategy.scope():
        mean = tf.Variable(1.0 + rank, synchronization=on_read, aggregation=kinds.MEAN)
        total = tf.Variable([4.0, 2.0], synchronization=on_read, aggregation=kinds.SUM)
        mirrored = tf.Variable(1.0, aggregation=kinds.MEAN)
        normalisation = tf.keras.layers.BatchNormalization(momentum=0.0)

        @tf.function
        def step(x):
            mean.assign(x + mean)
            total.assign_add([x, 0.0])
            mirrored.assign_add(x)
            return mean.read_value(), normalisation(tf.stack([[2 * x], [0.0]]), training=True)

        own, _ = strategy.run(step, args=[tf.constant(rank + 1.0)])
        read = [float(mean), float(tf.function(lambda: mean + 1.0)()), total.numpy().tolist(), float(mirrored)]
        total.assign([8.0, 2.0])
    moving = [one.numpy().tolist() for one in (normalisation.moving_mean, normalisation.moving_variance)]
    kinds = [type(one).__name__ for one in (mean, mirrored, normalisation.moving_mean)]
    return [float(own), read, total.numpy().tolist(), moving, kinds]


popdist = popdist_strategy.PopDistStrategy()
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
popdist.update_ipu_config(config)
config.configure_ipu_system()
distribution = config.experimental.multi_replica_distribution
found["process"] = [distribution.process_index, distribution.process_count]
found["popdist"] = on_tf2(popdist)
found["synchronized"] = synchronized(popdist)
ipu.config.reset_ipu_configuration()
config.auto_select_ipus = 2  # two replicas in each process
config.configure_ipu_system()
found["replicas"] = on_tf2(popdist)
ipu.config.reset_ipu_configuration()
found["horovod"] = on_tf1(ipu_horovod_strategy.IPUHorovodStrategy())
x = tf.Variable(1.0 + rank)
with tf.GradientTape(persistent=True) as tape:
    summed = distributed.allreduce(x * x, op=distributed.Sum)
    gathered = tf.reduce_sum(distributed.allgather(tf.stack([x, 2 * x]), name="joined") * [1.0, 2.0, 3.0, 4.0])
    sent = distributed.broadcast(3 * x, 0)
stacked = host_collective_ops.allgather(tf.constant([rank, 7]))
graphs = tf.function(lambda x: host_collective_ops.allgather(x, "in_a_graph"))(tf.constant(2.0 * rank))
found["stacked"] = [stacked.numpy().tolist(), graphs.numpy().tolist(), graphs.shape.as_list()]
try:
    tf.function(lambda: host_collective_ops.allreduce(tf.zeros([rank + 1]), tf.distribute.ReduceOp.SUM))()
except tf.errors.UnknownError as error:
    found["layouts"] = "Tensor layouts did not match on all instances" in error.message
found["gradients"] = [float(tape.gradient(y, x)) for y in (summed, gathered, sent)]
print(json.dumps(found))
"""


# What an instance does, by its rank, where others wait for it. With one that "stops", all stay until each has told its
# error: those that wait in time tell first, and only then do the others come.
APART = """
import json, os, pathlib, signal, sys, time
import numpy as np
from tf_ipu_shim.runtime.jobs import collectives, job

here = job.current()
told = pathlib.Path(sys.argv[0]).with_name("told")
told.mkdir(exist_ok=True)
(processes,) = collectives.run("gather", "processes", [np.array([os.getpid()])])
others = sys.argv[1:]
instead = others[here.rank]
in_time = sum(name.startswith("w") for name in others)
if instead == "sleeps":
    while len(os.listdir(told)) < in_time: time.sleep(0.1)
elif instead == "stops":
    os.kill(os.getpid(), signal.SIGSTOP)
try:
    collectives.run("sum", instead if instead.startswith("w") else "waited for", [np.zeros(1)])  # of this line
except collectives.CollectiveError as error:
    print(json.dumps(str(error)))
told.joinpath(str(here.rank)).touch()
if "stops" in others:
    while len(os.listdir(told)) < in_time:
        time.sleep(0.1)
    os.kill(processes[others.index("stops")], signal.SIGCONT)
    while len(os.listdir(told)) < len(others):
        time.sleep(0.1)
# Nothing works any more: an uncaught error.
collectives.run("sum", "after", [np.zeros(1)])
"""

ORDERS = """
import json
import numpy as np
import tensorflow as tf
from tensorflow.python.ipu import distributed
from tensorflow.python.ipu.distributed import host_collective_ops
from tf_ipu_shim.runtime.jobs import collectives, job

tf.config.threading.set_inter_op_parallelism_threads(2)
rank = job.current().rank
found = {}
values = {name: tf.constant([10.0 * rank + number]) for number, name in enumerate("abcdef")}
order = sorted(values, reverse=rank == 1)

@tf.function
def all_of_them(a, b, c, d, e, f):
    given = dict(zip("abcdef", (a, b, c, d, e, f)))
    results = {}
    for name in order:  # backwards in the second process
        gathered = host_collective_ops.allgather(given[name])
        total = host_collective_ops.allreduce(given[name], tf.distribute.ReduceOp.SUM)
        results[name] = tf.concat([tf.reshape(gathered, [-1]), total], 0)
        host_collective_ops.broadcast(given[name], 1)  # nothing needs it
    return results

for _ in range(3):
    results = all_of_them(*values.values())
found["function"] = {name: result.numpy().tolist() for name, result in results.items()}

with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    fed = {name: tf.compat.v1.placeholder(tf.float32, [1], name=name) for name in values}
    sums = {name: distributed.allreduce(fed[name], op=distributed.Sum) for name in order[:2] + order[-2:]}
    gathered = [session.run(sums[name], {fed[name]: values[name].numpy()}).tolist() for name in sorted(sums)]
    found["session"] = gathered

numbers = {name: collectives.start("sum", name, [np.float32(rank + 1)]) for name in order}
found["started"] = [float(collectives.finish(name, numbers[name])[0]) for name in order]
several = [collectives.start("sum", "one name", [np.float32(10 * number + rank)]) for number in range(5)]
found["of one name"] = [float(collectives.finish("one name", number)[0]) for number in reversed(several)]
print(json.dumps(found))
"""


def processes_of_job(python, script, size, *arguments, **more):
    """The ended processes of a job; `more` is the environment by rank, or for all."""
    path = python.script(script)

    def one(rank):
        environment = {
            "TF_IPU_SHIM_RANK": str(rank),
            "TF_IPU_SHIM_SIZE": str(size),
            "TF_IPU_SHIM_JOB": str(python.directory),
            "TF_IPU_SHIM_LOCK_DIR": str(python.directory / "locks"),
            **{name: value[rank] if isinstance(value, list) else value for name, value in more.items()},
        }
        return python(path, *arguments, environment=environment)

    with concurrent.futures.ThreadPoolExecutor(size) as pool:
        return list(pool.map(one, range(size)))


def run_job(python, script, size, **more):
    """What each process of a job prints."""
    processes = processes_of_job(python, script, size, **more)
    for process in processes:
        assert process.returncode == 0, process.stdout + process.stderr
    return [json.loads(process.stdout.splitlines()[-1]) for process in processes]


def check_collectives(ranks):
    for rank, found in enumerate(ranks):
        assert found["sum"] == [[0, 3, 6], 3]
        assert found["mean"] == [1]
        assert found["gather"] == [[[0, 0], [1, 1], [1, 1], [2, 2], [2, 2], [2, 2]]]
        assert found["broadcast"] == [[1, 7]]
        assert found["concurrent"] == {name: 3 * ord(name) for name in "xyz"}
        assert found["many"] == [6000, 3.0 * (2000 + 2 * 3000)]
        assert found["lengths"] == [[6 * rows, 14.0 * rows] for rows in (4000, 4000, 3, 0, 9000)]
        assert found["weights"] == 5000 and found["order"] == 1.0
        assert "Mismatched" in found["mismatch"] and "Tensor layouts did not match on all" in found["mismatch"]
        assert "Rank 0 has" in found["mismatch"]
        assert found["after"] == 3
        if rank != 1:
            assert "rank 1 has ended" in found["gone"] and "rank 1 has ended" in found["later"]


def test_collectives(forked):
    check_collectives(run_job(forked, COLLECTIVES, 3))


@pytest.mark.slow
def test_processes_that_come_to_collectives_in_different_orders(python):
    """An operation without a name goes by its tensor's, and who begins one waits for nobody."""
    for found in run_job(python, ORDERS, 2):
        wanted = {name: [number, 10 + number, 10 + 2 * number] for number, name in enumerate("abcdef")}
        assert found["function"] == wanted
        assert found["session"] == [[10 + 2 * number] for number in (0, 1, 4, 5)]
        assert found["started"] == [3] * 6
        assert found["of one name"] == [20 * number + 1 for number in reversed(range(5))]


@pytest.mark.slow
def test_processes_at_different_addresses(python):
    """As on several machines: nothing but addresses says where the others are."""
    addresses = rendezvous.free_addresses(["127.0.0.1", "127.0.0.2", "127.0.0.3"])
    check_collectives(run_job(python, COLLECTIVES, 3, TF_IPU_SHIM_ADDRESSES=",".join(addresses)))


@pytest.mark.slow
def test_workers_of_a_tf_config(python):
    cluster = {"chief": ["127.0.0.1:0"], "worker": ["127.0.0.2:0", "127.0.0.3:0"]}
    for addresses in cluster.values():
        free = rendezvous.free_addresses([address.split(":")[0] for address in addresses])
        addresses[:] = [f"{host}:{(int(port) - 10_000) % 65536}" for host, port in (one.split(":") for one in free)]
    tasks = [("chief", 0), ("worker", 0), ("worker", 1)]
    configs = [json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}}) for kind, index in tasks]
    check_collectives(run_job(python, COLLECTIVES, 3, TF_CONFIG=configs, TF_IPU_SHIM_RANK="", TF_IPU_SHIM_SIZE=""))


def what_they_say(python, *instead, seconds=10, seconds_of_rank_1=10):
    """The errors of instances that do not all do the same; each ends with an uncaught one."""
    timeouts = [str(seconds_of_rank_1 if rank == 1 else seconds) for rank in range(len(instead))]
    environment = {"TF_IPU_SHIM_COLLECTIVE_TIMEOUT": timeouts}
    processes = processes_of_job(python, APART, len(instead), *instead, **environment)
    for process in processes:
        assert process.returncode == 1, process.stdout + process.stderr
        assert "CollectiveError: " in process.stderr
    said = [json.loads(process.stdout) for process in processes]
    for rank, name in enumerate(instead):
        if name.startswith("w") and "not all" in said[rank]:
            beginning = f"Collective operation sum of {name!r} in the process of rank {rank}: not all {len(instead)} "
            assert said[rank].startswith(f"{beginning}processes came to it within {timeouts[rank]} s. ")
            assert f"Rank {rank} " not in said[rank] and "Give it more time with TF_IPU_SHIM_COLLECTIVE_" in said[rank]
            assert said[rank] in processes[rank].stderr, "the process is not at the same place as the others any more"
    line = next(number for number, text in enumerate(APART.splitlines(), 1) if text.endswith("# of this line"))
    return said, f"at {python.directory / 'script.py'}:{line}, in <module>"


def test_instances_that_wait_in_different_operations_name_both(forked):
    # The second waits longer, so that it still waits when the first asks it.
    (first, second), place = what_they_say(forked, "waited for", "wanted", seconds=5, seconds_of_rank_1=60)
    assert f"Rank 1 waits in sum of 'wanted' {place}. " in first
    # The first may have ended by now.
    assert f"waited in sum of 'waited for' {place}." in second.replace("Rank 0 waits", "it waited")


@pytest.mark.slow
def test_who_does_not_come_is_named_with_what_it_does_instead(python):
    said, place = what_they_say(python, "waited for", "wanted", "sleeps", "stops", "waited for")
    asleep = next(number for number, text in enumerate(APART.splitlines(), 1) if "time.sleep" in text)
    for text in said[0], said[4]:
        assert f"Rank 1 waits in sum of 'wanted' {place}. " in text
        assert "Rank 2 is in no collective operation since gather of 'processes', but at " in text
        assert f"script.py:{asleep}, in <module>. " in text
        assert "Rank 3 does not answer: its process is stopped, or its machine is overloaded" in text
        assert "Rank 0" not in text.partition("processes came")[2] and "Rank 4" not in text
    assert f"waited in sum of 'waited for' {place}." in said[1].replace("waits in", "waited in")
    for text in said[2:4]:  # they come when nobody waits there any more
        assert f"Rank 1 waits in sum of 'wanted' {place}." in text


def test_processes_of_the_same_rank_are_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    alone = job.Job("a job of one", rank=0, size=1, local_rank=0, local_size=1)
    directory = rendezvous.directory_of(alone)
    rendezvous.wait_for_all(alone, directory, rendezvous.lock_rank(directory, 0))
    with pytest.raises(rendezvous.RendezvousError, match="Two processes of this job have rank 0"):
        rendezvous.lock_rank(directory, 0)


def test_what_an_ended_job_has_left_counts_for_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(rendezvous, "WAIT_SECONDS", 0.1)
    here = job.Job("a job of two", rank=0, size=2, local_rank=0, local_size=2)
    directory = rendezvous.directory_of(here)
    (directory / "1").write_bytes(rendezvous._LISTENS)
    with pytest.raises(rendezvous.RendezvousError, match="those of rank 1 were not found"):
        rendezvous.wait_for_all(here, directory, rendezvous.lock_rank(directory, 0))


def test_training_over_two_processes_trains_on_both_datasets(forked):
    import tensorflow as tf

    data = np.random.RandomState(0).rand(8, 2, 4).astype("f").astype("d")
    start = tf.random.stateless_normal([4, 1], [0, 0]).numpy().astype("d")  # rank 0's

    def trained(steps):
        weight = start
        for batches in steps:
            weight = weight - 0.1 * sum(batch.T @ (batch @ weight - 1.0) for batch in batches)
        return weight

    first, second = run_job(forked, TRAINING, 2)
    assert first["process"] == [0, 2] and second["process"] == [1, 2]
    assert first["popdist"] == second["popdist"] and first["horovod"] == second["horovod"]
    assert first["replicas"] == second["replicas"]
    for rank, seen in enumerate((first["synchronized"], second["synchronized"])):  # the first adds 1, the second 2
        assert seen[:3] == [2.0 + rank, [2.5, 3.5, [8.0 + 3.0, 4.0], 1.0 + 1.5], [8.0, 2.0]]
        assert seen[3] == [[np.mean([1, 2])], [np.mean([1, 4])]]  # of 2 and 0, and of 4 and 0
        assert seen[4] == ["IPUSyncOnReadVariable", "IPUMirroredVariable", "IPUSyncOnReadVariable"]
    np.testing.assert_allclose(first["popdist"], trained(data.reshape(4, 2, 2, 4)), rtol=1e-5)
    np.testing.assert_allclose(first["horovod"], trained(data.reshape(4, 2, 2, 4)), rtol=1e-5)
    twice = np.concatenate([data, data]).reshape(4, 4, 2, 4)
    np.testing.assert_allclose(first["replicas"], trained(twice), rtol=1e-4)
    for found in (first, second):
        assert found["stacked"] == [[[0, 7], [1, 7]], [0.0, 2.0], [2]] and found["layouts"]
    assert first["gradients"] == [4.0, 2 + 4 * 2, 6.0]
    assert second["gradients"] == [8.0, 6 + 8 * 2, 0.0]
