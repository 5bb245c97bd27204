"""Applications that one process compiles and another runs; processes end with their engines."""

import json

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.slow, pytest.mark.one_version]

COMPILE = """
import tf_ipu_shim
import tensorflow as tf
from tensorflow.python import ipu

weight = tf.Variable([[1.0, 2.0], [3.0, 4.0]], name="weight")
infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(tf.zeros([1, 2])).repeat())
outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
ipu.application_compile_op.experimental_application_compile_op(
    lambda: ipu.loops.repeat(4, lambda x: outfeed.enqueue(x @ weight), [], infeed),
    output_path="model.poplar_exec", freeze_variables={freeze})
"""
RUN = """
import json
import tf_ipu_shim
import numpy as np
import tensorflow as tf
from tensorflow.python.ipu import embedded_runtime

context = embedded_runtime.embedded_runtime_start("model.poplar_exec", {inputs}, "engine")
results = [
    embedded_runtime.embedded_runtime_call([np.array([[1.0, index]], np.float32)], context)[0].numpy().tolist()
    for index in range({calls})
]
print(json.dumps(results))
"""


def test_another_process_runs_it(python):
    python.succeeds(python.script(COMPILE.format(freeze=True)))
    printed = python.succeeds(python.script(RUN.format(inputs="[]", calls=6)))
    assert json.loads(printed) == [[[1.0 + 3.0 * index, 2.0 + 4.0 * index]] for index in range(6)]


def test_another_process_sends_variables_and_ends_during_a_run(python):
    python.succeeds(python.script(COMPILE.format(freeze=False)))
    inputs = "{'XLA_Args/weight': 10.0 * np.eye(2, dtype=np.float32)}"
    printed = python.succeeds(python.script(RUN.format(inputs=inputs, calls=1)))
    assert json.loads(printed) == [[[10.0, 0.0]]]
    assert json.loads(python.succeeds(python.script(RUN.format(inputs=inputs, calls=0)))) == []
