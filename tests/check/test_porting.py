"""The porting report: what is said of a script's IPU calls, and of what else it does."""

import ast
import json
import os
import pathlib

import pytest
import tensorflow as tf

from tf_ipu_shim import check, cli, keras2
from tf_ipu_shim.check import FindingKind
from tf_ipu_shim.check.scan import Scan
from tf_ipu_shim.keras2 import choice
from tf_ipu_shim.names import emulated, suggestions

pytestmark = pytest.mark.one_version

FILE = pathlib.Path("script.py")


def found(text):
    """Kind, line and name of all findings."""
    return [
        (one.kind, one.line, one.name)
        for one in check.find_uses([check.SourceFile(FILE, ast.parse(text))])
        if one.kind is not FindingKind.EMULATED
    ]


CONFIGURED = "from tensorflow.python import ipu\nc = ipu.config.IPUConfig()\nc.configure_ipu_system()\n"


@pytest.mark.parametrize(
    "text",
    [
        "from tensorflow.python.ipu.utils import reset_ipu_seed as r\nr(1)",
        "from tensorflow.python.ipu import utils\nutils.reset_ipu_seed(1)",
        "import tensorflow.python.ipu as x\nx.utils.reset_ipu_seed(1)",
        "from tf_ipu_shim import ipu\nipu.utils.reset_ipu_seed(1)",
        "import tensorflow.python.ipu.utils\ntensorflow.python.ipu.utils.reset_ipu_seed(1)",
    ],
)
def test_names_are_found_however_they_are_imported(text):
    places = [(use.line, use.name) for use in Scan(ast.parse(text)).uses if use.call]
    assert places == [(2, "tensorflow.python.ipu.utils.reset_ipu_seed")]


def test_what_nobody_has_and_what_is_refused():
    text = CONFIGURED + "ipu.utils.no_such(1)\nipu.ops.summary_ops.get_ipu_reports()\nipu.utils.reset_ipu_seed(1)\n"
    assert found(text) == [
        (FindingKind.REFUSED, 4, "ipu.utils.no_such"),
        (FindingKind.REFUSED, 5, "ipu.ops.summary_ops.get_ipu_reports"),
    ]
    missing = check.find_uses([check.SourceFile(FILE, ast.parse("from tensorflow.python.ipu import dataset_tools"))])
    assert missing[0].kind is FindingKind.REFUSED


def test_keywords_that_a_call_does_not_have():
    text = CONFIGURED + (
        "ipu.pipelining_ops.pipeline([], gradient_accumulation_reduction_method=1)\n"
        "ipu.loops.repeat(2, f, [], infeed_queue=None, **more)\n"
        "q = ipu.rnn_ops.PopnnLSTM(8,\n    num_unit=2)\n"
        "ipu.utils.reset_ipu_seed.no(1, anything=2)\n"
    )
    assert found(text) == [
        (FindingKind.REFUSED, 4, "ipu.pipelining_ops.pipeline(gradient_accumulation_reduction_method=)"),
        (FindingKind.REFUSED, 7, "ipu.rnn_ops.PopnnLSTM(num_unit=)"),
    ]
    whys = [one.why for one in check.find_uses([check.SourceFile(FILE, ast.parse(text))]) if one.why]
    assert "Did you mean 'reduction_method'?" in whys[0] and "Did you mean 'num_units'?" in whys[1]


def test_methods_of_models_are_calls_too():
    text = CONFIGURED + "model.set_pipelining_options(gradient_accumulation_steps_per_replica=4)\nmodel.fit(x)\n"
    report = check.find_uses([check.SourceFile(FILE, ast.parse(text))])
    assert (FindingKind.EMULATED, 4, "Model.set_pipelining_options") in [
        (one.kind, one.line, one.name) for one in report
    ]
    assert not any("fit" in one.name for one in report)


