"""The build backend: setuptools, plus one line that makes Graphcore's names importable in every Python process.

pip puts what stands in the root of a wheel into site-packages, and Python executes the `import` lines of `.pth` files
there. setuptools has no setting for such a file, so it is added to the finished wheel here. That serves `pip install
.`, built wheels and editable installs, and pip removes it with the package.

A wheel also has the stubs of `generate_stubs.py`, by which type checkers know Graphcore's names.

Where `plugin/prebuilt` holds compiled libraries, they are in the wheel, and its tag says which systems they run on.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import pathlib
import subprocess
import sys
import tempfile
import zipfile
from typing import Any

import wheel_tag
from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  the hooks that need no change

PTH_NAME = "tf_ipu_shim.pth"
# The import, and the folder in which mypy finds stubs: anything more would run in every Python process.
PTH_CONTENT = b"import tf_ipu_shim\ntf_ipu_shim_types\n"
OF_PACKAGE = "tf_ipu_shim/"


def build_wheel(wheel_directory: str, *arguments: Any, **options: Any) -> str:
    """PEP 517's hook: setuptools' wheel with the `.pth` file, tagged for the libraries in it."""
    return _finished(wheel_directory, build_meta.build_wheel(wheel_directory, *arguments, **options), _stubs())


def build_editable(wheel_directory: str, *arguments: Any, **options: Any) -> str:
    """PEP 660's hook: setuptools' editable wheel with the `.pth` file, and the stubs outside the package."""
    stubs = {file: text for file, text in _stubs().items() if not file.startswith(OF_PACKAGE)}
    return _finished(wheel_directory, build_meta.build_editable(wheel_directory, *arguments, **options), stubs)


def _stubs() -> dict[str, bytes]:
    """Runs the generator in a Python without packages: one that is installed could bring another version of ours."""
    generator = pathlib.Path(__file__).resolve().with_name("generate_stubs.py")
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.executable, "-S", "-E", str(generator), directory], check=True)
        files = [path for path in pathlib.Path(directory).rglob("*") if path.is_file()]
        return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


def _finished(directory: str, name: str, stubs: dict[str, bytes]) -> str:
    """Returns the wheel's files with those that are added or changed, and their RECORD; returns the wheel's name."""
    path = pathlib.Path(directory) / name
    with zipfile.ZipFile(path) as wheel:
        files = {entry.filename: wheel.read(entry) for entry in wheel.infolist()}
    added = {PTH_NAME: PTH_CONTENT, **stubs}
    platform = wheel_tag.of_libraries([content for file, content in files.items() if file.endswith(".so")])
    if platform:
        name = name.replace("-any.whl", f"-{platform}.whl")
        (metadata,) = (file for file in files if file.endswith(".dist-info/WHEEL"))
        text = files[metadata].decode().replace("-any\n", f"-{platform}\n")
        added[metadata] = text.replace("Root-Is-Purelib: true", "Root-Is-Purelib: false").encode()
    (record,) = (file for file in files if file.endswith(".dist-info/RECORD"))
    added[record] = _record(files.pop(record), added)
    path.unlink()
    with zipfile.ZipFile(pathlib.Path(directory) / name, "w", zipfile.ZIP_DEFLATED) as copy:
        for file, content in {**files, **added}.items():
            copy.writestr(file, content)
    return name


def _record(before: bytes, added: dict[str, bytes]) -> bytes:
    rows = [row for row in csv.reader(io.StringIO(before.decode())) if row and row[0] not in added]
    for name, content in added.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append([name, f"sha256={digest}", str(len(content))])
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()
