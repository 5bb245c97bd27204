"""Ops and layers for neural networks in a script that turns TensorFlow 2 off, as those of TensorFlow 1 do."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap

import pytest
from checkout import ROOT

pytestmark = [pytest.mark.subprocess, pytest.mark.slow, pytest.mark.one_version]

SCRIPT = """
import numpy as np
import tensorflow.compat.v1 as tf
tf.disable_v2_behavior()
from tensorflow.python import ipu
from ipu_tensorflow_addons.layers import PopnnDynamicGRU, PopnnLSTM

config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
x = np.random.RandomState(1).normal(size=[4, 3, 6]).astype(np.float32)
labels = np.array([[1], [2], [3]], np.int32)

def model(x):
    outputs, state = PopnnLSTM(8)(x)
    hidden, _ = PopnnDynamicGRU(6)(outputs, np.array([4, 2, 3], np.int32))
    hidden = ipu.normalization_ops.group_norm(hidden[-1] + 1.0, groups=3)
    hidden = ipu.normalization_ops.instance_norm(ipu.normalization_ops.layer_norm(hidden))
    hidden = ipu.nn_ops.softmax(ipu.nn_ops.gelu(ipu.rand_ops.dropout(hidden, 0.5, noise_shape=[3, 1], seed=[1, 2])))
    loss = ipu.nn_ops.ctc_loss_v2(labels, outputs, np.ones([3], np.int32), np.full([3], 4, np.int32), 0)
    found = ipu.nn_ops.ctc_beam_search_decoder(outputs, np.full([3], 4, np.int32), 4, 1, 0)
    table = tf.get_variable("table", initializer=np.ones([9, 6], np.float32), use_resource=True)
    sampled = ipu.nn_ops.sampled_softmax_loss(table, tf.zeros([9]), labels, hidden, 4, 9)
    gradients = tf.gradients(tf.reduce_sum(hidden * hidden) + tf.reduce_sum(loss), tf.trainable_variables()[:2])
    return [hidden, state.h, loss, *found, sampled, *gradients]

def layers(x):
    embedded = ipu.keras.layers.Embedding(5, 6)(tf.constant([[1, 2, 3]] * 4))
    x = x + embedded
    norm = ipu.keras.layers.GroupNorm(tf.float32, 2)
    lstm = ipu.keras.layers.LSTM(4, return_sequences=True)
    dense = ipu.keras.layers.SerialDense(4, 2, "kernel_rows")
    return [dense(ipu.keras.layers.LayerNorm()(norm(lstm(x))))]

fed = tf.placeholder(tf.float32, x.shape)
with ipu.scopes.ipu_scope("/device:IPU:0"):
    built = ipu.ipu_compiler.compile(model, [fed]) + ipu.ipu_compiler.compile(layers, [fed])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    results = session.run(built, {fed: x})
print([result.shape for result in results])
print([bool(np.all(np.isfinite(result))) for result in results])
np.testing.assert_allclose(results[0].sum(1), np.ones(3), 1e-5)
"""


@pytest.mark.parametrize("mode", [[], ["-m", "tf_ipu_shim", "--tf1"]], ids=["disable_v2_behavior", "--tf1"])
def test_ops_and_layers_with_tensorflow_2_off(mode: list[str], tmp_path: pathlib.Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    done = subprocess.run(
        [sys.executable, *mode, str(script)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    shapes, finite = done.stdout.strip().splitlines()
    expected = [(3, 6), (3, 8), (3,), (3, 1), (3, 1), (3, 1, 4), (3,), (14, 32), (4, 8), (4, 3, 4)]
    assert shapes == str(expected)
    assert "False" not in finite


def test_loaded_layers_stay_when_names_are_installed_again(python):
    """As a second call of the runner in a process does."""
    python.succeeds(
        "-c",
        "from tensorflow.python import ipu\n"
        "from tensorflow.python.layers import normalization\n"
        "before = normalization.normalization.BatchNormalization\n"
        "from tf_ipu_shim.legacy.names.tensorflow import legacy_normalization\n"
        "legacy_normalization.install()\n"
        "assert normalization.normalization.BatchNormalization is before\n",
    )
