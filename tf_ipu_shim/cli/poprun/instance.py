"""Starts one process of a job, here or by an agent on another host, and forwards its output."""

from __future__ import annotations

import collections
import dataclasses
import json
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from typing import IO, cast

from tf_ipu_shim.cli.poprun import agent_messages, process_tree

_LAST_LINES = 20
_AGENT = "tf_ipu_shim.cli.poprun.agent"
_GREETING_SECONDS = 60.0


class HostError(RuntimeError):
    """A host on which no instance can be started."""


@dataclasses.dataclass(frozen=True)
class Output:
    """The destinations of an instance's output lines.

    Args:
        is_shown: whether they are printed.
        tag: a prefix of each line, in which `{}` is replaced by the stream's name; empty for none.
        log_file: a file that they are also written to; None for none.
        hidden: a pattern of lines that are left out.
    """

    is_shown: bool
    tag: str
    log_file: str | None
    hidden: re.Pattern[str] | None


class Instance:
    """A started process. Its output is forwarded until it ends."""

    def __init__(self, process: subprocess.Popen[str], output: Output) -> None:
        self.process = process
        self._output = output
        self._last: collections.deque[str] = collections.deque(maxlen=_LAST_LINES)
        self._log = open(output.log_file, "w") if output.log_file else None
        self._lock = threading.Lock()
        self._readers = [
            threading.Thread(target=self._forward, args=(source, to, output.tag.format(name)), daemon=True)
            for name, source, to in (("stdout", process.stdout, sys.stdout), ("stderr", process.stderr, sys.stderr))
        ]
        for reader in self._readers:
            reader.start()

    def _forward(self, source: IO[str], to: IO[str], tag: str) -> None:
        with source:
            for line in source:
                if self._output.hidden and self._output.hidden.search(line):
                    continue
                if self._log:
                    with self._lock:
                        self._log.write(line)
                        self._log.flush()
                if self._output.is_shown:
                    to.write(tag + line if line.endswith("\n") else f"{tag}{line}\n" if tag else line)
                    to.flush()
                elif to is sys.stderr:
                    self._last.append(line)

    def close(self, seconds: float) -> None:
        """Waits for the rest of its output; its child processes may hold the output open."""
        for reader in self._readers:
            reader.join(seconds)
        if self._log and not any(reader.is_alive() for reader in self._readers):
            self._log.close()

    @property
    def hidden_errors(self) -> str:
        """The last lines of its errors, if they were not printed."""
        return "".join(self._last)


def start(command: Sequence[str], environment: Mapping[str, str], is_first: bool) -> subprocess.Popen[str]:
    """Starts an instance on this host; the first has the standard input."""
    return subprocess.Popen(
        list(command),
        env=dict(environment),
        stdin=None if is_first else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        preexec_fn=process_tree.end_with_parent(),
    )


class Agent:
    """An agent on another host, which starts one instance on request.

    Args:
        remote_shell: the command that runs another on a host, such as `ssh -o BatchMode=yes`.
        host: its last word.
        ipus: the IPUs of an instance.
        instances: how many there will be on that host.
    """

    def __init__(self, remote_shell: str, host: str, ipus: int, instances: int) -> None:
        self.host = host
        self._words = [*shlex.split(remote_shell), host, sys.executable, "-m", _AGENT, host, str(ipus), str(instances)]
        try:
            self.process = subprocess.Popen(
                self._words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                preexec_fn=process_tree.end_with_parent(),
            )
        except OSError as error:
            raise HostError(f"{host}: {self._words[0]!r} cannot be started: {error}. Set --remote-shell.") from error

    def greeting(self) -> agent_messages.Greeting:
        """Waits for the agent's greeting.

        Raises:
            HostError: the host cannot be reached, or the package is not there.
        """
        with _killed_after(self.process, _GREETING_SECONDS):
            for line in self.process.stdout or ():
                if line.startswith(agent_messages.GREETING):
                    return agent_messages.Greeting(**json.loads(line[len(agent_messages.GREETING) :]))
            _, errors = self.process.communicate()
        raise HostError(
            f"{self.host}: no instance can be started there. {shlex.join(self._words)} ended with status "
            f"{self.process.returncode}:\n{errors.rstrip()}\nIt must run without a password, and find the same Python "
            "with this package. Set --remote-shell to another command, or start the script there by hand."
        )

    def start(self, order: agent_messages.Order) -> subprocess.Popen[str]:
        """Sends the agent the program to run; the local process ends with the status of the remote one.

        Raises:
            HostError: the agent has ended.
        """
        orders = cast("IO[str]", self.process.stdin)
        try:
            orders.write(json.dumps(dataclasses.asdict(order)) + "\n")
            orders.flush()
        except OSError as error:
            raise HostError(f"{self.host}: the agent there has ended: {error}. Start the job again.") from error
        return self.process


class _killed_after:
    """Kills a process that runs longer than a number of seconds."""

    def __init__(self, process: subprocess.Popen[str], seconds: float) -> None:
        self._timer = threading.Timer(seconds, process.kill)

    def __enter__(self) -> None:
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
