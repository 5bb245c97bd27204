"""Refuses attributes of libpva's objects that these profiles do not contain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tf_ipu_shim.errors import UnsupportedError

NO_CODE = "the code of programs is not modelled: there is no Poplar compiler here"
NO_MAPPING = "the tile of each tensor is only modelled for totals"


class NotInProfile(AttributeError, UnsupportedError):  # noqa: N818
    """A name of libpva's object model that profiles of this package do not have."""


class Refusing:
    """A class some of whose attributes are refused by name.

    Attributes:
        refused: the reason for each of them.
    """

    refused: Mapping[str, str] = {}

    def __getattr__(self, name: str) -> Any:
        """Refuses attributes that the class does not have."""
        kind = type(self).__name__
        if name in self.refused:
            raise NotInProfile(f"pva's {kind}.{name} is not emulated: {self.refused[name]}.")
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")
