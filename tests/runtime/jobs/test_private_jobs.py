"""Other users of a machine can neither connect to a job's processes nor disturb them."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
import pytest
from checkout import ROOT

from tf_ipu_shim.runtime.jobs import connections, job, rendezvous

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

# Both wait in the middle of their job for a file.
WORK = """
import os, pathlib, sys, time
import numpy as np
from tf_ipu_shim.runtime.jobs import collectives, job

here, directory = job.current(), pathlib.Path(sys.argv[1])
assert collectives.run("sum", "before", [np.float32(here.rank)])[0] == 1
(directory / f"ready{here.rank}").write_text(str(os.getpid()))
while not (directory / "go").exists():
    time.sleep(0.05)
assert collectives.run("sum", "after", [np.full([100000], here.rank + 1.0)])[0].tolist() == [3.0] * 100000
print("summed", flush=True)
os._exit(0)  # TensorFlow takes its time to end
"""
HOROVOD = """
import os, pathlib, sys, time
import tensorflow as tf
from tensorflow.python.ipu import horovod as hvd
hvd.init()
directory = pathlib.Path(sys.argv[1])
assert float(hvd.allreduce(tf.constant(hvd.rank() + 1.0), op=hvd.Sum)) == 3.0
(directory / f"ready{hvd.rank()}").write_text(str(os.getpid()))
while not (directory / "go").exists():
    time.sleep(0.05)
assert float(hvd.allreduce(tf.constant(hvd.rank() + 2.0), op=hvd.Sum)) == 5.0
print("summed", flush=True)
os._exit(0)
"""
STRATEGY = """
import os, pathlib, sys, time
import tensorflow as tf
from tensorflow.python import ipu
config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
strategy = ipu.ipu_multi_worker_strategy.IPUMultiWorkerStrategyV1(resolver)
directory = pathlib.Path(sys.argv[1])
def total():
    mine = tf.constant(resolver.task_id + 1.0)
    return float(strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(lambda x: 2 * x, [mine]), axis=None))
assert total() == 6.0
(directory / f"ready{resolver.task_id}").write_text(str(os.getpid()))
while not (directory / "go").exists():
    time.sleep(0.05)
assert total() == 6.0
print("summed", flush=True)
os._exit(0)
"""
# As another user: what it can do with the sockets of a directory, and with one that is open to everybody.
STRANGER = """
import json, os, socket, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
done = []
for directory, process in json.loads(sys.argv[1]):
    for place in (directory, f"/proc/{process}/fd", f"/proc/{process}/root{directory}"):
        try:
            done.append(["lists", place, os.listdir(place)])
        except PermissionError:
            pass
    for rank in range(2):
        connection = socket.socket(socket.AF_UNIX)
        try:
            os.chdir(directory)  # the whole name may be too long for a socket
        except PermissionError:
            pass
        for name in (f"{directory}/{rank}.socket", f"{rank}.socket"):
            try:
                connection.connect(name)
                connection.sendall(b"x" * 1000)
                done.append(["connects", name])
            except (PermissionError, FileNotFoundError):
                pass
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[2])
print(json.dumps([os.getuid(), done]))
"""


def lines_of(table):
    return pathlib.Path(table).read_text().splitlines()[1:]


def listening(process):
    """What a process listens at: TCP and UDP ports of all interfaces, and Unix sockets by name."""
    held = {os.readlink(file) for file in pathlib.Path("/proc", str(process), "fd").iterdir()}
    found = []
    for name in ("tcp", "tcp6", "udp", "udp6"):
        lines = [line.split() for line in lines_of(f"/proc/net/{name}")]
        # of TCP those in the state LISTEN, of UDP all
        mine = [one for one in lines if (one[3] == "0A" or "udp" in name) and f"socket:[{one[9]}]" in held]
        found += [(name, int(one[1].split(":")[1], 16)) for one in mine]
    for line in lines_of("/proc/net/unix"):
        _, _, _, flags, _, _, number, *path = line.split(maxsplit=7)
        if int(flags, 16) & 0x10000 and f"socket:[{number}]" in held:
            found.append(("unix", path[0].strip()))
    return found


@pytest.fixture
def temporary():
    """A directory that all users may enter: what keeps them out is the job's. Its name leaves room for a socket's."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o777)
        yield pathlib.Path(name)


