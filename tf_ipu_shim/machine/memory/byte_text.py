"""Formats numbers of bytes for messages and reports: in KiB, MiB and GiB, or exactly with `--bytes`."""

from __future__ import annotations

import os

ENVIRONMENT_VARIABLE = "TF_IPU_SHIM_EXACT_BYTES"
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_TWO_DECIMALS_BELOW = 10


def is_exact() -> bool:
    """Returns whether messages have all digits of a size."""
    return os.environ.get(ENVIRONMENT_VARIABLE, "") not in ("", "0")


def format_bytes(size: float, sign: bool = False) -> str:
    """Returns a number of bytes in the unit that suits it.

    Args:
        sign: whether an increase has a plus sign.

    Example:
        >>> format_bytes(512), format_bytes(1536), format_bytes(-(50 << 20)), format_bytes(2 << 20, sign=True)
        ('512 B', '1.50 KiB', '-50.0 MiB', '+2.00 MiB')
    """
    plus = "+" if sign else ""
    unit = 0
    while not is_exact() and abs(size) >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    digits = 0 if not unit else 2 if abs(size) < _TWO_DECIMALS_BELOW else 1
    return f"{size:{plus},.{digits}f} {_UNITS[unit]}"


def format_pair(first: float, second: float, between: str = " -> ") -> str:
    """Returns two sizes, with all digits if they look the same otherwise.

    Example:
        >>> format_pair(1024, 3072), format_pair(50 << 20, (50 << 20) + 8)
        ('1.00 KiB -> 3.00 KiB', '52,428,800 B -> 52,428,808 B')
    """
    if first != second and format_bytes(first) == format_bytes(second):
        return f"{first:,.0f} B{between}{second:,.0f} B"
    return f"{format_bytes(first)}{between}{format_bytes(second)}"


def format_percent(percent: float) -> str:
    """Returns a share of a limit with as many digits as it needs.

    Example:
        >>> format_percent(0), format_percent(0.004), format_percent(57.187), format_percent(134.6)
        ('0 %', 'below 0.1 %', '57.2 %', '134.6 %')
    """
    return f"{percent:.1f} %" if percent >= 0.1 else "below 0.1 %" if percent > 0 else "0 %"
