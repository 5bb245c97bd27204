"""Runs an unchanged script or module as `python SCRIPT` would, with Graphcore's names and the chosen SDK."""

from __future__ import annotations

import argparse
import importlib.util
import linecache
import os
import runpy
import sys
import types
from collections.abc import Sequence

import tf_ipu_shim
from tf_ipu_shim import cli, sdk
from tf_ipu_shim.cli import report, requirements
from tf_ipu_shim.cli.output import formats, log_filter, sizes
from tf_ipu_shim.cli.parser import SuggestingParser
from tf_ipu_shim.configuration import environment
from tf_ipu_shim.legacy.names import activation
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.environment import execution_mode
from tf_ipu_shim.names import named_devices
from tf_ipu_shim.poplar_sdk.toolchain import build_on_demand
from tf_ipu_shim.runtime.errors import error_display

PROGRAM = "python -m tf_ipu_shim"
_SDK_IS_ENABLED = "POPLAR_SDK_ENABLED"
"""A folder of the SDK; scripts for several kinds of devices use IPUs if it is set."""
USAGE = "%(prog)s [-h] [OPTIONS] (SCRIPT | -m MODULE) [ARGS ...]"
STANDARD_INPUT = "-"
_STANDARD_INPUT_FILE = "<stdin>"


def add_arguments(parser: argparse.ArgumentParser, chooses_system: bool = True, only_runs: bool = True) -> None:
    """Declares the options of the runner, and everything after them for the script.

    Without `only_runs` options of execution and reports are left out: the command has another result.
    """
    parser.usage = USAGE
    parser.set_defaults(program=parser.prog)
    parser.add_argument(
        "--tf1",
        action="store_true",
        help="for scripts written for TensorFlow 1.15: `import tensorflow` gives the version 1 API in graph mode",
    )
    parser.add_argument(
        "--sdk",
        metavar="VERSION",
        type=_parse_sdk,
        help="emulate this Poplar SDK, 1.2 to 3.4 (default 3.4) [env: TF_IPU_SHIM_SDK]",
    )
    if chooses_system:
        parser.add_argument(
            "--system",
            metavar="NAME",
            type=_parse_system,
            help=f"simulate this IPU system, such as pod4 (default {systems.DEFAULT}) [env: TF_IPU_SHIM_SYSTEM]",
        )
    if only_runs:
        _add_execution_arguments(parser)
        report.add_arguments(parser)
    else:
        parser.set_defaults(execution=None, check_indices=False, **report.WITHOUT_REPORT)
    log_filter.add_arguments(parser)
    parser.add_argument("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help="run a module")
    read = f", or {STANDARD_INPUT} for standard input" if only_runs else ""
    parser.set_defaults(reads_input=only_runs)
    parser.add_argument("script", metavar="SCRIPT", nargs="?", help=f"the script to run{read}")
    parser.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="arguments of the script")


def _add_execution_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--execution",
        choices=execution_mode.MODES,
        metavar="MODE",
        help="execution mode of programs: XLA (xla), TensorFlow's kernels (kernels), or the faster (auto, default) "
        "[env: TF_IPU_SHIM_EXECUTION_MODE]",
    )
    parser.add_argument(
        "--check-indices",
        action="store_true",
        help="stop at an index or a label that is out of range [env: TF_IPU_SHIM_CHECK_INDICES]",
    )


def main(argv: Sequence[str], program: str = PROGRAM) -> int:
    """Runs the script that a command line names.

    Example:
        >>> main(["train.py", "--steps", "10"])
        0
    """
    parser = SuggestingParser(prog=program, description="Runs a script written for Graphcore's TensorFlow.")
    parser.add_argument("--version", action="version", version=f"tf_ipu_shim {tf_ipu_shim.__version__}")
    add_arguments(parser)
    parser.add_variables(cli.VARIABLES_OF_SCRIPTS)
    try:
        options = parser.parse_args(argv)
    except SystemExit as stop:  # argparse has printed what it has to say.
        return _exit_status(stop)
    return run(options)


def run(options: argparse.Namespace, failures: list[Exception] | None = None) -> int:
    """Runs a script and returns the exit status `python` would have ended with.

    The script sees its own `sys.argv` and `sys.path[0]`, is `__main__`, and an uncaught exception prints the traceback
    only of the script. `sys.argv`, `sys.path` and the environment keep the script's values afterwards, for functions
    that it registered with `atexit`.
    """
    if options.module:
        options.module, *options.arguments = options.module
    wrong = find_problem(options) or report.find_problem(options) or requirements.missing_tensorflow()
    if wrong:
        print(f"{options.program}: {wrong}", file=sys.stderr)
        return 2
    prepare(options)
    wrong = _environment_problem()
    if wrong:
        print(f"{options.program}: {wrong}", file=sys.stderr)
        return 2
    report.begin_report(options)
    try:
        with formats.script_output(options.format):
            status = _run(options, failures if failures is not None else [])
    finally:
        report.write_reports(options)
    return status or report.compare_with_baseline(options)


