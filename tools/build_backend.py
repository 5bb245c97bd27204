"""The build backend: setuptools, plus one line that makes Graphcore's names importable in every Python process.

pip puts what stands in the root of a wheel into site-packages, and Python executes the `import` lines of `.pth` files
there. setuptools has no setting for such a file, so it is added to the finished wheel here: the same way for
`pip install .`, for a built wheel and for an editable install, and pip removes it with the package.
"""

from __future__ import annotations

import base64
import hashlib
import pathlib
import zipfile
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  the hooks that need no change

PTH_NAME = "tf_ipu_shim.pth"
# Only the import: anything more would run in every Python process of the environment.
PTH_CONTENT = b"import tf_ipu_shim\n"


def build_wheel(wheel_directory: str, *arguments: Any, **options: Any) -> str:
    """PEP 517's hook: setuptools' wheel with the `.pth` file."""
    return _with_pth(wheel_directory, build_meta.build_wheel(wheel_directory, *arguments, **options))


def build_editable(wheel_directory: str, *arguments: Any, **options: Any) -> str:
    """PEP 660's hook: setuptools' editable wheel with the `.pth` file."""
    return _with_pth(wheel_directory, build_meta.build_editable(wheel_directory, *arguments, **options))


def _with_pth(directory: str, name: str) -> str:
    """Adds the file to the wheel and to its RECORD."""
    path = pathlib.Path(directory) / name
    finished = path.with_suffix(".tmp")
    with zipfile.ZipFile(path) as wheel, zipfile.ZipFile(finished, "w", zipfile.ZIP_DEFLATED) as copy:
        for entry in wheel.infolist():
            content = wheel.read(entry)
            if entry.filename.endswith(".dist-info/RECORD"):
                digest = base64.urlsafe_b64encode(hashlib.sha256(PTH_CONTENT).digest()).rstrip(b"=").decode()
                content += f"{PTH_NAME},sha256={digest},{len(PTH_CONTENT)}\n".encode()
            copy.writestr(entry, content)
        copy.writestr(PTH_NAME, PTH_CONTENT)
    finished.replace(path)
    return name
