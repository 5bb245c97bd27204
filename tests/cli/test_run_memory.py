"""`tf-ipu run --memory`, as a user calls it; files that it writes, in processes that have TensorFlow already."""

import json

import pytest

from tf_ipu_shim.profiling import reader

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

SCRIPT = """
import sys
import tensorflow.compat.v1 as tf
from tensorflow.python import ipu
tf.disable_v2_behavior()
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
x = tf.placeholder(tf.float32, [2, 3])
with ipu.scopes.ipu_scope("/device:IPU:0"):
    (y,) = ipu.ipu_compiler.compile(lambda x: x * 2.0, [x])
with tf.Session() as session:
    print(session.run(y, {x: [[1, 2, 3], [4, 5, 6]]}).sum(), sys.argv[1:])
"""


def test_the_report_comes_after_the_scripts_own_output(python):
    script = python.script(SCRIPT)
    printed = python.succeeds("-m", "tf_ipu_shim.cli", "run", "--memory", script, "--steps", "3")
    before, _, after = printed.partition("IPU memory report")
    assert "42.0 ['--steps', '3']" in before
    assert "/device:IPU:0: 1 x GC200" in after


def test_the_report_comes_when_the_script_fails_too(forked):
    script = forked.script(SCRIPT + "\nraise RuntimeError('the script failed')\n")
    process = forked("-m", "tf_ipu_shim.cli", "run", "--memory", script)
    assert process.returncode == 1
    assert "RuntimeError: the script failed" in process.stderr
    assert "/device:IPU:0: 1 x GC200" in process.stdout


def test_json_and_picture_files(python, forked):
    script = python.script(SCRIPT)
    files = ("--memory-json", "m.json", "--memory-svg", "m.svg", "--write-baseline", "b.json")
    process = forked("-m", "tf_ipu_shim.cli", "run", *files, script)
    assert process.returncode == 0, process.stderr
    assert {"Memory report: m.json", "Memory image: m.svg", "Baseline: b.json"} <= set(process.stderr.splitlines())
    read = json.loads((python.directory / "m.json").read_text())
    assert read["devices"][0]["modelled"]["programs"][0]["ipus"][0]["not_always_live_bytes"] == 2 * 3 * 4
    assert (python.directory / "m.svg").read_text().startswith("<svg")


OP_BY_OP = """
import tensorflow.compat.v1 as tf
from tensorflow.python import ipu
tf.disable_v2_behavior()
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
x = tf.placeholder(tf.float32, [2])
with ipu.scopes.ipu_scope("/device:IPU:0"):
    y = x + [2.0, 3.0]
with tf.Session() as session:
    print(session.run(y, {x: [1.0, 5.0]}))
"""


def test_ops_that_run_one_by_one_have_no_program(forked):
    printed = forked.succeeds("-m", "tf_ipu_shim.cli", "run", "--memory", forked.script(OP_BY_OP))
    assert "[3. 8.]" in printed and "(SDK 3.4): no program." in printed
    assert "No program was compiled, so there is no memory to model: ops in an ipu_scope ran one by one." in printed


def test_a_script_without_tensorflow(python):
    process = python("-m", "tf_ipu_shim.cli", "run", "--memory", python.script("print('plain')"))
    assert (process.returncode, process.stdout) == (0, "plain\n")
    assert "never imported TensorFlow" in process.stderr


ASKS_ITSELF = """
import os, pathlib, tempfile
import pva
from tensorflow.python import ipu
own = tempfile.TemporaryDirectory()
options = {"autoReport.all": "true", "autoReport.directory": own.name}
"""
READS = """
    session.run(y, {x: [[1, 2, 3], [4, 5, 6]]})
(file,) = pathlib.Path(own.name).glob("*/profile.pop")
report = pva.openReport(str(file))
print(len(report.execution.runs), report.execution.totalCycles.total)
own.cleanup()
"""


@pytest.mark.parametrize("asks", ["configuration", "environment"])
def test_a_script_that_reads_profiles_of_its_own_has_them_too(python, forked, asks):
    if asks == "environment":
        script = ASKS_ITSELF + "import json\nos.environ['POPLAR_ENGINE_OPTIONS'] = json.dumps(options)\n" + SCRIPT
    else:
        options = "config.compilation_poplar_options = options\nconfig.configure_ipu_system()"
        script = ASKS_ITSELF + SCRIPT.replace("config.configure_ipu_system()", options)
    script = python.script(script + READS)
    process = forked("-m", "tf_ipu_shim.cli", "run", "--profile", "kept", script)
    assert process.returncode == 0, process.stderr
    (line,) = [line for line in process.stderr.splitlines() if line.startswith("Profile: ")]
    kept = python.directory / line.removeprefix("Profile: ")
    assert kept.parent.parent == python.directory / "kept"
    runs, cycles = map(int, process.stdout.splitlines()[-1].split())
    assert (runs, len(reader.read_runs(kept))) == (2, 2)
    facts = {row.name: json.loads(row.value) for row in reader.read_profile(kept).facts}
    assert 2 * facts["cycles"] == cycles > 0


def test_one_directory_has_each_profile_once(python, forked):
    options = 'config.compilation_poplar_options = {"autoReport.all": "true", "autoReport.directory": "kept"}\n'
    script = python.script(SCRIPT.replace("config.configure", options + "config.configure"))
    forked.succeeds("-m", "tf_ipu_shim.cli", "run", "--profile", "kept", script)
    assert len(list((python.directory / "kept").iterdir())) == 1
