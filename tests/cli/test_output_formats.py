"""Results as JSON and as annotations, colours and widths on a terminal, examples in the help of each command."""

import contextlib
import io
import json
import re

import pytest

from tf_ipu_shim import cli
from tf_ipu_shim.cli.output import formats, terminal

pytestmark = pytest.mark.one_version

SCRIPT = """
from tensorflow.python import ipu
ipu.utils.no_such(1)
c = ipu.config.IPUConfig()
c.slices.poplar_options = {}
"""


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def screen(monkeypatch):
    """Runs a command; returns what it prints on a terminal of 60 columns."""
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def run(*words):
        with contextlib.redirect_stdout(Terminal()) as shown:
            cli.main(words)
        return shown.getvalue()

    return run


@pytest.fixture
def script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "script.py").write_text(SCRIPT)
    return "script.py"


def test_check_as_json(script, capsys):
    assert cli.main(["check", "--static", "--format", "json", script]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {"not supported", "emulated", "no effect", "look at"} >= {one["kind"] for one in found}
    (refused,) = [one for one in found if one["kind"] == "not supported"]
    assert (refused["line"], refused["name"]) == (3, "ipu.utils.no_such") and refused["path"].endswith("script.py")


def test_check_as_annotations(script, capsys):
    assert cli.main(["check", "--static", "--format", "github", script]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert {line.split(" ")[0] for line in lines} == {"::error", "::notice"}
    assert lines[0].startswith("::error file=script.py,line=3,title=IPU%3A not supported::ipu.utils.no_such: ")


def test_annotation_escapes():
    said = formats.annotation("error", "a:b,c", "50 %\nmore", "x,y.py", 2)
    assert said == "::error file=x%2Cy.py,line=2,title=a%3Ab%2Cc::50 %25%0Amore"
    assert formats.annotation("notice", "t", "m") == "::notice title=t::m"


def test_check_on_a_terminal(script, screen, monkeypatch):
    shown = screen("check", "--static", script)
    assert "\x1b[31mnot supported: 1\x1b[0m" in shown and "\x1b[32memulated: " in shown
    assert max(len(re.sub(r"\x1b\[\d+m", "", line)) for line in shown.splitlines()) <= 60
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in screen("check", "--static", script)


def test_no_colour_in_a_file(script, capsys):
    cli.main(["check", "--static", script])
    assert "\x1b" not in capsys.readouterr().out


def test_rows_of_a_schedule_are_cut_on_a_terminal(screen):
    shown = screen("schedule", "--stages", "16", "--mini-batches", "64")
    assert all(len(line) <= 60 for line in shown.splitlines())
    assert "--svg FILE draws them." in shown.replace("\n", " ")


def test_rows_of_a_schedule_are_whole_in_a_pipe(capsys):
    cli.main(["schedule", "--stages", "2", "--mini-batches", "64"])
    assert max(map(len, capsys.readouterr().out.splitlines())) > 300


@pytest.mark.parametrize("line", ["fits in 3 rows", "a script, not supported: 2", "the tests: emulated"])
def test_words_that_are_no_verdicts_have_no_colour(line):
    assert terminal.coloured(line) == line


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_help_has_examples_that_parse(name, capsys):
    with pytest.raises(SystemExit):
        cli.main([name, "-h"])
    examples = capsys.readouterr().out.partition("\nexamples:\n")[2].splitlines()
    assert len(examples) == len(cli.COMMANDS[name].examples) > 0
    assert any(f"tf-ipu {name}" in example for example in examples)


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("check", "--memory"),
        ("check", "--execution"),
        ("fit", "--baseline"),
        ("fit", "--profile"),
        ("fit", "--memory-svg"),
    ],
)
def test_options_that_a_command_does_not_need(command, option, script, capsys):
    with pytest.raises(SystemExit):
        cli.main([command, option, "x", script])
    assert "unrecognized arguments" in capsys.readouterr().err


PROGRAM = """
import tensorflow as tf
from tensorflow.python import ipu
print("of the script")
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
strategy = ipu.ipu_strategy.IPUStrategy()
with strategy.scope():
    result = strategy.run(tf.function(lambda x: x * 2.0, jit_compile=True), [tf.ones([64])])
print("done", float(result[0]))
"""


@pytest.mark.subprocess
def test_json_of_a_run_has_nothing_of_the_script(forked):
    script = forked.script(PROGRAM)
    process = forked("-m", "tf_ipu_shim.cli", "run", "--quiet", "--memory", "--format", "json", script)
    assert process.returncode == 0, process.stderr
    (device,) = json.loads(process.stdout)["devices"]
    assert device["modelled"]["programs"][0]["fits"] is True
    assert "of the script\ndone 2.0\n" in process.stderr


@pytest.mark.subprocess
def test_fit_as_json(forked):
    script = forked.script(PROGRAM)
    process = forked("-m", "tf_ipu_shim.cli", "fit", "--quiet", "--system", "pod4", "--format", "json", script)
    assert process.returncode == 0, process.stderr
    found = json.loads(process.stdout)
    (program,) = found["programs"]
    (row,) = program["systems"]
    assert (row["system"], row["fits"]) == ("pod4", True) and row["by_ipu"][0]["limit_bytes"] == 1472 * 638976
    assert "nothing is computed. All results that the script gets are zeros" in process.stderr


@pytest.mark.subprocess
def test_growth_as_an_annotation(forked):
    script = forked.script(PROGRAM)
    command = ("-m", "tf_ipu_shim.cli", "run", "--quiet")
    forked.succeeds(*command, "--write-baseline", "before.json", script)
    script.write_text(PROGRAM.replace("[64]", "[640]"))
    process = forked(*command, "--baseline", "before.json", "--format", "github", script)
    assert process.returncode == 1
    (line,) = [line for line in process.stdout.splitlines() if line.startswith("::")]
    assert line.startswith("::error file=before.json,title=IPU memory grew::/device:IPU:0 ") and "%0A" in line
    as_json = forked(*command, "--baseline", "before.json", "--format", "json", script)
    assert len(json.loads(as_json.stdout)["grown"]) == 1


OUT_OF_RANGE = """
import tensorflow.compat.v1 as tf
from tensorflow.python import ipu
tf.disable_v2_behavior()
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
with tf.device("cpu"):
    ids = tf.placeholder(tf.int32, [4])

def net(ids):
    return ipu.embedding_ops.embedding_lookup(tf.get_variable("table", [100, 8]), ids)

with ipu.scopes.ipu_scope("/device:IPU:0"):
    result = ipu.ipu_compiler.compile(net, [ids])
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    print(session.run(result, {ids: [1, 2, 3, 100]})[0].shape)
"""


@pytest.mark.subprocess
@pytest.mark.parametrize(
    ("words", "variable", "status"),
    [
        (["run"], "", 0),
        (["run", "--check-indices"], "", 1),
        (["run"], "1", 1),
        (["check"], "", 1),
        (["run", "--execution", "xla"], "1", 2),
    ],
)
def test_an_id_out_of_range(forked, words, variable, status):
    script = forked.script(OUT_OF_RANGE)
    environment = {"TF_IPU_SHIM_CHECK_INDICES": variable, "TF_IPU_SHIM_EXECUTION_MODE": None}
    process = forked("-m", "tf_ipu_shim.cli", words[0], "--quiet", *words[1:], script, environment=environment)
    assert process.returncode == status, process.stderr
    if status == 1:
        assert "100 is not in [0, 100)" in process.stderr
    if words == ["check"]:
        assert "not supported: 1" in process.stdout
