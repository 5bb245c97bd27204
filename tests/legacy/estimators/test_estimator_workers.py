"""Estimators that are trained by several workers: processes of a cluster, of a job, and threads of one process."""

import concurrent.futures
import json

import numpy as np
import pytest
import worker_threads
from slow_cases import slowly

from tf_ipu_shim.runtime.jobs import rendezvous

pytestmark = [pytest.mark.subprocess, pytest.mark.estimator, pytest.mark.one_version]
pytest.importorskip("tensorflow_estimator")  # TensorFlow has it up to 2.15

# Two workers of a TF_CONFIG: argument 1 says what is trained, 2 where checkpoints go.
CLUSTER = """
import json, os, sys
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu.ipu_multi_worker_strategy import IPUMultiWorkerStrategyV1
from tensorflow.python.ipu.ipu_pipeline_estimator import IPUPipelineEstimator, IPUPipelineEstimatorSpec

v1 = tf.compat.v1
kind, folder = sys.argv[1:]
if kind == "pipeline":
    v1.disable_v2_behavior()
rank = json.loads(os.environ["TF_CONFIG"])["task"]["index"]


def configuration(steps, ipus):
    options = ipu.config.IPUConfig()
    options.auto_select_ipus = ipus
    run = ipu.ipu_run_config.IPURunConfig(steps, num_shards=ipus, ipu_options=options)
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return ipu.ipu_run_config.RunConfig(
        run, train_distribute=IPUMultiWorkerStrategyV1(resolver), save_summary_steps=1, model_dir=folder
    )


def data(input_context):
    assert input_context.num_input_pipelines == 2
    return tf.data.Dataset.from_tensors((input_context.input_pipeline_id + 1.0, 1.0)).repeat(8)


def model(features, labels, mode):
    a = v1.get_variable("a", initializer=1.0 + rank)
    b = v1.get_variable("b", initializer=2.0 - rank)
    seen = v1.get_variable(
        "seen",
        initializer=0.0,
        trainable=False,
        synchronization=tf.VariableSynchronization.ON_READ,
        aggregation=tf.VariableAggregation.MEAN,
    )
    loss = v1.losses.mean_squared_error(labels, a * features + b)
    with tf.control_dependencies([seen.assign_add(features)]):
        train = v1.train.MomentumOptimizer(0.05, 0.0).minimize(loss)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def stages(mode):
    def first(x, y):
        return v1.get_variable("a", initializer=1.0 + rank) * x, y

    def last(x, y):
        return v1.losses.mean_squared_error(y, x + v1.get_variable("b", initializer=2.0 - rank))

    def update(loss):
        return ipu.pipelining_ops.OptimizerFunctionOutput(v1.train.MomentumOptimizer(0.005, 0.0), loss)

    return IPUPipelineEstimatorSpec(
        mode, [first, last], gradient_accumulation_count=4, reduction_method="sum", optimizer_function=update
    )


if kind == "pipeline":
    estimator = IPUPipelineEstimator(stages, config=configuration(4, 2))
else:
    estimator = ipu.ipu_estimator.IPUEstimator(model, config=configuration(1, 1))
try:
    estimator.train(data, steps=8)
except ValueError as error:
    assert "call tf.estimator.train_and_evaluate" in str(error), error
tf.estimator.train_and_evaluate(
    estimator, tf.estimator.TrainSpec(data, max_steps=8), tf.estimator.EvalSpec(data)
)
if rank == 0:
    (file,) = tf.io.gfile.glob(folder + "/*tfevents*")
    values = [value for event in v1.train.summary_iterator(file) for value in event.summary.value]
    print(json.dumps({
        "variables": {name: estimator.get_variable_value(name).tolist() for name in estimator.get_variable_names()},
        "losses": [value.simple_value for value in values if value.tag == "loss"],
    }))
"""

# Two workers are threads: the host applies the gradients that a step gives it.
THREADS = (
    worker_threads.CLUSTER
    + """


def work(rank):
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(cluster, task_type="worker", task_id=rank)
    strategy = IPUMultiWorkerStrategyV1(resolver, variables_on_host=True)
    optimizer = v1.train.MomentumOptimizer(0.5, 0.0)

    def model(features, labels, mode):
        weight = v1.get_variable("weight", initializer=2.0 + rank)
        loss = v1.losses.mean_squared_error(labels, features * weight)
        gradients = [gradient for gradient, _ in optimizer.compute_gradients(loss)]

        def on_host(*gradients):
            return optimizer.apply_gradients(zip(gradients, v1.trainable_variables()))

        return ipu.ipu_estimator.IPUEstimatorSpec(
            mode, loss=loss, train_op=tf.identity(loss), host_call=(on_host, gradients)
        )

    def data(input_context, params):
        found[rank]["batch"] = params["batch_size"]
        x = input_context.input_pipeline_id + 1.0
        return tf.data.Dataset.from_tensors(([x], [x])).repeat()

    config = ipu.ipu_run_config.RunConfig(
        master=servers[rank].target, train_distribute=strategy, eval_distribute=strategy
    )
    estimator = ipu.ipu_estimator.IPUEstimator(model, config=config, train_batch_size=2, eval_batch_size=6)
    for _ in range(2):
        estimator.train(data, steps=1)
    found[rank]["trained"] = [float(estimator.get_variable_value(name)) for name in ("weight", "global_step")]
    try:
        estimator.evaluate(data, steps=1)
    except NotImplementedError as error:
        found[rank]["refused"] = str(error)


threads = [threading.Thread(target=work, args=[rank]) for rank in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(json.dumps(found))
"""
)

