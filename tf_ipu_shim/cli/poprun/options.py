"""Defines and checks the options of `poprun`, and derives the settings of each instance."""

from __future__ import annotations

import argparse
import functools
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence

import tf_ipu_shim
from tf_ipu_shim import sdk
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.environment import log_level
from tf_ipu_shim.runtime.jobs import instances, rendezvous

# What PopRun is told about servers and partitions: an instance here is a process.
_WITHOUT_EFFECT = (
    "num-ilds process-placement vipu-allocation vipu-cluster vipu-partition vipu-partition-attempts vipu-server-host "
    "vipu-server-port vipu-server-timeout"
).split()
_SWITCHES_WITHOUT_EFFECT = "numa-aware offline-mode remove-partition reset-partition update-partition".split()
_FOR_MPI = ("mpi-global-args", "mpi-local-args")
_YES, _NO = ("yes", "true", "on", "1"), ("no", "false", "off", "0")
# Options whose value may begin with a dash, which argparse takes for another option.
_OPTIONS_OF_OTHERS = tuple(f"--{name}" for name in _FOR_MPI)
# Programs must run alike on all hosts.
_PASSED_ON = ("TF_", "POPLAR_", "POPDIST_", "PYTHONPATH")
_OF_A_HOST = ("TF_IPU_SHIM_LOCK_DIR",)
_CACHE_FLAG = "--executable_cache_path"


def normalize_arguments(words: Sequence[str]) -> list[str]:
    """Returns the words of a command line, each option for MPI in one word with its value.

    Example:
        >>> normalize_arguments(["--mpi-global-args", "--tag-output", "--num-replicas", "2", "a.py"])
        ['--mpi-global-args=--tag-output', '--num-replicas', '2', 'a.py']
    """
    normalized: list[str] = []
    for word in words:
        if normalized and normalized[-1] in _OPTIONS_OF_OTHERS and word.startswith("-"):
            normalized[-1] += f"={word}"
        else:
            normalized.append(word)
    return normalized


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds PopRun's options, and everything after them for the instances."""
    version = f"poprun of tf_ipu_shim {tf_ipu_shim.__version__}, SDK {sdk.current()}"
    parser.add_argument("--version", action="version", version=version)
    parser.add_argument("--num-replicas", type=int, default=1, metavar="R", help="replicas of all instances")
    parser.add_argument("--num-instances", type=int, default=1, metavar="I", help="processes; R is a multiple of I")
    parser.add_argument("--ipus-per-replica", type=int, default=1, metavar="N", help="IPUs of each replica")
    parser.add_argument(
        "--only-output-from-instance", type=int, metavar="K", help="print only the output of instance K"
    )
    parser.add_argument("--tag-output", default="yes", metavar="yes|no", help="whether lines name their instance")
    parser.add_argument("-H", "--host", "--hosts", metavar="HOST,...", help="hosts of the instances, in equal shares")
    parser.add_argument("--hostfile", metavar="FILE", help="a file of hosts, one a line")
    parser.add_argument(
        "--remote-shell",
        default="ssh -o BatchMode=yes",
        metavar="COMMAND",
        help="what runs a command on another host; the host is its last word (ssh -o BatchMode=yes)",
    )
    parser.add_argument("--log-dir", metavar="DIRECTORY", help="write the output of instance K to instance_K.log there")
    parser.add_argument("--executable-cache-path", metavar="DIRECTORY", help="where instances keep compiled programs")
    parser.add_argument("--mpi-global-args", metavar="'-x NAME=VALUE'", help="variables of the instances' environment")
    parser.add_argument("--mpi-local-args", metavar="'-x NAME=VALUE'", help="the same")
    parser.add_argument("--print-topology", nargs="?", const="yes", metavar="yes|no", help="print what has which IPUs")
    parser.add_argument(
        "-v", "--verbose", "--vv", "-vv", dest="verbose", action="store_true", help="print what is started"
    )
    for name in (*_WITHOUT_EFFECT, *_SWITCHES_WITHOUT_EFFECT):
        parser.add_argument(f"--{name}", nargs="?", const="yes", metavar="X", help=argparse.SUPPRESS)
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND ...", help="a script, or any command")


