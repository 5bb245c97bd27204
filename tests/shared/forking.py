"""Scripts that each run in a process of their own, forked from one that has imported TensorFlow and has run nothing.

Importing TensorFlow takes most of the time of a small script. Where neither what is imported first nor the start of
the interpreter is what a test is about, it is done once for all.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import functools
import gc
import itertools
import json
import os
import pathlib
import runpy
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import types

LONGEST = 600  # seconds: for what would never end
# Stands for Python in the commands of other programs.
_INTERPRETER = """#!{python} -S
import runpy
runpy.run_path({file!r})["ask"]({address!r})
"""


def ask(address: str) -> None:
    """Runs this process's command in a fork, whose output goes where this process's does; ends as the fork does."""
    files = {name: f"/proc/{os.getpid()}/fd/{number}" for number, name in ((1, "out"), (2, "err"))}
    order = {"directory": os.getcwd(), "arguments": sys.argv[1:], "environment": dict(os.environ), **files}
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(address)
        server.sendall(json.dumps(order).encode() + b"\n")
        status = int(server.makefile().readline())
    sys.exit(status if status >= 0 else 128 - status)


class Forks:
    """Runs what `python SCRIPT`, `python -m MODULE` and `python -c TEXT` would, where TensorFlow is imported.

    Threads may ask at the same time: their scripts run side by side.
    """

    def __init__(self, root: pathlib.Path):
        self._root = root
        self._server: subprocess.Popen | None = None
        self._reader: threading.Thread | None = None
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._running: dict[int, concurrent.futures.Future[int]] = {}
        self._listener: socketserver.BaseServer | None = None
        self._files = tempfile.TemporaryDirectory()

    def __call__(self, directory, *arguments, environment=None, together=False) -> subprocess.CompletedProcess:
        """As `Python.__call__` in a directory: a variable set to None is taken out, the others are those of now.

        Together, both outputs are in `stdout`, in the order in which they were written.
        """
        arguments, stem = list(map(str, arguments)), next(self._numbers)
        out, err = (pathlib.Path(directory, f".{name}-{stem}") for name in ("stdout", "stderr"))
        files = {"directory": str(directory), "out": str(out), "err": str(err)}
        variables = {**os.environ, "PYTHONPATH": str(self._root), **(environment or {})}
        variables = {name: value for name, value in variables.items() if value is not None}
        order = {"arguments": arguments, "environment": variables, **files}
        status = self._start({**order, "together": together}).result(LONGEST)
        return subprocess.CompletedProcess(arguments, status, out.read_text(), err.read_text())

    @functools.cached_property
    def interpreter(self) -> str:
        """A program that runs in a fork what Python would run with the same arguments."""
        address, program = (pathlib.Path(self._files.name, name) for name in ("socket", "python"))
        start = self._start

        class Answer(socketserver.StreamRequestHandler):
            def handle(self):
                order = json.loads(self.rfile.readline())
                self.wfile.write(b"%d\n" % start({**order, "together": False}).result(LONGEST))

        self._listener = socketserver.ThreadingUnixStreamServer(str(address), Answer)
        self._listener.daemon_threads = True
        threading.Thread(target=self._listener.serve_forever, daemon=True).start()
        program.write_text(_INTERPRETER.format(python=sys.executable, file=__file__, address=str(address)))
        program.chmod(0o700)
        return str(program)

    def _start(self, order) -> concurrent.futures.Future[int]:
        """The status that a script will end with."""
        order = {**order, "number": next(self._numbers)}
        with self._lock:
            if self._server is None:
                self._server = subprocess.Popen(
                    [sys.executable, __file__],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env={**os.environ, "PYTHONPATH": str(self._root)},
                    text=True,
                    start_new_session=True,
                )
                self._reader = threading.Thread(target=self._read, args=[self._server], daemon=True)
                self._reader.start()
            status = self._running[order["number"]] = concurrent.futures.Future()
            print(json.dumps(order), file=self._server.stdin, flush=True)
            return status

    def _read(self, server) -> None:
        """Hands each status to who waits for it."""
        for line in server.stdout:
            number, status = map(int, line.split())
            self._running.pop(number).set_result(status)
        for status in self._running.values():
            status.set_exception(RuntimeError(f"the process that forks has ended with {server.wait()}"))

    def close(self) -> None:
        """Ends the process that forks, and all that it has started."""
        if self._listener is not None:
            self._listener.shutdown()
            self._listener.server_close()
        self._files.cleanup()
        if self._server is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._server.pid, signal.SIGKILL)  # it has nothing to lose, and TensorFlow takes its time
            self._reader.join()
            self._server.communicate()  # closes the pipes


def _serve() -> None:
    at_start = set(os.environ)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # who is started in the background is told to ignore it
    gc.disable()  # all that imports make stays
    import tensorflow  # noqa: F401
    from tensorflow.python import ipu  # noqa: F401

    gc.freeze()  # else each end would search through, and so copy, all that imports have made
    gc.enable()
    answers = os.dup(1)
    children: dict[int, int] = {}

    def answer(*_) -> None:
        for child, number in list(children.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                del children[child]
                # Not buffered: another child may end meanwhile, and a buffer refuses a write within a write.
                os.write(answers, f"{number} {os.waitstatus_to_exitcode(status)}\n".encode())

    signal.signal(signal.SIGCHLD, answer)
    for line in sys.stdin:
        order = json.loads(line)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # a child may end before it is noted
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            os.close(answers)
            _run(order, at_start - set(order["environment"]))
        children[child] = order["number"]
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(order, unset) -> None:
    """Never returns: ends as the script does."""
    for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, order["out"], None), (2, order["err"], None)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC if flags is None else flags), number)
    if order["together"]:
        os.dup2(1, 2)
        sys.stdout.reconfigure(write_through=True)
    os.chdir(order["directory"])
    for name in unset:
        os.environ.pop(name, None)
    os.environ.update(order["environment"])
    sys.stdin = open(0)  # what the server reads has orders of other scripts
    first, *rest = order["arguments"]
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        if first == "-m":
            sys.argv[:], sys.path[0] = rest, order["directory"]
            runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
        elif first == "-c":
            sys.argv[:], sys.path[0] = [first, *rest[1:]], ""
            exec(compile(rest[0], "<string>", "exec", dont_inherit=True), vars(main))
        else:
            sys.argv[:], sys.path[0] = order["arguments"], os.path.dirname(first)
            main.__file__ = first
            exec(compile(pathlib.Path(first).read_text(), first, "exec", dont_inherit=True), vars(main))
    except SystemExit:
        raise
    except BaseException as error:
        # As Python does, of the script's own frames, which it keeps to its end.
        shown = type(error), error, error.__traceback__.tb_next
        sys.last_type, sys.last_value, sys.last_traceback = shown
        sys.excepthook(*shown)
        sys.exit(1)
    sys.exit(0)


if __name__ == "__main__":
    _serve()
