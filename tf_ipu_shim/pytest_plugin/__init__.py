"""Adds fixtures, markers and options to pytest for tests on simulated IPUs and of their memory.

- `ipu_clean`: fixture; nothing is configured before and after the test
- `ipus`: fixture; a function that configures IPUs
- `ipu_strategy`: fixture; an `IPUStrategy` in whose scope the test runs
- `ipu_memory`: fixture; the memory that programs need and hold, for assertions
- `ipu_baseline`: fixture; compares that memory with a stored file
- `ipu_system("pod4")`, `ipu_chip("bow")`: markers that choose the simulated IPU system
- `ipu_sdk("2.6", ...)`: marker; the test is skipped unless one of these SDK releases is emulated
- `--ipu-report`: option that prints a table of the memory of each test
- `--ipu-write-baselines`: option that writes the files of `ipu_baseline`

A failed test that ran programs shows the memory report, and its traceback leaves out this package. Each worker of
pytest-xdist has a simulated system. TensorFlow is imported by the first fixture that needs it.
`docs/how_to/test/testing.md` shows tests.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import os
import pathlib
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import pytest

import tf_ipu_shim
from tf_ipu_shim import names, sdk
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.environment import engine_options, execution_mode, flags
from tf_ipu_shim.machine.sharing import locks
from tf_ipu_shim.pytest_plugin import keras_names, markers, memory_table

__tracebackhide__ = True
_OWN = (
    sdk.ENVIRONMENT_VARIABLE,
    systems.ENVIRONMENT_VARIABLE,
    execution_mode.ENVIRONMENT_VARIABLE,
    execution_mode.CHECK_INDICES,
    flags.ENVIRONMENT_VARIABLE,
    engine_options.ENVIRONMENT_VARIABLE,
)
_ENGINE = "tf_ipu_shim.frontend"  # loaded once a script or test uses `ipu`
_made: list[str] = []
_WRITE = "--ipu-write-baselines"
_REPORT = "--ipu-report"
_BASELINES = "ipu_baselines"
_PACKAGE = pathlib.Path(tf_ipu_shim.__file__).resolve().parent


class _AsWritten(importlib.abc.MetaPathFinder):
    """Finds the modules of this package before pytest, which would compile plugin modules itself."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Finds a module of the package; None for any other."""
        if path is None or not name.startswith(f"{tf_ipu_shim.__name__}."):
            return None
        return importlib.machinery.PathFinder.find_spec(name, path, target)


# pytest rewrites the `assert` statements in the modules of packages with plugins. Without its bytecode files that takes
# 10 seconds in each process. Its finder also ignores other names of a module. A test that imports a module under
# Graphcore's name, or as `tf_ipu_shim.ipu`, would get a copy of it.
sys.meta_path.insert(0, _AsWritten())
names.come_first()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Knows the options for baselines and the memory table."""
    group = parser.getgroup("tf_ipu_shim")
    group.addoption(_WRITE, action="store_true", help="write the files that `ipu_baseline` compares memory with")
    group.addoption(_REPORT, action="store_true", help="show a table of the memory that the programs of each test need")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the markers, and assigns this process separate IPUs."""
    for marker in markers.MARKERS:
        config.addinivalue_line("markers", marker)
    lock_directory = os.environ.get(locks.ENVIRONMENT_VARIABLE)
    if not lock_directory:
        lock_directory = tempfile.mkdtemp(prefix="tf_ipu_shim_pytest_")
        _made.append(lock_directory)
    # A worker of xdist inherits what the process that started it has set.
    worker = getattr(config, "workerinput", {}).get("workerid", "")
    os.environ[locks.ENVIRONMENT_VARIABLE] = os.path.join(lock_directory, worker) if worker else lock_directory


def pytest_unconfigure() -> None:
    """Removes the directory of the locks."""
    for directory in _made:
        shutil.rmtree(directory, ignore_errors=True)
        if os.environ.get(locks.ENVIRONMENT_VARIABLE) == directory:
            del os.environ[locks.ENVIRONMENT_VARIABLE]
    _made.clear()


