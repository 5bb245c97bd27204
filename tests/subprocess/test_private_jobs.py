"""Other users of a machine can neither connect to a job's processes nor disturb them."""

import os
import socket
import tempfile
import threading

import numpy as np
import pytest

from tf_ipu_shim.runtime import connections, job, meeting_place


def listener_at(addresses, monkeypatch):
    here = job.Job("over machines", 0, len(addresses), 0, 1, tuple(addresses))
    monkeypatch.setenv(connections.KEY, "a secret")
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    return here, connections.Listener(here, None)


def test_between_machines_a_process_is_where_it_says_and_names_it(monkeypatch, capfd):
    addresses = meeting_place.free_addresses(["127.0.0.1", "127.0.0.2"])
    here, listener = listener_at(addresses, monkeypatch)
    assert listener._socket.getsockname() == ("127.0.0.1", int(addresses[0].split(":")[1])), "and not at all of them"
    listener.close()
    assert f"listens at {addresses[0]}, for 127.0.0.1, 127.0.0.2 only; nothing is encrypted" in capfd.readouterr().err


def test_strangers_are_refused_and_a_process_of_the_job_is_not(monkeypatch):
    monkeypatch.setattr(connections, "_HELLO_SECONDS", 2.0)
    addresses = meeting_place.free_addresses(["127.0.0.1", "127.0.0.1"])
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
                connection.settimeout(10)
                with pytest.raises(OSError):  # closed: nothing but the nonce comes
                    connections._exactly(connection, connections._NONCE_BYTES + 1)

        return visit

    def without_the_key():
        with pytest.raises(OSError):
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
    with pytest.raises(PermissionError, match="must belong to you alone"):
        meeting_place.directory_of(job.Job("a job", 0, 2, 0, 2))
