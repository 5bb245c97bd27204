"""The hardware error that `GCDA_OPTIONS` simulates."""

import json

import pytest

from tf_ipu_shim.machine.environment import simulated_errors

pytestmark = pytest.mark.without_tensorflow


def given(monkeypatch, **options):
    values = {f"simulateSOCError.{name}": value for name, value in options.items()}
    monkeypatch.setenv("GCDA_OPTIONS", json.dumps(values))


def test_only_named_errors_come(monkeypatch):
    monkeypatch.delenv("GCDA_OPTIONS", raising=False)
    assert simulated_errors.current() is None
    given(monkeypatch, triggerCount=3)
    assert simulated_errors.current() is None
    given(monkeypatch, errorList="IPUHARDERR")
    with pytest.raises(ValueError, match="errorList of GCDA_OPTIONS is 'IPUHARDERR'; expected 'IPUSOFTERR'"):
        simulated_errors.current()


@pytest.mark.parametrize("rearmed, fail", [(False, [True, True, False, False]), (True, [True] * 4)])
def test_the_count_of_failed_loads(monkeypatch, rearmed, fail):
    given(monkeypatch, errorList="IPUSOFTERR", triggerCount=2, rearmOnReset=rearmed)
    assert [simulated_errors.current().comes(failed) for failed in range(4)] == fail
    given(monkeypatch, errorList="IPUSOFTERR", triggerCount="often")
    with pytest.raises(ValueError, match="triggerCount of GCDA_OPTIONS is 'often'; expected the number"):
        simulated_errors.current()


def test_other_options_have_no_effect(monkeypatch):
    monkeypatch.setenv("GCDA_OPTIONS", '{"simulateSOCError.errorList": "IPUSOFTERR", "logLevel": 3}')
    assert simulated_errors.without_effect() == {"logLevel": "3"}
    monkeypatch.setenv("GCDA_OPTIONS", "soft")
    with pytest.raises(ValueError, match="GCDA_OPTIONS is 'soft', which is not JSON.*simulateSOCError.errorList"):
        simulated_errors.current()
