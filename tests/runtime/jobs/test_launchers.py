"""Which launcher says what job a process is of."""

import json

import pytest

from tf_ipu_shim.errors import UnsupportedError
from tf_ipu_shim.runtime.jobs import job

pytestmark = pytest.mark.one_version

VARIABLES = [variable for launcher in job._LAUNCHERS for variable in launcher if variable]
OF_STEPS = ["SLURM_STEP_NODELIST", "SLURM_STEP_TASKS_PER_NODE", "SLURM_STEP_NUM_NODES", "SLURM_STEP_ID"]


@pytest.fixture
def environment(monkeypatch):
    for variable in [*VARIABLES, job.ADDRESSES, "TF_CONFIG", *OF_STEPS]:
        monkeypatch.delenv(variable, raising=False)

    def say(**variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, str(value))
        return job.current()

    return say


def cluster(kind, index, **workers):
    return json.dumps({"cluster": workers, "task": {"type": kind, "index": index}})


def test_alone(environment):
    here = environment()
    assert (here.rank, here.size, here.local_rank, here.local_size, here.addresses) == (0, 1, 0, 1, ())


def test_open_mpi_on_one_machine_and_on_two(environment):
    mpi = {"OMPI_COMM_WORLD_RANK": 3, "OMPI_COMM_WORLD_SIZE": 4, "PMIX_NAMESPACE": "prterun-7"}
    here = environment(**mpi, OMPI_COMM_WORLD_LOCAL_RANK=3, OMPI_COMM_WORLD_LOCAL_SIZE=4)
    assert here == job.Job("prterun-7", 3, 4, 3, 4)
    with pytest.raises(UnsupportedError, match="4 processes, 2 of them on this machine. .*TF_IPU_SHIM_ADDRESSES"):
        environment(OMPI_COMM_WORLD_LOCAL_RANK=1, OMPI_COMM_WORLD_LOCAL_SIZE=2)
    here = environment(TF_IPU_SHIM_ADDRESSES="a:1,a:2,b:1,b:2")
    assert (here.rank, here.local_rank, here.local_size) == (3, 1, 2)
    assert here.addresses == ("a:1", "a:2", "b:1", "b:2")


def test_slurm_steps(environment):
    step = {"SLURM_PROCID": 2, "SLURM_STEP_NUM_TASKS": 3, "SLURM_JOB_ID": 7, "SLURM_STEP_ID": 1, "SLURM_LOCALID": 0}
    here = environment(**step, SLURM_STEP_NODELIST="n[1-2]", SLURM_STEP_TASKS_PER_NODE="2,1")
    hosts, ports = zip(*(address.split(":") for address in here.addresses))
    assert hosts == ("n1", "n1", "n2") and ports[0] == ports[2] and int(ports[1]) == int(ports[0]) + 1
    assert (here.rank, here.size, here.local_rank) == (2, 3, 0)
    assert environment(SLURM_STEP_NODELIST="n1", SLURM_STEP_TASKS_PER_NODE="3").addresses == (), "they find each other"


def test_a_batch_script_of_slurm_is_no_task(environment):
    assert environment(SLURM_NTASKS=4, SLURM_JOB_ID=7).size == 1


def test_workers_of_a_cluster(environment):
    workers = ["a:2222", "b:65000"]
    here = environment(TF_CONFIG=cluster("worker", 1, chief=["c:1000"], worker=workers, ps=["d:1"]))
    assert (here.rank, here.size) == (2, 3)
    assert here.addresses == ("c:11000", "a:12222", "b:55000")
    assert environment(TF_CONFIG=cluster("chief", 0, chief=["c:1000"], worker=workers)).rank == 0
    assert environment(TF_CONFIG=cluster("evaluator", 0, chief=["c:1000"], worker=workers)).size == 1
    assert environment(TF_CONFIG=cluster("worker", 0, worker=["a:1"])).size == 1
    assert environment(TF_IPU_SHIM_RANK=1, TF_IPU_SHIM_SIZE=2, TF_CONFIG=cluster("worker", 0, worker=workers)).rank == 1


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"TF_IPU_SHIM_RANK": 2, "TF_IPU_SHIM_SIZE": 2}, "from 0 to 1, but TF_IPU_SHIM_RANK is 2"),
        ({"TF_IPU_SHIM_RANK": "one", "TF_IPU_SHIM_SIZE": 2}, "TF_IPU_SHIM_RANK must be a number"),
        ({"TF_IPU_SHIM_RANK": 0, "TF_IPU_SHIM_SIZE": 2, job.ADDRESSES: "a:1"}, '2 times "host:port"'),
        ({"TF_IPU_SHIM_RANK": 0, "TF_IPU_SHIM_SIZE": 2, job.ADDRESSES: "a:1,b"}, '2 times "host:port"'),
        ({"TF_CONFIG": "{"}, "TF_CONFIG must be JSON"),
        ({"TF_CONFIG": "[]"}, "TF_CONFIG must be JSON"),
        ({"TF_CONFIG": cluster("worker", 0, worker=["a", "b:1"])}, "address must be host:port"),
    ],
)
def test_what_contradicts_itself(environment, variables, text):
    with pytest.raises(ValueError, match=text):
        environment(**variables)


