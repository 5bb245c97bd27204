"""`tf-ipu poprun`, and `poprun`: starts the instances of a job on this machine, each with IPUs of its own."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from typing import IO

from tf_ipu_shim.machine import systems
from tf_ipu_shim.runtime import meeting_place

# What PopRun is told about servers, MPI and partitions: an instance here is a process of this machine.
_WITHOUT_EFFECT = (
    "executable-cache-path mpi-global-args mpi-local-args num-ilds numa-aware offline-mode print-topology "
    "process-placement remove-partition reset-partition update-partition vipu-allocation vipu-cluster vipu-partition "
    "vipu-server-host vipu-server-port vipu-server-timeout"
).split()
# Options whose value may itself begin with a dash, which argparse takes for an option of its own.
_OPTIONS_OF_OTHERS = ("--mpi-global-args", "--mpi-local-args")
_GRACE_SECONDS = 10


def prepared(words: Sequence[str]) -> list[str]:
    """The words of a command line, each option for MPI in one word with its value.

    Args:
        words: as they were given, `--mpi-global-args --tag-output` among them.

    Returns:
        The same for argparse.

    Example:
        >>> prepared(["--mpi-global-args", "--tag-output", "--num-replicas", "2", "a.py"])
        ['--mpi-global-args=--tag-output', '--num-replicas', '2', 'a.py']
    """
    found: list[str] = []
    for word in words:
        if found and found[-1] in _OPTIONS_OF_OTHERS and word.startswith("-"):
            found[-1] += f"={word}"
        else:
            found.append(word)
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds PopRun's options, and everything after them for the instances."""
    parser.add_argument("--num-replicas", type=int, required=True, metavar="R", help="replicas of all instances")
    parser.add_argument("--num-instances", type=int, default=1, metavar="I", help="processes; R is a multiple of I")
    parser.add_argument("--ipus-per-replica", type=int, default=1, metavar="N", help="IPUs of each replica")
    parser.add_argument("--only-output-from-instance", type=int, metavar="K", help="print what instance K prints alone")
    parser.add_argument("--tag-output", default="yes", metavar="yes|no", help="whether lines name their instance")
    parser.add_argument("--host", "--hosts", metavar="HOST,...", help="addresses of this machine")
    parser.add_argument("-v", "--vv", "-vv", dest="verbose", action="store_true", help="print what is started")
    for name in _WITHOUT_EFFECT:
        parser.add_argument(f"--{name}", nargs="?", const="yes", metavar="X", help=argparse.SUPPRESS)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...", help="a script, or any command")