def find_problem(arguments: argparse.Namespace) -> str | None:
    """Why instances cannot be started; None if they can."""
    if instances.from_launcher():
        return (
            "this process is an instance of a job that poprun started, and instances start no jobs. Start one after "
            "the other."
        )
    return next((problem for problem in _problems(arguments)), None)


def _problems(arguments: argparse.Namespace) -> Iterator[str]:
    replicas, count, ipus = arguments.num_replicas, arguments.num_instances, arguments.ipus_per_replica
    if min(replicas, count, ipus) < 1:
        yield "--num-replicas, --num-instances and --ipus-per-replica must be above 0."
    elif replicas % count:
        yield f"--num-replicas {replicas} is no multiple of --num-instances {count}; all have as many replicas."
    for name in ("tag-output", "print-topology", *_SWITCHES_WITHOUT_EFFECT):
        value = _is_given(arguments, name)
        if value is not None and value.lower() not in _YES + _NO:
            yield f"--{name} must be yes or no, not {value!r}."
    if not arguments.command:
        yield "no command is given. Write it after the options: poprun --num-replicas 2 python3 train.py"
    program = instance_command(arguments)
    if shutil.which(program[0]) is None:
        yield f"there is no command {program[0]!r}. Write a script or a program after the options."
    yield from _host_problems(arguments)
    if arguments.only_output_from_instance not in (None, *range(count)):
        yield f"--only-output-from-instance must be from 0 to {count - 1}."
    system, remote = systems.current(), remote_hosts(arguments)
    local_instances = sum(host not in remote for host in instance_hosts(arguments))
    if len(system.devices_with(instance_ipus(arguments))) < local_instances:
        yield (
            f"{local_instances} instances of {replicas // count} x {ipus} IPUs do not fit into system {system.name} of "
            f"{system.num_ipus} IPUs. Choose a larger one with TF_IPU_SHIM_SYSTEM, or start fewer."
        )
    if program[0] == sys.executable and program[1].endswith(".py") and not os.path.isfile(program[1]):
        yield f"can't open file {program[1]!r}: there is no such file in {os.getcwd()}"


def _host_problems(arguments: argparse.Namespace) -> Iterator[str]:
    if arguments.host and arguments.hostfile:
        yield "--host and --hostfile are both given. Leave one out."
    if arguments.hostfile and not os.path.isfile(arguments.hostfile):
        yield f"--hostfile {arguments.hostfile}: there is no such file."
    remote = remote_hosts(arguments)
    unreachable = [host for host in parse_hosts(arguments) if host not in remote and _is_loopback(host)]
    if remote and unreachable:
        yield (
            f"--host {','.join(unreachable)}: {', '.join(sorted(remote))} cannot reach this address; expected one of "
            "this host that the others can reach. Write its name or address."
        )


def parse_bool(text: str | None) -> bool:
    """Returns whether a switch is on.

    Example:
        >>> parse_bool("on"), parse_bool("no"), parse_bool(None)
        (True, False, False)
    """
    return text is not None and text.lower() in _YES


def ignored_options(arguments: argparse.Namespace) -> list[str]:
    """Returns the given options without effect, MPI's included."""
    names = [f"--{name}" for name in (*_WITHOUT_EFFECT, *_SWITCHES_WITHOUT_EFFECT) if _is_given(arguments, name)]
    return [*names, *(f"--{name}" for name in _FOR_MPI if _parse_export(_is_given(arguments, name) or "")[1])]


def _is_given(arguments: argparse.Namespace, name: str) -> str | None:
    value: str | None = getattr(arguments, name.replace("-", "_"))
    return value


def parse_hosts(arguments: argparse.Namespace) -> list[str]:
    """Returns the addresses that instances are given."""
    if arguments.hostfile and not arguments.host:
        with open(arguments.hostfile) as file:
            lines = [line.partition("#")[0].split() for line in file]
        return [words[0] for words in lines if words] or ["127.0.0.1"]
    return [host.strip() for host in (arguments.host or "127.0.0.1").split(",")]


