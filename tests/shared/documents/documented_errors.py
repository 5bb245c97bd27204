"""Calls that Graphcore documents to raise: what raises, the error's class, and the first words of its message.

`…` in the words stands for what a message fills in.
"""

import re

import pytest


def cases(table):
    """Parametrises a test with `error`, `words` and `call`; rows of the table are (what, error, words, call)."""
    rows = [pytest.param(error, words, call, id=f"{what}-{words}") for what, error, words, call in table]
    return pytest.mark.parametrize(("error", "words", "call"), rows)


def check(error, words, call):
    """Fails unless the call raises such an error, and none of a class that is only caught with it."""
    pattern = ".*".join(re.escape(part.strip()) for part in words.split("…"))
    with pytest.raises(error, match=f"(?s){pattern}"):
        call()