def pytest_report_header() -> str:
    """Returns the header line with the simulated system."""
    return f"tf_ipu_shim: {tf_ipu_shim.__version__}, SDK {sdk.current()}, machine {systems.current().name}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuses misspelt markers, which would silently leave a test on another system."""
    markers.refuse_misspelt(config, items)


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    """Suggests the nearest marker after pytest refused one."""
    outcome: Any = yield
    markers.suggest_for_strict(outcome.get_result())


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skips a test that is for other SDKs: names and defaults belong to the release that `ipu` was imported for."""
    for marker in item.iter_markers("ipu_sdk"):
        required = [sdk.parse(str(version)) for version in marker.args]
        if sdk.current() not in required:
            releases = ", ".join(map(str, required))
            pytest.skip(f"is for SDK {releases}; run it with {sdk.ENVIRONMENT_VARIABLE}={required[0]}")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Records the memory of a test that used IPUs, and shows the memory report if it failed."""
    if call.excinfo is not None and not _PACKAGE.is_relative_to(item.config.rootpath):
        _hide_frames(call.excinfo)
    outcome: Any = yield
    report = outcome.get_result()
    if report.when == "call" and "ipu_clean" in getattr(item, "fixturenames", ()):
        from tf_ipu_shim.runtime import plans

        if not plans.recorded():
            return
        memory = tf_ipu_shim.memory_report()
        if report.failed:
            report.sections.append(("IPU memory report", memory.to_text()))
        if item.config.getoption(_REPORT):
            report.user_properties.append((memory_table.PROPERTY, memory_table.fullest_ipu(memory.devices)))


def _hide_frames(error: pytest.ExceptionInfo[BaseException]) -> None:
    """Leaves this package's frames out of a traceback, which `--full-trace` shows."""
    for entry in error.traceback:
        module = entry.frame.f_globals
        if str(module.get("__name__")).startswith("tf_ipu_shim."):
            module.setdefault("__tracebackhide__", True)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Writes the table of `--ipu-report`."""
    if not config.getoption(_REPORT):
        return
    reports = [
        test_report
        for kind in terminalreporter.stats.values()
        for test_report in kind
        if getattr(test_report, "when", "") == "call"
    ]
    terminalreporter.section(memory_table.TITLE)
    for line in memory_table.table(reports) or ["No test has run a program on an IPU."]:
        terminalreporter.write_line(line)


@pytest.fixture
def ipu_clean(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Nothing is configured when the test begins and when it has ended; its markers name its machine.

    Variables that the test sets with `monkeypatch` are restored anyway. Those for flags, options and the system that it
    sets in `os.environ` are restored too.
    """
    before = {name: os.environ.get(name) for name in _OWN}
    _select_system(request.node, monkeypatch)
    _reset_state()
    yield
    _reset_state()
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


@pytest.fixture
def ipus(ipu_clean: None) -> Callable[..., Any]:
    """`ipus(4)` configures `/device:IPU:0` with four IPUs, `ipus([1, 2])` two devices; other options by their paths.

    Returns:
        The `IPUConfig` that is in force.
    """

    def configure(count: int | Sequence[int] = 1, **options: Any) -> Any:
        import tf_ipu_shim.frontend  # noqa: F401  loads the plugin
        from tf_ipu_shim.configuration import system, tree

        config = tree.IPUConfig()
        config.auto_select_ipus = count
        for path, value in options.items():
            *parents, name = path.split(".")
            holder = config
            for parent in parents:
                holder = getattr(holder, parent)
            setattr(holder, name, value)
        system.reset_ipu_configuration()
        config.configure_ipu_system()
        return config

    return configure


@pytest.fixture
def ipu_strategy(ipus: Callable[..., Any]) -> Iterator[Any]:
    """An `IPUStrategy` whose scope the test runs in, on one IPU unless the test calls `ipus` first."""
    from tf_ipu_shim.frontend.strategies import ipu_strategy as module
    from tf_ipu_shim.runtime import devices

    if devices.configured() is None:
        ipus(1)
    strategy = module.IPUStrategyV1()
    with strategy.scope():
        yield strategy