def test_reasons_are_those_of_the_table_of_options():
    text = CONFIGURED + (
        "c.slices.poplar_options = {}\nc.auto_select_ipus = 2\n"
        "ipu.normalization_ops.group_norm(x, reduction_axes=[1])\n"
        "model.set_gradient_accumulation_options(verify_usage=False)\n"
    )
    assert found(text) == [
        (FindingKind.RECORDED, 4, "IPUConfig.slices.poplar_options"),
        (FindingKind.RECORDED, 6, "ipu.normalization_ops.group_norm(reduction_axes=)"),
        (FindingKind.RECORDED, 7, ".set_gradient_accumulation_options(verify_usage=)"),
    ]


def test_arguments_of_the_configuration_functions():
    text = (
        "from tensorflow.python.ipu import utils\n"
        "c = utils.create_ipu_config(profiling=True, use_poplar_text_report=True, use_poplar_cbor_report=False,\n"
        "    max_scheduler_lookahead_depth=5, max_scheduler_search_space_size=7, disable_graph_outlining=True,\n"
        "    prefetch_data_streams=True, merge_infeed_io_copies=merged)\n"
        "c = utils.set_matmul_options(c, {'partialsType': 'half', 'use128BitConvUnitLoad': '1'}, "
        "clear_pass_type=True)\n"
        "c = utils.set_norm_options(c, True)\n"
        "c = utils.set_compilation_options(c, {'debug.trace': 'true', 'debug.allowOutOfMemory': 'true'})\n"
        "utils.configure_ipu_system(utils.auto_select_ipus(c, 1))\n"
    )
    assert found(text) == [
        (FindingKind.RECORDED, 2, "ipu.utils.create_ipu_config(disable_graph_outlining=)"),
        (FindingKind.RECORDED, 2, "ipu.utils.create_ipu_config(max_scheduler_search_space_size=)"),
        (FindingKind.RECORDED, 2, "ipu.utils.create_ipu_config(merge_infeed_io_copies=)"),
        (FindingKind.RECORDED, 2, "ipu.utils.create_ipu_config(use_poplar_text_report=)"),
        (FindingKind.RECORDED, 5, "ipu.utils.set_matmul_options(clear_pass_type=)"),
        (FindingKind.RECORDED, 5, "ipu.utils.set_matmul_options(matmul_options=): use128BitConvUnitLoad"),
        (FindingKind.RECORDED, 6, "ipu.utils.set_norm_options(use_stable_statistics=)"),
        (FindingKind.RECORDED, 7, "ipu.utils.set_compilation_options(compilation_options=): debug.trace"),
    ]


def test_library_options_of_a_configuration():
    text = CONFIGURED + "c.matmuls.poplar_options = {'partialsType': 'half', 'use128BitConvUnitLoad': 'true'}\n"
    assert found(text) == [(FindingKind.RECORDED, 4, "IPUConfig.matmuls.poplar_options: use128BitConvUnitLoad")]


def test_unknown_engine_options_are_not_supported():
    text = CONFIGURED + "ipu.utils.set_compilation_options(o, {'debug.trase': '1', 'debug.trace': '1'})\n"
    call = "ipu.utils.set_compilation_options(compilation_options=): "
    assert found(text) == [
        (FindingKind.RECORDED, 4, call + "debug.trace"),
        (FindingKind.REFUSED, 4, call + "debug.trase"),
    ]


def test_unknown_library_options_are_not_supported():
    text = CONFIGURED + "c.pooling.poplar_options = {'optimiseForSpeed': 'true'}\n"
    assert found(text) == [
        (FindingKind.RECORDED, 4, "IPUConfig.pooling.poplar_options"),
        (FindingKind.REFUSED, 4, "IPUConfig.pooling.poplar_options: optimiseForSpeed"),
    ]


def test_a_run_lists_an_option_once_and_those_that_only_it_sees(forked, tmp_path):
    script = tmp_path / "old.py"
    script.write_text(
        "from tensorflow.python.ipu import utils\n"
        "more = {'use_poplar_cbor_report': True}\n"
        "c = utils.create_ipu_config(use_poplar_text_report=True, **more)\n"
        "utils.configure_ipu_system(utils.auto_select_ipus(c, 1))\n"
    )
    out = forked("-m", "tf_ipu_shim.cli", "check", str(script)).stdout
    assert "no effect: 2\n" in out
    assert (
        out.count("use_poplar_text_report") == 1 and ":3: ipu.utils.create_ipu_config(use_poplar_text_report=)" in out
    )
    assert out.count("create_ipu_config(use_poplar_cbor_report) = True") == 1


