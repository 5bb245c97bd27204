"""Cases of a test that are left to `make test-slow`: another of the same test says as much of what usually breaks."""

from typing import Any

import pytest


def slowly(*case: Any) -> Any:
    """A case that `make test-slow` runs."""
    return pytest.param(*case, marks=pytest.mark.slow)
