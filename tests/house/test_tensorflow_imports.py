"""`import tensorflow` means TensorFlow 1 under `--tf1`; the package itself always needs version 2."""

import re

import pytest
from checkout import ROOT

pytestmark = pytest.mark.without_tensorflow

PACKAGE = ROOT / "tf_ipu_shim"


def test_modules_bind_version_2():
    plain = re.compile(r"^import tensorflow( as \w+)?$|^from tensorflow import", re.MULTILINE)
    assert [str(path) for path in PACKAGE.rglob("*.py") if plain.search(path.read_text())] == []