# Processes of a job, which have no servers: two times two steps, so that all begin where the first one stopped.
JOB = """
import json, sys
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu.distributed.popdist_strategy import PopDistStrategy
from tf_ipu_shim.runtime.jobs import job

v1 = tf.compat.v1
rank, folder = job.current().rank, sys.argv[1]
saved = []


class Listener(v1.train.CheckpointSaverListener):
    def after_save(self, session, step):
        saved.append(int(step))


def data(input_context):
    return tf.data.Dataset.from_tensors(([input_context.input_pipeline_id + 1.0], [1.0])).repeat(100)


def model(features, labels, mode):
    a = v1.get_variable("a", initializer=1.0 + rank)
    loss = v1.losses.mean_squared_error(labels, a * features)
    train = v1.train.MomentumOptimizer(0.05, 0.0).minimize(loss)
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


options = ipu.config.IPUConfig()
options.auto_select_ipus = 1
span = options.experimental.multi_replica_distribution
span.process_count, span.process_index = 2, rank
config = ipu.ipu_run_config.RunConfig(
    ipu.ipu_run_config.IPURunConfig(ipu_options=options), train_distribute=PopDistStrategy(), model_dir=folder
)
estimator = ipu.ipu_estimator.IPUEstimator(model, config=config)
for _ in range(2):
    estimator.train(data, steps=2, saving_listeners=[Listener()])
print(json.dumps({
    "saved": saved,
    "summaries": len(tf.io.gfile.glob(folder + "/*tfevents*")),
    "trained": [float(estimator.get_variable_value(name)) for name in ("a", "global_step")],
}))
"""


def together(python, script, arguments, environments):
    """What each worker's process printed last."""
    path = python.script(script)

    def one(environment):
        return python.succeeds(path, *arguments, environment=environment).splitlines()

    with concurrent.futures.ThreadPoolExecutor(len(environments)) as pool:
        return [lines[-1] if lines else "" for lines in pool.map(one, environments)]


@pytest.mark.parametrize("kind", ["loop", slowly("pipeline")])
def test_workers_of_a_cluster(forked, kind):
    cluster = {"worker": list(rendezvous.free_addresses(["localhost"] * 2))}
    environments = [
        {
            "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": "worker", "index": rank}}),
            "TF_IPU_SHIM_LOCK_DIR": str(forked.directory / "locks"),
        }
        for rank in range(2)
    ]
    arguments = [kind, str(forked.directory / "model")]
    found = json.loads(together(forked, CLUSTER, arguments, environments)[0])

    # Both begin with the first one's 1 and 2. A pipeline adds up four mini-batches for an update.
    x = np.array([1.0, 2.0])
    a, b, losses = 1.0, 2.0, []
    updates, rate, mini_batches, reported = (8, 0.05, 1, np.mean) if kind == "loop" else (2, 0.005, 4, np.sum)
    for _ in range(updates):
        error = a * x + b - 1.0
        losses.append(reported(error**2))
        a, b = a - rate * mini_batches * np.mean(2 * error * x), b - rate * mini_batches * np.mean(2 * error)
    assert found["losses"] == pytest.approx(losses, rel=1e-5)
    variables = found["variables"]
    assert [variables["a"], variables["b"]] == pytest.approx([a, b], rel=1e-5)
    assert variables["global_step"] == 8
    if kind == "loop":
        assert variables["seen"] == np.mean([8 * 1.0, 8 * 2.0]), "each adds up its own, a checkpoint has the mean"


def test_workers_that_are_threads_and_hosts_that_apply_gradients(forked):
    found = json.loads(forked.succeeds(forked.script(THREADS)).splitlines()[-1])
    weight, x = 2.0, np.array([1.0, 2.0])
    for _ in range(2):
        weight -= 0.5 * np.mean(2 * (weight * x - x) * x)
    for mine in found:
        assert mine["trained"] == [weight, 2]
        assert mine["batch"] == 3, "an evaluation asks each for its share before it is refused"
        assert "evaluation that is distributed over 2 workers is not emulated. Leave" in mine["refused"]


@pytest.mark.slow
def test_processes_of_a_job(python):
    environments = [
        {
            "TF_IPU_SHIM_RANK": str(rank),
            "TF_IPU_SHIM_SIZE": "2",
            "TF_IPU_SHIM_JOB": str(python.directory),
            "TF_IPU_SHIM_LOCK_DIR": str(python.directory / "locks"),
        }
        for rank in range(2)
    ]
    printed = together(python, JOB, [str(python.directory / "model")], environments)
    first, second = (json.loads(lines) for lines in printed)
    a, x = 1.0, np.array([1.0, 2.0])
    for _ in range(4):
        a -= 0.05 * np.mean(2 * (a * x - 1.0) * x)
    for mine in (first, second):
        assert mine["trained"] == pytest.approx([a, 4], rel=1e-6)
    assert (first["saved"], second["saved"]) == ([0, 2, 2, 4], []), "the first writes for all"
    assert first["summaries"] == 1
