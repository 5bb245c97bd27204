"""The build backend: setuptools, plus one line that makes Graphcore's names importable in every Python process.

pip copies files in the root of a wheel to site-packages, and Python executes the `import` lines of `.pth` files there.
Since setuptools has no setting for such a file, this module adds it to the finished wheel. It works for `pip install`,
built wheels and editable installs, and pip removes it with the package.

A wheel also contains the stubs of `generate_stubs.py`, from which type checkers know Graphcore's names.

If `plugin/prebuilt` holds compiled libraries, the wheel contains them, and its tag names the systems they run on. If
not, and TensorFlow can be imported (`--no-build-isolation`), the plugin is compiled into the wheel for this system
only. With `--config-settings plugin=no` the plugin is compiled at first use.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib.util
import io
import pathlib
import platform
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from typing import Any

import wheel_tag
from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  the hooks that need no change

PTH_NAME = "tf_ipu_shim.pth"
# The import, and the folder in which mypy finds stubs: anything more would run in every Python process.
PTH_CONTENT = b"import tf_ipu_shim\ntf_ipu_shim_types\n"
OF_PACKAGE = "tf_ipu_shim/"
STUBS_OF_PACKAGE = "tf_ipu_shim-stubs/"
OF_IMPORT_HOOK = "__editable__"

ROOT = pathlib.Path(__file__).resolve().parent.parent
PREBUILT = "tf_ipu_shim/plugin/prebuilt"
BUILD = """
import pathlib, sys
from tf_ipu_shim import errors
from tf_ipu_shim.plugin import build, cache
cache.PREBUILT_DIRECTORY = pathlib.Path(sys.argv[1])
try:
    build.ensure_built(directory=cache.PREBUILT_DIRECTORY, rebuild=True)
except errors.PluginError as error:
    sys.exit(str(error))
"""


def build_wheel(
    wheel_directory: str, config_settings: Mapping[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    """PEP 517's hook: setuptools' wheel with the `.pth` file, tagged for the libraries in it."""
    wanted = (config_settings or {}).get("plugin") != "no" and not list((ROOT / PREBUILT).glob("*.so"))
    plugin = _plugin() if wanted else {}
    name = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    return _finished(wheel_directory, name, {**_stubs(), **plugin}, f"linux_{platform.machine()}" if plugin else "")


def _plugin() -> dict[str, bytes]:
    """The plugin for the TensorFlow that can be imported here; without one, or a compiler, it is built at first use."""
    if importlib.util.find_spec("tensorflow") is None:
        return {}
    with tempfile.TemporaryDirectory() as directory:
        process = subprocess.run([sys.executable, "-c", BUILD, directory], cwd=ROOT)
        if process.returncode:
            print("The IPU plugin is not in this wheel: it is compiled at first use.", file=sys.stderr)
        return {f"{PREBUILT}/{path.name}": path.read_bytes() for path in pathlib.Path(directory).glob("*.so")}


def build_editable(wheel_directory: str, *arguments: Any, **options: Any) -> str:
    """PEP 660's hook: setuptools' editable wheel with the `.pth` file and the stubs.

    The checkout is on `sys.path`, in the place of setuptools' import hook, which type checkers do not run. The stubs of
    the package's own modules are a partial stub package: in the checkout they would hide the sources.
    """
    stubs = {re.sub(f"^{OF_PACKAGE}", STUBS_OF_PACKAGE, file): text for file, text in _stubs().items()}
    path = {PTH_NAME: f"{ROOT}\n".encode() + PTH_CONTENT, f"{STUBS_OF_PACKAGE}py.typed": b"partial\n"}
    name = build_meta.build_editable(wheel_directory, *arguments, **options)
    return _finished(wheel_directory, name, {**stubs, **path})


def _stubs() -> dict[str, bytes]:
    """Runs the generator in a Python without packages: one that is installed could bring another version of ours."""
    generator = pathlib.Path(__file__).resolve().with_name("generate_stubs.py")
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([sys.executable, "-S", "-E", str(generator), directory], check=True)
        files = [path for path in pathlib.Path(directory).rglob("*") if path.is_file()]
        return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


def _finished(directory: str, name: str, more: dict[str, bytes], tag: str = "") -> str:
    """Returns the wheel's files with those that are added or changed, and their RECORD; returns the wheel's name."""
    path = pathlib.Path(directory) / name
    with zipfile.ZipFile(path) as wheel:
        files = {file: wheel.read(file) for file in wheel.namelist() if not file.startswith(OF_IMPORT_HOOK)}
    added = {PTH_NAME: PTH_CONTENT, **more}
    tag = tag or wheel_tag.of_libraries([content for file, content in files.items() if file.endswith(".so")])
    if tag:
        name = name.replace("-any.whl", f"-{tag}.whl")
        (metadata,) = (file for file in files if file.endswith(".dist-info/WHEEL"))
        text = files[metadata].decode().replace("-any\n", f"-{tag}\n")
        added[metadata] = text.replace("Root-Is-Purelib: true", "Root-Is-Purelib: false").encode()
    (record,) = (file for file in files if file.endswith(".dist-info/RECORD"))
    del files[record]
    added[record] = _record({**files, **added}) + f"{record},,\n".encode()
    path.unlink()
    with zipfile.ZipFile(pathlib.Path(directory) / name, "w", zipfile.ZIP_DEFLATED) as copy:
        for file, content in {**files, **added}.items():
            copy.writestr(file, content)
    return name


def _record(files: Mapping[str, bytes]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        writer.writerow([name, f"sha256={digest}", str(len(content))])
    return text.getvalue().encode()
