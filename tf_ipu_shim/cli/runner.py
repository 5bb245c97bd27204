"""Runs an unchanged script or module as `python SCRIPT` would, with Graphcore's names and the chosen SDK in place."""

from __future__ import annotations

import argparse
import os
import runpy
import sys
import types
from collections.abc import Sequence

import tf_ipu_shim
from tf_ipu_shim import sdk
from tf_ipu_shim.machine import systems, ways
from tf_ipu_shim.names import one_keras

PROGRAM = "python -m tf_ipu_shim"


def run(argv: Sequence[str]) -> int:
    """Runs what the command line `argv` names and returns the exit status `python` would have ended with.

    The script sees its own `sys.argv` and `sys.path[0]`, is `__main__`, and an uncaught exception prints the traceback
    of the script alone. `sys.argv`, `sys.path` and the environment keep the script's values afterwards, for whatever
    it registered with `atexit`.

    Args:
        argv: ``[--tf1] [--sdk VERSION] [--system NAME] [--execution WAY] (SCRIPT | -m MODULE) ARGS...``; a directory
            or zip file with a `__main__.py` counts as a script.

    Returns:
        0, the status given to `sys.exit`, 1 after an uncaught exception, 2 for a wrong command line.

    Raises:
        KeyboardInterrupt: the user stopped the script.

    Example:
        >>> run(["train.py", "--steps", "10"])
        0
    """
    try:
        options = _parse(argv)
    except SystemExit as stop:  # argparse has printed the usage.
        return _status(stop)
    if options.sdk:
        os.environ[sdk.ENVIRONMENT_VARIABLE] = options.sdk
    if options.system:
        os.environ[systems.ENVIRONMENT_VARIABLE] = options.system
    if options.execution:
        os.environ[ways.ENVIRONMENT_VARIABLE] = options.execution
    if options.tf1:
        from tf_ipu_shim.names import tensorflow1

        tensorflow1.activate()
    one_keras.install_with_tensorflow()
    try:
        _execute(options)
    except SystemExit as stop:
        return _status(stop)
    except Exception as error:
        error.__traceback__ = _script_traceback(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Runs a script written for Graphcore's TensorFlow.",
        usage="%(prog)s [-h] [--tf1] [--sdk VERSION] [--system NAME] [--execution WAY] (SCRIPT | -m MODULE) [ARGS ...]",
    )
    parser.add_argument("--version", action="version", version=f"tf_ipu_shim {tf_ipu_shim.__version__}")
    parser.add_argument(
        "--tf1",
        action="store_true",
        help="for scripts written for TensorFlow 1.15: `import tensorflow` gives the version 1 API in graph mode",
    )
    parser.add_argument("--sdk", metavar="VERSION", type=_sdk, help="emulate this Poplar SDK, 1.2 to 3.4 (default 3.4)")
    parser.add_argument("--system", metavar="NAME", type=_system, help="simulate this machine, such as pod4")
    parser.add_argument(
        "--execution",
        choices=ways.WAYS,
        metavar="WAY",
        help="how programs run on this host: by XLA (xla), by TensorFlow's kernels (kernels), or the better (auto)",
    )
    parser.add_argument("-m", dest="module", metavar="MODULE", nargs=argparse.REMAINDER, help="run a module")
    parser.add_argument("script", metavar="SCRIPT", nargs="?", help="the script to run")
    parser.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER, help="arguments of the script")
    options = parser.parse_args(argv)
    if options.module is not None and options.script is None and options.module:
        options.module, *options.arguments = options.module
    elif options.module is not None or options.script is None:
        parser.error("a SCRIPT or -m MODULE is needed")
    return options


def _sdk(text: str) -> str:
    try:
        return str(sdk.parse(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _system(text: str) -> str:
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
    if not os.path.exists(options.script):
        print(f"{PROGRAM}: can't open file {options.script!r}: there is no such file", file=sys.stderr)
        raise SystemExit(2)
    if os.path.isfile(options.script):
        sys.path[0] = os.path.dirname(os.path.realpath(options.script))
    runpy.run_path(options.script, run_name="__main__")


def _status(stop: SystemExit) -> int:
    if stop.code is None or isinstance(stop.code, int):
        return stop.code or 0
    print(stop.code, file=sys.stderr)
    return 1


def _script_traceback(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """The part that begins in the script; None when the script was not reached, as for its syntax errors."""
    ours = (_execute.__code__.co_filename, runpy.run_path.__code__.co_filename)
    while traceback is not None and traceback.tb_frame.f_code.co_filename in ours:
        traceback = traceback.tb_next
    return traceback