def test_flags_that_a_script_sets_itself():
    text = CONFIGURED + (
        "os.environ['TF_POPLAR_FLAGS'] = '--max_infeed_threads=2 --use_ipu_model'\n"
        "os.environ['TF_POPLAR_FLAGS'] = '--no_such_flag'\n"
        "os.environ.setdefault('POPLAR_ENGINE_OPTIONS', '{\"debug.trace\": \"true\"}')\n"
    )
    assert found(text) == [
        (FindingKind.RECORDED, 4, "TF_POPLAR_FLAGS: max_infeed_threads"),
        (FindingKind.REFUSED, 5, "TF_POPLAR_FLAGS"),
        (FindingKind.RECORDED, 6, "POPLAR_ENGINE_OPTIONS: debug.trace"),
    ]


def test_nothing_is_configured():
    text = "from tensorflow.python import ipu\nwith ipu.scopes.ipu_scope('/device:IPU:0'):\n  pass\n"
    assert found(text) == [(FindingKind.TRAP, 2, "no configure_ipu_system")]
    assert found("import tensorflow as tf\ntf.Session()\nd.batch(2)\n") == []


@pytest.mark.parametrize(
    ("call", "is_trap"),
    [
        ("d.batch(4)", True),
        ("d.batch(4, drop_remainder=False)", True),
        ("d.batch(4, True)", False),
        ("d.batch(4, drop_remainder=True)", False),
        ("d.batch(4, drop_remainder=whole)", False),
        ("d.batch(4, **options)", False),
        ("d.batch()", False),
        ("d.padded_batch(4, [None])", True),
    ],
)
def test_batches(call, is_trap):
    assert bool(found(CONFIGURED + call)) == is_trap


STRATEGY = CONFIGURED + "import tensorflow as tf\ns = ipu.ipu_strategy.IPUStrategy()\n"


@pytest.mark.parametrize(
    ("rest", "lines"),
    [
        ("m = tf.keras.Sequential()\nwith s.scope():\n  m.fit(x)\n", [6]),
        ("m = tf.keras.Sequential()\nm.evaluate(x)\n", [6]),
        ("with s.scope():\n  m = tf.keras.Sequential()\n  m.fit(x)\n", []),
        ("m = tf.keras.Sequential()\nwith s.scope():\n  m.predict(x)\n", []),
        ("def make():\n  m = tf.keras.Sequential()\n  return m\nwith s.scope():\n  m = make()\n  m.fit(x)\n", []),
        ("def make():\n  m = tf.keras.Sequential()\n  return m\nm = make()\nm.fit(x)\n", [9]),
        ("def make():\n  return tf.keras.Sequential()\nm = make()\nm.fit(x)\n", [8]),
        ("def make():\n  with s.scope():\n    return tf.keras.Sequential()\nm = make()\nm.fit(x)\n", []),
        ("class Net(tf.keras.Model):\n  pass\nclass Own(Net):\n  pass\nm = Own()\nm.evaluate(x)\n", [10]),
        ("class Net(tf.keras.layers.Layer):\n  pass\nm = Net()\nm.fit(x)\n", []),
    ],
)
def test_models_outside_the_scope(rest, lines):
    assert found(STRATEGY + rest) == [(FindingKind.TRAP, line, "model outside the scope") for line in lines]


def test_scopes_of_strategies_without_a_name():
    text = (
        CONFIGURED + "import tensorflow as tf\nwith ipu.ipu_strategy.IPUStrategy().scope():\n"
        "  m = tf.keras.Sequential()\n  m.fit(x)\nother = tf.keras.Sequential()\nother.fit(x)\n"
    )
    assert found(text) == [(FindingKind.TRAP, 8, "model outside the scope")]


