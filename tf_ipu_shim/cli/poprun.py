"""`tf-ipu poprun`, and `poprun`: starts a job's instances on this machine, each with its own IPUs."""

from __future__ import annotations

import argparse
import collections
import contextlib
import ctypes
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import IO, Any

from tf_ipu_shim.cli import poprun_options as options
from tf_ipu_shim.cli.poprun_options import add_arguments, normalize_arguments
from tf_ipu_shim.runtime.jobs import rendezvous

__all__ = ["add_arguments", "normalize_arguments", "run"]

_GRACE_SECONDS = 10
_LAST_LINES = 20
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl
_ENDING = (signal.SIGTERM, signal.SIGHUP)


def run(arguments: argparse.Namespace) -> int:
    """Starts the instances and waits for them.

    Example:
        >>> parser = argparse.ArgumentParser()
        >>> add_arguments(parser)
        >>> run(parser.parse_args(["--num-replicas=2", "--num-instances=2", "--tag-output=no", "python", "-c", "0"]))
        0
    """
    problem = options.find_problem(arguments)
    if problem:
        print(f"poprun: {problem}", file=sys.stderr)
        return 2
    ignored = options.ignored_options(arguments)
    if ignored:
        print(f"poprun: accepted without effect on one machine: {', '.join(ignored)}", file=sys.stderr)
    command = options.instance_command(arguments)
    if arguments.verbose:
        print(f"poprun: {arguments.num_instances} x {shlex.join(command)}", file=sys.stderr)
    count, hosts = arguments.num_instances, options.parse_hosts(arguments)
    addresses = rendezvous.free_addresses([hosts[index * len(hosts) // count] for index in range(count)])
    if options.parse_bool(arguments.print_topology):
        print(options.instance_topology(arguments, addresses), flush=True)
    environment = {
        **options.instance_environment(arguments, os.environ),
        "TF_IPU_SHIM_JOB": uuid.uuid4().hex,
        "TF_IPU_SHIM_SIZE": str(count),
        "TF_IPU_SHIM_LOCAL_SIZE": str(count),
        "TF_IPU_SHIM_ADDRESSES": ",".join(addresses),
    }
    return _Job(arguments).run(command, environment)


class _Instance:
    """One process, and what it prints.

    Args:
        is_shown: whether what it prints is printed.
        is_tagged: whether each line says whose it is.
    """

    def __init__(self, index: int, process: subprocess.Popen[str], is_shown: bool, is_tagged: bool) -> None:
        self.process = process
        self._last: collections.deque[str] = collections.deque(maxlen=_LAST_LINES)
        self._is_shown = is_shown
        self._readers = []
        for name, source, to in (("stdout", process.stdout, sys.stdout), ("stderr", process.stderr, sys.stderr)):
            tag = f"[1,{index}]<{name}>:" if is_tagged else ""
            self._readers.append(threading.Thread(target=self._forward_output, args=(source, to, tag), daemon=True))
            self._readers[-1].start()

    def _forward_output(self, source: IO[str], to: IO[str], tag: str) -> None:
        with source:
            for line in source:
                if not self._is_shown:
                    if to is sys.stderr:
                        self._last.append(line)
                    continue
                to.write(tag + line if line.endswith("\n") else f"{tag}{line}\n" if tag else line)
                to.flush()

    def close(self, seconds: float) -> None:
        """Waits for what it has printed; what it started may hold its output open."""
        for reader in self._readers:
            reader.join(seconds)

    @property
    def hidden_errors(self) -> str:
        """The last lines of its errors, where they were not printed."""
        return "".join(self._last)


class _Job:
    """The instances of a job, from the first that is started to the last that ends."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._instances: list[_Instance] = []

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Starts all, and waits: the status of the job."""
        before = {number: signal.signal(number, _raise_job_ended) for number in _handle_signals()}
        try:
            for index in range(self._arguments.num_instances):
                self._start(command, environment, index)
            return self._wait_for_instances()
        except KeyboardInterrupt:
            print("poprun: Ctrl-C; the instances are ended.", file=sys.stderr)
            return 128 + signal.SIGINT
        except _JobEnded as ended:
            print(f"poprun: {ended.name}; the instances are ended.", file=sys.stderr)
            return 128 + ended.number
        finally:
            self._terminate()
            for number, handler in before.items():
                signal.signal(number, handler)

    def _start(self, command: Sequence[str], environment: Mapping[str, str], index: int) -> None:
        parent = os.getpid()
        library = ctypes.CDLL(None)

        def end_with_parent() -> None:
            library.prctl(_PARENT_DEATH_SIGNAL, int(signal.SIGTERM))
            if os.getppid() != parent:  # it has ended in between
                os._exit(1)

        process = subprocess.Popen(
            list(command),
            env={**environment, "TF_IPU_SHIM_RANK": str(index)},
            stdin=None if index == 0 else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            preexec_fn=end_with_parent,
        )
        is_shown = self._arguments.only_output_from_instance in (None, index)
        self._instances.append(_Instance(index, process, is_shown, options.parse_bool(self._arguments.tag_output)))

    def _wait_for_instances(self) -> int:
        while True:
            statuses = [instance.process.poll() for instance in self._instances]
            failed = next((index for index, status in enumerate(statuses) if status), None)
            if failed is not None:
                return self._report_failure(failed, statuses)
            if None not in statuses:
                return 0
            time.sleep(0.05)

    def _report_failure(self, index: int, statuses: Sequence[int | None]) -> int:
        status = statuses[index] or 0
        self._terminate()  # and with that all has been printed
        others = "; the others were ended" if None in statuses else ""
        how = f"ended with status {status}" if status > 0 else f"was ended by {signal.Signals(-status).name}"
        print(f"poprun: instance {index} of {len(statuses)} {how}{others}.", file=sys.stderr)
        hidden = self._instances[index].hidden_errors
        if hidden:
            print(f"poprun: its last errors, which were not printed:\n{hidden}", file=sys.stderr, end="")
        return status if status > 0 else 128 - status

    def _terminate(self) -> None:
        """Ends all that is left of the instances, and what they have started."""
        running = [instance.process for instance in self._instances if instance.process.poll() is None]
        started = [child for process in running for child in _descendants(process.pid)]
        for process in running:
            process.terminate()
        _send_signal(started, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE_SECONDS
        for process in running:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        _send_signal(started, signal.SIGKILL)
        for instance in self._instances:
            instance.close(max(1.0, deadline - time.monotonic()))


class _JobEnded(BaseException):
    """A signal that ends `poprun`."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number, self.name = number, signal.Signals(number).name


def _raise_job_ended(number: int, _: Any) -> None:
    raise _JobEnded(number)


def _handle_signals() -> list[signal.Signals]:
    """Returns the signals that would end this process: `nohup` ignores one. Only the main thread may handle them."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]


def _descendants(process: int) -> list[tuple[int, str]]:
    """The processes that one has started, and those that these have: a shell ends without the program that it runs.

    Each with the time when it began, as another may have its number later.
    """
    found: list[tuple[int, str]] = []
    for directory in pathlib.Path(f"/proc/{process}/task").glob("*"):
        try:
            children = [int(word) for word in (directory / "children").read_text().split()]
        except OSError:  # it has ended
            continue
        for child in children:
            found += [(child, _start_time(child)), *_descendants(child)]
    return found


def _start_time(process: int) -> str:
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except OSError:
        return ""


def _send_signal(processes: Sequence[tuple[int, str]], number: signal.Signals) -> None:
    for process, began in processes:
        if began and _start_time(process) == began:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
