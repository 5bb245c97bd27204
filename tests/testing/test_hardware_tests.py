"""Decorators of tests that need IPUs: which tests run, and which are skipped with a reason."""

import unittest

import pytest
from tensorflow.python import ipu
from tensorflow.python.ipu import test_utils

pytestmark = pytest.mark.one_version


class Cases(unittest.TestCase):
    @test_utils.test_uses_ipus(num_ipus=2)
    def on_two(self):
        """Runs on two."""
        return "ran"

    @test_utils.test_may_use_ipus_or_model(2)
    def anywhere(self):
        return "ran"

    @test_utils.skip_on_hw
    def on_model(self):
        return "ran"

    @test_utils.skip_with_asan("too slow")
    def without_sanitizer(self):
        return "ran"

    def asks(self):
        test_utils.skip_if_not_enough_ipus(self, 2)
        return "ran"


def outcome(name):
    case = Cases(name)
    try:
        return getattr(case, name)()
    except unittest.SkipTest as skipped:
        return str(skipped)


@pytest.mark.parametrize(
    ("count", "runs", "skipped"),
    [
        (None, "anywhere on_model", "on_two asks"),
        ("1", "anywhere", "on_two asks on_model"),
        ("2", "on_two asks anywhere", "on_model"),
    ],
)
def test_tests_run_where_there_are_ipus_enough(monkeypatch, count, runs, skipped):
    monkeypatch.delenv("TF_IPU_COUNT", raising=False)
    if count is not None:
        monkeypatch.setenv("TF_IPU_COUNT", count)
    assert test_utils.get_ci_num_ipus() == int(count or 0)
    assert test_utils.has_ci_ipus() is (count is not None)
    for name in runs.split():
        assert outcome(name) == "ran", name
    for name in skipped.split():
        assert "TF_IPU_COUNT" in outcome(name), name
    assert Cases.on_two.__doc__ == "Runs on two."


def test_hardware_tests_refuse_the_model(monkeypatch):
    monkeypatch.setenv("TF_IPU_COUNT", "2")
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model")
    with pytest.raises(AssertionError, match="--use_ipu_model"):
        outcome("on_two")
    monkeypatch.setenv("TF_IPU_COUNT", "two")
    with pytest.raises(ValueError, match="TF_IPU_COUNT is 'two'"):
        outcome("asks")


def test_sanitizer(monkeypatch):
    monkeypatch.delenv("ASAN_OPTIONS", raising=False)
    assert outcome("without_sanitizer") == "ran"
    monkeypatch.setenv("ASAN_OPTIONS", "")
    assert outcome("without_sanitizer") == "too slow"
    with pytest.raises(TypeError, match="should be string"):
        test_utils.skip_with_asan(Cases.on_two)


def test_connection_options():
    config = ipu.config.IPUConfig()
    test_utils.add_hw_ci_connection_options(config)
    assert config.device_connection.enable_remote_buffers
    assert config.device_connection.type is ipu.config.DeviceConnectionType.ON_DEMAND
    assert ipu.test_utils.hardware_test_utils.test_uses_ipus is test_utils.test_uses_ipus