def test_engine_options_that_stand_in_the_file():
    text = CONFIGURED.rstrip() + (
        "\nconfig = ipu.config.IPUConfig()\n"
        "config.compilation_poplar_options = {'opt.maxCompilationThreads': '4', 'debug.allowOutOfMemory': 'true'}\n"
        "config.compilation_poplar_options = made()\n"
        "import json, os\nos.environ['POPLAR_ENGINE_OPTIONS'] = json.dumps({'debug.trace': 'true'})\n"
    )
    recorded = [(line, name) for kind, line, name in found(text) if kind is FindingKind.RECORDED]
    assert recorded == [
        (5, "IPUConfig.compilation_poplar_options: opt.maxCompilationThreads"),
        (8, "POPLAR_ENGINE_OPTIONS: debug.trace"),
    ]


def test_keras_3(monkeypatch):
    monkeypatch.setattr(choice, "is_separate_package", lambda: True)
    monkeypatch.setattr(keras2, "has_engine", lambda name: name == "tf_keras.src")
    text = (
        CONFIGURED + "import keras\nimport os\nos.environ['TF_USE_LEGACY_KERAS'] = '0'\nfrom tensorflow import keras\n"
    )
    assert found(text) == [(FindingKind.TRAP, 6, "Keras 3 chosen")]
    monkeypatch.setenv("TF_IPU_SHIM_COMPAT", "stock")
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    assert found(text) == [(FindingKind.TRAP, line, "Keras 3 chosen") for line in (1, 4, 6, 7)]
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")
    assert found(text) == [(FindingKind.TRAP, line, "Keras 3 chosen") for line in (4, 6)]


def test_what_a_script_puts_into_the_environment_is_told_once(monkeypatch, tmp_path, capsys):
    """A run leaves it there; what was there before counts for the imports."""
    assert tf.keras.layers  # TensorFlow chooses its Keras at the first use, by the environment that is changed here
    monkeypatch.setattr(choice, "is_separate_package", lambda: True)
    monkeypatch.setattr(keras2, "has_engine", lambda name: name == "tf_keras.src")
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    script = tmp_path / "script.py"
    script.write_text(
        CONFIGURED + "import os\nos.environ['TF_USE_LEGACY_KERAS'] = '0'\nfrom tensorflow.python.framework import ops\n"
        "import keras.nothing\n"
    )
    cli.main(["check", str(script)])
    shown = capsys.readouterr().out
    assert os.environ.pop("TF_USE_LEGACY_KERAS") == "0"
    assert shown.count("Keras 3 chosen") == 1 and "script.py:5: Keras 3 chosen" in shown


def test_names_of_tensorflow_1():
    assert found(CONFIGURED + "import tensorflow as tf\ntf.Session()\ntf.placeholder()\n") == [
        (FindingKind.TRAP, 5, "tf.Session")
    ]
    assert found(CONFIGURED + "import tensorflow.compat.v1 as tf\ntf.Session()\n") == []


def test_files_beside_the_script(tmp_path):
    (tmp_path / "main.py").write_text("import parts.one\nfrom two import name\nimport json\n")
    (tmp_path / "two.py").write_text("import main\nname = 1\n")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "__init__.py").write_text("")
    (tmp_path / "parts" / "one.py").write_text("from . import three\n")
    (tmp_path / "parts" / "three.py").write_text("")
    paths = {source.path.relative_to(tmp_path).as_posix() for source in check.collect_sources(tmp_path / "main.py")}
    assert paths == {"main.py", "two.py", "parts/__init__.py", "parts/one.py", "parts/three.py"}


def test_verdicts():
    assert emulated.get_status("tensorflow.python.ipu.config", "IPUConfig") == (emulated.EMULATED, "")
    assert emulated.get_status("tensorflow.python.ipu.config", "Nobody").state == emulated.MISSING


def test_lines_of_a_message_stay_lines(tmp_path):
    why = "Out of memory.\nLargest allocations:\n      4 bytes  weight  w\n\n" + "long " * 30
    text = check.format_findings([check.Finding(FindingKind.REFUSED, tmp_path / "a.py", 3, "InternalError", why)])
    assert text.splitlines()[2:5] == [
        "      Out of memory.",
        "      Largest allocations:",
        "            4 bytes  weight  w",
    ]
    assert len(text.splitlines()) == 7 and max(map(len, text.splitlines()[2:])) <= 118


