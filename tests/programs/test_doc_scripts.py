"""The scripts that a page shows print what the page shows."""

import re

import pytest
from checkout import ROOT

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version, pytest.mark.slow]

PAGE = (ROOT / "docs/start/migrate.md").read_text()
SCRIPTS = re.findall(r"`(\w+\.py)` trains .*?```python\n(.*?)```", PAGE, re.S)


def test_there_are_scripts():
    assert [name for name, _ in SCRIPTS] == ["tf1_training.py", "keras_training.py"]


@pytest.mark.parametrize(("name", "code"), SCRIPTS, ids=[name for name, _ in SCRIPTS])
def test_script(python, name, code, tmp_path):
    script = tmp_path / name
    script.write_text(code)
    printed = python.succeeds("-m", "tf_ipu_shim.cli", "run", script)
    (shown,) = re.findall(rf"^\$ tf-ipu run (?:--memory )?{name}\n(.*?)(?=^```|^IPU memory)", PAGE, re.M | re.S)
    assert shown == printed != ""
