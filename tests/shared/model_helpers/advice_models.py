"""Models for tests of memory-saving advice, and their plans: lowered and planned, not run.

The chip is a GC200 with four tiles.
"""

import numpy as np
import pytest
import tensorflow as tf
from harness import configure_for_plans
from tf_ipu_shim.ipu import ipu_strategy

from tf_ipu_shim import ipu, keras2, memory_report
from tf_ipu_shim.machine.memory import best
from tf_ipu_shim.memory_model.advice import recommendations

v1 = tf.compat.v1
keras = keras2.public_module()
layers = keras.layers


@pytest.fixture(autouse=True)
def few_tiles(monkeypatch):
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model --ipu_model_tiles=4")
    monkeypatch.setattr(recommendations, "best", lambda found, count=9: best(found, count))  # not only three


def planned(run, ipus=1, recompute=False):
    """The plan of the largest program of a function, on so many IPUs."""
    configure_for_plans(ipus, recompute)
    try:
        run()
    except tf.errors.InternalError as error:
        if "Out of memory" not in str(error):
            raise
    plan = max(memory_report().devices[0].programs, key=lambda one: one.peak_bytes)
    assert not plan.coarse
    return plan


def compiled(model, *arguments):
    """A TensorFlow 1 program."""

    def run():
        with tf.Graph().as_default():
            fed = [v1.placeholder(one.dtype, one.shape) for one in arguments]
            with ipu.scopes.ipu_scope("/device:IPU:0"):
                program = ipu.ipu_compiler.compile(model, fed)
            with v1.Session() as session:
                session.run(v1.global_variables_initializer())
                session.run(program, dict(zip(fed, arguments)))

    return run


def fitted(model, batch, optimizer="sgd", options=None, floats="float32", samples=8):
    """Training of a Keras model that a function makes."""

    def run():
        with ipu_strategy.IPUStrategy().scope():
            keras.backend.set_floatx(floats)
            try:
                made = model()
                made.compile(optimizer, "mse", steps_per_execution=samples)
                if options is not None:
                    options(made)
                x = np.zeros([batch * samples, *made.input_shape[1:]], floats)
                made.fit(x, np.zeros([batch * samples, *made.output_shape[1:]], floats), batch_size=batch, verbose=0)
            finally:
                keras.backend.set_floatx("float32")

    return run


def staged(begins, **pipelining):
    """Options of a Keras model whose stages begin with layers of these numbers."""

    def set_options(model):
        assignments = model.get_pipeline_stage_assignment()
        for number, assignment in enumerate(assignments):
            assignment.pipeline_stage = sum(number >= begin for begin in begins)
        model.set_pipeline_stage_assignment(assignments)
        model.set_pipelining_options(gradient_accumulation_steps_per_replica=8, **pipelining)

    return set_options


def deep():
    made = [layers.Dense(64, "tanh", input_shape=(64,), name=f"layer{number}") for number in range(8)]
    return keras.Sequential(made)
