"""Detects the job of this process: ranks and addresses from PopRun, MPI, SLURM or TF_CONFIG.

`tf-ipu poprun`, `mpirun` (Open MPI), `mpiexec` (MPICH), SLURM's `srun` and `TF_CONFIG` say so by environment variables;
`TF_IPU_SHIM_RANK`, `TF_IPU_SHIM_SIZE` and `TF_IPU_SHIM_ADDRESSES` override theirs.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from tf_ipu_shim import errors

ADDRESSES = "TF_IPU_SHIM_ADDRESSES"
# By launcher: rank, size, rank and size on this machine, name of the job.
_LAUNCHERS = (
    ("TF_IPU_SHIM_RANK", "TF_IPU_SHIM_SIZE", "TF_IPU_SHIM_LOCAL_RANK", "TF_IPU_SHIM_LOCAL_SIZE", "TF_IPU_SHIM_JOB"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "PMIX_NAMESPACE"),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_ID"),
    # srun counts the tasks of a step. SLURM_PROCID and SLURM_NTASKS are set in the shell of a batch script, too.
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "", "SLURM_JOB_ID"),
)  # fmt: skip
_OWN, _, _PMI, _SLURM = _LAUNCHERS
_CHIEFS = ("chief", "master")
# Workers may start their own server at the address that TF_CONFIG names; this library's is so many ports away.
_PORTS_AWAY = 10_000
_FIRST_PORT, _PORTS = 20_000, 20_000


@dataclasses.dataclass(frozen=True)
class Job:
    """A set of processes.

    Args:
        name: distinguishes it from other jobs of this user.
        rank: the number of this process, from 0.
        size: how many processes there are.
        local_rank: the number of this process on its machine, from 0.
        local_size: how many processes there are on this machine.
        addresses: `host:port` of each process, by rank; empty if they find each other on this machine.
    """

    name: str
    rank: int
    size: int
    local_rank: int
    local_size: int
    addresses: tuple[str, ...] = ()


def current() -> Job:
    """Returns this process's job: of one process without a launcher.

    Example:
        >>> current().size
        1
    """
    environment = os.environ
    variables = _launcher(environment)
    if variables is None:
        return _cluster_job(environment.get("TF_CONFIG", "")) or Job(str(os.getppid()), 0, 1, 0, 1)
    rank, size = (_number(environment, variable, default) for variable, default in zip(variables, (0, 1)))
    if not 0 <= rank < size:
        raise ValueError(
            f"The rank of a process must be from 0 to {size - 1}, but {variables[0]} is {rank}. Set TF_IPU_SHIM_RANK "
            "and TF_IPU_SHIM_SIZE."
        )
    # A launcher that has started a shell says 1 in it, and the script may be one of several there.
    cluster = _cluster_job(environment.get("TF_CONFIG", "")) if size == 1 and variables is not _OWN else None
    if cluster is not None:
        return cluster
    addresses = _configured_addresses(environment, size) or (
        _slurm_addresses(environment, size) if variables is _SLURM else ()
    )
    local_rank, local_size = _on_this_machine(addresses, rank) if addresses else (rank, size)
    local_rank = _number(environment, variables[2], local_rank)
    local_size = _number(environment, variables[3], local_size)
    if local_size != size and not addresses:
        raise errors.UnsupportedError(
            f"This job has {size} processes, {local_size} of them on this machine; the addresses of all are needed. "
            f'Say where they are: {ADDRESSES}="host:port,host:port,...", by rank, the same for all '
            f"(mpirun -x {ADDRESSES})."
        )
    name = environment.get("TF_IPU_SHIM_JOB") or environment.get(variables[4]) or str(os.getppid())
    return Job(name, rank, size, local_rank, local_size, addresses)


def _launcher(environment: Mapping[str, str]) -> tuple[str, ...] | None:
    """Returns the variables of the launcher that started this process, if it sets rank and size."""
    if bool(environment.get(_OWN[0])) != bool(environment.get(_OWN[1])):
        variables, missing = _OWN[:2] if environment.get(_OWN[0]) else _OWN[1::-1]
        raise ValueError(f"{variables} is set and {missing} is not; a process of a job has both. Set {missing}.")
    complete = [of for of in _LAUNCHERS if environment.get(of[0]) and environment.get(of[1])]
    if not complete:
        return None
    # With --mpi=pmi2 srun sets PMI's variables in addition to its own, which say where the tasks are.
    is_step = complete[0] is _PMI and [environment.get(variable) for variable in _SLURM[:2]] == [
        environment[variable] for variable in _PMI[:2]
    ]
    return _SLURM if is_step else complete[0]


def _configured_addresses(environment: Mapping[str, str], size: int) -> tuple[str, ...]:
    setting = environment.get(ADDRESSES, "")
    addresses = tuple(address.strip() for address in setting.split(",") if address.strip())
    if addresses and (len(addresses) != size or not all(_is_address(address) for address in addresses)):
        raise ValueError(
            f'{ADDRESSES} must be {size} times "host:port", separated by commas; it is {setting!r}.'
            " Write one address for each process."
        )
    return addresses


def _is_address(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and port.isdecimal() and 0 < int(port) < 65536


def _slurm_addresses(environment: Mapping[str, str], size: int) -> tuple[str, ...]:
    """Returns the addresses of a SLURM step's tasks."""
    from tf_ipu_shim.tf_private.distribute import slurm_cluster_resolver

    expand_nodes, expand_tasks = slurm_cluster_resolver.expand_hostlist, slurm_cluster_resolver.expand_tasks_per_node
    nodes = _expanded(environment, "SLURM_STEP_NODELIST", 'a list of nodes such as "n[1-2]"', expand_nodes)
    if len(nodes) < 2 and _number(environment, "SLURM_STEP_NUM_NODES", 1) < 2:
        return ()
    tasks = _expanded(environment, "SLURM_STEP_TASKS_PER_NODE", 'tasks of each node such as "4(x2),1"', expand_tasks)
    if len(tasks) != len(nodes) or sum(tasks) != size:
        setting = environment.get("SLURM_STEP_TASKS_PER_NODE", "")
        raise ValueError(
            f"The tasks of a SLURM step: SLURM_STEP_TASKS_PER_NODE is {setting!r}; expected {size} tasks "
            f"(SLURM_STEP_NUM_TASKS) on {len(nodes)} nodes (SLURM_STEP_NODELIST). Start the script with srun, or set "
            f"{ADDRESSES}."
        )
    step = _number(environment, "SLURM_JOB_ID", 0) * 64 + _number(environment, "SLURM_STEP_ID", 0)
    first = _FIRST_PORT + step * 64 % _PORTS
    return tuple(f"{node}:{first + index}" for node, count in zip(nodes, tasks) for index in range(count))


