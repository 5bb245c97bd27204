"""What all tests share: settings, IPU devices that begin unconfigured, and Python processes of a test's own."""

from __future__ import annotations

import contextlib
import functools
import gc
import os
import pathlib
import subprocess
import sys
import tempfile

import file_marks
import forking
import hypothesis
import pytest
import slow_cases

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# Processes that run tests side by side have a machine each; IPUs are locked by files.
_locks = tempfile.TemporaryDirectory(prefix="tf_ipu_shim_locks_", ignore_cleanup_errors=True)
os.environ["TF_IPU_SHIM_LOCK_DIR"] = _locks.name

# What imports and the collection of tests make stays: searching it for garbage took a fifth of their time.
gc.disable()

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Nothing fails for being slow: the machine may be busy with something else.
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")
SETTINGS = (
    "TF_IPU_SHIM_SYSTEM",
    "TF_POPLAR_FLAGS",
    "POPLAR_ENGINE_OPTIONS",
    "TF_IPU_SHIM_SDK",
    "TF_IPU_SHIM_EXECUTION_MODE",
    "TF_IPU_SHIM_CHECK_INDICES",
    "TF_IPU_SHIM_CHECK_CODELETS",
    "TF_IPU_SHIM_EXACT_BYTES",
    "XLA_FLAGS",
)


def pytest_ignore_collect(collection_path, config):
    """Importing a file only to leave its tests out takes time."""
    if collection_path.suffix == ".py" and config.option.markexpr:
        if file_marks.leaves_out(config.option.markexpr, collection_path.read_text(encoding="utf-8")):
            return True
    return None


def pytest_collection_modifyitems(config, items):
    """Marks what imports TensorFlow in the test process, and builds the plugin first."""
    slow_cases.leave_out_cases(items)
    others = ("without_tensorflow", "subprocess", "slow")
    for item in items:
        if not any(map(item.get_closest_marker, others)):
            item.add_marker("tensorflow")
    if not config.option.collectonly and not all(map(_needs_no_plugin, items)):
        _build_plugin(config)


def _needs_no_plugin(item):
    return item.get_closest_marker("without_tensorflow") is not None


def _build_plugin(config):
    """Before the first test, which has a time limit: on a machine that is busy the compiler takes ten minutes."""
    if "tensorflow" not in sys.modules:  # tests of scripts leave it to these
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        subprocess.run([sys.executable, "-m", "tf_ipu_shim.cli", "build"], env=environment, capture_output=True)
        return
    from tf_ipu_shim import errors
    from tf_ipu_shim.plugin import build

    with contextlib.suppress(errors.PluginError):  # which tests say, each for itself
        if build.find_library() is None:
            with config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
                print("\nThe IPU plugin is being built, which tests need ...", flush=True)
            build.ensure_built()


def pytest_collection_finish():
    """Leaves what imports have made out of all later garbage collections: these took a tenth of the suite's time."""
    gc.enable()
    gc.collect()
    gc.freeze()


class Python:
    """Starts Python in a process of its own, in a directory of its own, with this checkout importable."""

    def __init__(self, directory: pathlib.Path):
        self.directory = directory

    def __call__(self, *arguments, executable=sys.executable, stdin=None, environment=None, timeout=300):
        """Runs `python ARGUMENTS`; a variable set to None in `environment` is taken out.

        The time limit is for what would never end: a machine that is busy may take a minute to import TensorFlow.
        """
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


@pytest.fixture(scope="session")
def interpreter(forks) -> str:
    """As `sys.executable`, for commands that start Python themselves: TensorFlow and `ipu` have been imported."""
    return forks.interpreter


class ForkedPython(Python):
    """As `Python`, where TensorFlow and `ipu` have been imported once for all."""

    def __init__(self, directory: pathlib.Path, forks: forking.Forks):
        super().__init__(directory)
        self._forks = forks

    def __call__(self, *arguments, environment=None):
        return self._forks(self.directory, *arguments, environment=environment)


@pytest.fixture
def forked(python, forks) -> ForkedPython:
    return ForkedPython(python.directory, forks)


@pytest.fixture(scope="module")
def module_forked(module_python, forks) -> ForkedPython:
    return ForkedPython(module_python.directory, forks)


@pytest.fixture(autouse=True)
def own_environment(monkeypatch, tmp_path):
    """No variable of the developer's own counts, IPUs are locked where nobody else looks, and none is configured."""
    from tf_ipu_shim.machine.environment import sdk_environment

    for name in (*SETTINGS, *sdk_environment.set_variables()):
        monkeypatch.setenv(name, "")  # so that one which the test sets is taken back
        monkeypatch.delenv(name)
    monkeypatch.setenv("TF_IPU_SHIM_LOCK_DIR", str(tmp_path / "locks"))
    _forget_devices()
    yield
    _forget_devices()


def _forget_devices():
    """A test that never configures leaves the default device."""
    if "tf_ipu_shim.runtime.devices" in sys.modules:
        from tf_ipu_shim.runtime import devices, ignored_options

        ignored_options.forget()
        devices.reset()


@pytest.fixture
def ipus(own_environment):
    """`ipus(4)` gives /device:IPU:0 four IPUs; `ipus([1, 2])` makes two TensorFlow devices."""
    from harness import configure
    from tf_ipu_shim.ipu import config

    yield configure
    config.reset_ipu_configuration()


@pytest.fixture
def studied(ipus):
    """`studied(function, 2)` gives the programs of a function that is studied on two IPUs."""
    import studies

    return functools.partial(studies.of_run, ipus)


@pytest.fixture
def graph(own_environment):
    """A TensorFlow 1 graph of the test's own, the default one while it runs."""
    import tensorflow as tf

    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def eager():
    """A test that takes this one beside `mostly_in_a_graph` runs in TensorFlow 2's mode."""


@pytest.fixture
def mostly_in_a_graph(own_environment, request):
    """Nothing is configured, and the test is in a graph of its own, unless it takes `eager`."""
    import tensorflow as tf
    from tf_ipu_shim.ipu import config

    config.reset_ipu_configuration()
    with contextlib.nullcontext() if "eager" in request.fixturenames else tf.Graph().as_default():
        yield
    config.reset_ipu_configuration()


@pytest.fixture
def environment(own_environment, monkeypatch):
    """`environment(config={"allow_recompute": True}, flags="--use_ipu_model")` configures from scratch."""
    import option_runs

    return functools.partial(option_runs.from_scratch, monkeypatch)


@pytest.fixture
def logged(own_environment, monkeypatch):
    """The lines that the driver's log gets."""
    from tf_ipu_shim.runtime import log

    lines = []
    monkeypatch.setattr(log, "info", lambda message, source=None: lines.append(message))
    return lines


@pytest.fixture(params=["xla", "kernels"])
def execution_mode(request, own_environment, monkeypatch):
    """Runs a test in each execution mode."""
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", request.param)
    return request.param


@pytest.fixture
def configured_in_each_mode(execution_mode):
    """Configures one IPU, and runs a test in each execution mode."""
    from harness import configure

    configure()
