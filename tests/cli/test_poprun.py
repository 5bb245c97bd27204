"""`poprun` starts the instances of a job, and `popdist` tells each what it is."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tf_ipu_shim.machine import systems

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

INSTANCE = """
import json
import popdist
import popdist.tensorflow
import numpy as np
import tensorflow as tf
from tensorflow.python import ipu
from tensorflow.python.ipu import distributed
from tensorflow.python.ipu.distributed.popdist_strategy import PopDistStrategy

popdist.init()
assert popdist.isPopdistEnvSet()
config = ipu.config.IPUConfig()
assert popdist.tensorflow.set_ipu_config(config, ipus_per_replica=2) is config
config.configure_ipu_system()
devices = ipu.utils.get_num_of_ipus_in_device("/device:IPU:0")
strategy = PopDistStrategy()
print(json.dumps({
    "index": popdist.getInstanceIndex(), "instances": popdist.getNumInstances(),
    "replicas": [popdist.getNumLocalReplicas(), popdist.getNumTotalReplicas(), strategy.num_replicas_in_sync],
    "offset": popdist.getReplicaIndexOffset(), "ipus": popdist.getNumIpusPerReplica(),
    "device": popdist.getDeviceId(), "selected": config.select_ipus, "on_device": devices,
    "sum": float(distributed.allreduce(tf.constant(1.0 + popdist.getInstanceIndex()), op=distributed.Sum)),
}))
popdist.synchronize()
"""
WRONG = """
import popdist.tensorflow
from tensorflow.python import ipu
try:
    popdist.tensorflow.set_ipu_config(ipu.config.IPUConfig(), ipus_per_replica=3)
except ValueError as error:
    print(error)
