"""`poprun` starts instances on other hosts: network namespaces stand for them."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

import tf_ipu_shim
from tf_ipu_shim.cli.poprun.agent_messages import GREETING

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE, THERE = "10.99.0.1", "10.99.0.2"
# Host b is a namespace with files of its own for who has which IPUs.
REMOTE_SHELL = f"""#!/bin/sh
[ "$1" = {THERE} ] || {{ echo "no route to $1" >&2; exit 255; }}
shift
echo "Welcome to b."
TF_IPU_SHIM_LOCK_DIR=$LOCKS exec ip netns exec b "$@"
"""
NETWORK = f"""
mount -t tmpfs none /run && mkdir /run/netns && ip netns add b
ip link add va type veth peer name vb netns b
ip link set lo up && ip addr add {HERE}/24 dev va && ip link set va up
ip -n b link set lo up && ip -n b addr add {THERE}/24 dev vb && ip -n b link set vb up
exec "$@"
"""
SUM = """
import os, popdist, popdist.tensorflow
import tensorflow as tf
from tensorflow.python import ipu
config = ipu.config.IPUConfig()
popdist.tensorflow.set_ipu_config(config, ipus_per_replica=1)
config.configure_ipu_system()
rank = popdist.getInstanceIndex()
total = float(ipu.distributed.allreduce(tf.constant(rank + 1.0), "SUM"))
print(rank, total, popdist.getDeviceId(), os.environ.get("OWN"), os.readlink("/proc/self/ns/net"), flush=True)
"""
UNSHARE = ("unshare", "--user", "--map-root-user", "--net", "--mount", "sh", "-ec", NETWORK, "sh")


def _can_make_namespaces():
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        return False
    return subprocess.run([*UNSHARE, "true"], capture_output=True).returncode == 0


two_hosts = pytest.mark.skipif(not _can_make_namespaces(), reason="needs network namespaces of a user, and iproute2")


@pytest.fixture
def command(python):
    """The words that run `poprun` where hosts a and b have a network."""
    shell = pathlib.Path(python.script(REMOTE_SHELL, "remote_shell"))
    shell.chmod(0o700)
    locks = python.directory / "locks_of_b"
    locks.mkdir(mode=0o700)
    started = [sys.executable, "-m", "tf_ipu_shim.cli", "poprun", "--remote-shell", str(shell)]
    variables = {name: value for name, value in os.environ.items() if not name.endswith("LOG_LEVEL")}
    return [*UNSHARE, *started], {**variables, "PYTHONPATH": str(ROOT), "LOCKS": str(locks)}


@pytest.mark.slow
@two_hosts
def test_instances_of_two_hosts_are_one_job(python, command):
    words, environment = command
    words += ["--num-replicas=4", "--num-instances=4", f"--host={HERE},{THERE}", "--mpi-global-args=-x OWN=1"]
    ran = subprocess.run([*words, python.script(SUM)], env=environment, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 0, ran.stderr
    rows = sorted(line.partition("<stdout>:")[2].split() for line in ran.stdout.splitlines())
    # Each host has IPUs 0 and 1 of its own.
    assert [row[:4] for row in rows] == [[str(rank), "10.0", str(rank % 2), "1"] for rank in range(4)], ran.stdout
    assert rows[0][4] == rows[1][4] != rows[2][4] == rows[3][4]
    assert f"listens at {THERE}:" in ran.stderr and "processes prove that they know" in ran.stderr


@two_hosts
def test_a_failure_on_another_host_ends_all(python, command):
    words, environment = command
    script = python.script(
        "import os, sys, time\nif os.environ['TF_IPU_SHIM_RANK'] == '1':\n    sys.exit(7)\ntime.sleep(600)\n"
    )
    words += ["--num-replicas=2", "--num-instances=2", f"--host={HERE},{THERE}"]
    ran = subprocess.run([*words, script], env=environment, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 7 and "instance 1 of 2 ended with status 7; the others were ended." in ran.stderr


@two_hosts
def test_an_end_of_poprun_ends_the_other_host(python, command):
    words, environment = command
    script = python.script(
        "import os, subprocess, sys, time\n"
        "if os.environ['TF_IPU_SHIM_RANK'] == '1':\n"
        "    subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(os.environ['TF_IPU_SHIM_RANK'], os.readlink('/proc/self/ns/net'), flush=True)\n"
        "time.sleep(600)\n"
    )
    words += ["--num-replicas=2", "--num-instances=2", f"--host={HERE},{THERE}", "--tag-output=no", script]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE, text=True) as job:
        namespaces = dict(job.stdout.readline().split() for _ in range(2))
        job.kill()
    assert len(set(namespaces.values())) == 2
    deadline = time.monotonic() + 120
    while _processes_in(namespaces["1"]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _processes_in(namespaces["1"])


@two_hosts
def test_a_host_that_cannot_be_reached_is_named(python, command):
    words, environment = command
    words += ["--num-replicas=2", "--num-instances=2", f"--host={HERE},10.99.0.3", "python", "-c", "0"]
    ran = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600)
    assert ran.returncode == 2
    assert "--host 10.99.0.3: no instance can be started there. " in ran.stderr
    assert "ended with status 255:\nno route to 10.99.0.3\nIt must run without a password" in ran.stderr


def test_a_remote_shell_that_is_missing(python):
    ran = python(
        "-m", "tf_ipu_shim.cli", "poprun", "--host=192.0.2.1", "--remote-shell=no-such-command", "python", "-c", "0"
    )
    assert ran.returncode == 2 and "'no-such-command' cannot be started" in ran.stderr


@pytest.mark.parametrize(
    ("greeting", "expected"),
    [
        ({"version": "0"}, "192.0.2.1: the package there is of version 0; expected"),
        (
            {"first_device": None},
            "192.0.2.1: the system there has too few IPUs; expected enough for 1 instances of 1 IPUs.",
        ),
        ({}, "192.0.2.1: the agent there has ended: "),
    ],
)
def test_an_agent_that_cannot_be_used(python, greeting, expected):
    told = {"version": tf_ipu_shim.__version__, "address": "192.0.2.1:1", "first_device": 0, **greeting}
    shell = pathlib.Path(python.script(f"#!/bin/sh\nexec <&-\necho '{GREETING}{json.dumps(told)}'\nsleep 1\n", "shell"))
    shell.chmod(0o700)
    ran = python("-m", "tf_ipu_shim.cli", "poprun", "--host=192.0.2.1", "--remote-shell", shell, "python", "-c", "0")
    assert ran.returncode == 2 and f"poprun: --host {expected}" in ran.stderr, ran.stderr


def test_an_agent_ends_what_its_program_started():
    """Signals that come again and again, as the end of its input does, interrupt none of it."""
    starts = "import subprocess, time; print(subprocess.Popen(['sleep', '600']).pid, flush=True); time.sleep(600)"
    order = {"command": [sys.executable, "-c", starts], "environment": {}, "directory": "."}
    words = [sys.executable, "-m", "tf_ipu_shim.cli.poprun.agent", "127.0.0.1", "1", "1"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as agent:
        assert agent.stdout.readline().startswith(GREETING)
        agent.stdin.write(json.dumps(order) + "\n")
        agent.stdin.flush()
        started = pathlib.Path("/proc") / agent.stdout.readline().strip()
        assert started.exists()
        while agent.poll() is None:
            agent.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + 20
    while started.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not started.exists()


def _processes_in(namespace):
    found = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(process / "ns" / "net") == namespace:
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found
