"""One model trained in every way a script can have it trained, against TensorFlow's CPU, mini-batch by mini-batch.

Hypothesis chooses shapes, counts, how the layers are cut into stages, the optimizer and how gradients are reduced.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st
from random_graphs import examples
from slow_cases import slowly
from tf_ipu_shim.ipu import scopes
from tf_ipu_shim.ipu.ipu_infeed_queue import IPUInfeedQueue
from tf_ipu_shim.ipu.ipu_outfeed_queue import IPUOutfeedQueue
from tf_ipu_shim.ipu.ops import pipelining_ops
from tf_ipu_shim.ipu.ops.pipelining_ops import PipelineSchedule
from tf_ipu_shim.ipu.optimizers import CrossReplicaOptimizer, GradientAccumulationOptimizerV2

from tf_ipu_shim import ipu

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
LAYERS = 4
UPDATES = 2
OPTIMIZERS = {
    "descent": lambda: v1.train.GradientDescentOptimizer(0.05),
    "momentum": lambda: v1.train.MomentumOptimizer(0.05, 0.9),
    "adam": lambda: v1.train.AdamOptimizer(0.01),
}


@dataclasses.dataclass(frozen=True)
class Case:
    """A model and how it is trained.

    Args:
        rows: of a mini-batch.
        widths: of the layers, the input's first.
        cuts: number of layers in each stage.
        rounds: the mini-batches to an update, in units of twice the number of stages.
        optimizer: key of `OPTIMIZERS`.
        method: how gradients are reduced.
        seed: of data and weights.
    """

    rows: int
    widths: tuple[int, ...]
    cuts: tuple[int, ...]
    rounds: int
    optimizer: str
    method: str
    seed: int

    @property
    def count(self) -> int:
        """Mini-batches to an update: any schedule can run so many."""
        return 2 * len(self.cuts) * self.rounds

    def data(self, elements: int) -> tuple[np.ndarray, np.ndarray]:
        """Inputs and targets, element by element."""
        random = np.random.RandomState(self.seed)
        shapes = [(elements, self.rows, width) for width in (self.widths[0], self.widths[-1])]
        x, y = (random.uniform(-1, 1, shape).astype("f") for shape in shapes)
        return x, y

    def layer(self, number: int, x: tf.Tensor, y: tf.Tensor) -> object:
        """Applies a layer; the last one gives the loss."""
        initial = np.random.RandomState(self.seed + number).uniform(-1, 1, self.widths[number : number + 2])
        weight = v1.get_variable(
            f"w{number}", initial.shape, initializer=v1.constant_initializer(initial), use_resource=True
        )
        x = tf.matmul(x, weight)
        return tf.reduce_mean(tf.square(x - y)) if number == LAYERS - 1 else (tf.tanh(x), y)

    def stages(self) -> list[object]:
        """The layers, in stages."""
        ends = np.cumsum(self.cuts)

        def stage(begin: int, end: int) -> object:
            def run(*values: tf.Tensor) -> object:
                for number in range(begin, end):
                    values = self.layer(number, *values)
                return values

            return run

        return [stage(int(end - size), int(end)) for end, size in zip(ends, self.cuts)]


splits = st.sampled_from([(1, 1, 1, 1), (2, 2), (1, 3), (1, 2, 1), (2, 1, 1)])
cases = st.builds(
    Case,
    rows=st.integers(1, 5),
    widths=st.tuples(*[st.integers(1, 6)] * (LAYERS + 1)),
    cuts=splits,
    rounds=st.integers(1, 2),
    optimizer=st.sampled_from(sorted(OPTIMIZERS)),
    method=st.sampled_from(["SUM", "MEAN", "RUNNING_MEAN"]),
    seed=st.integers(0, 2**16),
)


def on_the_cpu(case: Case, count: int, replicas: int = 1) -> tuple[np.ndarray, list[np.ndarray]]:
    """Losses in the order of elements, and the weights; gradients of replicas are averaged."""
    with tf.Graph().as_default(), v1.Session() as session:
        x, y = (v1.placeholder(tf.float32, [case.rows, width]) for width in (case.widths[0], case.widths[-1]))
        values: object = (x, y)
        for number in range(LAYERS):
            values = case.layer(number, *values)
        variables = v1.trainable_variables()
        gradients = tf.gradients(values, variables)
        reduced = [v1.placeholder(tf.float32, variable.shape) for variable in variables]
        update = OPTIMIZERS[case.optimizer]().apply_gradients(zip(reduced, variables))
        session.run(v1.global_variables_initializer())
        losses = []
        elements = zip(*case.data(UPDATES * count * replicas))
        for _ in range(UPDATES):
            totals = [np.zeros(variable.shape, "d") for variable in variables]
            for _ in range(count * replicas):
                loss, new = session.run([values, gradients], dict(zip((x, y), next(elements))))
                losses.append(loss)
                totals = [total + gradient for total, gradient in zip(totals, new)]
            scale = replicas if case.method == "SUM" else replicas * count
            session.run(update, {p: total / scale for p, total in zip(reduced, totals)})
        return np.array(losses), session.run(variables)


def on_ipus(case: Case, ipus: int, elements: int, program: object) -> tuple[np.ndarray, list[np.ndarray]]:
    """The same of a program for IPUs: `program(infeed, outfeed)`."""
    ipu.config.reset_ipu_configuration()
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = ipus
    config.configure_ipu_system()
    with tf.Graph().as_default(), v1.Session() as session:
        infeed, outfeed = IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(case.data(elements))), IPUOutfeedQueue()
        with scopes.ipu_scope("/device:IPU:0"):
            compiled = ipu.ipu_compiler.compile(lambda: program(infeed, outfeed), [])
        dequeued = outfeed.dequeue()
        session.run([v1.global_variables_initializer(), infeed.initializer])
        session.run(compiled)
        losses, weights = session.run([dequeued, v1.trainable_variables()])
        return np.ravel(tf.nest.flatten(losses)[0]), weights


def looped(case: Case, count: int, shards: int) -> object:
    """A loop over mini-batches; gradients are accumulated unless `count` is 1."""

    def program(infeed: IPUInfeedQueue, outfeed: IPUOutfeedQueue) -> object:
        def step(*values: tf.Tensor) -> object:
            for number in range(LAYERS):
                with scopes.ipu_shard(number * shards // LAYERS):
                    values = case.layer(number, *values)
            optimizer = OPTIMIZERS[case.optimizer]()
            if count > 1:
                optimizer = GradientAccumulationOptimizerV2(optimizer, count, reduction_method=case.method)
            return outfeed.enqueue(values), optimizer.minimize(values)

        return ipu.loops.repeat(UPDATES * count, step, [], infeed)

    return program


def pipelined(case: Case, count: int, wrap: object = lambda optimizer: optimizer, **options: object) -> object:
    """A pipeline of the case's stages."""

    def program(infeed: IPUInfeedQueue, outfeed: IPUOutfeedQueue) -> object:
        return pipelining_ops.pipeline(
            case.stages(),
            gradient_accumulation_count=count,
            repeat_count=UPDATES,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=lambda loss: pipelining_ops.OptimizerFunctionOutput(
                wrap(OPTIMIZERS[case.optimizer]()), loss
            ),
            reduction_method=case.method,
            **options,
        )

    return program


