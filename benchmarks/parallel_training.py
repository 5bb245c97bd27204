"""Pipelines against their stages one after another, replicas against `MirroredStrategy`, both over the CPU's cores."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks import training_loops
from benchmarks.programs import forms, models
from benchmarks.results import Result
from benchmarks.runner import Call, Settings, compare
from benchmarks.training_loops import dataset

AT_LEAST = 1.0
BALANCED = 1 / 1.3
STAGES = 4
PAIRS = 15
RATE = 0.01


def run(settings: Settings) -> Iterator[Result]:
    import tensorflow as tf

    from tf_ipu_shim import ipu

    forms.configure(STAGES, num_cpus=STAGES)
    settings = dataclasses.replace(settings, pairs=min(settings.pairs, PAIRS))
    count = 8 if settings.quick else 32
    for width, target in ((16, AT_LEAST),) if settings.quick else ((16, AT_LEAST), (512, AT_LEAST), (1024, BALANCED)):
        for jit in (False, True):
            name = f"pipeline of {STAGES} stages {width} wide, stages in turn {'jit' if jit else 'op by op'}"
            task = _Stages(width, batch=8 if width == 16 else 64, count=count)
            yield compare(name, task.pipelined(), task.in_turn(jit), settings, ratio=target, tolerance=1e-3)
    steps = 8 if settings.quick else 50
    for replicas in (2, 4):
        ipu.config.reset_ipu_configuration()
        forms.configure(replicas, num_cpus=STAGES)
        for widths in ([784, 32, 10],) if settings.quick else ([784, 32, 10], [784, 512, 512, 10]):
            for in_graph in (False, True):
                call = "a loop in a tf.function" if in_graph else "a call a step"
                name = f"{replicas} replicas of MLP {'-'.join(map(str, widths))}, MirroredStrategy with {call}"
                model = models.mlp_step(32, widths, name)
                with tf.init_scope():
                    reference = mirrored(model, replicas, steps, in_graph)
                ours = replicated(model, steps, widths)
                yield compare(name, ours, reference, settings, ratio=AT_LEAST, tolerance=1e-3)


@dataclasses.dataclass(frozen=True)
class _Stages:
    """Layers of one width, trained with one update for several mini-batches."""

    width: int
    batch: int
    count: int

    def weights(self) -> list[np.ndarray]:
        generator = np.random.default_rng(0)
        shape = (self.width, self.width)
        return [(generator.standard_normal(shape) / np.sqrt(self.width)).astype("f") for _ in range(STAGES)]

    def data(self) -> Any:
        import tensorflow as tf

        x = np.random.default_rng(1).random((self.count, self.batch, self.width), np.float32)
        with tf.device(forms.CPU):
            return tf.data.Dataset.from_tensor_slices(x).repeat()

    @staticmethod
    def stage(number: int, x: Any, weight: Any) -> Any:
        """Two layers; the last stage gives the loss."""
        import tensorflow as tf

        x = tf.tanh(tf.matmul(tf.tanh(tf.matmul(x, weight)), weight))
        return x if number < STAGES - 1 else tf.reduce_mean(tf.square(x - 0.5))

    def pipelined(self) -> Call:
        """`pipelining_ops.pipeline` over four IPUs."""
        import tensorflow as tf
        from tf_ipu_shim.ipu.ops import pipelining_ops

        from tf_ipu_shim import ipu

        tf1 = tf.compat.v1
        with tf.Graph().as_default():
            infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(self.data())
            outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

            def stage(number: int) -> Any:
                def function(x: Any) -> Any:
                    value = tf1.constant_initializer(self.weights()[number])
                    weight = tf1.get_variable(f"w{number}", [self.width] * 2, initializer=value, use_resource=True)
                    return self.stage(number, x, weight)

                return function

            def update(loss: Any) -> Any:
                return pipelining_ops.OptimizerFunctionOutput(tf1.train.GradientDescentOptimizer(RATE), loss)

            with ipu.scopes.ipu_scope(forms.IPU):
                program = ipu.ipu_compiler.compile(
                    lambda: pipelining_ops.pipeline(
                        [stage(number) for number in range(STAGES)],
                        self.count,
                        infeed_queue=infeed,
                        outfeed_queue=outfeed,
                        optimizer_function=update,
                    )
                )
            losses = outfeed.dequeue()
            session = tf1.Session()
            session.run([tf1.global_variables_initializer(), infeed.initializer])

        def call() -> Any:
            session.run(program)
            return session.run(losses)

        return Call(call)

    def in_turn(self, jit: bool) -> Call:
        """Returns the stages of a mini-batch one after another on the CPU, in one function for all mini-batches."""
        import tensorflow as tf

        with tf.device(forms.CPU):
            weights = [tf.Variable(value) for value in self.weights()]
            batches = iter(self.data())

        def mini_batch(x: Any) -> Any:
            with tf.GradientTape() as tape:
                for number, weight in enumerate(weights):
                    x = self.stage(number, x, weight)
            return x, tape.gradient(x, weights)

        step = tf.function(mini_batch, autograph=False, jit_compile=jit)

        @tf.function
        def function(iterator: Any) -> Any:
            losses = tf.TensorArray(tf.float32, self.count)
            totals = [tf.zeros_like(weight) for weight in weights]
            for index in tf.range(self.count):
                loss, gradients = step(next(iterator))
                totals = [total + gradient for total, gradient in zip(totals, gradients)]
                losses = losses.write(index, loss)
            for weight, total in zip(weights, totals):
                weight.assign_sub(RATE * total)
            return losses.stack()

        def call() -> Any:
            with tf.device(forms.CPU):
                return function(batches)

        return Call(call)


def replicated(model: models.Model, steps: int, widths: list[int]) -> Call:
    """Returns a loop on the device; gradients are summed over the replicas."""
    from tf_ipu_shim import ipu

    total = ipu.ops.cross_replica_ops.cross_replica_sum
    return training_loops.on_device(models.mlp_step(32, widths, model.name, total), steps)


def mirrored(model: models.Model, replicas: int, steps: int, in_graph: bool) -> Call:
    """`MirroredStrategy` over logical CPU devices; variables sum what replicas assign."""
    import tensorflow as tf

    strategy = tf.distribute.MirroredStrategy([f"/cpu:{index}" for index in range(replicas)])
    with strategy.scope():
        variables = [tf.Variable(value, aggregation=tf.VariableAggregation.SUM) for value in model.variables]
    batches = iter(strategy.distribute_datasets_from_function(lambda context: dataset(model)))

    def step(iterator: Any) -> Any:
        losses = strategy.run(lambda *x: model.function(variables, *x), args=next(iterator))
        return tf.stack(strategy.experimental_local_results(losses))

    @tf.function
    def one(iterator: Any) -> Any:
        return step(iterator)

    @tf.function
    def many(iterator: Any) -> Any:
        losses = tf.TensorArray(tf.float32, steps)
        for index in tf.range(steps):
            losses = losses.write(index, step(iterator))
        return losses.stack()

    if in_graph:
        return Call(lambda: many(batches))
    return Call(lambda: np.stack([one(batches).numpy() for _ in range(steps)]))
