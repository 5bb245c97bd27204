"""Has examples of docstrings shown as code: the reference's reader only knows this section as `Examples`."""

from __future__ import annotations

import re
from typing import Any

import griffe

_TITLE = re.compile(r"^(\s*)Example:$", re.MULTILINE)


class Examples(griffe.Extension):
    """Renames the section."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """See `griffe.Extension`."""
        if obj.docstring is not None:
            obj.docstring.value = _TITLE.sub(r"\1Examples:", obj.docstring.value)