def run(arguments: argparse.Namespace) -> int:
    """Starts the instances and waits for them.

    Args:
        arguments: as `add_arguments` describes.

    Returns:
        0, or the status of the first instance that failed; the others are ended then.

    Example:
        >>> parser = argparse.ArgumentParser()
        >>> add_arguments(parser)
        >>> run(parser.parse_args(["--num-replicas=2", "--num-instances=2", "--tag-output=no", "python", "-c", "0"]))
        0
    """
    problem = _problem(arguments)
    if problem:
        print(f"poprun: {problem}", file=sys.stderr)
        return 2
    given = [name for name in _WITHOUT_EFFECT if getattr(arguments, name.replace("-", "_")) is not None]
    if given:
        print(f"poprun: accepted without effect on one machine: --{', --'.join(given)}", file=sys.stderr)
    command = _command(arguments.command)
    if arguments.verbose:
        print(f"poprun: {arguments.num_instances} x {shlex.join(command)}", file=sys.stderr)
    job, count = uuid.uuid4().hex, arguments.num_instances
    hosts = _hosts(arguments)
    addresses = meeting_place.free_addresses([hosts[index * len(hosts) // count] for index in range(count)])
    started = [_start(arguments, command, job, addresses, index) for index in range(count)]
    readers = [_show(arguments, process, index) for index, process in enumerate(started)]
    try:
        return _watch(started)
    finally:
        for reader in sum(readers, []):
            reader.join(_GRACE_SECONDS)  # what an instance started may hold its output open


def _problem(arguments: argparse.Namespace) -> str | None:
    replicas, instances, ipus = arguments.num_replicas, arguments.num_instances, arguments.ipus_per_replica
    if min(replicas, instances, ipus) < 1:
        return "--num-replicas, --num-instances and --ipus-per-replica must be above 0."
    if replicas % instances:
        return f"--num-replicas {replicas} is no multiple of --num-instances {instances}; all have as many replicas."
    if not arguments.command:
        return "no command is given. Write it behind the options: poprun --num-replicas 2 python3 train.py"
    program = _command(arguments.command)
    if shutil.which(program[0]) is None:
        return f"there is no command {program[0]!r}. Write a script or a program behind the options."
    others = [host for host in _hosts(arguments) if not _is_here(host)]
    if others:
        return (
            f"--host {','.join(others)}: poprun starts instances on this machine alone. Start the script on "
            "several with mpirun or srun, or name all in TF_IPU_SHIM_ADDRESSES."
        )
    if arguments.only_output_from_instance not in (None, *range(instances)):
        return f"--only-output-from-instance must be from 0 to {instances - 1}."
    system = systems.current()
    here = len(system.devices_with(replicas // instances * ipus))
    if here < instances:
        return (
            f"{instances} instances of {replicas // instances} x {ipus} IPUs do not fit into system {system.name} of "
            f"{system.num_ipus} IPUs. Choose a larger one with TF_IPU_SHIM_SYSTEM, or start fewer."
        )
    if program[0] == sys.executable and program[1].endswith(".py") and not os.path.isfile(program[1]):
        return f"can't open file {program[1]!r}: there is no such file in {os.getcwd()}"
    return None


def _hosts(arguments: argparse.Namespace) -> list[str]:
    return [host.strip() for host in (arguments.host or "127.0.0.1").split(",")]


def _is_here(host: str) -> bool:
    """Whether a socket of this machine can have the address."""
    try:
        meeting_place.free_addresses([host])
    except OSError:
        return False
    return True


def _command(words: Sequence[str]) -> list[str]:
    words = list(words[1:] if words[0] == "--" else words)
    return [sys.executable, *words] if words[0].endswith(".py") else words


def _start(
    arguments: argparse.Namespace, command: list[str], job: str, addresses: Sequence[str], index: int
) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "TF_IPU_SHIM_JOB": job,
        "TF_IPU_SHIM_RANK": str(index),
        "TF_IPU_SHIM_SIZE": str(arguments.num_instances),
        "TF_IPU_SHIM_ADDRESSES": ",".join(addresses),
        "POPDIST_NUM_TOTAL_REPLICAS": str(arguments.num_replicas),
        "POPDIST_NUM_IPUS_PER_REPLICA": str(arguments.ipus_per_replica),
    }
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace"
    )


def _show(arguments: argparse.Namespace, process: subprocess.Popen[str], index: int) -> list[threading.Thread]:
    is_shown = arguments.only_output_from_instance in (None, index)
    is_tagged = arguments.tag_output.lower() not in ("no", "false", "0")
    readers = []
    for name, source, to in (("stdout", process.stdout, sys.stdout), ("stderr", process.stderr, sys.stderr)):
        tag = f"[1,{index}]<{name}>:" if is_tagged else ""
        readers.append(threading.Thread(target=_pass_on, args=(source, to if is_shown else None, tag), daemon=True))
        readers[-1].start()
    return readers


def _pass_on(source: IO[str], to: IO[str] | None, tag: str) -> None:
    with source:
        for line in source:
            if to is not None:
                to.write(tag + line)
                to.flush()


def _watch(processes: list[subprocess.Popen[str]]) -> int:
    try:
        while True:
            statuses = [process.poll() for process in processes]
            failed = next((status for status in statuses if status), 0)
            if failed or None not in statuses:
                return failed if failed >= 0 else 128 - failed
            time.sleep(0.05)
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            try:
                process.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
