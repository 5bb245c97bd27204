"""How an uncaught error is shown: the script's lines, then what is wrong, where and what to do, once and last."""

import importlib.util
import os
import pathlib
import re

import pytest
from slow_cases import slowly
from tracebacks import COMMON, FRAME, traceback_of

import tf_ipu_shim
from tf_ipu_shim.runtime.errors import error_display, error_texts, script_files

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

IN_SESSION = (
    COMMON
    + """
def model(a):
    return tf.unique(tf.cast(a, tf.int32))[0]

with tf.device("cpu"):
    p = tf.placeholder(np.float32, [4])
with ipu.scopes.ipu_scope("/device:IPU:0"):
    result = ipu.ipu_compiler.compile(model, [p])
with tf.Session() as session:
    session.run(result, {p: [1.0, 2.0, 2.0, 3.0]})
"""
)


@pytest.mark.slow
def test_an_error_of_a_session_is_said_once_and_last(python):
    script = python.script(IN_SESSION)
    process = python(script)
    shown = traceback_of(process)
    assert FRAME.findall(shown) == [(str(script), "15")]
    assert shown.count("must be fully defined at compile time") == 1
    last = shown[shown.index("tensorflow.python.framework.errors_impl.InvalidArgumentError") :]
    assert f"made at {script}:8, in model" in last
    assert "[[" not in last and "Original stack" not in last
    assert len(shown.splitlines()) <= 9
    full = traceback_of(python(script, environment={"TF_IPU_SHIM_TRACEBACK": "full"}))
    assert "Original stack trace" in full and len(FRAME.findall(full)) > 5


