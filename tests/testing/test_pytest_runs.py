"""The pytest plugin in a pytest of its own: tracebacks, markers, the memory table and baselines in another order."""

import re

import pytest

pytest_plugins = ["pytester"]
pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

BASELINES = """
import numpy as np
import pytest
from tensorflow import keras

def train(width):
    layers = [keras.layers.Dense(width, input_shape=(16,)), keras.layers.Dense(4), keras.layers.Dense(4, name="own_7")]
    model = keras.Sequential(layers)
    model.compile("sgd", "mse", steps_per_execution=8)
    model.fit(np.zeros([64, 16], "float32"), np.zeros([64, 4], "float32"), batch_size=8, verbose=0)

def test_first(ipu_strategy, ipu_baseline, request):
    train(64)
    request.config.option.ipu_write_baselines = True
    ipu_baseline("shared")
    request.config.option.ipu_write_baselines = False

def test_same_names(ipu_strategy, ipu_baseline, request):
    train(64)
    ipu_baseline("shared")
    request.config.option.ipu_write_baselines = True
    ipu_baseline("again")
    request.config.option.ipu_write_baselines = False
    assert open("ipu_baselines/shared.json").read() == open("ipu_baselines/again.json").read()

def test_growth(ipu_strategy, ipu_baseline):
    train(96)
    ipu_baseline("shared")

def test_wrong_option(ipus):
    ipus(1, **{"io_tiles.num_io_tiles": "many"})
"""


@pytest.fixture
def run(pytester, monkeypatch):
    monkeypatch.delenv("TF_IPU_SHIM_LOCK_DIR", raising=False)

    def start(text, *options):
        pytester.makepyfile(text)
        return pytester.runpytest_subprocess("-p", "tf_ipu_shim.pytest_plugin", "-p", "no:xdist", *options)

    return start


def test_baselines_in_another_order_and_the_table(run):
    result = run(BASELINES, "--ipu-report")
    result.assert_outcomes(passed=2, failed=2)
    output = result.stdout.str()
    # 16 x 64 and 16 x 96 weights of 4 bytes.
    assert re.search(r"\+2\.00 KiB +weight dense/kernel \(4\.00 KiB -> 6\.00 KiB\)", output)
    assert "AssertionError: More memory than" in output and "pytest --ipu-write-baselines test_baselines" in output
    assert "tf_ipu_shim/" not in output.partition("short test summary")[0].replace("IPU memory report", "")
    header, *rows = output.partition("IPU memory by test")[2].splitlines()[1:5]
    assert header.split() == "peak limit used always live IPU program test".split()
    assert len({row.split()[-1] for row in rows}) == 3 and rows[0].endswith("::test_growth")
    assert all(re.match(r" *[\d.]+ KiB +[\d.]+ MiB +[\d.]+ % +[\d.]+ KiB  0 of IPU:0 +train ", row) for row in rows)


def test_no_program_no_table(run):
    run("def test_nothing(): pass", "--ipu-report").stdout.fnmatch_lines(["No test has run a program on an IPU."])


@pytest.mark.parametrize(
    ("marker", "message"),
    [
        ('ipu_system("pod5")', "@pytest.mark.ipu_system('pod5') of *: expected one of *. Did you mean 'pod[48]'[?]"),
        ("ipu_system()", "@pytest.mark.ipu_system() of *: expected one of *"),
        ('ipu_chip("bwo")', "@pytest.mark.ipu_chip('bwo') of *: expected one of *. Did you mean 'bow'[?]"),
        ("ipu_chip(name=3)", "@pytest.mark.ipu_chip() of *: expected one of *"),
    ],
    ids=["near", "none", "swapped", "named"],
)
def test_wrong_value_of_a_marker(run, marker, message):
    result = run(f"import pytest\n\n@pytest.mark.{marker}\ndef test_one(ipus): ipus(1)\n")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*pytest_plugin*.py*")


def test_markers_of_graphcores_examples(run):
    result = run("import pytest\n\n@pytest.mark.ipu_version('ipu2')\ndef test_one():\n    pass")
    result.assert_outcomes(passed=1, warnings=1)


@pytest.mark.ci_cases(2)
@pytest.mark.parametrize("name", ["ipu_sytem", "ipusystem"])
@pytest.mark.parametrize("options", [(), ("--strict-markers",)])
def test_misspelt_marker(run, name, options):
    test = f'import pytest\n\n@pytest.mark.{name}("pod4")\ndef test_one(): pass\n'
    result = run(test, *options, "-W", "ignore::pytest.PytestUnknownMarkWarning")
    assert result.ret in (pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.INTERRUPTED)
    assert "Did you mean 'ipu_system'?" in result.stdout.str() + result.stderr.str()


def test_markers_of_others_pass(run):
    test = "import pytest\n\n@pytest.mark.slow\n@pytest.mark.system\ndef test_one(): pass\n"
    run(test, "-W", "ignore::pytest.PytestUnknownMarkWarning").assert_outcomes(passed=1)
