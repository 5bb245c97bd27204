"""Lists the translation units and flags of the Poplar libraries, and computes digests that change with them."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import math
import pathlib
import platform
import re
from collections.abc import Sequence

from tf_ipu_shim.plugin import translation_units
from tf_ipu_shim.poplar_sdk.toolchain import missing_headers, option_headers

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE_DIRECTORY = ROOT / "include"
SOURCE_DIRECTORY = ROOT / "csrc"
TEMPLATE_DIRECTORY = ROOT / "toolchain" / "templates"
BRIDGE = "bridge"
_LINK_ORDER = ("poplar", "poputil", "popops", "gcl", "poprand", "poplin", "popnn", "popfloat", "popsparse")
"""Each library may use those before it."""
_UNIT_BYTES = 60_000
"""About what a translation unit has of a library's sources: reading the headers takes as long as compiling 10,000."""
_INCLUDE = re.compile(rb'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
_CPU_FEATURES = ("f16c", "avx2")
_CPU_INFO = pathlib.Path("/proc/cpuinfo")


def library_names() -> list[str]:
    """Names of the libraries in link order: Poplar's, libraries of further folders, the bridge."""
    folders = {path.name for path in SOURCE_DIRECTORY.glob("*") if any(path.rglob("*.cc"))}
    return [*_LINK_ORDER, *sorted(folders - {*_LINK_ORDER, BRIDGE}), *(folders & {BRIDGE})]


def file_name(library: str) -> str:
    """Returns the file name of a library.

    Example:
        >>> file_name("popops")
        'libpopops.so'
    """
    return f"lib{'tf_ipu_poplar' if library == BRIDGE else library}.so"


def sources_of(library: str) -> list[pathlib.Path]:
    """Returns the C++ files of a library; none for an empty one."""
    return sorted((SOURCE_DIRECTORY / library).rglob("*.cc"))


def units_of(library: str) -> list[list[pathlib.Path]]:
    """Returns the C++ files of a library in translation units: files that are compiled together read a header once."""
    files = sources_of(library)
    count = math.ceil(sum(file.stat().st_size for file in files) / _UNIT_BYTES)
    eigen = eigen_directory()
    folders = [INCLUDE_DIRECTORY, SOURCE_DIRECTORY, *([eigen] if eigen else [])]
    return [sorted(unit.sources) for unit in translation_units.divide(files, count, folders)]


def language_flags() -> list[str]:
    """Flags for libraries and codelets: float32 as on an IPU, without fused multiply-adds, and fast float16."""
    return ["-ffp-contract=off", *(f"-m{feature}" for feature in _CPU_FEATURES if feature in cpu_features())]


@functools.cache
def cpu_features() -> frozenset[str]:
    """Instruction sets of an x86-64 processor; none if the kernel does not list them."""
    try:
        text = _CPU_INFO.read_text()
    except OSError:
        return frozenset()
    found = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    return frozenset(found.group(1).split()) if found and platform.machine() == "x86_64" else frozenset()


def eigen_directory() -> pathlib.Path | None:
    """TensorFlow's headers, which contain Eigen; found without importing it. None without TensorFlow."""
    found = importlib.util.find_spec("tensorflow")
    if found is None or not found.submodule_search_locations:
        return None
    return pathlib.Path(found.submodule_search_locations[0]) / "include"


def library_flags() -> list[str]:
    """Returns the compiler's flags for sources of the libraries, without include directories."""
    return ["-std=c++17", "-O2", "-fPIC", "-fvisibility-inlines-hidden", "-pthread", *language_flags()]


def include_flags() -> list[str]:
    """Include directories of the sources of the libraries."""
    eigen = eigen_directory()
    return [f"-I{INCLUDE_DIRECTORY}", f"-I{SOURCE_DIRECTORY}", *([f"-isystem{eigen}"] if eigen else [])]


def object_digest(unit: Sequence[pathlib.Path], compiler_digest: str) -> str:
    """Sixteen digits that differ if an object file of these sources must be compiled again."""
    digest = hashlib.sha256("\0".join([compiler_digest, *platform.libc_ver(), *library_flags()]).encode())
    for file, content in _closure(unit).items():
        digest.update(b"\0" + file.name.encode() + b"\0" + content)
    return digest.hexdigest()[:16]


def all_files() -> list[pathlib.Path]:
    """Every source, header and template, in a fixed order."""
    folders = (INCLUDE_DIRECTORY, SOURCE_DIRECTORY, TEMPLATE_DIRECTORY)
    return [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]


def digest_of_all(parts: Sequence[str]) -> str:
    """Sixteen digits that differ for other sources, headers, flags or `parts`."""
    digest = hashlib.sha256("\0".join([*parts, *platform.libc_ver(), platform.machine(), *library_flags()]).encode())
    for file in all_files():
        digest.update(b"\0" + str(file.relative_to(ROOT)).encode() + b"\0" + file.read_bytes())
    for text in (*option_headers.headers().values(), *missing_headers.headers().values()):
        digest.update(b"\0" + text.encode())
    return digest.hexdigest()[:16]


def _closure(unit: Sequence[pathlib.Path]) -> dict[pathlib.Path, bytes]:
    """Returns the contents of sources and of all that they include: our files, generated headers, Eigen's version."""
    generated = {pathlib.Path(name): text.encode() for name, text in option_headers.headers().items()}
    contents: dict[pathlib.Path, bytes] = {}
    waiting = list(unit)
    while waiting:
        file = waiting.pop()
        if file not in contents:
            contents[file] = generated[file] if file in generated else file.read_bytes()
            if file != _eigen_version():
                names = map(bytes.decode, _INCLUDE.findall(contents[file]))
                waiting += filter(None, (_included_file(name, file.parent) for name in names))
    return contents


def _included_file(name: str, folder: pathlib.Path) -> pathlib.Path | None:
    """Returns the file of an include directive in a file of `folder`; None for a system header."""
    if name in option_headers.headers():
        return pathlib.Path(name)
    if name.startswith(("Eigen/", "unsupported/")):
        return _eigen_version()
    places = (folder, INCLUDE_DIRECTORY, SOURCE_DIRECTORY)
    return next((place / name for place in places if (place / name).is_file()), None)


def _eigen_version() -> pathlib.Path | None:
    """Returns the header by which two releases of Eigen differ."""
    eigen = eigen_directory()
    header = eigen / "Eigen" / "src" / "Core" / "util" / "Macros.h" if eigen else None
    return header if header and header.is_file() else None