def prepare(options: argparse.Namespace) -> None:
    """Puts the options into the environment, from which all other modules read them."""
    if options.sdk:
        os.environ[sdk.ENVIRONMENT_VARIABLE] = options.sdk
    if options.system:
        os.environ[systems.ENVIRONMENT_VARIABLE] = options.system
    if options.execution:
        os.environ[execution_mode.ENVIRONMENT_VARIABLE] = options.execution
    if options.check_indices:
        os.environ[execution_mode.CHECK_INDICES] = "1"
    sizes.apply(options)
    os.environ.setdefault(_SDK_IS_ENABLED, os.path.dirname(tf_ipu_shim.__file__))
    log_filter.filter_log(options)
    build_on_demand.install()


def _run(options: argparse.Namespace, failures: list[Exception]) -> int:
    activation.install_for_runner(options.tf1)
    named_devices.install_with_tensorflow()
    error_display.install()  # `ipu` would, but a script may end before it imports that
    try:
        _execute(options)
    except SystemExit as stop:
        return _exit_status(stop)
    except Exception as error:
        failures.append(error)
        error.__traceback__ = _script_traceback(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def find_problem(options: argparse.Namespace) -> str | None:
    """Returns the problem with the script's name before it runs, or None."""
    if options.module:
        return None if _has_module(options.module) else f"No module named {options.module}"
    if options.script is None:
        taken = [str(value) for value in vars(options).values() if str(value).endswith(".py")]
        return "a SCRIPT or -m MODULE is needed" + (f"; {taken[0]} was read as an option's value" if taken else "")
    if options.script == STANDARD_INPUT:
        if not options.reads_input:
            return "standard input can be read once, and this needs the script more often. Save it in a file"
        return None if sys.stdin else "standard input is closed. Name a script"
    if options.script.endswith(".ipynb"):
        return (
            f"{options.script} is a notebook. Make a script of it: jupyter nbconvert --to script {options.script}. Or "
            "open it in Jupyter: kernels of this Python know Graphcore's names"
        )
    try:
        if os.path.isdir(options.script):
            if not os.path.exists(os.path.join(options.script, "__main__.py")):
                return f"can't run {options.script!r}: the directory has no __main__.py. Name a script in it."
            return None
        with open(options.script, "rb"):
            return None
    except FileNotFoundError:
        return f"can't open file {options.script!r}: there is no such file in {os.getcwd()}"
    except OSError as error:
        return f"can't open file {options.script!r}: {error.strerror}"


def _environment_problem() -> str | None:
    """Returns the first invalid environment variable, checked before the script starts."""
    return next(map(str, environment.problems()), None)


def _has_module(name: str) -> bool:
    """Returns whether a module, or its package, exists; importing the package now could be too early."""
    sys.path[0] = os.getcwd()
    return importlib.util.find_spec(name.partition(".")[0]) is not None


def _parse_sdk(text: str) -> str:
    try:
        return str(sdk.parse(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _parse_system(text: str) -> str:
    try:
        return systems.named(text).name
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _execute(options: argparse.Namespace) -> None:
    if options.module:
        sys.argv = [options.module, *options.arguments]  # run_module puts the module's file in the first place.
        sys.path[0] = os.getcwd()
        runpy.run_module(options.module, run_name="__main__", alter_sys=True)
        return
    sys.argv = [options.script, *options.arguments]
    if options.script == STANDARD_INPUT:
        _execute_standard_input()
        return
    if os.path.isfile(options.script):
        sys.path[0] = os.path.dirname(os.path.realpath(options.script))
    runpy.run_path(options.script, run_name="__main__")


def _execute_standard_input() -> None:
    """Runs the program on standard input as `python -` does, and keeps its lines, which autograph reads."""
    program = importlib.util.decode_source(sys.stdin.buffer.read())
    linecache.cache[_STANDARD_INPUT_FILE] = len(program), None, program.splitlines(True), _STANDARD_INPUT_FILE
    sys.path[0] = ""
    sys.modules["__main__"] = module = types.ModuleType("__main__")
    module.__file__ = _STANDARD_INPUT_FILE
    exec(compile(program, _STANDARD_INPUT_FILE, "exec"), module.__dict__)


def _exit_status(stop: SystemExit) -> int:
    if stop.code is None or isinstance(stop.code, int):
        return stop.code or 0
    print(stop.code, file=sys.stderr)
    return 1


def _script_traceback(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """Returns the part that begins in the script; None when the script was not reached, as for its syntax errors."""
    ours = (_execute.__code__.co_filename, runpy.run_path.__code__.co_filename)
    while traceback is not None and traceback.tb_frame.f_code.co_filename in ours:
        traceback = traceback.tb_next
    return traceback
