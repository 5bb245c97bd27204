"""`python -m tf_ipu_shim` and `tf-ipu run`: what the script sees, and what its user sees."""

import importlib.util
import re
import sys
import textwrap

import pytest
from slow_cases import slowly

from tf_ipu_shim import cli
from tf_ipu_shim.cli import runner

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

MODULE = ("-m", "tf_ipu_shim")
COMMAND = ("-m", "tf_ipu_shim.cli", "run")


def test_script_sees_what_python_would_give_it(python):
    text = """
import atexit, os, sys
import beside
def later(): print("later", GLOBAL)
GLOBAL = 7
atexit.register(later)
print(sys.argv, __name__, os.path.basename(__file__), sys.path[0], sys.modules["__main__"].GLOBAL)
"""
    (python.directory / "scripts").mkdir()
    script = python.script(text, "scripts/script.py")
    python.script("", "scripts/beside.py")
    arguments = ("scripts/script.py", "--tf1", "-m", "--", "x y")
    expected = python.succeeds(*arguments)
    assert python.succeeds(*MODULE, *arguments) == expected
    assert str(script.parent) in expected


def test_a_script_on_standard_input(python):
    text = (
        "import inspect, sys\n"
        "def f():\n"
        "    return 7\n"
        "print(sys.argv, __name__, sys.path[0] == '', __file__, f(), sys.modules['__main__'].f is f)\n"
        "{}\n"
    )
    seen = python.succeeds("-", "-x", "a", stdin=text.format(""))
    shown = repr("def f():\n    return 7\n")  # which `python -` does not know, and autograph needs
    for command in (MODULE, COMMAND):
        arguments = (*command, "-", "-x", "a")
        assert python.succeeds(*arguments, stdin=text.format("print(repr(inspect.getsource(f)))")) == f"{seen}{shown}\n"
    process = python(*COMMAND, "-", stdin=text.format("1 / 0"))
    assert process.returncode == 1
    lines = process.stderr.splitlines()
    assert lines[1].strip() == 'File "<stdin>", line 5, in <module>'
    assert lines[-1] == "ZeroDivisionError: division by zero"


@pytest.mark.parametrize("command", ["check", "fit"])
def test_standard_input_is_read_once(command, capsys):
    assert cli.main([command, "-"]) == 2
    assert "standard input can be read once" in capsys.readouterr().err


def test_a_script_that_asks_for_the_sdk_uses_ipus(python, monkeypatch):
    # As published scripts for GPUs and IPUs do, before they import anything of Graphcore's.
    script = python.script("""
import os
assert not 'POPLAR_SDK_ENABLED' in os.environ or os.path.isdir(os.environ["POPLAR_SDK_ENABLED"])
print('POPLAR_SDK_ENABLED' in os.environ)
""")
    monkeypatch.delenv("POPLAR_SDK_ENABLED", raising=False)
    assert (python.succeeds(script), python.succeeds(*MODULE, script)) == ("False\n", "True\n")
    monkeypatch.setenv("POPLAR_SDK_ENABLED", str(python.directory))
    assert python.succeeds(*MODULE, python.script("import os; print(os.environ['POPLAR_SDK_ENABLED'])")) == (
        f"{python.directory}\n"
    )


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        ("import sys; sys.exit(3)", 3, ""),
        ("import sys; sys.exit('no luck')", 1, "no luck\n"),
        ("raise SystemExit", 0, ""),
        ("pass", 0, ""),
    ],
)
def test_exit_status_is_the_scripts(python, text, status, message):
    process = python(*MODULE, python.script(text))
    assert (process.returncode, process.stderr) == (status, message)


@pytest.mark.parametrize("text", ["def f():\n    return 1 / 0\n\nf()\n", "def f(:\n", "import no_such_module\n"])
def test_traceback_is_the_one_python_prints(python, text):
    script = python.script(text)
    expected = python(script)
    process = python(*MODULE, script)
    assert (process.returncode, process.stderr) == (expected.returncode, expected.stderr)


def test_module_and_directory(python):
    python.script("import sys; print(__name__, sys.argv[1:], sys.path[0])", "module.py")
    expected = python.succeeds("-m", "module", "a", "-m")
    assert python.succeeds(*MODULE, "-m", "module", "a", "-m") == expected
    (python.directory / "package").mkdir()
    python.script("import sys; print(__name__, sys.argv)", "package/__main__.py")
    assert python.succeeds(*MODULE, "package", "a") == python.succeeds("package", "a")


