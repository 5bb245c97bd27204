"""`tf-ipu doctor`: checks the installation and prints for each check the result, the expectation and the fix."""

from __future__ import annotations

import argparse
import dataclasses
import importlib.metadata
import importlib.util
import json
import os
import pathlib
import platform
import subprocess
import sys
from collections.abc import Iterator

import tf_ipu_shim
from tf_ipu_shim import errors, keras2
from tf_ipu_shim.cli import requirements
from tf_ipu_shim.cli.output import formats, terminal
from tf_ipu_shim.configuration import environment
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.environment import engine_options, flags
from tf_ipu_shim.machine.gc_tools import listing
from tf_ipu_shim.machine.sharing import attach
from tf_ipu_shim.plugin import build, cache, compiler

PYTHONS = ((3, 10), (3, 13))
"""The first and the last Python that setup.cfg promises."""
TENSORFLOWS = ((2, 15, 1), (2, 22))
"""The first supported TensorFlow, and the first one after the supported range."""
ONLY_FILES = "tensorflow-cpu-aws"
"""The package that has the files of `tensorflow` 2.15 for ARM."""
OK, NOTE, PROBLEM = "ok", "note", "PROBLEM"

# In a separate process: a TensorFlow made for other processors ends the process that imports it.
_PROBE = """
import json
from tensorflow.python.framework import versions
from tf_ipu_shim.plugin import build
found = build.find_library()
print(json.dumps({"version": versions.VERSION, "plugin": found and str(found)}))
"""
_PROBE_SECONDS = 300
_SHOWN_LINES = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Check:
    """The result of one check.

    Args:
        state: `OK`, `NOTE` or `PROBLEM`.
        cure: the fix; empty if none is needed.
    """

    name: str
    state: str
    found: str
    expected: str
    cure: str = ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the command's arguments."""
    formats.add_argument(parser)


def run(arguments: argparse.Namespace) -> int:
    """Runs all checks and prints their results."""
    checks = list(_all_checks())
    if arguments.format == formats.JSON:
        print(formats.to_json(checks))
    else:
        for check in checks:
            _print_check(check)
    return int(any(check.state == PROBLEM for check in checks))


def _print_check(check: Check) -> None:
    terminal.show(f"[{check.state}] {check.name}: {check.found}")
    if check.state != OK:
        print(f"    expected: {check.expected}")
    if check.cure:
        print(f"    do:       {check.cure}")


def _all_checks() -> Iterator[Check]:
    yield check_python(sys.version_info[:2])
    yield check_names()
    installed = find_tensorflows()
    yield check_tensorflow(installed)
    probe = _probe() if installed else {"error": "TensorFlow is not installed"}
    if installed:
        yield check_import(probe)
        yield check_keras(probe.get("version") or next(iter(installed.values())))
    yield check_plugin(probe.get("plugin"), compiler.find_compiler() is not None)
    yield check_plugin_directory()
    yield from check_variables()
    yield check_ipus()


def check_python(version: tuple[int, ...]) -> Check:
    """Returns whether this is a Python that the package is for, on Linux."""
    first, last = (".".join(map(str, bound)) for bound in PYTHONS)
    fits = PYTHONS[0] <= version[:2] <= PYTHONS[1]
    elsewhere = build.platform_error()
    return Check(
        name="Python",
        state=PROBLEM if elsewhere or not fits else OK,
        found=f"{'.'.join(map(str, version[:2]))} on {sys.platform} {platform.machine()}, {sys.executable}",
        expected=f"Python {first} to {last} on Linux with glibc",
        cure=elsewhere or ("" if fits else "make an environment with Python 3.11: TensorFlow 2.15 supports it"),
    )


