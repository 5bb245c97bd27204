"""README's script has a program, and its versions are those of setup.cfg. What it prints: test_page_outputs.py."""

import configparser
import re

import pytest
from checkout import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
(SCRIPT,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.without_tensorflow
def test_style_checks_leave_out_the_script_in_a_checkout():
    """Ruff checks all that Git does not ignore: `make test` passes where README's script was saved."""
    (name,) = re.findall(r"Save this as\s+`([\w.]+)`", README)
    assert f"/{name}" in (ROOT / ".gitignore").read_text().splitlines()


@pytest.mark.subprocess
@pytest.mark.one_version
def test_fit_finds_a_program_in_the_script(tmp_path, forked):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    printed = forked("-m", "tf_ipu_shim.cli", "fit", str(script)).stdout
    assert "\ncluster: 1 IPU" in printed and "Smallest system on which all programs fit: " in printed


@pytest.mark.without_tensorflow
def test_python_versions_are_those_of_setup():
    configuration = configparser.ConfigParser()
    configuration.read(ROOT / "setup.cfg")
    versions = re.findall(r"Python :: (3\.\d+)", configuration["metadata"]["classifiers"])
    assert f"Python {versions[0]} to {versions[-1]}" in README


@pytest.mark.without_tensorflow
def test_it_is_short():
    assert len(README.split()) <= 700