"""
ALONE = """
import popdist, popdist.tensorflow
from tensorflow.python import ipu
assert not popdist.isPopdistEnvSet()
assert (popdist.getNumInstances(), popdist.getInstanceIndex(), popdist.getNumTotalReplicas()) == (1, 0, 1)
config = popdist.tensorflow.set_ipu_config(ipu.config.IPUConfig(), ipus_per_replica=4)
assert config.auto_select_ipus == 4
config.configure_ipu_system()
"""


def poprun(python, *words):
    return python("-m", "tf_ipu_shim.cli", "poprun", *words)


def test_instances_have_the_variables_of_open_mpi(python):
    names = [f"OMPI_COMM_WORLD_{name}" for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")]
    script = f"import os; print('found', *map(os.environ.get, {names}))"
    ran = poprun(python, "--num-replicas", 2, "--num-instances", 2, "--tag-output", "no", sys.executable, "-c", script)
    assert sorted(line for line in ran.stdout.splitlines() if line.startswith("found")) == [
        "found 0 2 0 2",
        "found 1 2 1 2",
    ], ran.stderr


def test_each_instance_knows_its_place_and_has_ipus_of_its_own(python, interpreter):
    ran = poprun(python, "--num-replicas", 4, "--num-instances=2", "--ipus-per-replica", 2, "--numa-aware", "yes",
                 "--host", "127.0.0.1,127.0.0.2",
                 interpreter, "-m", "tf_ipu_shim", python.script(INSTANCE))  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    found = {}
    for line in ran.stdout.splitlines():
        tag, separator, text = line.partition("<stdout>:")
        if separator and text.startswith("{"):
            found[tag] = json.loads(text)
    assert sorted(found) == ["[1,0]", "[1,1]"]
    for index, instance in enumerate((found["[1,0]"], found["[1,1]"])):
        assert instance["index"] == index and instance["instances"] == 2 and instance["offset"] == 2 * index
        assert instance["replicas"] == [2, 4, 4] and instance["ipus"] == 2
        assert instance["selected"] == [instance["device"]] and instance["on_device"] == 4
        assert instance["sum"] == 1.0 + 2.0
    assert found["[1,0]"]["device"] != found["[1,1]"]["device"]
    assert "no effect here: --numa-aware" in ran.stderr


def test_an_instance_that_fails_ends_the_others(python):
    script = python.script(
        "import os, sys, time\n"
        "if os.environ['TF_IPU_SHIM_RANK'] == '1':\n    print('failing', flush=True); sys.exit(3)\n"
        "time.sleep(600)\n"
    )
    ran = poprun(python, "--num-replicas=2", "--num-instances=2", "--tag-output=no", script)
    assert ran.returncode == 3 and ran.stdout == "failing\n"
    assert ran.stderr == "poprun: instance 1 of 2 ended with status 3; the others were ended.\n"


def test_a_killed_instance_and_its_hidden_errors_are_named(python):
    script = python.script(
        "import os, signal, sys, time\n"
        "if os.environ['TF_IPU_SHIM_RANK'] == '0':\n    time.sleep(600)\n"
        "print('what went wrong', file=sys.stderr, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ran = poprun(python, "--num-replicas=2", "--num-instances=2", "--only-output-from-instance=0", script)
    assert ran.returncode == 128 + signal.SIGKILL and ran.stdout == ""
    assert "instance 1 of 2 was ended by SIGKILL; the others were ended." in ran.stderr
    assert ran.stderr.endswith("what went wrong\n")


@pytest.mark.parametrize(("number", "said"), [(signal.SIGINT, "Ctrl-C"), (signal.SIGTERM, "SIGTERM")])
def test_signals_end_all_that_was_started(python, number, said):
    script = python.script("import os, subprocess, sys, time\n"
                           "print(os.getpid(), flush=True)\n"
                           "subprocess.run([sys.executable, '-c', 'import os, time; print(os.getpid(), flush=True);"
                           " time.sleep(600)'])\n")  # fmt: skip
    command = [sys.executable, "-m", "tf_ipu_shim.cli", "poprun", "--num-replicas=2", "--num-instances=2",
               "--tag-output=no", str(script)]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # which tests in the background ignore
    ) as job:
        processes = [int(job.stdout.readline()) for _ in range(4)]
        job.send_signal(number)
        _, errors = job.communicate(timeout=300)
    assert job.returncode == 128 + number and f"poprun: {said}; the instances are ended." in errors
    deadline = time.monotonic() + 120
    while any(map(lives, processes)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(lives, processes))


def test_a_signal_that_is_ignored_ends_nothing(python):
    script = python.script("print(0, flush=True)\nprint(input())\n")
    command = [sys.executable, "-m", "tf_ipu_shim.cli", "poprun", "--tag-output=no", str(script)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as `nohup` does
    ) as job:  # fmt: skip
        assert job.stdout.readline() == "0\n"
        job.send_signal(signal.SIGHUP)
        assert job.communicate("1\n", timeout=300)[0] == "1\n"
    assert job.returncode == 0


def lives(process):
    try:
        return "\nState:\tZ" not in (pathlib.Path("/proc") / str(process) / "status").read_text()
    except OSError:
        return False


def test_what_instances_are_told(python):
    script = python.script("import json, os, sys\n"
                           "names = ['ONE', 'TWO', 'TF_POPLAR_FLAGS']\n"
                           "print(json.dumps([[os.environ.get(name) for name in names], sys.stdin.read()]))\n"
                           )  # fmt: skip
    hosts = python.script("# here\nlocalhost slots=2\n", "hosts")
    words = ["--mpi-global-args=-x ONE=1 --tag-output", "--mpi-local-args", "-x PATH -x TWO='a b'",
             "--print-topology", "--executable-cache-path", "kept", "--num-replicas=4", "--num-instances=2",
             "--tag-output=no", "--hostfile", hosts, script]  # fmt: skip
    environment = {"TF_POPLAR_FLAGS": "--show_progress_bar=false", "TF_IPU_SHIM_LOCK_DIR": str(python.directory)}
    ran = python("-m", "tf_ipu_shim.cli", "poprun", *words, stdin="given", environment=environment)
    assert ran.returncode == 0, ran.stderr
    head, *rows = ran.stdout.splitlines()
    assert head.split() == ["instance", "address", "replicas", "device", "IPUs"]
    devices = systems.SYSTEMS["ipu16"].devices_with(2)
    expected = [[span, str(one.id), f"{one.ipus[0]},", str(one.ipus[1])] for span, one in zip(("0-1", "2-3"), devices)]
    assert [row.split()[2:] for row in rows[:2]] == expected
    told = ["1", "a b", "--show_progress_bar=false --executable_cache_path=kept"]
    assert sorted(map(json.loads, rows[2:])) == [[told, ""], [told, "given"]]
    # `--tag-output` of MPI's is named, `-x` is done.
    assert ran.stderr == "poprun: no effect here: --mpi-global-args\n"


@pytest.mark.slow
def test_a_job_beside_another_one_has_other_ipus(python):
    script = python.script("import popdist\nfrom tf_ipu_shim.machine import systems\n"
                           "from tf_ipu_shim.machine.sharing import attach\n"
                           "device = systems.current().devices[popdist.getDeviceId()]\n"
                           "held = attach.attach(systems.current(), device)\n"
                           "print(popdist.getDeviceId(), held is not None, flush=True)\ninput()\n")  # fmt: skip
    command = [sys.executable, "-m", "tf_ipu_shim.cli", "poprun", "--tag-output=no", str(script)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_IPU_SHIM_LOCK_DIR": str(python.directory)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
    with subprocess.Popen(command, **pipes) as first:
        assert first.stdout.readline() == "0 True\n"
        with subprocess.Popen(command, **pipes) as second:
            assert second.communicate("\n", timeout=300)[0] == "1 True\n"
        first.communicate("\n", timeout=300)
    assert first.returncode == second.returncode == 0


def test_an_instance_starts_no_job(python):
    ran = poprun(python, sys.executable, "-m", "tf_ipu_shim.cli", "poprun", sys.executable, "-c", "0")
    assert ran.returncode == 2 and "instances start no jobs" in ran.stderr


def test_options_for_mpi_may_begin_with_dashes(python):
    ran = poprun(python, "-vv", "--mpi-global-args", "--tag-output", "--mpi-local-args", "--bind-to none",
                 "--num-replicas", 1, "--tag-output=no", sys.executable, "-c", "print('here')")  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, "here\n")
    assert "no effect here: --mpi-global-args, --mpi-local-args" in ran.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--num-replicas=3", "--num-instances=2", "a.py"], "no multiple of --num-instances 2"),
        (["--num-replicas=0", "a.py"], "must be above 0"),
        (["--num-replicas=2"], "no command is given"),
        (
            ["--num-replicas=2", "--host=127.0.0.1,192.0.2.1", "a.py"],
            "--host 127.0.0.1: 192.0.2.1 cannot reach this address",
        ),
        (["--num-replicas=64", "--num-instances=2", "a.py"], "do not fit into system"),
        (["--num-replicas=2", "--only-output-from-instance=1", "a.py"], "must be from 0 to 0"),
        (["--numa-aware=perhaps", "python", "a.py"], "--numa-aware must be yes or no, not 'perhaps'"),
        (["-H", "localhost", "--hostfile", "hosts", "python"], "--host and --hostfile are both given"),
        (["--hostfile", "no-such-file", "python"], "--hostfile no-such-file: there is no such file"),
    ],
)
def test_what_cannot_be_started_is_refused(words, expected, capsys):
    import argparse

    from tf_ipu_shim.cli import poprun as command

    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert command.run(parser.parse_args(words)) == 2
    assert expected in capsys.readouterr().err


@pytest.mark.slow
def test_a_configuration_that_contradicts_poprun(python, interpreter):
    ran = poprun(python, "--num-replicas=1", interpreter, "-m", "tf_ipu_shim", python.script(WRONG))
    assert "ipus_per_replica is 3, but poprun was started with --ipus-per-replica 1" in ran.stdout


def test_without_poprun_there_is_one_instance(forked):
    forked.succeeds(forked.script(ALONE))


def test_a_log_file_for_each_instance(python):
    logs = python.directory / "logs"
    ran = poprun(python, "--num-replicas=2", "--num-instances=2", "--only-output-from-instance=1", "--log-dir", logs,
                 sys.executable, "-c", "import os, sys; print(os.environ['TF_IPU_SHIM_RANK']); sys.stderr.write('x')"
                 )  # fmt: skip
    assert (ran.returncode, ran.stdout) == (0, "[1,1]<stdout>:1\n"), ran.stderr
    assert [sorted((logs / f"instance_{index}.log").read_text()) for index in (0, 1)] == [
        ["\n", "0", "x"],
        ["\n", "1", "x"],
    ]


def test_lines_of_tensorflow_are_left_out(python):
    script = python.script(
        "import os, sys\n"
        "print(os.environ['TF_CPP_MIN_LOG_LEVEL'], os.environ['TF_IPU_SHIM_LOG_LEVEL'])\n"
        "sys.stderr.write('WARNING: All log messages before absl::InitializeLog() is called\\nmine\\n')\n"
    )
    quiet = python(
        "-m", "tf_ipu_shim.cli", "poprun", "--tag-output=no", script, environment={"TF_CPP_MIN_LOG_LEVEL": ""}
    )
    assert (quiet.stdout, quiet.stderr) == ("2 0\n", "mine\n")
    own = {"TF_CPP_MIN_LOG_LEVEL": "1", "TF_IPU_SHIM_LOG_LEVEL": "1"}
    exported = ["--mpi-global-args", "-x TF_CPP_MIN_LOG_LEVEL=1"]
    nothing = {"TF_CPP_MIN_LOG_LEVEL": "", "TF_IPU_SHIM_LOG_LEVEL": "1"}
    for words, environment in (([], own), (exported, nothing)):
        command = ["-m", "tf_ipu_shim.cli", "poprun", "--tag-output=no", *words, script]
        ran = python(*command, environment=environment)
        assert ran.stdout == "1 1\n" and ran.stderr.startswith("WARNING: All log messages")
