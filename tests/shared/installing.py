"""Virtual environments, and what is installed there from a copy of the checkout."""

import os
import pathlib
import shutil
import subprocess
import sys
import venv

from checkout import ROOT

_EDITABLE = "import sys; sys.path.insert(0, 'tools'); import build_backend; build_backend.build_editable(sys.argv[1])"


def pip(*arguments):
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", *map(str, arguments)]
    # A checkout on the path would count as installed.
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = subprocess.run(command, env=alone, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr


class Environment:
    def __init__(self, directory):
        venv.create(directory, with_pip=False, symlinks=True)
        self.directory = directory
        self.python = directory / "bin" / "python"
        (self.packages,) = directory.glob("lib/python3*/site-packages")

    def install(self, *what):
        pip("--python", self.python, "install", "--no-deps", "--no-index", *what)


def copy_checkout(directory):
    """Copies what a wheel is built from, so that nothing is left in the developer's checkout."""
    for name in ("tf_ipu_shim", "tools"):
        shutil.copytree(ROOT / name, directory / name, ignore=shutil.ignore_patterns("__pycache__", "*.so", "prebuilt"))
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, directory)
    (directory / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "requirements.txt", directory / "tests")
    return directory


def build_wheel(directory, checkout, *options):
    pip("wheel", "--no-deps", "--no-index", "--no-build-isolation", "--wheel-dir", directory, *options, checkout)
    return _only_wheel(directory)


def build_wheel_without_plugin(directory, checkout):
    return build_wheel(directory, checkout, "--config-settings=plugin=no")


def build_editable_wheel(directory, checkout):
    """As `pip install -e`, which would ask the backend in an empty environment, where there is no setuptools."""
    subprocess.run([sys.executable, "-c", _EDITABLE, directory], cwd=checkout, check=True, capture_output=True)
    return _only_wheel(directory)


def _only_wheel(directory):
    (path,) = pathlib.Path(directory).glob("*.whl")
    return path
