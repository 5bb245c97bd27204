"""Processes that share an executable cache."""

import pytest

pytestmark = pytest.mark.slow

PROGRAM = """
import sys
import tf_ipu_shim
import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
from tf_ipu_shim.compiling import lowered as lowering

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


@pytest.fixture
def cached(python):
    flags = {"TF_POPLAR_FLAGS": f"--executable_cache_path={python.directory / 'programs'}"}
    script = python.script(PROGRAM)

    def run():
        lowered, _, losses = python.succeeds(script, environment=flags).strip().partition(" ")
        return int(lowered), losses

    return run


def test_a_second_process_lowers_nothing_and_gives_the_same(cached, python):
    first, losses = cached()
    assert first > 0
    assert cached() == (0, losses)
    assert len(list((python.directory / "programs").glob("*.poplar_exec"))) == first


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
