"""What authors of scripts get wrong first: each error is shown once and last, short, with their line and what to do.

All run in one process, which shows each as an uncaught error of a script is shown.
"""

import json
import re
from typing import NamedTuple

import pytest

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

IMPORTS = (
    "import numpy as np\nimport tensorflow as tf\nfrom tensorflow import keras\nfrom tensorflow.python import ipu\n"
)
CONFIGURED = IMPORTS + "config = ipu.config.IPUConfig()\nconfig.auto_select_ipus = {}\nconfig.configure_ipu_system()\n"
STRATEGY = CONFIGURED + "strategy = ipu.ipu_strategy.IPUStrategy()\n"
DENSE = "    model = keras.Sequential([keras.layers.Dense(2, input_shape=(3,))])\n"
FIT = "model.fit(np.ones([8, 3], 'f'), np.ones([8, 2], 'f'), batch_size=2, verbose=0)\n"
STAGES = """with strategy.scope():
    data = keras.Input((4,))
    with ipu.keras.PipelineStage(0):
        x = keras.layers.Dense(4)(data)
    with ipu.keras.PipelineStage(1):
        x = keras.layers.Dense(2)(x)
    model = keras.Model(data, x)
    {}
    model.compile("sgd", "mse", steps_per_execution=4)
    model.fit(np.ones([32, 4], "f"), np.ones([32, 2], "f"), batch_size=4, verbose=0)
"""
FUNCTION = """@tf.function(jit_compile=True)
def step(x):
    {}
with strategy.scope():
    strategy.run(step, [tf.ones([2])])
"""
LAYER = """class Mine(keras.layers.Layer):
    def call(self, x):
        {}
        return x
with strategy.scope():
    model = keras.Sequential([keras.Input((4,)), Mine()])
    model.compile("sgd", "mse")
    model.predict(np.ones([8, 4], "f"), batch_size=4, verbose=0)
"""


class Mistake(NamedTuple):
    """A script, and what its error says: what is wrong, the line it names beside those of the traceback, what to do."""

    script: str
    wrong: str
    cure: str
    line: str = ""
    longest: int = 9


