"""The name that a misspelt one probably means."""

import pytest

from tf_ipu_shim import spelling

pytestmark = pytest.mark.without_tensorflow


@pytest.mark.parametrize(
    ("name", "cutoff", "key", "expected"),
    [
        ("memry", 0.6, str, "memory"),
        ("memry", 0.95, str, None),
        ("other", 0.6, str, None),
        ("MEMORY", 0.6, str, None),
        ("looops", 0.9, str.lower, "Loops"),
    ],
)
def test_nearest_name(name, cutoff, key, expected):
    assert spelling.nearest(name, ["system", "memory", "Loops"], cutoff, key) == expected


def test_sentence():
    assert spelling.did_you_mean("memry", ["memory"]) == " Did you mean 'memory'?"
    assert spelling.did_you_mean("memry", ["memory"], "--{}") == " Did you mean --memory?"
    assert spelling.did_you_mean("memry", ["memory"], cutoff=0.95) == ""
