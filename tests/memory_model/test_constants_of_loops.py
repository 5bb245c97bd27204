"""Constants that loops begin with, such as lists of zeros: they are written where the loop begins."""

import numpy as np
import pytest
import tensorflow as tf

from tf_ipu_shim import ipu
from tf_ipu_shim.machine.memory.liveness import order_of

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
LOOPS = 3


def _sum_of_list(x):
    """A loop that fills a list; what it takes needs more memory than the list."""
    product = tf.matmul(x, x, transpose_a=True)
    rows = tf.TensorArray(tf.float32, 8, element_shape=x.shape)
    filled = tf.while_loop(lambda i, _: i < 8, lambda i, rows: (i + 1, rows.write(i, x * product[i])), [0, rows])[1]
    return tf.reduce_sum(filled.stack())


def test_a_loop_writes_its_zeros_when_it_begins(studied):
    def training(x):
        return sum(_sum_of_list(x + float(number)) for number in range(LOOPS))

    def run():
        with tf.Graph().as_default(), v1.Session() as session:
            fed = v1.placeholder(tf.float32, [32, 512])
            with ipu.scopes.ipu_scope("/device:IPU:0"):
                program = ipu.ipu_compiler.compile(training, [fed])
            session.run(program, {fed: np.zeros([32, 512], np.float32)})

    block = max(studied(run), key=lambda one: one.plan.peak_bytes).blocks[0]
    order = list(order_of(block))
    written = {index: step for index, step in enumerate(block.steps) if step.late}
    assert len(written) == LOOPS and not any(step.inputs for step in written.values())
    for index, step in written.items():
        loop = next(other for other in order if set(step.outputs) & set(block.steps[other].inputs))
        assert block.steps[loop].loops and order.index(loop) == order.index(index) + 1
