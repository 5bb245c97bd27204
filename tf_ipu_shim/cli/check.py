"""`tf-ipu check`: prints the porting report of a script, with the ignored options and refusals of a run."""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import shutil
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tf_ipu_shim import check
from tf_ipu_shim.check import pitfalls
from tf_ipu_shim.cli import requirements, runner
from tf_ipu_shim.cli.output import formats, terminal
from tf_ipu_shim.machine.environment import execution_mode
from tf_ipu_shim.machine.environment.effects import RECORDED
from tf_ipu_shim.runtime.errors import error_texts

_LEVELS = {
    check.FindingKind.REFUSED: "error",
    check.FindingKind.TRAP: "warning",
    check.FindingKind.RECORDED: "notice",
}
"""The level of a finding's annotation; what is emulated gets none."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options: the runner's, and whether to run the script at all."""
    parser.add_argument("--static", action="store_true", help="read the script, or all of a folder, and do not run it")
    formats.add_argument(parser, formats.GITHUB)
    runner.add_arguments(parser, only_runs=False)


def run(arguments: argparse.Namespace) -> int:
    """Runs a script, unless `--static` is set, and prints how its IPU calls are handled."""
    if arguments.module:
        print("tf-ipu check: name the script's file: -m is not supported", file=sys.stderr)
        return 2
    if arguments.static and os.path.isdir(arguments.script or ""):
        return _check_folder(arguments)
    problem = runner.find_problem(arguments) or (None if arguments.static else requirements.missing_tensorflow())
    if problem:
        print(f"tf-ipu check: {problem}", file=sys.stderr)
        return 2
    script = pathlib.Path(arguments.script).absolute()
    try:
        sources = check.collect_sources(script)
    except SyntaxError as error:
        print(f"tf-ipu check: {error.filename}:{error.lineno}: {error.msg}", file=sys.stderr)
        return 2
    if arguments.static:
        runner.prepare(arguments)
        status, findings = 0, check.find_uses(sources)
    else:
        status, findings = _run_and_find(arguments, sources)
    return _show(findings, arguments) or status


def _check_folder(arguments: argparse.Namespace) -> int:
    """Reads all scripts in a folder."""
    runner.prepare(arguments)
    sources, unreadable = check.collect_folder(pathlib.Path(arguments.script).absolute())
    if not sources and not unreadable:
        print(f"tf-ipu check: {arguments.script!r} has no file that ends in .py", file=sys.stderr)
        return 2
    refused = [
        check.Finding(check.FindingKind.REFUSED, path, error.lineno or 0, type(error).__name__, error.msg)
        for path, error in unreadable.items()
    ]
    return _show([*refused, *check.find_uses(sources)], arguments)


def _show(findings: Sequence[check.Finding], arguments: argparse.Namespace) -> int:
    """Prints findings; returns 1 if anything is refused, else 0."""
    if arguments.tf1:
        findings = [finding for finding in findings if finding.why != pitfalls.NEEDS_TF1]
    _print_findings(findings, arguments)
    return int(any(finding.kind is check.FindingKind.REFUSED for finding in findings))


def _print_findings(findings: Sequence[check.Finding], arguments: argparse.Namespace) -> None:
    if arguments.format == formats.JSON:
        print(
            formats.to_json({"findings": [{**finding._asdict(), "kind": finding.kind.value} for finding in findings]})
        )
    elif arguments.format == formats.GITHUB:
        for finding in findings:
            if finding.kind in _LEVELS:
                message = f"{finding.name}: {finding.why}" if finding.why else finding.name
                path = os.path.relpath(finding.path)
                print(
                    formats.annotation(_LEVELS[finding.kind], f"IPU: {finding.kind.value}", message, path, finding.line)
                )
    else:
        columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else check.WIDTH
        terminal.show(check.format_findings(findings, min(check.WIDTH, columns)))
        if arguments.static:
            terminal.show("Refusals that depend on arguments appear only in a run: leave out --static.")


def _run_and_find(arguments: argparse.Namespace, sources: list[check.SourceFile]) -> tuple[int, list[check.Finding]]:
    """Runs the script; returns its status, and the findings of its sources and of the run."""
    failures: list[Exception] = []
    environment = os.environ.copy()
    os.environ.pop(execution_mode.ENVIRONMENT_VARIABLE, None)  # only mode kernels checks indices
    arguments.check_indices = True
    status = runner.run(arguments, failures)
    with _environment_scope(environment):  # what the script has put into it is told by its own lines
        read = check.find_uses(sources)
    observed = _run_observations(sources[0].path, failures, {source.path for source in sources})
    named = " ".join(finding.name.replace("=", "") for finding in read if finding.kind is check.FindingKind.RECORDED)
    findings = [*read, *(finding for finding in observed if finding.name.partition(" = ")[0] not in named)]
    if status == 0 and _configured_environment():
        findings = [finding for finding in findings if finding.name != pitfalls.NOT_CONFIGURED]
    return status, findings


@contextlib.contextmanager
def _environment_scope(variables: Mapping[str, str]) -> Iterator[None]:
    """Temporarily sets environment variables."""
    now = os.environ.copy()
    os.environ.clear()
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(now)


def _run_observations(script: pathlib.Path, failures: list[Exception], files: set[pathlib.Path]) -> list[check.Finding]:
    """Findings of a run: options without effect, and the error that ended it."""
    findings = []
    for failure in failures:
        frames = traceback.extract_tb(failure.__traceback__)
        user_frames = [frame for frame in frames if pathlib.Path(os.path.abspath(frame.filename)) in files]
        last_frame = user_frames[-1] if user_frames else None
        path = pathlib.Path(os.path.abspath(last_frame.filename)) if last_frame else script
        line = last_frame.lineno or 0 if last_frame else 0
        why = error_texts.clean(str(failure)) or "without a message"
        findings.append(check.Finding(check.FindingKind.REFUSED, path, line, type(failure).__name__, why))
    for name, value in _ignored_options().items():
        findings.append(check.Finding(check.FindingKind.RECORDED, script, 0, f"{name} = {value!r}", "seen in the run"))
    return findings


def _ignored_options() -> dict[str, Any]:
    """Options and arguments without effect that this process has set."""
    recorder = sys.modules.get("tf_ipu_shim.runtime.ignored_options")
    system = sys.modules.get("tf_ipu_shim.configuration.system")
    options = system.set_options() if system else ()
    return {
        **{option.name: option.value for option in options if option.effect == RECORDED},
        **(recorder.arguments() if recorder else {}),
    }


def _configured_environment() -> bool:
    devices = sys.modules.get("tf_ipu_shim.runtime.devices")
    return devices is not None and devices.configured() is not None
