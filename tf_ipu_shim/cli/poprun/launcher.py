"""Starts the instances of a job on their hosts, waits for them, and ends all when one fails."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import pathlib
import re
import secrets
import shlex
import signal
import sys
import threading
import time
import uuid
from collections.abc import Sequence
from typing import Any

import tf_ipu_shim
from tf_ipu_shim.cli.output import import_log_filter
from tf_ipu_shim.cli.poprun import agent_messages, instance, options, process_tree
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.sharing import attach
from tf_ipu_shim.runtime.jobs import connections, rendezvous

_ENDING = (signal.SIGTERM, signal.SIGHUP)
_TENSORFLOW_LINES = re.compile(import_log_filter.INFORMATION)


def run(arguments: argparse.Namespace) -> int:
    """Starts the instances and waits for them.

    Example:
        >>> parser = argparse.ArgumentParser()
        >>> options.add_arguments(parser)
        >>> run(parser.parse_args(["--num-replicas=2", "--num-instances=2", "--tag-output=no", "python", "-c", "0"]))
        0
    """
    problem = options.find_problem(arguments)
    if problem:
        print(f"poprun: {problem}", file=sys.stderr)
        return 2
    ignored = options.ignored_options(arguments)
    if ignored:
        print(f"poprun: no effect here: {', '.join(ignored)}", file=sys.stderr)
    if arguments.verbose:
        command = shlex.join(options.instance_command(arguments))
        print(f"poprun: {arguments.num_instances} x {command}", file=sys.stderr)
    return _Job(arguments).run()


@dataclasses.dataclass(frozen=True)
class _Place:
    """The host and the index of one instance.

    Args:
        remote: the agent of another host; None on this one.
        address: its listening address.
        local_index: its index on its host.
        first_device: the index of the device of that host's first instance, among devices of an instance's size.
    """

    remote: instance.Agent | None
    address: str
    local_index: int
    first_device: int


class _Job:
    """The instances of a job, from the first start to the last end."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._hosts = options.instance_hosts(arguments)
        self._name, self._key = uuid.uuid4().hex, secrets.token_hex(32)
        self._agents: list[instance.Agent] = []
        self._instances: list[instance.Instance] = []

    def run(self) -> int:
        """Starts all, and waits: the status of the job."""
        before = {signal_number: signal.signal(signal_number, _raise_job_ended) for signal_number in _handle_signals()}
        try:
            places = self._places()
            if options.parse_bool(self._arguments.print_topology):
                rows = [(place.address, place.first_device + place.local_index) for place in places]
                print(options.instance_topology(self._arguments, rows), flush=True)
            for index, place in enumerate(places):
                self._start(index, place, places)
            return self._wait_for_instances()
        except instance.HostError as error:
            print(f"poprun: --host {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            print("poprun: Ctrl-C; the instances are ended.", file=sys.stderr)
            return 128 + signal.SIGINT
        except _JobEnded as ended:
            print(f"poprun: {ended.name}; the instances are ended.", file=sys.stderr)
            return 128 + ended.signal_number
        finally:
            self._terminate()
            for signal_number, handler in before.items():
                signal.signal(signal_number, handler)

    def _places(self) -> list[_Place]:
        """Asks the other hosts for addresses and devices, all at once."""
        arguments, hosts = self._arguments, self._hosts
        ipus = options.instance_ipus(arguments)
        remote = options.remote_hosts(arguments)
        for host in hosts:
            if host in remote:
                shell = arguments.remote_shell
                self._agents.append(instance.Agent(shell, host, ipus, hosts.count(host)))
        agents = iter(self._agents)
        local = [host for host in hosts if host not in remote]
        addresses = iter(rendezvous.free_addresses(local))
        first_local = attach.first_free(systems.current(), ipus, len(local)) if local else 0
        places: list[_Place] = []
        for index, host in enumerate(hosts):
            if host in remote:
                local_index = hosts[:index].count(host)
                places.append(self._remote_place(next(agents), local_index, places))
            else:
                local_index = sum(earlier_host not in remote for earlier_host in hosts[:index])
                places.append(_Place(None, next(addresses), local_index, first_local or 0))
        return places

    def _remote_place(self, agent: instance.Agent, local_index: int, places: Sequence[_Place]) -> _Place:
        greeting = agent.greeting()
        if greeting.version != tf_ipu_shim.__version__:
            raise instance.HostError(
                f"{agent.host}: the package there is of version {greeting.version}; expected "
                f"{tf_ipu_shim.__version__}, as here. Install the same version on all hosts."
            )
        if greeting.first_device is None:
            raise instance.HostError(
                f"{agent.host}: the system there has too few IPUs; expected enough for "
                f"{self._hosts.count(agent.host)} instances of {options.instance_ipus(self._arguments)} IPUs. "
                "Choose a larger one with TF_IPU_SHIM_SYSTEM."
            )
        # The first instance of a host decides for all of them: another job may start there in between.
        on_host = [place for place in places if place.remote and place.remote.host == agent.host]
        first = on_host[0].first_device if on_host else greeting.first_device
        return _Place(agent, greeting.address, local_index, first)

    def _start(self, index: int, place: _Place, places: Sequence[_Place]) -> None:
        command = options.instance_command(self._arguments)
        variables = self._variables(index, place, places)
        if place.remote is None:
            process = instance.start(command, {**os.environ, **variables}, is_first=index == 0)
        else:
            passed = {name: value for name, value in os.environ.items() if options.is_passed_on(name)}
            process = place.remote.start(agent_messages.Order(command, {**passed, **variables}, os.getcwd()))
            self._agents.remove(place.remote)
        self._instances.append(instance.Instance(process, self._output(index)))

    def _variables(self, index: int, place: _Place, places: Sequence[_Place]) -> dict[str, str]:
        """Returns the environment variables of an instance."""
        mates = [other_place for other_place in places if _host_name(other_place) == _host_name(place)]
        numbers = {
            "RANK": str(index),
            "SIZE": str(len(places)),
            "LOCAL_RANK": str(place.local_index),
            "LOCAL_SIZE": str(len(mates)),
        }
        variables = {
            **options.instance_environment(self._arguments, os.environ, place.first_device),
            "TF_IPU_SHIM_JOB": self._name,
            **{f"TF_IPU_SHIM_{name}": value for name, value in numbers.items()},
            # Graphcore's PopRun starts instances by Open MPI, and scripts read its variables.
            **{f"OMPI_COMM_WORLD_{name}": value for name, value in numbers.items()},
            "TF_IPU_SHIM_ADDRESSES": ",".join(other_place.address for other_place in places),
        }
        if len(mates) < len(places):
            variables[connections.KEY] = os.environ.get(connections.KEY) or self._key
        return variables

    def _output(self, index: int) -> instance.Output:
        arguments = self._arguments
        directory = arguments.log_dir
        if directory:
            pathlib.Path(directory).mkdir(parents=True, exist_ok=True)
        return instance.Output(
            is_shown=arguments.only_output_from_instance in (None, index),
            tag=f"[1,{index}]<{{}}>:" if options.parse_bool(arguments.tag_output) else "",
            log_file=os.path.join(directory, f"instance_{index}.log") if directory else None,
            hidden=None if options.sets_log_level(arguments, os.environ) else _TENSORFLOW_LINES,
        )

    def _wait_for_instances(self) -> int:
        while True:
            statuses = [started.process.poll() for started in self._instances]
            failed = next((index for index, status in enumerate(statuses) if status), None)
            if failed is not None:
                return self._report_failure(failed, statuses)
            if None not in statuses:
                return 0
            time.sleep(0.05)

    def _report_failure(self, index: int, statuses: Sequence[int | None]) -> int:
        status = statuses[index] or 0
        self._terminate()  # and with that all has been printed
        consequence = "; the others were ended" if None in statuses else ""
        how = f"ended with status {status}" if status > 0 else f"was ended by {signal.Signals(-status).name}"
        print(f"poprun: instance {index} of {len(statuses)} {how}{consequence}.", file=sys.stderr)
        hidden = self._instances[index].hidden_errors
        if hidden:
            print(f"poprun: its last errors, which were not printed:\n{hidden}", file=sys.stderr, end="")
        return status if status > 0 else 128 - status

    def _terminate(self) -> None:
        """Ends all remaining instances and their child processes."""
        processes = [started.process for started in self._instances]
        unused = [agent.process for agent in self._agents]
        for process in (*processes, *unused):
            if process.stdin is not None:  # an agent ends what it has started when its input ends
                with contextlib.suppress(OSError):
                    process.stdin.close()
        deadline = time.monotonic() + process_tree.GRACE_SECONDS
        process_tree.terminate([process for process in processes if process.stdin is None])
        of_agents = [process for process in (*processes, *unused) if process.stdin is not None]
        process_tree.wait_or_kill(of_agents, deadline + process_tree.GRACE_SECONDS)
        for started in self._instances:
            started.close(max(1.0, deadline - time.monotonic()))


def _host_name(place: _Place) -> str | None:
    return place.remote.host if place.remote else None


class _JobEnded(BaseException):
    """A signal that ends `poprun`."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.signal_number, self.name = signal_number, signal.Signals(signal_number).name


def _raise_job_ended(signal_number: int, _: Any) -> None:
    raise _JobEnded(signal_number)


def _handle_signals() -> list[signal.Signals]:
    """Returns the signals that would end this process: `nohup` ignores one. Only the main thread may handle them."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [signal_number for signal_number in _ENDING if signal.getsignal(signal_number) is not signal.SIG_IGN]