def check_names() -> Check:
    """Checks whether plain `python` finds Graphcore's module names."""
    site = any(pathlib.Path(entry, "tf_ipu_shim.pth").is_file() for entry in sys.path if entry)
    package = pathlib.Path(tf_ipu_shim.__file__).parent
    return Check(
        name="tf_ipu_shim",
        state=OK if site else NOTE,
        found=f"{tf_ipu_shim.__version__} in {package}" + ("" if site else ", not installed by pip"),
        expected="tf_ipu_shim.pth in site-packages, so that plain `python script.py` knows Graphcore's names",
        cure="" if site else f"run scripts with `{sys.executable} -m tf_ipu_shim script.py`, or `pip install` it",
    )


def find_tensorflows() -> dict[str, str]:
    """Finds the installed packages that contain a module `tensorflow`, with their versions."""
    versions = {}
    for name in ("tensorflow-cpu", "tensorflow", "tensorflow-cpu-aws", "tf-nightly", "tf-nightly-cpu"):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def check_tensorflow(installed: dict[str, str]) -> Check:
    """Checks that exactly one TensorFlow, of a supported version, is installed.

    Example:
        >>> check_tensorflow({"tensorflow-cpu": "2.15.1"}).state
        'ok'
        >>> check_tensorflow({"tensorflow-cpu": "2.9.0"}).state
        'PROBLEM'
    """
    first, end = (".".join(map(str, bound)) for bound in TENSORFLOWS)
    installed_versions = ", ".join(f"{name} {version}" for name, version in installed.items()) or "none"
    state, cure = OK, ""
    if not installed or any(
        not TENSORFLOWS[0] <= _version_numbers(version) < TENSORFLOWS[1] for version in installed.values()
    ):
        state, cure = PROBLEM, requirements.install_command()
    elif len(set(installed.values())) > 1:
        state = PROBLEM
        cure = f"pip uninstall -y {' '.join(installed)}; {requirements.install_command()}"
    elif len(installed.keys() - {ONLY_FILES}) > 1:
        state, cure = NOTE, "nothing while both have one version: they share their files"
    expected = f"one package, {first} <= version < {end}"
    return Check(name="TensorFlow", state=state, found=installed_versions, expected=expected, cure=cure)


def check_import(probe: dict[str, str]) -> Check:
    """Returns whether TensorFlow can be imported."""
    error = probe.get("error", "")
    return Check(
        name="import tensorflow",
        state=PROBLEM if error else OK,
        found=error or f"TensorFlow {probe['version']}",
        expected="it can be imported",
        cure="install TensorFlow again in a new environment; on a processor without AVX it cannot run" if error else "",
    )


def check_keras(version: str) -> Check:
    """Returns whether the Keras of `tf.keras` is Keras 2."""
    expected = "Keras 2, which Graphcore's scripts are written for"
    try:
        root = keras2.root()
    except errors.UnsupportedError:
        return Check(
            name="Keras",
            state=PROBLEM,
            found="no Keras 2",
            expected=expected,
            cure=f"pip install --no-deps tf_keras=={'.'.join(version.split('.')[:2])}.*",
        )
    package = root.partition(".")[0]
    keras_version = f"{package} {importlib.metadata.version(package)}"
    chosen = os.environ.get("TF_USE_LEGACY_KERAS")
    if (
        package == "tf_keras"
        and _version_numbers(importlib.metadata.version(package))[:2] != _version_numbers(version)[:2]
    ):
        cure = f"pip install --no-deps tf_keras=={'.'.join(version.split('.')[:2])}.*"
        return Check(
            name="Keras", state=PROBLEM, found=keras_version, expected="tf_keras of TensorFlow's version", cure=cure
        )
    if package == "tf_keras" and chosen not in (None, "", "1", "true", "True"):
        return Check(
            name="Keras",
            state=NOTE,
            found=f"{keras_version}, and TF_USE_LEGACY_KERAS={chosen}: tf.keras is Keras 3",
            expected=expected,
            cure="unset TF_USE_LEGACY_KERAS: it is then set to 1 automatically",
        )
    return Check(name="Keras", state=OK, found=keras_version, expected=expected)