def test_module_takes_commands_where_there_is_no_such_file(python):
    assert "4 GC200 chips in IPU-M2000s" in python.succeeds(*MODULE, "info", "--system", "pod4")
    python.script("print('mine')", "info")
    assert python.succeeds(*MODULE, "info") == "mine\n"


@pytest.mark.parametrize("spelling", [MODULE, COMMAND, (*MODULE, "run")], ids=["module", "command", "module_command"])
def test_options_reach_the_environment(python, spelling):
    names = ("SDK", "SYSTEM", "EXECUTION_MODE")
    script = python.script(f"import os, sys; print(*(os.environ['TF_IPU_SHIM_' + n] for n in {names}), sys.argv[1:])")
    options = ("--sdk", "2.6.0", "--system", "pod16", "--execution", "kernels")
    assert python.succeeds(*spelling, *options, script, "--tf1") == "2.6 pod16 kernels ['--tf1']\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "a SCRIPT or -m MODULE is needed"),
        (["-m"], "a SCRIPT or -m MODULE is needed"),
        (["-m", "no_such_module"], "No module named no_such_module"),
        (["--sdk", "3.5", "x.py"], "SDK 3.5 is not emulated. Use one from 1.2 to 3.4"),
        (["--sdk", "newest", "x.py"], "'newest' is not of the form MAJOR.MINOR"),
        (["--system", "abacus", "x.py"], "There is no simulated system 'abacus'"),
        (["--execution", "fast", "x.py"], "invalid choice: 'fast'"),
        (["no_such_file.py"], "can't open file 'no_such_file.py': there is no such file in "),
        (["empty"], "the directory has no __main__.py"),
        (["--memory-json", "nowhere/m.json", __file__], "--memory-json: there is no directory 'nowhere'"),
        (["--baseline", "nowhere.json", __file__], "--baseline: there is no file 'nowhere.json'; --write-base"),
        (["--memory-svg", "empty", __file__], "--memory-svg: 'empty' is a directory"),
        (["--profile", f"{__file__}/profiles", __file__], "test_runner.py' is no directory"),
    ],
)
def test_wrong_command_line(arguments, message, capsys, tmp_path, monkeypatch):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["", *sys.path])
    assert runner.main(arguments) == 2
    said = capsys.readouterr().err
    assert message in said
    assert status_of_command(["run", *arguments]) == 2
    # The same words but for the name of the program, which may break lines of the usage elsewhere.
    assert said.splitlines()[-1].partition(": ")[2] == capsys.readouterr().err.splitlines()[-1].partition(": ")[2]


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        ("TF_IPU_SHIM_SDK", "TF_IPU_SHIM_SDK: SDK version 'abacus' is not of the form"),
        ("TF_IPU_SHIM_SYSTEM", "There is no simulated system 'abacus'"),
        ("TF_IPU_SHIM_EXECUTION_MODE", "TF_IPU_SHIM_EXECUTION_MODE is 'abacus'. It has to be 'auto'"),
        ("TF_IPU_SHIM_MEMORY_PLAN", "TF_IPU_SHIM_MEMORY_PLAN is 'abacus'. It has to be 'on', 'off'"),
        ("TF_IPU_SHIM_COMPAT", "TF_IPU_SHIM_COMPAT is 'abacus'; expected one of 'graphcore'"),
        ("TF_IPU_SHIM_TRACEBACK", "TF_IPU_SHIM_TRACEBACK is 'abacus'; expected 'short' or 'full'"),
        ("TF_IPU_SHIM_LOG_LEVEL", "TF_IPU_SHIM_LOG_LEVEL is 'abacus'; expected '0', '1', '2' or '3'"),
        ("TF_IPU_SHIM_COLLECTIVE_TIMEOUT", "TF_IPU_SHIM_COLLECTIVE_TIMEOUT is 'abacus'; expected a number of seconds"),
        ("TF_IPU_SHIM_SYSTM", "TF_IPU_SHIM_SYSTM is not a variable of tf_ipu_shim. Did you mean TF_IPU_SHIM_SYSTEM?"),
        ("TF_IPU_SHIM_" + "ERA", "TF_IPU_SHIM_" + "ERA is now TF_IPU_SHIM_COMPAT"),
    ],
)
def test_an_invalid_variable_is_reported_before_the_script(variable, message, capsys, monkeypatch, tmp_path):
    (tmp_path / "script.py").write_text("print('ran')")
    monkeypatch.setenv(variable, "abacus")
    assert runner.main([str(tmp_path / "script.py")]) == 2
    shown = capsys.readouterr()
    assert (shown.out, len(shown.err.splitlines())) == ("", 1)
    assert shown.err.startswith(f"python -m tf_ipu_shim: {message}")


