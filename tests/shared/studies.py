"""Programs that are studied for `tf-ipu fit`."""

import tensorflow as tf
from harness import configure_for_plans

from tf_ipu_shim.cycle_model import Computation
from tf_ipu_shim.cycle_model.sizes import ElementwiseSizes
from tf_ipu_shim.frontend.strategies.ipu_strategy import IPUStrategyV1
from tf_ipu_shim.machine.memory import Block, MemoryPlan, Value
from tf_ipu_shim.runtime import captured_programs, devices

v1 = tf.compat.v1


def program(ipu_bytes=4096, items=8.0):
    """A program of element-wise work on one IPU."""
    block = Block("IPU 0")
    x, y = block.add(Value(ipu_bytes, "x", "argument")), block.add(Value(ipu_bytes, "y", "temporary"))
    block.run("feed", (), (x,))
    block.run("double", (x,), (y,), work=Computation("elementwise", "double", ElementwiseSizes(ipu_bytes // 4, 1)))
    plan = MemoryPlan(program="double", device="/device:IPU:0", chip="", ipus=())
    return captured_programs.CapturedProgram("double", plan, {0: block}, 1, 1, 2.0, items)


def of_run(ipus, function, count=1, recompute=False):
    """Runs a function under a study, on so many IPUs; gives the programs."""
    captured_programs.begin()
    try:
        devices.reset()
        if recompute:
            configure_for_plans(count, recompute)
        else:
            ipus(count)
        with IPUStrategyV1().scope():
            function()
    finally:
        found = captured_programs.end()
        devices.reset()
    return found
