"""Writes the headers, `popc`, the pkg-config files and the CMake packages that go with the libraries."""

from __future__ import annotations

import os
import pathlib
import shlex
import shutil
import string
import sys
import tempfile

from tf_ipu_shim import sdk
from tf_ipu_shim.poplar_sdk.toolchain import missing_headers, sources

LAST_WRITTEN = "bin/popc"
_POPC_CODE = (
    "import sys; sys.path[0] = {root!r}; from tf_ipu_shim.poplar_sdk.toolchain import popc; sys.exit(popc.main())"
)
PACKAGES = ("poplar", "poplibs")
"""Names that CMake's `find_package` and pkg-config find: all libraries under each."""
_LINKER_SCRIPTS = ("gcl_ct", "popart")
"""Further libraries that makefiles link to."""


class _Template(string.Template):
    """Text with `@{name}` in it: CMake and pkg-config use the dollar."""

    delimiter = "@"


def write(prefix: pathlib.Path) -> None:
    """Writes everything but the libraries; `popc` last, so that its presence means that the rest is complete."""
    for folder in ("lib/pkgconfig", "bin", "libexec", *(f"lib/cmake/{package}" for package in PACKAGES)):
        (prefix / folder).mkdir(mode=0o700, parents=True, exist_ok=True)
    _copy_headers(prefix)
    for path, text in _text_files().items():
        _write_file(prefix / path, text, 0o600)
    _write_file(prefix / "libexec" / "cc1plus", _filled("cc1plus"), 0o700)
    code = _POPC_CODE.format(root=str(sources.ROOT.parent.parent))
    script = _filled("popc", python=shlex.quote(sys.executable), code=shlex.quote(code))
    _write_file(prefix / LAST_WRITTEN, script, 0o700)


def _filled(template: str, **words: str) -> str:
    """Returns a template's text with the words in it."""
    return _Template((sources.TEMPLATE_DIRECTORY / template).read_text(encoding="utf-8")).substitute(words)


def link_names() -> list[str]:
    """Names for `-l`, in the order that a static linker requires: users first."""
    return [name for name in reversed(sources.library_names()) if name != sources.BRIDGE]


def _text_files() -> dict[str, str]:
    """pkg-config files and CMake packages by path."""
    version = f"{sdk.NEWEST[0]}.{sdk.NEWEST[1]}.0"
    names = link_names()
    files = {f"lib/lib{name}.so": _filled(f"{name}.ld") for name in _LINKER_SCRIPTS}
    for name in (*names, "poplibs"):
        linked = names if name in PACKAGES else names[names.index(name) :]
        libraries = " ".join(f"-l{library}" for library in linked)
        files[f"lib/pkgconfig/{name}.pc"] = _filled("package.pc", name=name, version=version, libraries=libraries)
    for package in PACKAGES:
        folder = f"lib/cmake/{package}"
        files[f"{folder}/{package}-config.cmake"] = _filled(
            "package-config.cmake", names=" ".join(names), package=package
        )
        files[f"{folder}/{package}-config-version.cmake"] = _filled("package-config-version.cmake", version=version)
    return files


def _copy_headers(prefix: pathlib.Path) -> None:
    """Copies the headers through a folder of this process, so another process may write the same."""
    target = prefix / "include"
    if target.exists():
        return
    with tempfile.TemporaryDirectory(dir=prefix) as scratch:
        copy = pathlib.Path(scratch) / "include"
        shutil.copytree(sources.INCLUDE_DIRECTORY, copy)
        missing_headers.write(copy)
        try:
            copy.rename(target)
        except OSError:
            if not target.exists():
                raise


def _write_file(path: pathlib.Path, text: str, mode: int) -> None:
    """Writes a whole file by one rename."""
    file, name = tempfile.mkstemp(dir=path.parent)
    with open(file, "w", encoding="utf-8") as opened:
        opened.write(text)
    os.chmod(name, mode)
    os.replace(name, path)
