"""Selects the emulated Poplar SDK release: log lines, defaults and names differ between releases."""

from __future__ import annotations

import os
from typing import NamedTuple

ENVIRONMENT_VARIABLE = "TF_IPU_SHIM_SDK"
OLDEST = (1, 2)
NEWEST = (3, 4)


class SdkVersion(NamedTuple):
    """A Poplar SDK release, compared like a tuple: ``current() >= (2, 5)``."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


def parse(text: str) -> SdkVersion:
    """Reads ``"3.4"`` or ``"2.6.0"``.

    Raises:
        ValueError: if the text is not a version, or not one between 1.2 and 3.4.
    """
    try:
        major, minor = (int(part) for part in text.strip().split(".")[:2])
    except ValueError:
        raise ValueError(
            f"SDK version {text!r} is not of the form MAJOR.MINOR, such as 3.4 or 2.6. Set it to such a version."
        ) from None
    if not OLDEST <= (major, minor) <= NEWEST:
        raise ValueError(
            f"SDK {major}.{minor} is not emulated. Use one from {OLDEST[0]}.{OLDEST[1]} to {NEWEST[0]}.{NEWEST[1]}."
        )
    return SdkVersion(major, minor)


def named() -> bool:
    """Returns whether the user has said which release is emulated: then names that it lacks are refused.

    If no release is selected, a name with one meaning in all releases has that meaning.

    Example:
        >>> named() == bool(os.environ.get(ENVIRONMENT_VARIABLE))
        True
    """
    return bool(os.environ.get(ENVIRONMENT_VARIABLE))


def current() -> SdkVersion:
    """Returns the emulated SDK release: the current ``TF_IPU_SHIM_SDK``, or 3.4 by default.

    Raises:
        ValueError: as `parse`.

    Example:
        >>> str(current())
        '3.4'
    """
    setting = os.environ.get(ENVIRONMENT_VARIABLE)
    if not setting:
        return SdkVersion(*NEWEST)
    try:
        return parse(setting)
    except ValueError as error:
        raise ValueError(f"{ENVIRONMENT_VARIABLE}: {error}") from None
