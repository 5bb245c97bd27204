"""The log has no line of XLA about ops that it cannot convert, all lines about other ops, none of the import."""

import pytest

PROGRAM = """
import tensorflow as tf
from tf_ipu_shim import ipu
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()


@tf.function(jit_compile=True)
def shape_from_values(x):
    return tf.sin(tf.reshape(x, tf.cast(x, tf.int32)))


@tf.function(jit_compile=True)
def growing_array(x):
    rows = tf.TensorArray(tf.float32, size=0, dynamic_size=True)
    for i in tf.range(tf.cast(tf.reduce_sum(x), tf.int32)):
        rows = rows.write(i, x)
    return rows.stack()


strategy = ipu.ipu_strategy.IPUStrategyV1()
with strategy.scope():
    try:
        strategy.run(shape_from_values, args=[tf.ones([3])])
    except tf.errors.InvalidArgumentError as error:
        assert "Cannot compile shape_from_values" in str(error), error
    else:
        raise AssertionError("a shape from values was compiled")
    assert strategy.run(growing_array, args=[tf.ones([3])]).numpy().tolist() == [[1.0] * 3] * 3
"""
CPU_OP_THAT_FAILS = """
with tf.device("/CPU:0"):
    try:
        tf.raw_ops.ReadFile(filename="/no/such/file")
    except tf.errors.NotFoundError:
        pass
"""


@pytest.fixture(autouse=True)
def all_levels(monkeypatch):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")


def script(folder, text):
    path = folder / "script.py"  # a file, which AutoGraph reads
    path.write_text(text)
    return path


@pytest.mark.slow
def test_ops_that_xla_cannot_convert(python, tmp_path):
    process = python(script(tmp_path, PROGRAM))
    assert process.returncode == 0, process.stderr
    for text in ("OP_REQUIRES failed", "dummy_file_name", "TensorListSetItem"):
        assert text not in process.stderr
    assert "Compiled program growing_array" in process.stderr


def test_an_op_of_the_cpu_that_fails(python, tmp_path):
    """TensorFlow's own line about it, before and after a program of an IPU."""
    alone = python(script(tmp_path, "import tensorflow as tf" + CPU_OP_THAT_FAILS))
    after = python(script(tmp_path, PROGRAM + CPU_OP_THAT_FAILS))
    assert (alone.returncode, after.returncode) == (0, 0), alone.stderr + after.stderr
    assert alone.stderr.count("OP_REQUIRES failed") == after.stderr.count("OP_REQUIRES failed") > 0


@pytest.mark.subprocess
def test_building_shows_no_lines_of_tensorflow(python):
    process = python("-m", "tf_ipu_shim.cli", "build", environment={"TF_CPP_MIN_LOG_LEVEL": None})
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout.endswith(".so\n")