@contextlib.contextmanager
def job_of_two(commands, environments, directory):
    """Two processes that have summed once and wait to do so again; what they printed is in `printed` afterwards."""
    started = []
    with contextlib.ExitStack() as until_ended:
        for command, environment in zip(commands, environments):
            process = subprocess.Popen(
                [*map(str, command), directory],
                env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(directory), **environment},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            started.append(until_ended.enter_context(process))
            until_ended.callback(process.terminate)  # poprun ends what it has started
        files = [directory / f"ready{rank}" for rank in range(2)]
        while not all(file.exists() and file.read_text() for file in files):
            ended = [one for one in started if one.poll() is not None]
            assert not ended, ended[0].stdout.read()
            time.sleep(0.05)
        printed = []
        yield [int(file.read_text()) for file in files], printed
        (directory / "go").write_text("")
        printed += [one.communicate(timeout=300)[0] for one in started]
        assert [one.returncode for one in started] == [0] * len(started), printed
        assert "".join(printed).count("summed") == 2, printed


def launched(python, launcher):
    """The commands of a job, and the variables of each."""
    if launcher == "poprun":
        script = python.script(HOROVOD)
        words = ["-m", "tf_ipu_shim.cli", "poprun", "--num-replicas=2", "--num-instances=2", sys.executable, script]
        return [[sys.executable, *words]], [{}]
    if launcher == "TF_CONFIG":
        workers = rendezvous.free_addresses(["127.0.0.1", "127.0.0.1"])
        tasks = [
            {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}} for rank in range(len(workers))
        ]
        return [[sys.executable, python.script(STRATEGY)]] * 2, [{"TF_CONFIG": json.dumps(task)} for task in tasks]
    common = {"TF_IPU_SHIM_SIZE": "2", "TF_IPU_SHIM_JOB": str(python.directory)}
    if launcher == "addresses":
        common["TF_IPU_SHIM_ADDRESSES"] = ",".join(rendezvous.free_addresses(["127.0.0.1", "127.0.0.2"]))
    return [[sys.executable, python.script(WORK)]] * 2, [{**common, "TF_IPU_SHIM_RANK": str(rank)} for rank in range(2)]


def slow(name):
    return pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize("launcher", ["poprun", slow("TF_CONFIG"), slow("addresses"), slow("name")])
def test_nothing_of_a_job_on_one_machine_is_open(python, launcher, temporary):
    commands, environments = launched(python, launcher)
    with job_of_two(commands, environments, temporary) as (processes, _):
        assert [[kind for kind, _ in listening(process)] for process in processes] == [["unix"], ["unix"]]
        assert not any(name.startswith("@") for process in processes for _, name in listening(process)), "no directory"
        sockets = sorted(temporary.rglob("*.socket"))
        assert [one.name for one in sockets] == ["0.socket", "1.socket"]
        for one in sockets:  # of this user, and not of the job
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(one))
                connection.sendall(b"x" * 1000)
        if os.getuid() == 0:  # only root can be another user
            with socket.socket(socket.AF_UNIX) as everybodys:
                everybodys.bind(str(temporary / "all"))
                os.chmod(temporary / "all", 0o777)
                everybodys.listen()
                places = json.dumps([[str(sockets[0].parent), process] for process in processes])
                words = [sys.executable, "-c", STRANGER, places, str(temporary / "all")]
                assert json.loads(subprocess.check_output(words)) == [65534, []]


def over_tcp(environments_of_rank, python, address_hosts=("127.0.0.1", "127.0.0.2")):
    """Two processes that take each other to be on another machine."""
    addresses = rendezvous.free_addresses(address_hosts)
    common = {"TF_IPU_SHIM_SIZE": "2", "TF_IPU_SHIM_LOCAL_SIZE": "1", "TF_IPU_SHIM_LOCAL_RANK": "0",
              "TF_IPU_SHIM_ADDRESSES": ",".join(addresses), "TF_CPP_MIN_LOG_LEVEL": "1"}  # fmt: skip
    environments = [{**common, "TF_IPU_SHIM_RANK": str(rank), **environments_of_rank[rank]} for rank in range(2)]
    return addresses, [[sys.executable, python.script(WORK)]] * 2, environments


