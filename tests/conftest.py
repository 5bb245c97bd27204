"""What all tests share: quiet TensorFlow, markers by folder, and Python processes of a test's own."""

from __future__ import annotations

import contextlib
import gc
import os
import pathlib
import subprocess
import sys
import tempfile

import forking
import hypothesis
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Processes that run tests side by side have a machine each; IPUs are locked by files.
_locks = tempfile.TemporaryDirectory(prefix="tf_ipu_shim_locks_", ignore_cleanup_errors=True)
os.environ["TF_IPU_SHIM_LOCK_DIR"] = _locks.name

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Nothing fails for being slow: the machine may be busy with something else.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")
MARKED_FOLDERS = ("slow", "subprocess", "tensorflow")


def pytest_collection_modifyitems(config, items):
    marked = False
    for item in items:
        folder = item.path.relative_to(ROOT / "tests").parts[0] if item.path.is_relative_to(ROOT / "tests") else ""
        if folder in MARKED_FOLDERS:
            item.add_marker(folder)
            marked = True
    if marked and not config.option.collectonly:
        _build_plugin(config)


def _build_plugin(config):
    """Before the first test, which has a time limit: on a machine that is busy the compiler takes ten minutes."""
    if "tensorflow" not in sys.modules:  # tests of scripts leave it to these
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, "-m", "tf_ipu_shim.plugin.build"], env=environment, capture_output=True)
        return
    from tf_ipu_shim import errors
    from tf_ipu_shim.plugin import build

    with contextlib.suppress(errors.PluginError):  # which tests say, each for itself
        if build.found() is None:
            with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
                print("\nThe IPU plugin is being built, which tests need ...", flush=True)
            build.ensure_built()


def pytest_collection_finish():
    """Leaves what imports have made out of all later garbage collections: these took a tenth of the suite's time."""
    gc.collect()
    gc.freeze()


class Python:
    """Starts Python in a process of its own, in a directory of its own, with this checkout importable."""

    def __init__(self, directory: pathlib.Path):
        self.directory = directory

    def __call__(self, *arguments, executable=sys.executable, stdin=None, environment=None, timeout=120):
        """Runs `python ARGUMENTS`; a variable set to None in `environment` is taken out."""
        variables = {**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})}
        return subprocess.run(
            [str(executable), *map(str, arguments)],
            cwd=self.directory,
            env={name: value for name, value in variables.items() if value is not None},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout,
        )

    def succeeds(self, *arguments, **options) -> str:
        """Runs `python ARGUMENTS`, which must end with status 0; returns what it printed."""
        process = self(*arguments, **options)
        assert process.returncode == 0, process.stdout + process.stderr
        return process.stdout

    def script(self, text: str, name: str = "script.py") -> pathlib.Path:
        """Writes a script into the process's directory."""
        path = self.directory / name
        path.write_text(text)
        return path


@pytest.fixture
def python(tmp_path) -> Python:
    directory = tmp_path / "process"
    directory.mkdir()
    return Python(directory)


@pytest.fixture(scope="module")
def module_python(tmp_path_factory) -> Python:
    """As `python`, one for all tests of a module."""
    return Python(tmp_path_factory.mktemp("process"))


@pytest.fixture(scope="session")
def forks():
    made = forking.Forks(ROOT)
    yield made
    made.close()


class ForkedPython(Python):
    """As `Python`, where TensorFlow and `ipu` have been imported once for all; without a time limit."""

    def __init__(self, directory: pathlib.Path, forks: forking.Forks):
        super().__init__(directory)
        self._forks = forks

    def __call__(self, *arguments, environment=None):
        return self._forks(self.directory, *arguments, environment=environment)


@pytest.fixture
def forked(python, forks) -> ForkedPython:
    return ForkedPython(python.directory, forks)
