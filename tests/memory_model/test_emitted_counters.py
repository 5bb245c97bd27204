"""Counters of loops over several IPUs take no cycles, as in a repeat loop of IPUs."""

import numpy as np
import pytest
import tensorflow as tf

from tf_ipu_shim import ipu

pytestmark = pytest.mark.one_version


def _on_two_ipus(x, y, *counted):
    with ipu.scopes.ipu_shard(0):
        x = x * 2.0
    with ipu.scopes.ipu_shard(1):
        y = y + x
    return x, y, *counted


def _additions_of_integers(studied, body, *inputs):
    """The integer additions in the steps of a loop that is repeated 5 times."""

    def run():
        @tf.function(jit_compile=True)
        def program(*arguments):
            return ipu.loops.repeat(5, body, list(arguments))

        tf.distribute.get_strategy().run(program, args=list(inputs))

    def steps_of(block):
        for step in block.steps:
            yield step
            for inner in step.inside:
                yield from steps_of(inner)

    block = max(studied(run, 2), key=lambda one: one.plan.peak_bytes).blocks
    works = [step.work for each in block.values() for step in steps_of(each)]
    sizes = [getattr(work, "sizes", None) for work in works]
    return [one for one in sizes if getattr(one, "operation", "") == "add" and one.dtype == "int32"]


ROWS = np.ones([64, 64], np.float32)


def test_counters_of_sharded_loops_are_free(studied):
    assert not _additions_of_integers(studied, _on_two_ipus, ROWS, ROWS)


def test_a_count_that_is_used_is_computed(studied):
    def body(x, y, count):
        with ipu.scopes.ipu_shard(0):
            x = x * tf.cast(count, tf.float32)
        return _on_two_ipus(x, y, count + 1)

    assert len(_additions_of_integers(studied, body, ROWS, ROWS, np.int32(0))) == 1