def _expanded(
    environment: Mapping[str, str], variable: str, expected: str, expand: Callable[[str], list[Any]]
) -> list[Any]:
    """Expands one of SLURM's compact forms; empty if the variable is not set."""
    setting = environment.get(variable, "")
    try:
        return expand(setting) if setting else []
    except ValueError as error:
        raise ValueError(
            f"The nodes of a SLURM step: {variable} is {setting!r}; expected {expected}. Start the script with srun, "
            f"or set {ADDRESSES}."
        ) from error


def _cluster_job(text: str) -> Job | None:
    """Returns the job of a `TF_CONFIG` cluster, chief first, or None."""
    try:
        config = json.loads(text or "{}")
        cluster, task = config.get("cluster", {}), config.get("task", {})
        task_types = [kind for kind in (*_CHIEFS, "worker") if cluster.get(kind)]
        workers = [(kind, index, address) for kind in task_types for index, address in enumerate(cluster[kind])]
        own_task = (str(task.get("type", "worker")), int(task.get("index", 0)))
    except (ValueError, AttributeError, TypeError) as error:
        raise ValueError(
            f"TF_CONFIG must be JSON with a cluster and a task; it is {text!r}: {error}. Correct its JSON."
        ) from error
    ranks = [(kind, index) for kind, index, _ in workers]
    if len(workers) < 2 or own_task not in ranks:
        return None
    addresses = tuple(_moved(address) for _, _, address in workers)
    rank = ranks.index(own_task)
    return Job(",".join(addresses), rank, len(workers), *_on_this_machine(addresses, rank), addresses)


def _moved(address: str) -> str:
    if not _is_address(address):
        raise ValueError(
            f"TF_CONFIG: a worker's address must be host:port; it is {address!r}. Write each address as host:port."
        )
    host, _, port = address.rpartition(":")
    moved_port = int(port) + _PORTS_AWAY
    return f"{host}:{moved_port if moved_port < 65536 else int(port) - _PORTS_AWAY}"


def _on_this_machine(addresses: tuple[str, ...], rank: int) -> tuple[int, int]:
    """Returns this process's index among those on its machine, and their number."""
    machines = [_machine(address) for address in addresses]
    return machines[:rank].count(machines[rank]), machines.count(machines[rank])


def _machine(address: str) -> str:
    host = address.rpartition(":")[0]
    return "localhost" if host.startswith("127.") or host in ("localhost", "[::1]", os.uname().nodename) else host


def _number(environment: Mapping[str, str], variable: str, default: int) -> int:
    setting = environment.get(variable, "") if variable else ""
    if setting and not setting.isdecimal():
        raise ValueError(f"{variable} must be a number; it is {setting!r}. Set it to a number.")
    return int(setting) if setting else default
