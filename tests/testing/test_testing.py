"""Assertions on memory, and the comparison with a baseline."""

import argparse
import re

import numpy as np
import pytest
import tensorflow as tf

from tf_ipu_shim import testing
from tf_ipu_shim.cli import report
from tf_ipu_shim.frontend.strategies.ipu_strategy import IPUStrategyV1
from tf_ipu_shim.machine.memory.byte_text import format_bytes
from tf_ipu_shim.runtime import plans

pytestmark = pytest.mark.one_version

# An argument, two of its size computed of it: fp32.
BYTES = 4 * 1024


def run(elements=1024):
    strategy = IPUStrategyV1()
    with strategy.scope():
        strategy.run(tf.function(lambda x: tf.sin(x) * 2.0), args=[tf.constant(np.ones([elements], np.float32))])


@pytest.fixture(autouse=True)
def nothing_ran():
    plans.forget()


@pytest.fixture
def program(ipus):
    ipus(1)
    run()


def test_what_fits(program):
    testing.assert_fits()
    with pytest.raises(ValueError, match=r"headroom is 1, and has to be a part"):
        testing.assert_fits(headroom=1)


def test_what_leaves_too_little(program):
    tile = plans.recorded()[0][1][0].ipus[0]
    free = 1 - tile.max_tile_bytes / tile.bytes_per_tile
    testing.assert_fits(headroom=free - 1e-4)
    with pytest.raises(
        AssertionError, match=r"on IPU 0 of /device:IPU:0 \(GC200 .*tile \d+, and \d+ B of 624\.0 KiB are allow"
    ):
        testing.assert_fits(headroom=free + 1e-4)


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: testing.assert_fits("much"), "headroom is 'much', and has to be a number: the part of a tile"),
        (lambda: testing.assert_peak_below("1 MiB"), "limit is '1 MiB', and has to be a number: bytes, such as 500 <<"),
        (lambda: testing.assert_peak_below(None), "limit is None"),
        (lambda: testing.assert_peak_below(9, device="/device:IPU:0"), "device is '/device:IPU:0', .* 0 for /device"),
        (lambda: testing.assert_peak_below(9, ipu="0"), "ipu is '0'"),
        (lambda: testing.assert_fits(report={}), r"report is {}, and has to be what memory_report\(\) gives"),
        (lambda: testing.assert_no_growth("f", percent="2 %"), "percent is '2 %'"),
    ],
)
def test_what_is_of_a_wrong_type(program, wrong, message):
    with pytest.raises(TypeError, match=message):
        wrong()


def test_peak_below(program):
    peak = plans.recorded()[0][1][0].ipus[0].peak_bytes
    assert peak >= BYTES
    testing.assert_peak_below(peak + 1)
    shown = re.escape(format_bytes(peak))
    with pytest.raises(AssertionError, match=rf"(?s){shown} at .* the limit is {shown}:\n +4\.00 KiB"):
        testing.assert_peak_below(peak, ipu=0)
    with pytest.raises(
        AssertionError, match=r"IPU 1, which the assertion needs\. Programs have run on /device:IPU:0, IPU 0\."
    ):
        testing.assert_peak_below(peak, ipu=1)


def test_nothing_has_run(ipus):
    ipus(1)
    for check in (testing.assert_fits, lambda: testing.assert_peak_below(1), lambda: testing.assert_no_growth("none")):
        with pytest.raises(AssertionError, match="No program has run on IPUs"):
            check()


def test_no_growth(program, tmp_path):
    path = tmp_path / "memory.json"
    with pytest.raises(AssertionError, match="There is no baseline"):
        testing.assert_no_growth(path)
    testing.assert_no_growth(path, write=True)
    testing.assert_no_growth(path)
    plans.forget()
    run(2048)
    with pytest.raises(
        AssertionError, match=r"(?s)More memory than .*memory\.json says:.*IPU 0: peak .*\+4\.00 KiB  argument x"
    ):
        testing.assert_no_growth(path)


def test_the_command_compares(program, tmp_path, capsys):
    kept = str(tmp_path / "memory.json")

    def compare(**given):
        return report.compare_with_baseline(
            argparse.Namespace(
                **{"baseline": None, "write_baseline": None, "tolerance": 0.0, "format": "text", **given}
            )
        )

    assert compare() == compare(write_baseline=kept) == compare(baseline=kept) == 0
    plans.forget()
    run(2048)
    assert compare(baseline=kept) == 1
    assert "More memory than" in capsys.readouterr().err
    assert compare(baseline=kept, tolerance=200.0) == 0
    plans.forget()
    assert compare(baseline=kept) == 1
    assert "there is nothing to compare with" in capsys.readouterr().err