def instance_hosts(arguments: argparse.Namespace) -> list[str]:
    """Returns the host of each instance: neighbours share one."""
    hosts, count = parse_hosts(arguments), arguments.num_instances
    return [hosts[index * len(hosts) // count] for index in range(count)]


def remote_hosts(arguments: argparse.Namespace) -> frozenset[str]:
    """Returns the hosts that are not this one."""
    return frozenset(host for host in set(parse_hosts(arguments)) if not _is_local_host(host))


def instance_ipus(arguments: argparse.Namespace) -> int:
    """Returns the IPUs of an instance."""
    return int(arguments.num_replicas // arguments.num_instances * arguments.ipus_per_replica)


@functools.cache
def _is_local_host(host: str) -> bool:
    """Returns whether a socket of this host can have the address."""
    try:
        rendezvous.free_addresses([host])
    except OSError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or host.startswith("127.")


def instance_command(arguments: argparse.Namespace) -> list[str]:
    """Returns the words of the program that each instance runs."""
    words: list[str] = list(arguments.command[1:] if arguments.command[0] == "--" else arguments.command)
    return [sys.executable, *words] if words[0].endswith(".py") else words


def is_passed_on(name: str) -> bool:
    """Returns whether instances on other hosts get a variable of this process's environment.

    Example:
        >>> [name for name in ("TF_POPLAR_FLAGS", "PYTHONPATH", "HOME") if is_passed_on(name)]
        ['TF_POPLAR_FLAGS', 'PYTHONPATH']
    """
    return name.startswith(_PASSED_ON) and name not in _OF_A_HOST


def instance_environment(
    arguments: argparse.Namespace, environment: Mapping[str, str], first_device: int
) -> dict[str, str]:
    """Returns the variables that the instances of a host have in common, besides the host's.

    Args:
        first_device: the index of the device of the host's first instance, among devices of an instance's size.
    """
    variables = {}
    if not sets_log_level(arguments, environment):
        variables[log_level.TENSORFLOW] = "2"
        variables[log_level.ENVIRONMENT_VARIABLE] = environment.get(log_level.ENVIRONMENT_VARIABLE) or "0"
    variables.update(_exported(arguments))
    if arguments.executable_cache_path:
        flags = variables.get("TF_POPLAR_FLAGS", environment.get("TF_POPLAR_FLAGS", ""))
        variables["TF_POPLAR_FLAGS"] = f"{flags} {_CACHE_FLAG}={arguments.executable_cache_path}".strip()
    variables[instances.TOTAL_REPLICAS] = str(arguments.num_replicas)
    variables[instances.IPUS_PER_REPLICA] = str(arguments.ipus_per_replica)
    variables[instances.FIRST_DEVICE] = str(first_device)
    return variables


def sets_log_level(arguments: argparse.Namespace, environment: Mapping[str, str]) -> bool:
    """Returns whether the user sets TensorFlow's log level."""
    return bool({**environment, **_exported(arguments)}.get(log_level.TENSORFLOW))


def _exported(arguments: argparse.Namespace) -> dict[str, str]:
    """Returns the variables that the options for MPI set."""
    return {
        name: value
        for option in _FOR_MPI
        for name, value in _parse_export(_is_given(arguments, option) or "")[0].items()
    }


def _parse_export(text: str) -> tuple[dict[str, str], list[str]]:
    """Returns the variables that `mpirun -x NAME=VALUE` would set, and the other words. `-x NAME` passes on the
    instances' value.
    """
    values, invalid = {}, []
    words = iter(shlex.split(text))
    for word in words:
        if word in ("-x", "--x"):
            name, value_text, value = next(words, "").partition("=")
            if value_text:
                values[name] = value
        else:
            invalid.append(word)
    return values, invalid


def instance_topology(arguments: argparse.Namespace, places: Sequence[tuple[str, int]]) -> str:
    """Returns a table of the replicas and IPUs of each instance.

    Args:
        places: for each instance, its address and the index of its device among devices of its size.
    """
    replicas = arguments.num_replicas // arguments.num_instances
    devices = systems.current().devices_with(instance_ipus(arguments))
    width = max(22, 1 + max(len(address) for address, _ in places))
    lines = [f"{'instance':<9}{'address':<{width}}{'replicas':<10}{'device':<7}IPUs"]
    for index, (address, position) in enumerate(places):
        device = devices[position]
        span = f"{index * replicas}-{(index + 1) * replicas - 1}" if replicas > 1 else str(index)
        lines.append(f"{index:<9}{address:<{width}}{span:<10}{device.id:<7}{', '.join(map(str, device.ipus))}")
    return "\n".join(lines)