SHELL = {"SLURM_PROCID": 0, "SLURM_LOCALID": 0, "SLURM_NODEID": 0, "SLURM_JOB_ID": 77, "SLURM_NTASKS": 4}
ON_TWO = {"SLURM_NNODES": 2, "SLURM_TASKS_PER_NODE": "2(x2)", "SLURM_JOB_NODELIST": "n[1-2]"}


@pytest.mark.parametrize(
    "variables",
    [
        {**SHELL, "SLURM_NNODES": 1, "SLURM_TASKS_PER_NODE": 4, "SLURM_JOB_NODELIST": "n1"},
        {**SHELL, **ON_TWO},
        {**ON_TWO, "SLURM_JOB_ID": 77, "SLURM_NTASKS": 4},
        {**SHELL, **ON_TWO, "SLURM_STEP_ID": 4294967290, "SLURM_STEP_NUM_TASKS": 1, "SLURM_STEP_NODELIST": "n1"},
        {**SHELL, "OMPI_COMM_WORLD_SIZE": 4, "PMI_RANK": 2},
    ],
    ids=["sbatch", "sbatch on two nodes", "salloc", "salloc with a step", "leftovers"],
)
def test_shells_of_slurm_are_no_tasks(environment, variables):
    here = environment(**variables)
    assert (here.rank, here.size, here.local_size, here.addresses) == (0, 1, 1, ())


def test_workers_of_a_cluster_in_a_shell_of_slurm(environment):
    workers = cluster("worker", 1, worker=["a:1000", "b:1000"])
    assert environment(**SHELL, SLURM_STEP_NUM_TASKS=1, TF_CONFIG=workers).rank == 1
    assert environment(TF_IPU_SHIM_RANK=0, TF_IPU_SHIM_SIZE=1).size == 1


def test_slurm_steps_by_pmi(environment):
    pmi = {"PMI_RANK": 1, "PMI_SIZE": 2, "SLURM_PROCID": 1, "SLURM_STEP_NUM_TASKS": 2, "SLURM_LOCALID": 0}
    here = environment(**pmi, SLURM_STEP_NODELIST="n[1-2]", SLURM_STEP_TASKS_PER_NODE="1(x2)")
    assert (here.rank, here.size, here.local_rank, len(here.addresses)) == (1, 2, 0, 2)
    assert environment(PMI_SIZE=4).addresses == (), "MPICH starts several tasks for each of a step of its own"


STEP = {
    "SLURM_PROCID": 0,
    "SLURM_STEP_NUM_TASKS": 3,
    "SLURM_STEP_NODELIST": "n[1-2]",
    "SLURM_STEP_TASKS_PER_NODE": "2,1",
}


@pytest.mark.parametrize(
    ("variable", "value", "text"),
    [
        ("SLURM_STEP_TASKS_PER_NODE", "", "SLURM_STEP_TASKS_PER_NODE is ''; expected 3 tasks"),
        ("SLURM_STEP_TASKS_PER_NODE", "2", "SLURM_STEP_TASKS_PER_NODE is '2'; expected 3 tasks"),
        ("SLURM_STEP_TASKS_PER_NODE", "2,2", "SLURM_STEP_TASKS_PER_NODE is '2,2'; expected 3 tasks"),
        ("SLURM_STEP_TASKS_PER_NODE", "2(x", r"SLURM_STEP_TASKS_PER_NODE is '2\(x'; expected tasks of each node"),
        ("SLURM_STEP_NODELIST", "n[1-", r"SLURM_STEP_NODELIST is 'n\[1-'; expected a list of nodes"),
        ("SLURM_STEP_NUM_TASKS", "three", "SLURM_STEP_NUM_TASKS must be a number"),
        ("SLURM_PROCID", "3", "from 0 to 2, but SLURM_PROCID is 3"),
        ("SLURM_PROCID", "-1", "SLURM_PROCID must be a number"),
    ],
)
def test_bad_values_of_a_step_are_named(environment, variable, value, text):
    with pytest.raises(ValueError, match=text):
        environment(**{**STEP, variable: value})


def test_half_of_our_own_variables_is_refused(environment):
    with pytest.raises(ValueError, match="TF_IPU_SHIM_SIZE is set and TF_IPU_SHIM_RANK is not"):
        environment(TF_IPU_SHIM_SIZE=2)