class IpuMemory:
    """The memory that a test's programs need on each IPU, and the bytes in use, at the time of the call."""

    def report(self) -> Any:
        """Returns the whole report, as returned by `tf_ipu_shim.memory_report()`."""
        return tf_ipu_shim.memory_report()

    def peak(self, ipu: int = 0, device: int = 0) -> int:
        """Returns the most that one of the test's programs needs on an IPU: modelled, the same in every run.

        Args:
            ipu: its place in the TensorFlow device.
            device: the number of the TensorFlow device.

        Raises:
            AssertionError: no program has run on it.
        """
        return int(self._modelled(ipu, device).peak_bytes)

    def always_live(self, ipu: int = 0, device: int = 0) -> int:
        """Returns the memory that stays on an IPU between steps, such as variables.

        Args:
            ipu: its place in the TensorFlow device.
            device: the number of the TensorFlow device.

        Raises:
            AssertionError: no program has run on it.
        """
        return int(self._modelled(ipu, device).always_live_bytes)

    def _modelled(self, ipu: int, device: int) -> Any:
        device_report = next(
            (candidate for candidate in self.report().devices if candidate.name == f"/device:IPU:{device}"), None
        )
        modelled = (
            device_report.ipus[ipu].modelled if device_report is not None and ipu < len(device_report.ipus) else None
        )
        if modelled is None:
            raise AssertionError(
                f"No program has run on IPU {ipu} of /device:IPU:{device} in this test; the assertion "
                "needs one. Run a program first, or name another IPU."
            )
        return modelled


@pytest.fixture
def ipu_memory(ipu_clean: None) -> IpuMemory:
    """The memory of the test's programs: `ipu_memory.peak(0)`, `ipu_memory.always_live(0)`, `ipu_memory.report()`."""
    return IpuMemory()


@pytest.fixture
def ipu_baseline(request: pytest.FixtureRequest, ipu_clean: None) -> Callable[..., None]:
    """`ipu_baseline()` fails if the test's programs need more memory than the baseline file next to the test allows.

    The file is `ipu_baselines/<module>.<test>.json`; `ipu_baseline("name")` sets another name, `percent=5` lets peaks
    grow by 5 %. `pytest --ipu-write-baselines` writes it. Automatic names of layers are the same as in a run with only
    this test.
    """
    before = keras_names.name_counts()

    def check(name: str | None = None, percent: float = 0.0) -> None:
        from tf_ipu_shim.testing import memory

        folder = request.path.parent / _BASELINES
        shown = name or f"{request.path.stem}.{re.sub(r'[^A-Za-z0-9_.-]+', '-', request.node.name).strip('-')}"
        write = bool(request.config.getoption(_WRITE))
        file, command = folder / f"{shown}.json", f"pytest {_WRITE} {request.node.nodeid}"
        if write:
            folder.mkdir(exist_ok=True)
        elif not file.exists():
            raise AssertionError(
                f"There is no baseline {file}; expected a file written before. Write it once: {command}"
            )
        try:
            counts = keras_names.counts_before_test(before)
            memory.check_growth(file, percent, write, counts=counts)
        except AssertionError as error:
            raise AssertionError(f"{error}\nRun {command} if this growth is intended.") from None

    return check


def _select_system(node: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    name = markers.selected_system(node)
    if name is not None:
        monkeypatch.setenv(systems.ENVIRONMENT_VARIABLE, name)


def _reset_state() -> None:
    """Forgets configuration, counters and plans, as if nothing had run."""
    if _ENGINE not in sys.modules:
        return
    from tf_ipu_shim import plugin
    from tf_ipu_shim.runtime import devices, ignored_options, plans

    ordinals = [device.ordinal for device in devices.active()]
    devices.reset()
    plans.forget()
    ignored_options.forget()
    for ordinal in ordinals:
        plugin.load().reset_counters(ordinal)
