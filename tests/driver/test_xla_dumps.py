"""`XLA_FLAGS` of a script: XLA reads it once a process."""

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

SCRIPT = """
import tensorflow as tf
from tensorflow.python import ipu

ipu.config.IPUConfig().configure_ipu_system()


@tf.function(jit_compile=True)
def small(x):
    return tf.matmul(x, x) + 1.0


print(ipu.ipu_strategy.IPUStrategy().run(small, [tf.ones([2, 2])]).numpy().tolist())
"""


@pytest.mark.slow
def test_what_is_dumped_is_compiled(python):
    """The program is one that runs by kernels by default, of which XLA would see nothing."""
    script, directory = python.script(SCRIPT), python.directory / "dump"
    flags = f"--xla_dump_to={directory} --xla_dump_hlo_as_dot --xla_dump_hlo_pass_re=forward-allocation"
    expected = "[[3.0, 3.0], [3.0, 3.0]]\n"
    process = python(script, environment={"XLA_FLAGS": flags, "TF_IPU_SHIM_EXECUTION_MODE": "kernels"})
    assert (process.returncode, process.stdout) == (0, expected), process.stderr
    assert not directory.exists()
    process = python(script, environment={"XLA_FLAGS": flags, "TF_IPU_SHIM_EXECUTION_MODE": None})
    assert (process.returncode, process.stdout) == (0, expected), process.stderr
    dumped = [path.read_text() for path in directory.glob("*small*before_optimizations*.dot")]
    assert len(dumped) == 1 and "digraph" in dumped[0] and "dot" in dumped[0]