MISTAKES = {
    "configure_is_forgotten": Mistake(
        IMPORTS
        + "strategy = ipu.ipu_strategy.IPUStrategy()\n"
        + FUNCTION.format("with ipu.scopes.ipu_shard(1): return x + 1"),
        "no IPU system is configured",
        "call its configure_ipu_system() before the program runs",
        line="ipu_shard(1)",
    ),
    "shard_of_no_ipu": Mistake(
        STRATEGY.format(2) + FUNCTION.format("with ipu.scopes.ipu_shard(5): return x + 1"),
        "the device has 2 IPUs",
        "Select more IPUs with IPUConfig.auto_select_ipus",
        line="ipu_shard(5)",
    ),
    "model_outside_the_scope": Mistake(
        STRATEGY.format(1) + "if True:\n" + DENSE + "model.compile('sgd', 'mse')\nwith strategy.scope():\n    " + FIT,
        "was made outside the scope of the IPUStrategy",
        "`with strategy.scope(): model = ...`",
    ),
    "three_ipus": Mistake(CONFIGURED.format(3), "could not find an IPU device with 3 IPUs", "Ask for 4"),
    "more_ipus_than_there_are": Mistake(CONFIGURED.format(32), "with 32 IPUs", "Simulate a larger system"),
    "no_such_device": Mistake(
        CONFIGURED.format(1) + "with ipu.scopes.ipu_scope('/device:IPU:1'):\n    tf.ones([2]) + 1\n",
        "There is no TensorFlow device /device:IPU:1",
        "one entry for each TensorFlow device",
    ),
    "pipeline_count": Mistake(
        STRATEGY.format(2) + STAGES.format("model.set_pipelining_options(gradient_accumulation_steps_per_replica=3)"),
        "is not divisible by `gradient_accumulation_steps_per_replica` (3)",
        "`compile(steps_per_execution=...)` or `set_pipelining_options()`",
    ),
    "pipeline_options_are_forgotten": Mistake(
        STRATEGY.format(2) + STAGES.format(""), "hasn't been set", "Set it with `set_pipelining_options()`"
    ),
    "pipeline_on_too_few_ipus": Mistake(
        STRATEGY.format(1) + STAGES.format("model.set_pipelining_options(gradient_accumulation_steps_per_replica=4)"),
        "requires a multiple of 2 IPUs",
        "Set auto_select_ipus of the IPUConfig to 2",
    ),
    "op_in_a_layer": Mistake(
        STRATEGY.format(1) + LAYER.format("x += tf.reduce_sum(tf.unique(tf.reshape(x, [-1]))[0])"),
        "must be fully defined at compile time",
        "a mask of fixed size instead",
        line="tf.unique",
        longest=10,
    ),
    "print_in_a_layer": Mistake(
        STRATEGY.format(1) + LAYER.format("tf.print('x', x)"),
        "Detected unsupported operations",
        "print a tensor with ipu.internal_ops.print_tensor",
        line="tf.print",
        longest=10,
    ),
    "print": Mistake(
        STRATEGY.format(1) + FUNCTION.format("tf.print(x)"),
        "Detected unsupported operations",
        "print a tensor with ipu.internal_ops.print_tensor",
        line="tf.print",
    ),
    "the_end_of_a_dataset": Mistake(
        STRATEGY.format(1)
        + "queue = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(np.ones([2], 'f')))\n"
        + FUNCTION.format("return ipu.loops.repeat(9, lambda t, x: t + x, [x], queue)"),
        "has no more elements",
        "End it with .repeat()",
    ),
    "batches_of_any_size": Mistake(
        STRATEGY.format(1)
        + "with strategy.scope():\n"
        + DENSE
        + "    model.compile('sgd', 'mse')\n"
        + "    model.fit(tf.data.Dataset.from_tensors((np.ones([3], 'f'), np.ones([2], 'f'))).batch(2))\n",
        "is not fully defined",
        "drop_remainder=True",
    ),
    "steps_per_execution": Mistake(
        STRATEGY.format(1)
        + "with strategy.scope():\n"
        + DENSE
        + "    model.compile('sgd', 'mse', steps_per_execution=3)\n    "
        + FIT,
        "must be a divisor of the number of batches (4)",
        "change `steps_per_execution` in compile",
    ),
    "64_bits": Mistake(
        CONFIGURED.format(1) + "ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.range(10))\n",
        "Unsupported datatype int64",
        "Cast it in the dataset",
    ),
    "out_of_memory": Mistake(
        STRATEGY.format(1) + FUNCTION.format("return tf.reduce_sum(tf.random.normal([20000, 20000]) ** x[0])"),
        "Out of memory on tile",
        "debug.allowOutOfMemory",
        line="tf.random.normal",
        longest=20,
    ),
    "a_tensor_that_grows": Mistake(
        STRATEGY.format(1) + FUNCTION.format("while tf.reduce_sum(x) < 9.0: x = tf.concat([x, x], 0)"),
        "has shape (2,) before the loop",
        "write a part of it in each iteration",
    ),
    "numpy_on_tensors": Mistake(
        STRATEGY.format(1) + FUNCTION.format("return np.sum(x)"), "to a numpy array", "tf.reduce_sum for np.sum"
    ),
    "misspelt_option": Mistake(
        CONFIGURED.format(1) + "config.auto_select_ipu = 1\n",
        "not a valid attribute",
        "Did you mean 'auto_select_ipus'",
    ),
    "misspelt_name": Mistake(
        IMPORTS + "ipu.pipelining_ops.pipelines\n", "has no attribute 'pipelines'", "Did you mean 'pipeline'"
    ),
    "tensorflow_1": Mistake(IMPORTS + "tf.placeholder(tf.float32)\n", "no attribute 'placeholder'", "run --tf1"),
    "another_framework": Mistake("import popart\n", "No module named 'popart'", "tf_ipu_shim emulates its TensorFlow"),
}

SHOW = """
import json, pathlib, sys, traceback
from tensorflow.python import ipu
from tf_ipu_shim.runtime.errors import error_display
shown = {}
for name in sys.argv[1:]:
    code = compile(pathlib.Path(name + ".py").read_text(), name + ".py", "exec")
    try:
        exec(code, {"__name__": name})
    except Exception as error:
        shown[name] = error_display.display_text(error, error.__traceback__.tb_next)
    ipu.config.reset_ipu_configuration()
print(json.dumps(shown))
"""


@pytest.fixture(scope="module")
def shown(module_forked):
    """What is shown of each."""
    for name, mistake in MISTAKES.items():
        module_forked.script(mistake.script, f"{name}.py")
    printed = module_forked.succeeds(module_forked.script(SHOW), *MISTAKES)
    return json.loads(printed.splitlines()[-1])


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(shown, name):
    mistake, text = MISTAKES[name], shown[name]
    lines = text.rstrip().splitlines()
    files = re.findall(r'^  File "(.+)", line \d+, in ', text, re.M)
    assert files and set(files) == {f"{name}.py"}, text
    assert text.count(mistake.wrong) == 1, text
    assert mistake.cure in "\n".join(lines[-2:]), text
    assert len(lines) <= mistake.longest, text
    for number, source in enumerate(mistake.script.splitlines(), 1):
        if mistake.line and mistake.line in source:
            assert f"{name}.py:{number}, in " in text, text