@pytest.mark.slow
def test_packages_beside_scripts_are_no_scripts(python):
    """As `pip install --target` leaves them, and in other places than this environment's `pip install --user`."""
    beside = python.directory / "packages"
    beside.mkdir()
    for name in ("tensorflow", "keras", "tf_keras", "tensorflow_estimator"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations:  # none for an alias of `keras`
            (beside / name).symlink_to(spec.submodule_search_locations[0])
    script = python.script(IN_SESSION)
    checked = script.read_text().replace(
        "with tf.Session", f"assert tf.__file__.startswith({str(beside)!r})\nwith tf.Session"
    )
    script.write_text(checked)
    shown = traceback_of(python(script, environment={"PYTHONPATH": f"{beside}:{os.environ.get('PYTHONPATH', '')}"}))
    assert FRAME.findall(shown) == [(str(script), "16")]
    assert f"made at {script}:8, in model" in shown


IN_DATASET = (
    COMMON
    + """
def parse(x):
    raise KeyError(f"no image {x}")

def load(x):
    if x > 2:
        x = tf.py_func(parse, [x], tf.int64)
    return tf.cast(tf.ensure_shape(x, []), tf.float32)

infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.range(4).map(load).repeat())
with ipu.scopes.ipu_scope("/device:IPU:0"):
    total = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(4, lambda t, x: t + x, [0.0], infeed))
with tf.Session() as session:
    session.run(infeed.initializer)
    session.run(total)
"""
)


@pytest.mark.slow
def test_an_error_of_python_in_a_dataset(python, forked):
    """Where it is raised: autograph has made other functions of the script's."""
    script = python.script(IN_DATASET)
    (line,) = (number for number, text in enumerate(IN_DATASET.splitlines(), 1) if "raise KeyError" in text)
    shown = traceback_of(forked(script))
    assert FRAME.findall(shown) == [(str(script), str(len(IN_DATASET.splitlines()))), (str(script), str(line))]
    message = "tensorflow.python.framework.errors_impl.UnknownError: KeyError: 'no image 3'\n"
    where = f'  File "{script}", line {line}, in parse\n    raise KeyError(f"no image {{x}}")\n'
    assert shown.endswith(f"{message}{where}This happened in the dataset of infeed 'infeed_0'.\n")


AS_LAMBDA = """
import tensorflow as tf
from tensorflow.python import ipu

def load(x):
    return tf.ensure_shape(tf.numpy_function(lambda v: {}["a"], [x], tf.float32), [])

with ipu.ipu_strategy.IPUStrategy().scope():
    tf.distribute.get_strategy().run(tf.function(lambda it: next(it)), [iter(tf.data.Dataset.range(4).map(load))])
"""


def test_an_error_of_python_in_what_autograph_has_made(python, forked):
    script = python.script(AS_LAMBDA)
    shown = traceback_of(forked(script))
    assert (str(script), "6") in FRAME.findall(shown) and "__autograph_generated" not in shown
    assert shown.count("KeyError: 'a'") == 1


IN_THREAD = """
import sys, threading
import tensorflow as tf
from tensorflow.python import ipu
config = ipu.config.IPUConfig(); config.auto_select_ipus = 1; config.configure_ipu_system()
strategy = ipu.ipu_strategy.IPUStrategy()

@tf.function(jit_compile=True)
def step(x):
    return tf.matmul(x, tf.ones([3, 4]))

def work():
    with strategy.scope():
        strategy.run(step, [tf.ones([2, 2])])

for function in work, sys.exit, lambda: 1 / 0:
    thread = threading.Thread(target=function, name="worker")
    thread.start(); thread.join()
print("goes on")
"""


@pytest.mark.slow
def test_an_error_of_a_thread_is_shown_as_one_of_the_script(python, forked):
    script = python.script(IN_THREAD)
    process = forked(script)
    assert (process.returncode, process.stdout) == (0, "goes on\n")
    refused, own = re.split("^Exception in thread worker:\n", process.stderr, flags=re.M)[1:]
    assert FRAME.findall(refused) == [(str(script), "14"), (str(script), "10")]
    assert refused.count("Dimensions must be equal") == 1 and "in user code" not in refused
    assert own.rstrip().endswith("ZeroDivisionError: division by zero")
    full = forked(script, environment={"TF_IPU_SHIM_TRACEBACK": "full"}).stderr
    assert "in _bootstrap_inner" in full and len(FRAME.findall(full)) > 8


def test_frames_between_the_script_and_the_package_are_not_shown(python, forked):
    script = python.script(COMMON + "with ipu.scopes.ipu_scope('IPU0'):\n    pass\n")
    shown = traceback_of(forked(script))
    assert FRAME.findall(shown) == [(str(script), "6")]
    assert "ipu_scope takes a device such as '/device:IPU:0', and was given 'IPU0'" in shown.splitlines()[-1]


IN_AN_OP_OF_OURS = """
import tensorflow as tf
from tensorflow.python import ipu
outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

@tf.function(jit_compile=True)
def send(x):
    outfeed.enqueue(x)

with ipu.ipu_strategy.IPUStrategy().scope():
    tf.distribute.get_strategy().run(send, [tf.ones([2])])
    tf.distribute.get_strategy().run(send, [tf.ones([2], tf.int32)])
outfeed.dequeue()
"""


def test_frames_of_the_plugins_ops_are_not_shown(python, forked):
    script = python.script(IN_AN_OP_OF_OURS)
    shown = traceback_of(forked(script))
    assert FRAME.findall(shown) == [(str(script), "13")]
    assert "is dequeued as int32, and programs have sent float to it" in shown
    assert shown.rstrip().endswith("give each an IPUOutfeedQueue of its own.")


@pytest.mark.slow
def test_frames_of_a_script_without_a_file_are_shown(python):
    """TensorFlow makes ops in code without a file, too."""
    text = "import tensorflow as tf\nfrom tensorflow.python import ipu\n@tf.function(autograph=False)\ndef f(x):\n"
    process = python("-c", f"{text}    return tf.matmul(x, tf.ones([3, 4]))\nf(tf.ones([2, 2]))")
    assert FRAME.findall(traceback_of(process)) == [("<string>", "6"), ("<string>", "5")]


STOPPED = """
import os, signal, sys
import tensorflow as tf
from tensorflow.python import ipu
signal.signal(signal.SIGINT, signal.default_int_handler)  # of a shell's background it is ignored
def stop():
    os.kill(os.getpid(), signal.SIGINT)
    tf.numpy_function(lambda: 0, [], tf.int64)
stop()
"""


def test_ctrl_c_shows_the_script_s_lines_alone(python):
    """Not those of the command that runs it, which has a file of its own beside Python's."""
    script = python.script(STOPPED)
    command = python.script("import sys\nfrom tf_ipu_shim.cli import main\nsys.exit(main())\n", "tf-ipu")
    process = python(command, "run", script)
    assert process.returncode == -2, process.stderr
    shown = process.stderr[process.stderr.index("Traceback") :]
    assert {file for file, _ in FRAME.findall(shown)} == {str(script)}
    assert shown.endswith("\nKeyboardInterrupt\n")


@pytest.mark.slow
def test_an_error_of_the_scripts_own_is_pythons(python):
    text = "{}\ntry:\n    1 / 0\nexcept ZeroDivisionError as error:\n    raise ValueError('mine') from error\n"
    script = python.script(text.format("import sys"))
    expected = traceback_of(python(script))
    script.write_text(text.format("from tensorflow.python import ipu"))
    assert traceback_of(python(script)) == expected


IN_CONVERTED = """
import numpy as np; import tensorflow as tf
from tensorflow.python import ipu

@tf.function(jit_compile=True)
def step(x):
    return {}

strategy = ipu.ipu_strategy.IPUStrategy()
with strategy.scope():
    strategy.run(step, [tf.ones([2])])
"""

CONVERTED = [
    ("x.numpy()", "A tensor has a value only while the program runs. Return the tensor from"),
    slowly("{}['loss']", "KeyError: 'loss'"),
    ("np.sum(x)", "to a numpy array. This error may indicate that you're trying to pass a Tensor to a NumPy call"),
    ("tf.Variable(1.0) * x", "ValueError: tf.function only supports singleton tf.Variables created on the first call."),
]


@pytest.mark.parametrize(("line", "said"), CONVERTED, ids=["numpy", "key", "called", "variable"])
def test_an_error_in_a_function_that_autograph_has_converted(python, forked, line, said):
    """Its frames are those of a traceback, and what it says comes last."""
    script = python.script(IN_CONVERTED.format(line))
    shown = traceback_of(forked(script)).splitlines()
    at = shown.index(f'  File "{script}", line 7, in step')
    assert shown[at + 1] == f"    return {line}"
    assert any(text.startswith(said) or said in text and number == 0 for number, text in enumerate(shown[at + 2 :]))
    assert shown[at + 2][0].isupper() and len(shown) <= at + 4


def test_errors_in_layers_in_layers():
    """Keras' and autograph's texts, one in another: the frames from the outermost on, then what is said, once each."""
    text = (
        "Exception encountered when calling layer 'outer' (type Outer).\n\nin user code:\n\n"
        '    File "/home/me/a.py", line 12, in call  *\n        y = self.inner(x)\n\n'
        "    ValueError: Exception encountered when calling layer 'inner' (type Inner).\n    \n"
        "    in user code:\n    \n"
        '        File "/home/me/a.py", line 5, in call  *\n            return x @ 1\n    \n'
        "        ValueError: no product\n    \n"
        "    Call arguments received by layer 'inner' (type Inner):\n      • x=1\n\n\n"
        "Call arguments received by layer 'outer' (type Outer):\n  • x=1"
    )
    frames, said = error_texts.split_frames(error_texts.clean(text))
    assert frames == [
        '  File "/home/me/a.py", line 12, in call\n',
        "    y = self.inner(x)\n",
        '  File "/home/me/a.py", line 5, in call\n',
        "    return x @ 1\n",
    ]
    assert said == (
        "Exception encountered when calling layer 'outer' (type Outer).\n"
        "Exception encountered when calling layer 'inner' (type Inner).\nno product\n"
        "Call arguments received by layer 'inner' (type Inner):\n  • x=1\n"
        "Call arguments received by layer 'outer' (type Outer):\n  • x=1"
    )


def test_numpy_frames_between_script_and_tensorflow_are_hidden(python, forked):
    lines = "with tf.Graph().as_default():\n    np.mean([tf.placeholder(tf.float32)])\n"
    script = python.script(COMMON + lines)
    shown = traceback_of(forked(script))
    assert FRAME.findall(shown) == [(str(script), "7")] and "to a numpy array" in shown


def raised(function, *arguments):
    try:
        function(*arguments)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_a_chain_keeps_what_the_script_has_raised(monkeypatch):
    monkeypatch.setattr(script_files, "HIDDEN", ("hidden",))
    inner = compile("def call(f):\n    return f()\n", "hidden.py", "exec")
    namespace = {}
    exec(inner, namespace)

    def user():
        raise KeyError("bad image 70.jpg")

    def outer():
        try:
            namespace["call"](user)
        except KeyError as error:
            raise ValueError("no batch") from error

    text = error_display.display_text(raised(outer))
    assert "hidden.py" not in text
    assert text.index("KeyError: 'bad image 70.jpg'") < text.index("direct cause") < text.index("ValueError: no batch")
    assert error_display.display_text(raised(user)) is None


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("It failed.", "It failed."),
        ("It failed.\n\t [[{{node a/b}}]]\n\t [[c]] [Op:__inference_f_12]", "It failed."),
        (
            "Graph execution error:\n\nDetected at node 'x' defined at (most recent call last):\n"
            '    File "/home/me/train.py", line 12, in model\n      return tf.unique(a)\n'
            "Node: 'x'\nIt failed.\n\t [[{{node x}}]]\n\nOriginal stack trace for 'x':\n"
            '  File "/home/me/train.py", line 12, in model\n    return tf.unique(a)\n',
            "It failed.\nAt /home/me/train.py:12, in model.",
        ),
        (
            "2 root error(s) found.\n  (0) INTERNAL: It failed.\n\t [[a]]\n  (1) INTERNAL: It failed.\n\t [[b]]\n"
            "0 successful operations.\n0 derived errors ignored.",
            "It failed.",
        ),
        (
            "2 root error(s) found.\n  (0) INTERNAL: It failed.\n  (1) INTERNAL: This too.\n0 successful operations.",
            "It failed.\nThis too.",
        ),
        (
            "{{function_node __inference_f_2_replicas}} {{function_node __inference_f_2}} 2 root error(s) found.\n"
            "  (0) INTERNAL: {{function_node __inference_f_2}} It failed.\n\t [[{{node a}}]]\n"
            "  (1) INTERNAL: {{function_node __inference_f_2}} It failed.\n0 successful operations.",
            "It failed.",
        ),
        (
            "Graph execution error:\n\n2 root error(s) found.\n  (0) OUT_OF_RANGE:    2 root error(s) found.\n"
            "  (0) OUT_OF_RANGE:  It ends.\n\t [[{{node a}}]]\n  (1) OUT_OF_RANGE:  It ends.\n\t [[{{node b}}]]\n"
            "0 successful operations.\n0 derived errors ignored.\n\t [[{{node c}}]]\n  (1) CANCELLED:  It ends.\n"
            "0 successful operations.\n0 derived errors ignored. [Op:__inference_f_76]",
            "It ends.",
        ),
        (
            "Cannot assign a device for operation v: no kernel.\nColocation Debug Info:\nColocation group\n"
            "Op: VariableV2\n  device='CPU'\n\t [[{{node v}}]]",
            "Cannot assign a device for operation v: no kernel.",
        ),
        (
            "KeyError: '7.jpg'\nTraceback (most recent call last):\n\n"
            f'  File "{script_files.HIDDEN[1]}python/ops/script_ops.py", line 270, in __call__\n'
            "    ret = func(*args)\n          ^^^^^^^^^^^\n\n"
            '  File "/home/me/a.py", line 7, in gen\n    raise KeyError\n\nKeyError',
            "KeyError: '7.jpg'\n  File \"/home/me/a.py\", line 7, in gen\n    raise KeyError",
        ),
        (
            "Error in user-defined function passed to MapDataset:1 transformation with iterator: Iterator::Root::Map: "
            "It failed.",
            "It failed.",
        ),
        (
            "<tensor> is out of scope.\n\n<tensor> was defined here:\n"
            '    File "<frozen runpy>", line 198, in run_path\n    File "/home/me/a.py", line 11, in step\n\n'
            "The tensor <tensor> cannot be accessed from here, because it was defined in FuncGraph(id=14013).",
            '<tensor> is out of scope.\n\n<tensor> was defined here:\n    File "/home/me/a.py", line 11, in step',
        ),
        (
            "ValueError: two\nlines\nTraceback (most recent call last):\n\n"
            '  File "/home/me/a.py", line 7, in gen\n    raise ValueError\n\nValueError: two\nlines\n\n\n'
            "This happened in the dataset of infeed 'a'.",
            "ValueError: two\nlines\n"
            '  File "/home/me/a.py", line 7, in gen\n    raise ValueError\n'
            "This happened in the dataset of infeed 'a'.",
        ),
        ("End of sequence: of infeed 'a'.", "End of sequence: of infeed 'a'."),
        ('Op x, made at /home/me/a.py:3, in f\n\t [[x]]\nNode: "x"', "Op x, made at /home/me/a.py:3, in f"),
    ],
)
def test_clean(message, expected):
    assert error_texts.clean(message) == expected


def test_a_failed_build_at_import_shows_only_the_script_s_line(python, tmp_path):
    script = python.script("from tensorflow.python import ipu\n")
    process = python(script, environment={"CXX": "no-such-compiler", "TF_IPU_SHIM_PLUGIN_CACHE_DIR": str(tmp_path)})
    shown = traceback_of(process)
    assert FRAME.findall(shown) == [(str(script), "1")]
    assert "no-such-compiler" in shown.splitlines()[-1]


def test_files_of_the_package_are_none_of_the_script():
    package = pathlib.Path(tf_ipu_shim.__file__).resolve().parent
    assert script_files.HIDDEN[0] == f"{package}{os.sep}"
    assert all(not script_files.is_users(str(file)) for file in package.rglob("*.py"))
    assert os.path.isfile(os.path.join(script_files.RUNNER, "runner.py"))
    assert all(map(os.path.isdir, script_files._RUNNING_MODELS))
