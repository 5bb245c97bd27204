"""A file that `-m` leaves out is told from its text; one of which it chooses a test is not."""

import file_marks
import pytest

pytestmark = pytest.mark.without_tensorflow

SLOW = "import pytest\n\npytestmark = pytest.mark.slow\n"
TWO = "pytestmark = [\n    pytest.mark.subprocess,\n    pytest.mark.one_version,\n]\nOTHERS = [pytest.mark.slow]\n"
ONE_TEST = "@pytest.mark.slow\ndef test_it():\n    pass\n"


@pytest.mark.parametrize(
    ("expression", "text", "expected"),
    [
        ("not slow", SLOW, True),
        ("not estimator and not slow", SLOW, True),
        ("not slow", "pytestmark = [pytest.mark.subprocess, pytest.mark.slow]\n", True),
        ("not one_version", TWO, True),
        ("not slow", TWO, False),
        ("not slow", ONE_TEST, False),
        ("not estimator", SLOW, False),
        ("slow", SLOW, False),
        ("not slow or subprocess", SLOW, False),
        ("not (slow and subprocess)", SLOW, False),
        ("", SLOW, False),
    ],
)
def test_what_is_left_out(expression, text, expected):
    assert file_marks.leaves_out(expression, text) is expected
