"""These tests need no TensorFlow: they are about options, not about devices."""

import logging

import pytest


@pytest.fixture(autouse=True)
def own_environment(monkeypatch, tmp_path):
    for name in ("TF_IPU_SHIM_SYSTEM", "TF_POPLAR_FLAGS", "POPLAR_ENGINE_OPTIONS", "TF_IPU_SHIM_SDK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TF_IPU_SHIM_LOCK_DIR", str(tmp_path / "locks"))


@pytest.fixture
def warnings(monkeypatch):
    """What the configuration logged as warnings, through TensorFlow's logger."""
    messages = []

    class Keeper(logging.Handler):
        def emit(self, record):
            if record.levelno == logging.WARNING:
                messages.append(record.getMessage())

    logger = logging.getLogger("tensorflow")
    keeper = Keeper()
    logger.addHandler(keeper)
    yield messages
    logger.removeHandler(keeper)
