"""Sessions are closed as soon as their program has run, while other threads may just leave its last collective.

Several processes at once: what is looked for needs a thread to lose its core between two lines.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

PROCESSES = 4
SCRIPT = """
import tensorflow as tf
from tf_ipu_shim import ipu
from tensorflow.python.ipu.ops import cross_replica_ops

v1 = tf.compat.v1
v1.disable_eager_execution()
config = ipu.config.IPUConfig()
config.auto_select_ipus = [2]
config.configure_ipu_system()

def model():
    return ipu.loops.repeat(2, lambda total: total + cross_replica_ops.cross_replica_sum(tf.ones([2])), [tf.zeros([2])])

with ipu.scopes.ipu_scope("/device:IPU:0"):
    result = ipu.ipu_compiler.compile(model)
for _ in range(700):
    with v1.Session() as session:
        assert session.run(result)[0].tolist() == [4, 4]
"""


def test_replicas_that_end_with_a_collective(tmp_path):
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_NUM_INTEROP_THREADS": "4"}
    processes = []
    for number in range(PROCESSES):
        # IPUs of its own for each, so that none waits for another.
        locks = tmp_path / str(number)
        locks.mkdir(mode=0o700)
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", SCRIPT],
                env={**environment, "TF_IPU_SHIM_LOCK_DIR": str(locks)},
                stderr=subprocess.PIPE,
                text=True,
            )
        )
    ends = [(process.communicate(timeout=600)[1], process.returncode) for process in processes]
    assert [code for _, code in ends] == [0] * PROCESSES, ends