def test_the_command_reads_a_script(tmp_path, capsys):
    script = tmp_path / "script.py"
    script.write_text(CONFIGURED + "raise RuntimeError('it ran')\n")
    assert cli.main(["check", "--static", str(script)]) == 0
    assert f"{script}:2" in capsys.readouterr().out
    script.write_text("from tensorflow.python import ipu\nipu.utils.no_such()\n")
    assert cli.main(["check", "--static", str(script)]) == 1
    assert "not supported: 1" in capsys.readouterr().out
    script.write_text("def (")
    assert cli.main(["check", "--static", str(script)]) == 2
    assert f"{script}:1" in capsys.readouterr().err


def test_the_command_reads_a_folder(tmp_path, capsys):
    scripts = {
        "train.py": b"import parts.model\n",
        "parts/model.py": b"from tensorflow.python import ipu\nipu.utils.no_such()\n",
        "parts/old.py": b"import os\nprint 1\n",
        "parts/latin.py": b"# \xe4\n",
        "parts/zeros.py": b"x = 1\0",
        "parts/notes.txt": b"print 1\n",
        ".hidden/one.py": b"print 1\n",
        "env/pyvenv.cfg": b"",
        "env/lib/one.py": b"print 1\n",
    }
    for name, content in scripts.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_bytes(content)
    assert cli.main(["check", "--static", "--format", "json", str(tmp_path)]) == 1
    findings = json.loads(capsys.readouterr().out)["findings"]
    assert [(one["path"].removeprefix(f"{tmp_path}/"), one["line"], one["name"]) for one in findings] == [
        ("parts/latin.py", 1, "SyntaxError"),
        ("parts/old.py", 2, "SyntaxError"),
        ("parts/zeros.py", 1, "SyntaxError"),
        ("parts/model.py", 2, "ipu.utils.no_such"),
    ]
    assert {one["kind"] for one in findings} == {"not supported"}
    assert cli.main(["check", "--static", str(tmp_path / "parts" / "latin.py")]) == 2
    assert f"{tmp_path}/parts/latin.py:1: invalid or missing encoding" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert cli.main(["check", "--static", str(tmp_path / "empty")]) == 2
    assert "has no file that ends in .py" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line", ["from tensorflow import ipu", "import tensorflow.ipu.utils as u", "import tensorflow as tf; tf.ipu.utils"]
)
def test_the_module_where_newcomers_look_for_it(line):
    (finding,) = [
        one
        for one in check.find_uses([check.SourceFile(FILE, ast.parse(line))])
        if one.kind is not FindingKind.EMULATED
    ]
    assert finding == (FindingKind.REFUSED, FILE, 1, "tensorflow.ipu", suggestions.MISNAMED_HINT)


def test_a_run_says_what_arguments_it_refused(forked):
    script = forked.script(
        "import tf_ipu_shim.ipu as ipu\nc = ipu.config.IPUConfig()\nc.auto_select_ipus = 1\nc.configure_ipu_system()\n"
        "from tensorflow.python.ipu import rnn_ops\n"
        "rnn_ops.PopnnLSTM(2, options_bwd={'planType': 'serial'})\n"
        "rnn_ops.PopnnLSTM(2, activation='no such')\n"
    )
    process = forked("-m", "tf_ipu_shim.cli", "check", script)
    assert process.returncode == 1
    assert f"{script.name}:7: ValueError" in process.stdout
    assert "PopnnLSTM(options_bwd) = {'planType': 'serial'}" in process.stdout


def test_with_tf1_no_further_option_is_advised(tmp_path, capsys):
    script = tmp_path / "script.py"
    script.write_text("import tensorflow as tf\n" + CONFIGURED + "tf.Session()\n")
    assert cli.main(["check", "--static", str(script)]) == 0
    assert "tf-ipu run --tf1" in capsys.readouterr().out
    assert cli.main(["check", "--static", "--tf1", str(script)]) == 0
    assert "look at" not in capsys.readouterr().out