def check(what: str, actual: tuple, expected: tuple) -> None:
    """Losses and weights agree to float tolerance."""
    np.testing.assert_allclose(actual[0], expected[0], rtol=2e-4, atol=1e-6, err_msg=f"losses, {what}")
    assert len(actual[1]) == len(expected[1]) == LAYERS
    for number, (one, other) in enumerate(zip(actual[1], expected[1])):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5, err_msg=f"weight {number}, {what}")


few = examples(0)  # random ones: `test_random_cases`
FOUR_STAGES = Case(4, (5, 4, 3, 6, 2), (1, 1, 1, 1), 1, "momentum", "MEAN", 7)


@pytest.mark.parametrize("execution_mode", ["xla", slowly("kernels")], indirect=True)
@few
@example(FOUR_STAGES)
@given(cases)
def test_accumulated_over_one_replica(execution_mode, case):
    stages, count = len(case.cuts), case.count
    expected = on_the_cpu(case, count)
    assert not np.allclose(expected[0][:count].mean(), expected[0][count:].mean(), rtol=1e-6, atol=0), "it learns"
    ways = {
        "one IPU": (1, looped(case, count, 1)),
        "sharded": (LAYERS, looped(case, count, LAYERS)),
        "pipelined on one IPU": (1, pipelined(case, count, device_mapping=[0] * stages)),
        "pipelined on two IPUs": (2, pipelined(case, count, device_mapping=[n % 2 for n in range(stages)])),
    }
    for schedule in PipelineSchedule:  # on as few IPUs as hold the stages: twice as many would be two replicas
        ways[schedule.name] = (2 if stages == 2 else 4, pipelined(case, count, pipeline_schedule=schedule))
    for what, (ipus, program) in ways.items():
        check(what, on_ipus(case, ipus, UPDATES * count, program), expected)


@few
@example(FOUR_STAGES)
@given(cases)
def test_over_two_replicas(execution_mode, case):
    wide = dataclasses.replace(case, cuts=(1, 1, 1, 1))
    expected = on_the_cpu(wide, wide.count, replicas=2)
    schedule = list(PipelineSchedule)[case.seed % 3]
    shared = {"replicated_optimizer_state_sharding": True, "replicated_weight_sharding": True}
    program = pipelined(wide, wide.count, CrossReplicaOptimizer, pipeline_schedule=schedule, **shared)
    check("2 x 4 IPUs", on_ipus(wide, 8, UPDATES * wide.count * 2, program), expected)


@few
@example(FOUR_STAGES)
@given(cases)
def test_without_accumulation(execution_mode, case):
    case = dataclasses.replace(case, cuts=(2, 2))
    expected = on_the_cpu(case, 1)
    for what, ipus, program in (
        ("one IPU", 1, looped(case, 1, 1)),
        ("sharded", 2, looped(case, 1, 2)),
        ("pipelined", 2, pipelined(case, 1, pipeline_schedule=PipelineSchedule.Sequential)),
    ):
        check(what, on_ipus(case, ipus, UPDATES, program), expected)


@pytest.mark.slow
@examples(2)
@given(cases)
def test_random_cases(execution_mode, case):
    for test in (test_accumulated_over_one_replica, test_over_two_replicas, test_without_accumulation):
        test.hypothesis.inner_test(execution_mode, case)
