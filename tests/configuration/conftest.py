"""What tests of options share."""

import logging

import pytest


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
