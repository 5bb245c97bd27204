"""Scripts that each run in a process of their own, forked from one that has imported TensorFlow and has run nothing.

Importing TensorFlow takes most of the time of a small script. Where neither what is imported first nor the start of
the interpreter is what a test is about, it is done once for all.
"""

from __future__ import annotations

import json
import os
import pathlib
import runpy
import subprocess
import sys
import types


class Forks:
    """Runs what `python SCRIPT`, `python -m MODULE` and `python -c TEXT` would, where TensorFlow is imported."""

    def __init__(self, root: pathlib.Path):
        self._root = root
        self._server: subprocess.Popen | None = None

    def __call__(self, directory, *arguments, environment=None) -> subprocess.CompletedProcess:
        """As `Python.__call__` in a directory: a variable set to None is taken out."""
        arguments = list(map(str, arguments))
        out, err = pathlib.Path(directory, ".stdout"), pathlib.Path(directory, ".stderr")
        files = {"directory": str(directory), "out": str(out), "err": str(err)}
        status = self._ask({"arguments": arguments, "environment": environment or {}, **files})
        return subprocess.CompletedProcess(arguments, status, out.read_text(), err.read_text())

    def _ask(self, order) -> int:
        if self._server is None:
            self._server = subprocess.Popen(
                [sys.executable, __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": str(self._root)},
                text=True,
            )
        print(json.dumps(order), file=self._server.stdin, flush=True)
        answer = self._server.stdout.readline()
        assert answer, f"the process that forks has ended with {self._server.wait()}"
        return int(answer)

    def close(self) -> None:
        """Ends the process that forks."""
        if self._server is not None:
            self._server.kill()  # it has nothing to lose, and TensorFlow takes its time to end
            self._server.communicate()


def _serve() -> None:
    import tensorflow  # noqa: F401
    from tensorflow.python import ipu  # noqa: F401

    answers = os.fdopen(os.dup(1), "w")
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            answers.close()
            _run(json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)


def _run(order) -> None:
    """Never returns: ends as the script does."""
    for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, order["out"], None), (2, order["err"], None)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC if flags is None else flags), number)
    os.chdir(order["directory"])
    for name, value in order["environment"].items():
        os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
    first, *rest = order["arguments"]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        if first == "-m":
            sys.argv[:], sys.path[0] = rest, order["directory"]
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        elif first == "-c":
            sys.argv[:], sys.path[0] = [first, *rest[1:]], ""
            exec(compile(rest[0], "<string>", "exec"), vars(main))
        else:
            sys.argv[:], sys.path[0] = order["arguments"], os.path.dirname(first)
            main.__file__ = first
            exec(compile(pathlib.Path(first).read_text(), first, "exec"), vars(main))
    except SystemExit:
        raise
    except BaseException as error:
        # As Python does, of the script's own frames.
        sys.excepthook(type(error), error, error.__traceback__.tb_next)
        sys.exit(1)
    sys.exit(0)


if __name__ == "__main__":
    _serve()
