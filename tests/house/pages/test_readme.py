"""README's script prints what README says, and its versions are those of setup.cfg."""

import configparser
import os
import re
import subprocess
import sys

import pytest
from checkout import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = dict(zip(("script", "printed"), re.findall(r"```(?:python)?\n(.*?)```", README, re.DOTALL)))


@pytest.mark.subprocess
@pytest.mark.one_version
def test_the_script_prints_what_is_shown(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(BLOCKS["script"])
    process = subprocess.run(
        [sys.executable, "-m", "tf_ipu_shim", str(script)],
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "0", "TF_IPU_SHIM_LOCK_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert process.returncode == 0, process.stderr
    *logged, printed = BLOCKS["printed"].splitlines()
    assert process.stdout == f"{printed}\n"
    assert len(logged) == 3
    for line in logged:
        assert re.sub(r"[\d.]+ s$", "", line.removeprefix("... ")) in process.stderr


@pytest.mark.subprocess
@pytest.mark.one_version
def test_fit_finds_a_program_in_the_script(tmp_path, python):
    script = tmp_path / "script.py"
    script.write_text(BLOCKS["script"])
    printed = python("-m", "tf_ipu_shim.cli", "fit", str(script)).stdout
    assert "\ncluster: 1 IPU" in printed and "Smallest system on which all programs fit: " in printed


@pytest.mark.without_tensorflow
def test_python_versions_are_those_of_setup():
    configuration = configparser.ConfigParser()
    configuration.read(ROOT / "setup.cfg")
    versions = re.findall(r"Python :: (3\.\d+)", configuration["metadata"]["classifiers"])
    assert f"Python {versions[0]} to {versions[-1]}" in README


@pytest.mark.without_tensorflow
def test_it_is_short():
    assert len(README.split()) <= 750