@pytest.mark.parametrize("key", ["a secret", slow("")])
def test_a_job_between_machines(python, key, temporary):
    addresses, commands, environments = over_tcp([{"TF_IPU_SHIM_JOB_KEY": key}] * 2, python)
    with job_of_two(commands, environments, temporary) as (processes, printed):
        for address, process in zip(addresses, processes):
            host, _, port = address.rpartition(":")
            assert listening(process) == [("tcp", int(port))]
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.3", int(port)))  # it listens at its own address alone
            for source in ("127.0.0.1", "127.0.0.9"):
                with socket.create_connection((host, int(port)), source_address=(source, 0)) as connection:
                    with contextlib.suppress(OSError):
                        connection.sendall(b"x" * 1000)
    open_without = "without a key all users of these machines can send it wrong arrays. Set TF_IPU_SHIM_JOB_KEY"
    for address, text in zip(addresses, printed):
        assert f"listens at {address}, for 127.0.0.1, 127.0.0.2 only; nothing is encrypted, " in text
        assert (open_without in text) == (not key)


@pytest.mark.slow
def test_processes_with_other_keys_say_so(python, temporary):
    _, commands, environments = over_tcp([{"TF_IPU_SHIM_JOB_KEY": key} for key in ("one", "another")], python)
    said = r"is a process without this job's key; expected the process of rank \d\. Give all .*TF_IPU_SHIM_JOB_KEY"
    with pytest.raises(AssertionError, match=said), job_of_two(commands, environments, temporary):
        pass


def listener_at(addresses, monkeypatch):
    here = job.Job("over machines", 0, len(addresses), 0, 1, tuple(addresses))
    monkeypatch.setenv(connections.KEY, "a secret")
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    return here, connections.Listener(here, None)


def test_between_machines_a_process_is_at_the_address_it_names(monkeypatch, capfd):
    addresses = rendezvous.free_addresses(["127.0.0.1", "127.0.0.2"])
    here, listener = listener_at(addresses, monkeypatch)
    assert listener._socket.getsockname() == ("127.0.0.1", int(addresses[0].split(":")[1])), "and not at all of them"
    listener.close()
    assert f"listens at {addresses[0]}, for 127.0.0.1, 127.0.0.2 only; nothing is encrypted" in capfd.readouterr().err


def test_strangers_are_refused_and_a_process_of_the_job_is_not(monkeypatch):
    monkeypatch.setattr(connections, "_HELLO_SECONDS", 2.0)
    addresses = rendezvous.free_addresses(["127.0.0.1", "127.0.0.1"])
    here, listener = listener_at(addresses, monkeypatch)
    other = job.Job("over machines", 1, 2, 0, 1, tuple(addresses))

    def refused(visit):
        visitor = threading.Thread(target=visit)
        visitor.start()
        with pytest.raises(OSError):
            listener.greet(*listener.accept())
        visitor.join()

    def says(text, source="127.0.0.1"):
        def visit():
            port = int(addresses[0].split(":")[1])
            with socket.create_connection(("127.0.0.1", port), source_address=(source, 0)) as connection:
                connection.sendall(text)
                connection.settimeout(60)
                with pytest.raises(OSError):  # closed: nothing but the nonce comes, and no proof
                    said = connections._receive_exactly(connection, connections._NONCE_BYTES)
                    assert not any(connections._receive_exactly(connection, 32)), said
                    connections._receive_exactly(connection, 1)

        return visit

    def without_the_key():
        with pytest.raises(connections.UntrustedPeer, match="key"):
            connections.connect(other, None, 0, 10.0)

    refused(says(b"x" * 1000))
    refused(says(b""))
    refused(says(b"x" * 1000, source="127.0.0.9"))
    mine = connections.job_key(here)
    monkeypatch.setattr(connections, "job_key", lambda _: b"another")
    refused(without_the_key)
    monkeypatch.setattr(connections, "job_key", lambda _: mine)

    sent = np.arange(5).tobytes()

    def sends():
        with connections.connect(other, None, 0, 10.0) as connection:
            connections.send(connection, {"name": "a"}, sent)

    with listener._socket:
        sender = threading.Thread(target=sends)
        sender.start()
        connection, address = listener.accept()
        assert listener.greet(connection, address) == 1
        assert connections.receive(connection) == ({"name": "a"}, sent)
        sender.join()
        connection.close()


def test_a_directory_of_somebody_else_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / f"tf-ipu-shim-{os.getuid()}").mkdir(mode=0o777)
    (tmp_path / f"tf-ipu-shim-{os.getuid()}").chmod(0o777)
    with pytest.raises(PermissionError, match="must belong only to you"):
        rendezvous.directory_of(job.Job("a job", 0, 2, 0, 2))
