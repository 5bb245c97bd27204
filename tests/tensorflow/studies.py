"""Programs that are studied for `tf-ipu fit`."""

import tensorflow as tf

from tf_ipu_shim.machine.cycles import Computation
from tf_ipu_shim.machine.memory import Block, MemoryPlan, Value
from tf_ipu_shim.runtime import study

v1 = tf.compat.v1


def program(ipu_bytes=4096, items=8.0):
    """A program of element-wise work on one IPU."""
    block = Block("IPU 0")
    x, y = block.add(Value(ipu_bytes, "x", "argument")), block.add(Value(ipu_bytes, "y", "temporary"))
    block.run("feed", (), (x,))
    block.run("double", (x,), (y,), work=Computation("elementwise", "double", (ipu_bytes // 4, 1, 1, 0)))
    plan = MemoryPlan(program="double", device="/device:IPU:0", chip="", ipus=())
    return study.Studied("double", plan, {0: block}, 1, 1, 2.0, items)
