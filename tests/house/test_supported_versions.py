"""One range of TensorFlow and Python: in what pip selects, wheels, `tf-ipu doctor` and the pages."""

import configparser
import re

import pytest
from checkout import ROOT

from tf_ipu_shim.cli import doctor

pytestmark = pytest.mark.without_tensorflow

CONFIGURATION = configparser.ConfigParser()
CONFIGURATION.read(ROOT / "setup.cfg")
MAKEFILE = (ROOT / "Makefile").read_text()
PAGE = (ROOT / "docs/start/compatibility.md").read_text()
PYTHONS = [minor for minor in re.findall(r"Python :: 3\.(\d+)", CONFIGURATION["metadata"]["classifiers"])]


def minors(versions):
    return [int(version.split(".")[1]) for version in versions]


def selected():
    """Minor version of TensorFlow -> condition on Python, as setup.cfg asks for it on x86-64 or for all."""
    ranges = re.findall(
        r"^tensorflow(?:-cpu)?>=2\.(\d+)[\d.]*,<2\.(\d+); python_version (<|>=) \"3\.12\"",
        CONFIGURATION["options"]["install_requires"],
        re.M,
    )
    return {minor: side for first, end, side in ranges for minor in range(int(first), int(end))}


def built():
    return re.search(r"^WHEEL_TENSORFLOWS \?= (.+)$", MAKEFILE, re.M)[1].split()


def test_wheels_hold_what_doctor_accepts():
    first, end = doctor.TENSORFLOWS
    assert minors(built()) == list(range(first[1], end[1]))
    assert built()[0] == ".".join(map(str, first))


def test_pip_selects_what_wheels_hold():
    assert set(selected()) <= set(minors(built()))


def test_the_page_lists_each_tensorflow():
    rows = re.findall(r"^\| 2\.(\d+) \| (.*?) ?\| yes \|", PAGE, re.M)
    assert [int(minor) for minor, _ in rows] == minors(built())
    for minor, pythons in rows:
        side = selected().get(int(minor))
        if pythons:
            expected = [python for python in PYTHONS if (int(python) < 12) == (side == "<")]
            assert re.findall(r"3\.(\d+)", pythons) == expected


def test_python_versions_agree():
    assert PYTHONS == re.findall(r"3\.(\d+)", re.search(r"^PYTHONS := (.+)$", MAKEFILE, re.M)[1])
    first, last = doctor.PYTHONS
    assert [str(first[1]), str(last[1])] == [PYTHONS[0], PYTHONS[-1]]
    assert f"Python 3.{PYTHONS[0]} to 3.{PYTHONS[-1]}" in PAGE
    assert f"Python 3.{PYTHONS[0]} to 3.{PYTHONS[-1]}" in (ROOT / "docs/start/installation.md").read_text()
    assert CONFIGURATION["options"]["python_requires"] == f">=3.{PYTHONS[0]}"
