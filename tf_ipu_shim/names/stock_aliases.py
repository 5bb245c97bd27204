"""Stock TensorFlow modules that moved since IPU-era scripts were written, under the names those scripts use."""

from __future__ import annotations

# Old name -> where stock TensorFlow has it now. A name that the installed TensorFlow still has is left alone.
MOVED: dict[str, str] = {}


def find(fullname: str) -> str | None:
    """Where the module that scripts call `fullname` is today, or None when it has not moved."""
    return MOVED.get(fullname)
