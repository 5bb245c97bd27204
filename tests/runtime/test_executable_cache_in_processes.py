"""Processes that share an executable cache."""

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.slow, pytest.mark.one_version]

PROGRAM = """
import sys
import tf_ipu_shim
import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
from tf_ipu_shim.driver import planned_program as lowering

lowered = []
lower = lowering.lower
lowering.lower = lambda *arguments, **options: lowered.append(1) or lower(*arguments, **options)
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
strategy = ipu.ipu_strategy.IPUStrategyV1()
with strategy.scope():
    tf.random.set_seed(1)
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential([tf.keras.layers.Dense(4, input_shape=(3,)), tf.keras.layers.Dense(1)])
    model.compile(tf.keras.optimizers.SGD(0.01), "mse", steps_per_execution=4)
    x = np.arange(48.0, dtype=np.float32).reshape(16, 3) / 48
    history = model.fit(x, x.sum(axis=1), batch_size=4, epochs=2, verbose=0, shuffle=False)
print(len(lowered), [float(loss).hex() for loss in history.history["loss"]])
"""

# What TensorFlow numbers as a process goes: gradient functions, iterators' handles, tensors that a loop hands back.
NUMBERED = """
import tf_ipu_shim
import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
from tf_ipu_shim.driver import planned_program as lowering

lowered = []
lower = lowering.lower
lowering.lower = lambda *arguments, **options: lowered.append(1) or lower(*arguments, **options)
config = ipu.config.IPUConfig()
config.auto_select_ipus = 2
config.configure_ipu_system()
strategy = ipu.ipu_strategy.IPUStrategyV1()


@tf.custom_gradient
def doubled(x):
    return 2.0 * x, lambda upstream: 3.0 * upstream


def gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        result = doubled(x) * x
    return tape.gradient(result, x)


def total(iterator):
    result = tf.zeros([2])
    for _ in tf.range(3):
        result += next(iterator)
    return result


x = np.arange(48.0, dtype=np.float32).reshape(16, 3) / 48
results = []
with strategy.scope():
    results.append(strategy.run(tf.function(gradient), [tf.constant([1.0, 2.0])]).numpy().tolist())
    dataset = tf.data.Dataset.from_tensors([1.0, 2.0]).repeat()
    results.append(strategy.run(tf.function(total), [iter(dataset)]).numpy().tolist())
    tf.keras.utils.set_random_seed(1)
    given = tf.keras.Input([3])
    with ipu.keras.PipelineStage(0):
        hidden = tf.keras.layers.Dense(4)(given)
    with ipu.keras.PipelineStage(1):
        result = tf.keras.layers.Dense(1)(hidden)
    model = tf.keras.Model(given, result)
    model.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
    model.compile(tf.keras.optimizers.SGD(0.01), "mse", steps_per_execution=4)
    history = model.fit(x, x.sum(axis=1), batch_size=4, epochs=2, verbose=0, shuffle=False)
assert results == [[5.0, 10.0], [3.0, 6.0]], results  # 3x + 2x, and three elements
print(len(lowered), [float(loss).hex() for loss in history.history["loss"]])
"""


@pytest.fixture
def cached(python):
    flags = {"TF_POPLAR_FLAGS": f"--executable_cache_path={python.directory / 'programs'}"}
    scripts: dict[str, object] = {}

    def run(program=PROGRAM):
        script = scripts[program] = scripts.get(program) or python.script(program)
        lowered, _, losses = python.succeeds(script, environment=flags).strip().partition(" ")
        return int(lowered), losses

    return run


@pytest.mark.parametrize("program", [PROGRAM, NUMBERED], ids=["keras", "numbered"])
def test_a_second_process_lowers_nothing_and_gives_the_same(cached, python, program):
    first, losses = cached(program)
    assert first > 0
    assert cached(program) == (0, losses)
    assert len(list((python.directory / "programs").glob("*.ipu_program"))) == first


def test_processes_at_the_same_time_share_it(python):
    environment = {"TF_POPLAR_FLAGS": f"--executable_cache_path={python.directory / 'programs'}"}
    script = python.script(PROGRAM)
    code = (
        "import subprocess, sys; "
        f"running = [subprocess.Popen([sys.executable, {str(script)!r}], stdout=subprocess.PIPE) for _ in range(3)]; "
        "printed = [process.communicate()[0].decode().split(' ', 1)[1] for process in running]; "
        "assert {process.returncode for process in running} == {0}; assert len(set(printed)) == 1, printed"
    )
    python.succeeds("-c", code, environment=environment, timeout=300)
