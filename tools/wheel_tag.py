"""The platform tag of a wheel with compiled libraries: the oldest Linux that has all they require (PEP 600).

The dynamic linker refuses a library that names a version of glibc or libstdc++ that the system lacks. These names are
strings in the library.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence

# The first glibc whose manylinux policy has a version of libstdc++'s symbols, GLIBCXX_3.4.N.
_GLIBC_OF_LIBSTDCXX = {19: 17, 22: 24, 24: 27, 28: 31, 29: 34, 30: 35, 32: 39}


def of_libraries(libraries: Sequence[bytes]) -> str:
    """Returns the tag.

    Args:
        libraries: the content of each shared library.

    Returns:
        Such as `manylinux_2_34_x86_64`; empty if there is no library.

    Example:
        >>> of_libraries([b"GLIBC_2.14 GLIBC_2.2.5 GLIBCXX_3.4.21"])[:15]
        'manylinux_2_24_'
    """
    if not libraries:
        return ""
    needed = max(max(_glibc(library), _glibc_of_libstdcxx(library)) for library in libraries)
    return f"manylinux_2_{needed}_{platform.machine()}"


def _glibc(library: bytes) -> int:
    return max([17, *(int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", library))])


def _glibc_of_libstdcxx(library: bytes) -> int:
    newest = max([0, *(int(patch) for patch in re.findall(rb"GLIBCXX_3\.4\.(\d+)", library))])
    fitting = [glibc for patch, glibc in _GLIBC_OF_LIBSTDCXX.items() if patch >= newest]
    if not fitting:
        raise RuntimeError(
            f"The libraries need GLIBCXX_3.4.{newest}, which no known system has: build them with an older g++."
        )
    return min(fitting)
