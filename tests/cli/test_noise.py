"""What a script's user sees of the log, by default and with the runner's options."""

import pytest
from slow_cases import slowly

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

SCRIPT = """
import sys
import tensorflow as tf
from tensorflow.python import ipu
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
x = tf.placeholder(tf.float32, [2, 3])
with ipu.scopes.ipu_scope("/device:IPU:0"):
    y = tf.layers.dense(x, 2, use_bias=False)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    print(session.run(y, {x: [[1, 2, 3], [4, 5, 6]]}).shape)
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        compiled = ipu.ipu_compiler.compile(lambda a: 2.0 * a, [x])
    session.run(compiled, {x: [[1, 2, 3], [4, 5, 6]]})
print("the script's own", file=sys.stderr)
"""
ATTACHED = "TensorFlow device /device:IPU:0 attached to 1 IPU with Poplar device ID: 0"


@pytest.mark.parametrize(
    ("options", "driver", "tensorflow"),
    [((), True, False), slowly(("--quiet",), False, False)],
    ids=["default", "quiet"],
)
def test_lines_of_the_driver_and_of_tensorflow(python, options, driver, tensorflow):
    script = python.script(SCRIPT)
    variables = {"TF_CPP_MIN_LOG_LEVEL": None, "TF_IPU_SHIM_LOG_LEVEL": None, "CUDA_VISIBLE_DEVICES": "-1"}
    process = python("-m", "tf_ipu_shim", *options, "--execution", "xla", "--tf1", script, environment=variables)
    assert (process.returncode, process.stdout) == (0, "(2, 2)\n"), process.stderr
    assert (ATTACHED in process.stderr) == driver
    assert ("is deprecated" in process.stderr) == tensorflow
    assert ("This TensorFlow binary is optimized" in process.stderr) == tensorflow
    lines = process.stderr.splitlines()
    assert lines[-1] == "the script's own"  # nothing comes at exit
    if not tensorflow:
        assert [line for line in lines[:-1] if "/plugin/poplar/" not in line] == []


@pytest.mark.slow
def test_advice_of_keras_about_gpus(python):
    text = "from tensorflow import keras\nfrom tensorflow.python import ipu\nimport tensorflow as tf\n"
    text += "keras.mixed_precision.set_global_policy('mixed_float16')\ntf.get_logger().warning('the script\\'s')\n"
    process = python("-m", "tf_ipu_shim", python.script(text), environment={"TF_CPP_MIN_LOG_LEVEL": None})
    assert (process.returncode, process.stderr) == (0, "WARNING:tensorflow:the script's\n")


def test_lines_that_tensorflow_writes_while_it_is_imported(python):
    """Past Python, before it looks at the level; what else is written there is shown at once, whatever happens then."""
    first = "I0000 00:00:1795398485.695074   17938 port.cc:153] oneDNN custom operations are on."
    package = python.directory / "tensorflow"
    package.mkdir()
    text = f"import os, signal\nos.write(2, b'''WARNING: All log messages before absl::InitializeLog() ...\n{first}\n"
    text += "F0000 00:00:1795398485.695427   17938 cpu.cc:3] No AVX.\nE0000 and this''')\n"
    (package / "__init__.py").write_text(text)
    variables = {"TF_IPU_SHIM_COMPAT": "stock", "TF_CPP_MIN_LOG_LEVEL": None}
    script = python.script("import os, tensorflow\nos.write(2, b' after it\\n')\n")
    process = python("-m", "tf_ipu_shim", script, environment=variables)
    assert process.stderr == "F0000 00:00:1795398485.695427   17938 cpu.cc:3] No AVX.\nE0000 and this\n after it\n"
    (package / "__init__.py").write_text(text + "os.abort()\n")
    process = python("-m", "tf_ipu_shim", script, environment=variables)
    assert process.returncode < 0 and process.stderr.startswith("F0000 ")


@pytest.mark.parametrize(("error", "shown"), [(303, False), (999, True)], ids=["no driver", "a driver's error"])
def test_no_driver_of_gpus_is_no_error(python, error, shown):
    """The package `tensorflow` says so with its first device; it is made to while the import's lines are left out."""
    python_folder = python.directory / "tensorflow" / "python"
    python_folder.mkdir(parents=True)
    line = f"E0000 00:00:1795596672.494415    4982 cuda_platform.cc:52] failed call to cuInit: INTERNAL: ({error})"
    (python_folder.parent / "__init__.py").write_text("from tensorflow import sysconfig\n")
    (python_folder.parent / "sysconfig.py").write_text("def get_build_info(): return {'is_cuda_build': True}\n")
    (python_folder / "__init__.py").write_text("")
    (python_folder / "pywrap_tfe.py").write_text(
        f"import os, sys\ndef TF_ListPhysicalDevices():\n    os.write(2, b'{line}\\n')\n    print('looked')\n"
    )
    script = python.script("import tensorflow\n")
    variables = {"TF_IPU_SHIM_COMPAT": "stock", "TF_CPP_MIN_LOG_LEVEL": None}
    process = python("-m", "tf_ipu_shim", script, environment=variables)
    assert (process.returncode, process.stdout) == (0, "looked\n"), process.stderr
    assert process.stderr == (f"{line}\n" if shown else "")
