"""`tf-ipu completion`, as bash reads it."""

import subprocess
import sys

import pytest

from tf_ipu_shim import cli

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

# What bash does at the tab key: the words so far, the last of them unfinished.
TAB = """
tab() {
  COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
  "$function" tf-ipu "${@: -1}"
  echo "${COMPREPLY[@]}"
}
function=$(complete -p tf-ipu | sed 's/.* -F \\([^ ]*\\) .*/\\1/')
"""


@pytest.fixture(scope="module")
def functions():
    command = [sys.executable, "-m", "tf_ipu_shim", "completion", "bash"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    "words, completions",
    [
        (["tf-ipu", "com"], ["compare", "completion"]),
        (["tf-ipu", ""], sorted(cli.COMMANDS)),
        (["tf-ipu", "run", "--memory-j"], ["--memory-json"]),
        (["tf-ipu", "check", "--stat"], ["--static"]),
        (["tf-ipu", "run", "--execution", ""], ["auto", "xla", "kernels"]),
        (["tf-ipu", "run", "tra"], ["train.py"]),
    ],
)
def test_bash_completes(functions, tmp_path, words, completions):
    (tmp_path / "train.py").touch()
    script = f"{functions}{TAB}tab {' '.join(word or repr('') for word in words)}"
    done = subprocess.run(["bash"], input=script, check=True, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == completions


def test_without_the_package_that_writes_them(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert cli.main(["completion", "zsh"]) == 2
    assert "pip install shtab" in capsys.readouterr().err