def status_of_command(words):
    try:
        return cli.main(words)
    except SystemExit as stop:
        return stop.code


@pytest.mark.slow
def test_packages_for_tensorflow_2_see_the_installed_version(python):
    """TensorFlow Probability and others refuse 1.15, which scripts assert."""
    looks = "import tensorflow as tf, tensorflow.compat.v1 as v1\nSEEN = [tf.__version__, v1.__version__, v1.VERSION]\n"
    (python.directory / "tensorflow_probability").mkdir()
    other = f"{looks}from tensorflow_datasets import SEEN as OTHER\n{looks}"
    python.script(other, "tensorflow_probability/__init__.py")
    python.script(looks, "tensorflow_datasets.py")
    script = python.script(
        textwrap.dedent(
            """
            import tensorflow_probability as installed
            from tf_ipu_shim.cli import doctor
            {looks}
            (version,) = set(doctor.find_tensorflows().values())
            assert installed.SEEN == installed.OTHER == [version] * 3, installed.SEEN
            assert all(seen.startswith("1.15") for seen in SEEN), SEEN
            """
        ).replace("{looks}", looks)
    )
    python.succeeds("-m", "tf_ipu_shim", "--tf1", script)


def test_tensorflow_1(python):
    script = python.script(
        textwrap.dedent(
            """
            import sys
            import tensorflow as tf
            import tensorflow.compat.v1 as v1
            from tensorflow import keras
            from tensorflow.compat import v2
            from tensorflow.keras.layers import LSTM
            from tensorflow.python.framework import ops
            from tensorflow.python import ipu

            assert tf is sys.modules["tensorflow"]
            assert tf.__version__.startswith("1.15") and tf.VERSION == tf.__version__
            assert not tf.executing_eagerly() and not ops.executing_eagerly_outside_functions()
            assert tf.placeholder is v1.placeholder and tf.compat.v1 is v1 and tf.compat.v2 is v2
            assert keras.layers.LSTM is LSTM is v1.keras.layers.LSTM
            assert v2.Variable is not tf.Variable
            assert "Session" in dir(tf) and "placeholder" in dir(tf)
            from tensorflow import contrib
            import tensorflow.contrib
            assert tf.contrib is contrib and tf.contrib.layers is contrib.layers

            x = tf.placeholder(tf.float32, [2])
            assert x.shape[0].value == 2  # Dimension objects, as in version 1
            with tf.variable_scope("scope"):
                v = tf.get_variable("v", [2], initializer=tf.ones_initializer())
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                assert session.run(x + v, {x: [1, 2]}).tolist() == [2, 3]
            print(v.name)
            """
        )
    )
    assert python.succeeds(*MODULE, "--tf1", script) == "scope/v:0\n"


@pytest.mark.slow
def test_names_of_the_time_are_there_without_ipu(python):
    text = """
        from tensorflow.python import pywrap_tensorflow
        import numpy as np
        import tensorflow as tf

        path = tf.train.Checkpoint(v=tf.Variable(2.0)).save("./point")
        assert "v/.ATTRIBUTES/VARIABLE_VALUE" in pywrap_tensorflow.NewCheckpointReader(path).get_variable_to_shape_map()
        assert np.object is object  # `np.bool` is back in NumPy 2, and is its own type
    """
    python.succeeds(*MODULE, python.script(textwrap.dedent(text)))


_PLACED = """
import numpy as np, tensorflow as tf
with tf.Graph().as_default() as graph:
    with tf.device("/device:IPU:0"):
        value = tf.matmul(np.ones([2, 2], "f"), np.full([2, 2], 3, "f"))
    with tf.compat.v1.Session() as session:
        assert (session.run(value) == 6).all()
        assert any("IPU:0" in device.name for device in session.list_devices())
"""
_EARLY = """
import tensorflow as tf
v1 = tf.compat.v1
v1.disable_eager_execution()
idle, used, closed = v1.InteractiveSession(), v1.Session(), v1.Session()
assert used.run(tf.constant(1)) == 1
closed.close()
with tf.device("/device:IPU:0"):
    value = tf.constant([1.0, 2.0]) * 2
assert (value.eval() == [2, 4]).all()
assert any("IPU:0" in device.name for device in idle.list_devices())
try:
    closed.run(value)
except RuntimeError as error:
    assert "closed" in str(error), error
used.run(value)
"""
_EAGER = """
import tensorflow as tf
one = tf.ones([2, 2])  # TensorFlow has its devices by now
assert "CPU" in one.device, one.device
for name in ("/device:IPU:0", tf.DeviceSpec(device_type="IPU", device_index=0)):
    with tf.device(name):
        value = tf.matmul(one, one * 3)
    assert "IPU:0" in value.device and (value.numpy() == 6).all(), value
"""
_LISTED = """
import tensorflow as tf
assert len(tf.config.list_physical_devices("IPU")) == 16
assert len(tf.config.experimental.list_logical_devices("IPU")) == 16
"""
_ALL_LISTED = """
import tensorflow as tf
assert [device.device_type for device in tf.config.list_logical_devices()] == ["CPU"] + ["IPU"] * 16
"""
_LOCAL_LISTED = """
from tensorflow.python.client import device_lib
assert [device.name for device in device_lib.list_local_devices()][-1] == "/device:IPU:15"
"""


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--tf1"], _PLACED),
        slowly([], _PLACED),
        ([], _EAGER),
        slowly([], _LISTED),
        slowly([], _ALL_LISTED),
        slowly([], _LOCAL_LISTED),
    ],
    ids="tf1 graph eager list list_all list_local".split(),
)
def test_a_device_that_is_named_is_there_without_ipu(python, options, text):
    python.succeeds(*MODULE, *options, python.script(text))


