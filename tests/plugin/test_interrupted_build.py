"""A signal during a build ends its compilers, leaves nothing half built, and is told; the next use builds."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tf_ipu_shim.plugin import build_processes, cache

pytestmark = [pytest.mark.subprocess, pytest.mark.without_tensorflow]

# Who is started in the background, or by nohup, is told to ignore them.
LISTENS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""
PLUGIN = (
    LISTENS
    + """
from tf_ipu_shim.plugin import build
tensorflow = build.TensorFlowBuild("9.9.9", "v9.9.9-0-gabc", ("-std=c++17",), ())
print(build.ensure_built([{source!r}], tensorflow=tensorflow))
"""
)
POPLAR = (
    LISTENS
    + """
import pathlib
from tf_ipu_shim.poplar_sdk.toolchain import build, sources
sources.library_names = lambda: ["one"]
sources.sources_of = lambda name: [pathlib.Path({source!r})]
print(build.ensure_built())
"""
)
# Its own child compiles, as that of g++ does.
SLOW = '#!/bin/sh\ncase "$*" in *" -c "*) echo $$ > {started}; sleep 600; true;; esac\nexec g++ "$@"\n'


@pytest.fixture
def directory(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(tmp_path / "cache"))
    (tmp_path / "good.cc").write_text('extern "C" int answer() { return 42; }\n')
    slow = tmp_path / "slow-g++"
    slow.write_text(SLOW.format(started=tmp_path / "started"))
    slow.chmod(0o755)
    return tmp_path


def interrupted(directory, code, signal_number):
    """Sends a signal when the compiler runs; returns the ended process's status, and what it told."""
    process = subprocess.Popen(
        [sys.executable, "-c", code.format(source=str(directory / "good.cc"))],
        env={**os.environ, "CXX": str(directory / "slow-g++")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    started = directory / "started"
    while process.poll() is None and not (started.exists() and started.read_text().endswith("\n")):
        time.sleep(0.02)
    process.send_signal(signal_number)
    return process.communicate(timeout=120)[1], process.returncode


def states_of_group(directory):
    """The states of the processes of the compiler's group: R, S, or Z for an ended one that nobody has asked after."""
    group = (directory / "started").read_text().strip()
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ends
            state, _, its_group = path.read_text().rpartition(")")[2].split()[:3]
            if its_group == group:
                yield state


def wait_for_end(directory):
    """The system ends processes a moment after their signal."""
    deadline = time.monotonic() + 60
    while set(states_of_group(directory)) - {"Z"}:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_compiled(path):
    """Whether a file is an object file or a library, whole or in part: linker scripts are text."""
    if path.suffix != ".so":
        return path.suffix == ".o"
    content = path.read_bytes()
    return not content or not content.isascii()


@pytest.mark.parametrize("code", [PLUGIN, POPLAR], ids=["plugin", "poplar"])
@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_compilers_end_with_the_build(directory, python, code, signal_number):
    told, status = interrupted(directory, code, signal_number)
    assert "was not built: the build was interrupted, the next use starts it again (" in told
    assert status == -signal_number  # as without a build
    wait_for_end(directory)
    assert not any(map(is_compiled, (directory / "cache").rglob("*")))
    assert not list((directory / "cache").rglob(".building-*"))
    built = python.succeeds("-c", code.format(source=str(directory / "good.cc")), environment={"CXX": "g++"})
    assert pathlib.Path(built.strip()).exists()


@pytest.mark.parametrize("raised", [KeyboardInterrupt, RuntimeError])  # of a lock that the interruption left
def test_a_signal_between_two_starts_ends_the_first(raised):
    codes = []

    def items():
        yield "compiled"
        while not build_processes._running:
            time.sleep(0.01)
        raise raised

    def compile_one(_):
        codes.append(build_processes.run(["sleep", "30"], dict(os.environ)).returncode)

    with pytest.raises(raised):
        build_processes.map_in_parallel(compile_one, items(), 2)
    assert codes == [-signal.SIGTERM]


def test_ignored_signals_stay_ignored(monkeypatch):
    """As below `nohup`."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with build_processes.cleaned_up_at_signals():
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)