def check_plugin(library: str | None, has_compiler: bool) -> Check:
    """Returns whether the C++ part is built, or can be."""
    expected = "the plugin for this TensorFlow, or a C++ compiler that makes it at first use"
    if library:
        return Check(name="plugin", state=OK, found=library, expected=expected)
    if has_compiler:
        status = f"not built yet; {compiler.find_compiler().command[0]} builds it at first use"  # type: ignore[union-attr]
        cure = "tf-ipu build builds it now"
        return Check(name="plugin", state=OK, found=status, expected=expected, cure=cure)
    status, cure = "not built, and no compiler", compiler.missing_compiler_message()
    return Check(name="plugin", state=PROBLEM, found=status, expected=expected, cure=cure)


def check_plugin_directory() -> Check:
    """Returns whether the plugin can be kept between processes."""
    expected = "a directory that only this user can write to"
    try:
        directory = str(cache.first_writable_directory(cache.cache_directories()))
    except errors.PluginError as error:
        return Check(
            name="cache",
            state=NOTE,
            found=" ".join(str(error).splitlines()[1:-1]).strip(),
            expected=expected,
            cure=str(error).splitlines()[-1],
        )
    return Check(name="cache", state=OK, found=directory, expected=expected)


def check_variables() -> Iterator[Check]:
    """Yields a check for each problem of environment variables, flags and engine options."""
    problems = list(map(str, environment.problems()))
    for check in (flags.current, engine_options.current):
        try:
            check()
        except (ValueError, NotImplementedError) as error:
            problems.append(str(error))
    for problem in problems:
        yield Check(
            name="environment",
            state=PROBLEM,
            found=problem,
            expected="valid values",
            cure="correct or unset the variable",
        )
    if not problems:
        set_variables = [variable.name for variable in environment.VARIABLES if os.environ.get(variable.name)]
        yield Check(
            name="environment",
            state=OK,
            found=", ".join(set_variables) or "nothing set",
            expected="valid values",
        )


def check_ipus() -> Check:
    """Returns whether other processes hold IPUs of the simulated machine."""
    expected = "IPUs that no other process holds"
    try:
        system = systems.current()
        holders = attach.in_use(system)
    except (ValueError, attach.LockDirectoryError) as error:
        return Check(
            name="IPUs",
            state=PROBLEM,
            found=str(error),
            expected=expected,
            cure="set the variable that the message names",
        )
    summary = f"{system.name}, {system.num_ipus} x {system.chip.title}, {system.num_ipus - len(holders)} free"
    if not holders:
        return Check(name="IPUs", state=OK, found=summary, expected=expected)
    table = listing.processes(holders).splitlines()[1:]
    return Check(
        name="IPUs",
        state=NOTE,
        found="\n".join([summary, *table]),
        expected=expected,
        cure="wait for these processes or end them, or give this process separate IPUs: "
        "TF_IPU_SHIM_LOCK_DIR=$(mktemp -d)",
    )


def _probe() -> dict[str, str]:
    root = str(pathlib.Path(tf_ipu_shim.__file__).parent.parent)
    variables = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    variables["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))
    try:
        process = subprocess.run(
            [sys.executable, "-c", _PROBE], capture_output=True, text=True, env=variables, timeout=_PROBE_SECONDS
        )
    except subprocess.TimeoutExpired:
        return {"error": f"the import has not ended within {_PROBE_SECONDS} s"}
    if process.returncode == 0:
        return dict(json.loads(process.stdout.splitlines()[-1]))
    lines = process.stderr.strip().splitlines()[-_SHOWN_LINES:] or [f"the process ended with {process.returncode}"]
    return {"error": " ".join(lines)}


def _version_numbers(version: str) -> tuple[int, ...]:
    """Returns the leading numbers of a version: `(2, 21, 0)` of "2.21.0rc1"."""
    numbers = []
    for part in version.split(".")[:3]:
        digits = "".join(character for character in part if character.isdigit())
        numbers.append(int(part) if part.isdigit() else int(digits[:1] or 0))
    return tuple(numbers)