@pytest.mark.slow
def test_sessions_that_were_made_before_a_device_was_named(python):
    """One that has run nothing has it; one that has says why it has not."""
    process = python(*MODULE, python.script(_EARLY))
    assert process.returncode == 1 and "IPU:0 but available devices are" in process.stderr, process.stderr
    assert process.stderr.rstrip().endswith("import tensorflow.python.ipu before it.")
    assert "used.run(value)" in process.stderr


def test_a_script_that_names_no_device_runs_without_the_plugin(python):
    text = "import sys\nimport tensorflow as tf\nwith tf.device('/job:ipu/device:CPU:0'):\n    pass\n"
    python.succeeds(*MODULE, python.script(text + "assert 'tf_ipu_shim.frontend' not in sys.modules\n"))


@pytest.mark.skipif(importlib.util.find_spec("tensorflow_estimator") is not None, reason="TensorFlow has Estimator")
def test_tensorflow_1_without_estimator_says_where_there_is_one(python):
    script = python.script("import tensorflow as tf\nassert not hasattr(tf, 'estimator')\ntf.estimator.RunConfig()\n")
    process = python(*MODULE, "--tf1", script)
    assert process.returncode == 1 and "TensorFlow has no Estimator from 2.16 on" in process.stderr


@pytest.mark.slow
@pytest.mark.estimator
def test_tensorflow_1_has_an_estimator_that_works(python):
    script = python.script(
        textwrap.dedent(
            """
            import tensorflow as tf

            def model_fn(features, labels, mode):
                w = tf.get_variable("w", [], initializer=tf.zeros_initializer())
                loss = tf.reduce_mean(tf.square(features * w - labels))
                step = tf.train.GradientDescentOptimizer(0.1).minimize(loss, tf.train.get_global_step())
                return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)

            def input_fn():
                return tf.data.Dataset.from_tensors(([1.0], [2.0])).repeat()

            tf.logging.set_verbosity(tf.logging.ERROR)
            estimator = tf.estimator.Estimator(model_fn, "model")
            estimator.train(input_fn, steps=2)
            # w starts at 0; each step moves it by 0.1 * 2 * (2 - w): 0.4, then 0.72.
            assert abs(estimator.get_variable_value("w") - 0.72) < 1e-6
            """
        )
    )
    python.succeeds(*MODULE, "--tf1", script)


@pytest.mark.slow
def test_processes_of_a_script_for_tensorflow1_have_it_too(python):
    script = python.script(
        textwrap.dedent(
            """
            import multiprocessing
            import tensorflow as tf

            def work(answers):
                with tf.Session() as session:
                    answers.put((tf.__version__, session.run(tf.constant(2.0) * 3.0)))

            if __name__ == "__main__":
                for method in ("fork", "spawn"):
                    context = multiprocessing.get_context(method)
                    answers = context.Queue()
                    process = context.Process(target=work, args=[answers])
                    process.start()
                    process.join()
                    assert process.exitcode == 0, method
                    assert answers.get() == ("1.15.5", 6.0), method
            """
        )
    )
    python.succeeds(*MODULE, "--tf1", script)


def test_doctor_on_this_installation(capsys):
    """Whether the plugin is built already is this machine's affair."""
    status = cli.main(["doctor"])
    shown = capsys.readouterr().out
    assert f"[ok] Python: {sys.version_info[0]}.{sys.version_info[1]} on linux" in shown
    assert re.search(r"^\[ok\] import tensorflow: TensorFlow 2\.", shown, re.M)
    assert status == int("[PROBLEM]" in shown)
