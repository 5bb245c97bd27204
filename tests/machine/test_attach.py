"""Exclusive use of IPUs between threads and processes."""

import gc
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.sharing import attach, locks

# Python 3.12 warns of every fork beside threads, which is the very thing to be tried here.
pytestmark = [
    pytest.mark.without_tensorflow,
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]

SYSTEM = systems.named("ipu16")

HOLD = """
import sys, time
from tf_ipu_shim.machine.sharing import attach
from tf_ipu_shim.machine import systems
system = systems.named("ipu16")
attachment = attach.attach(system, system.device(int(sys.argv[1])))
print("held" if attachment else "busy", flush=True)
sys.stdin.read()
"""


def device(device_id):
    return SYSTEM.device(device_id)


def holding_process(device_id):
    """Another process that attaches, says how it went, and stays until its stdin is closed."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(device_id)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    return process, process.stdout.readline().strip()


def finish(process):
    process.communicate(timeout=120)


def test_all_of_a_device_or_nothing():
    with attach.attach(SYSTEM, device(24)) as four:
        assert (four.device.ipus, four.held) == ((5, 7, 4, 6), True)
        assert attach.attach(SYSTEM, device(7)) is None
        assert attach.attach(SYSTEM, device(30)) is None
        assert set(attach.in_use(SYSTEM)) == {4, 5, 6, 7}
        with attach.attach(SYSTEM, device(25)):
            assert set(attach.in_use(SYSTEM)) == set(range(8))
    assert not four.held
    assert attach.in_use(SYSTEM) == {}


def test_releasing_twice_leaves_the_next_holder_alone():
    first = attach.attach(SYSTEM, device(0))
    first.release()
    with attach.attach(SYSTEM, device(0)) as second:
        first.release()
        assert second.held
        assert set(attach.in_use(SYSTEM)) == {0}


def test_who_holds_what():
    before = time.time()
    with attach.attach(SYSTEM, device(16)):
        holders = attach.in_use(SYSTEM)
    assert set(holders) == {5, 7}
    holder = holders[5]
    assert (holder.pid, holder.device_id) == (os.getpid(), 16)
    assert before <= holder.since <= time.time()
    own = pathlib.Path("/proc/self/cmdline").read_bytes().decode().split("\0")
    assert holder.command.split() == " ".join(own).split()


def test_attach_first_skips_what_is_busy():
    with attach.attach(SYSTEM, device(5)), attach.attach_first(SYSTEM, SYSTEM.devices_with(4)) as next_one:
        assert next_one.device.id == 25
        assert attach.attach_first(SYSTEM, SYSTEM.devices_with(16)) is None


def test_systems_do_not_share_chips():
    other = systems.named("dss8440")
    with attach.attach(SYSTEM, device(30)), attach.attach(other, other.device(30)) as theirs:
        assert theirs.held


def test_an_object_that_is_lost_lets_go():
    attach.attach(SYSTEM, device(0))
    gc.collect()
    assert attach.in_use(SYSTEM) == {}


def test_a_device_of_another_system():
    with pytest.raises(ValueError, match="is not a device of system 'ipu16'"):
        attach.attach(SYSTEM, systems.named("pod64").device(100))
    with pytest.raises(ValueError, match="is not a device of system 'ipu16'"):
        attach.attach(SYSTEM, systems.named("pod16").device(24))


def test_looking_creates_nothing(tmp_path):
    assert attach.in_use(SYSTEM) == {}
    assert list(tmp_path.iterdir()) == []


def test_between_threads():
    """Of many that want overlapping devices at once, no two have an IPU at the same time."""
    owners = [None] * 16
    clashes = []
    taken = []

    def use(name):
        for turn in range(25):
            chosen = device((name * 7 + turn * 3) % 31)
            attachment = attach.attach(SYSTEM, chosen)
            if attachment is None:
                continue
            taken.append(chosen)
            for ipu in chosen.ipus:
                if owners[ipu] is not None:
                    clashes.append((ipu, owners[ipu], name))
                owners[ipu] = name
            time.sleep(0.0002)
            for ipu in chosen.ipus:
                owners[ipu] = None
            attachment.release()

    threads = [threading.Thread(target=use, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert clashes == []
    assert taken
    assert attach.in_use(SYSTEM) == {}


def test_between_processes():
    process, outcome = holding_process(24)
    try:
        assert outcome == "held"
        assert attach.attach(SYSTEM, device(5)) is None
        assert attach.in_use(SYSTEM)[6].pid == process.pid
        with attach.attach(SYSTEM, device(25)):
            second, outcome = holding_process(1)
            finish(second)
            assert outcome == "busy"
    finally:
        finish(process)
    with attach.attach(SYSTEM, device(5)) as mine:
        assert mine.held


def test_a_killed_process_frees_its_chips():
    process, outcome = holding_process(30)
    assert outcome == "held"
    os.kill(process.pid, signal.SIGKILL)
    finish(process)
    assert attach.in_use(SYSTEM) == {}
    with attach.attach(SYSTEM, device(30)) as mine:
        assert mine.held


def _in_forked_child(work):
    """Runs `work` in a child made by fork, and returns what it returned."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(work()))
    child.start()
    assert receiver.poll(20)
    result = receiver.recv()
    child.join(120)
    assert child.exitcode == 0
    return result


def test_a_forked_child_does_not_release_the_parents_chips():
    with attach.attach(SYSTEM, device(24)) as four:

        def child():
            inherited = four.held
            four.release()
            return inherited, attach.attach(SYSTEM, device(5)) is None

        assert _in_forked_child(child) == (False, True)
        assert four.held
        assert set(attach.in_use(SYSTEM)) == {4, 5, 6, 7}
        assert attach.attach(SYSTEM, device(5)) is None


def test_a_forked_child_attaches_for_itself():
    def child():
        attachment = attach.attach(SYSTEM, device(25))
        return attachment.held, attach.in_use(SYSTEM)[3].pid == os.getpid()

    with attach.attach(SYSTEM, device(24)):
        assert _in_forked_child(child) == (True, True)


@pytest.mark.parametrize("how", ["released", "killed"])
def test_a_forked_child_that_lives_on_does_not_keep_chips_busy(how):
    """Parent attaches, forks a child that sleeps, then releases or dies: the chips are free."""
    script = f"""
import os, sys, time
from tf_ipu_shim.machine.sharing import attach
from tf_ipu_shim.machine import systems
system = systems.named("ipu16")
attachment = attach.attach(system, system.device(24))
child = os.fork()
if not child:
    time.sleep(60)
    os._exit(0)
print(child, flush=True)
if {how == "released"}:
    attachment.release()
    print("released", flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child = int(process.stdout.readline())
    try:
        if how == "released":
            assert process.stdout.readline().strip() == "released"
        else:
            os.kill(process.pid, signal.SIGKILL)
            process.wait(120)
        assert attach.wait(SYSTEM, [device(24)], poll_seconds=0.01, timeout_seconds=120) is not None
        os.kill(child, 0)
    finally:
        os.kill(child, signal.SIGKILL)
        process.kill()
        process.communicate(timeout=120)


def test_forking_while_other_threads_attach():
    stop = threading.Event()

    def keep_attaching():
        while not stop.is_set():
            with attach.attach(SYSTEM, device(0)):
                pass

    thread = threading.Thread(target=keep_attaching)
    thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if not child:
                attachment = attach.attach(SYSTEM, device(1))
                os._exit(0 if attachment is not None else 3)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        thread.join(120)
    with attach.attach(SYSTEM, device(30)) as everything:
        assert everything.held


class TestWaiting:
    """An on-demand connection."""

    def test_free_at_once(self):
        said = []
        taken = attach.wait(
            SYSTEM, [device(0)], poll_seconds=1, timeout_seconds=0, on_wait=lambda: said.append("waiting")
        )
        assert taken.held
        assert said == []

    def test_freed_meanwhile(self):
        busy = attach.attach(SYSTEM, device(24))
        said = []

        def let_go():
            said.append("waiting")
            threading.Timer(0.05, busy.release).start()

        with attach.wait(SYSTEM, [device(24)], poll_seconds=0.01, timeout_seconds=120, on_wait=let_go) as mine:
            assert mine.held
        assert said == ["waiting"]

    def test_stopped(self):
        stop = threading.Event()
        with attach.attach(SYSTEM, device(24)):
            waiting = {"poll_seconds": 60, "timeout_seconds": 60, "on_wait": stop.set, "stop": stop}
            assert attach.wait(SYSTEM, [device(24)], **waiting) is None

    def test_out_of_time(self):
        with attach.attach(SYSTEM, device(24)):
            before = time.monotonic()
            assert attach.wait(SYSTEM, [device(24)], poll_seconds=10, timeout_seconds=0.05) is None
            assert 0.05 <= time.monotonic() - before < 5


class TestDirectory:
    """Where the lock files are, and what happens if they cannot be there."""

    def test_a_users_own_by_default(self, monkeypatch, tmp_path):
        monkeypatch.delenv("TF_IPU_SHIM_LOCK_DIR")
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        with attach.attach(SYSTEM, device(0)):
            folder = tmp_path / f"tf_ipu_shim-{os.getuid()}"
            assert (folder / "ipu16" / "ipu0.lock").exists()
            assert folder.stat().st_mode & 0o077 == 0

    def test_nothing_is_made_behind_a_link(self, monkeypatch, tmp_path):
        """As another user would lay it in the shared temporary directory."""
        (there := tmp_path / "there").mkdir()
        (tmp_path / f"tf_ipu_shim-{os.getuid()}").symlink_to(there)
        monkeypatch.delenv("TF_IPU_SHIM_LOCK_DIR")
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        with pytest.raises(attach.LockDirectoryError, match="symbolic link, which is not followed"):
            attach.attach(SYSTEM, device(0))
        assert not list(there.iterdir())

    def test_named_after_the_system(self):
        assert locks.directory("pod16:chip=bow").name == "pod16_chip_bow"

    def test_not_a_directory(self, monkeypatch, tmp_path):
        file = tmp_path / "file"
        file.write_text("")
        monkeypatch.setenv("TF_IPU_SHIM_LOCK_DIR", str(file))
        with pytest.raises(attach.LockDirectoryError, match="cannot be used.*Set TF_IPU_SHIM_LOCK_DIR to a directory"):
            attach.attach(SYSTEM, device(0))

    def test_the_reason_is_said_once(self, monkeypatch, tmp_path):
        there = tmp_path / "there"
        there.mkdir()
        monkeypatch.setenv("TF_IPU_SHIM_LOCK_DIR", str(tmp_path / "link"))
        (tmp_path / "link").mkdir()
        (tmp_path / "link" / SYSTEM.name).symlink_to(there)
        with pytest.raises(attach.LockDirectoryError) as raised:
            attach.attach(SYSTEM, device(0))
        folder = tmp_path / "link" / SYSTEM.name
        expected = f"lock files in {folder}, which cannot be used: it is a symbolic link, which is not followed. Set "
        assert expected in str(raised.value)
        assert str(raised.value).count("[Errno") == 1

    def test_no_permission(self, monkeypatch):
        def refuse(*_args, **_kwargs):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(pathlib.Path, "mkdir", refuse)
        with pytest.raises(OSError, match="Permission denied.*Set TF_IPU_SHIM_LOCK_DIR"):
            attach.attach(SYSTEM, device(0))

    @pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
    def test_not_writable(self, monkeypatch, tmp_path):
        folder = tmp_path / "closed"
        folder.mkdir(mode=0o500)
        monkeypatch.setenv("TF_IPU_SHIM_LOCK_DIR", str(folder))
        with pytest.raises(attach.LockDirectoryError, match="Set TF_IPU_SHIM_LOCK_DIR"):
            attach.attach(SYSTEM, device(0))

    def test_not_searchable(self, monkeypatch):
        def refuse(*_args, **_kwargs):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr(pathlib.Path, "exists", refuse)
        with pytest.raises(attach.LockDirectoryError, match="Set TF_IPU_SHIM_LOCK_DIR"):
            attach.in_use(SYSTEM)

    def test_somebody_elses(self, monkeypatch, tmp_path):
        monkeypatch.delenv("TF_IPU_SHIM_LOCK_DIR")
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        uid = os.getuid()
        (tmp_path / f"tf_ipu_shim-{uid + 1}").mkdir()
        monkeypatch.setattr(os, "getuid", lambda: uid + 1)
        with pytest.raises(attach.LockDirectoryError, match="belongs to another user.*Set TF_IPU_SHIM_LOCK_DIR"):
            attach.attach(SYSTEM, device(0))

    def test_a_lock_file_that_cannot_be_opened(self, tmp_path):
        (tmp_path / "locks" / "ipu16" / "ipu3.lock").mkdir(parents=True)
        with pytest.raises(attach.LockDirectoryError, match="cannot be used.*Set TF_IPU_SHIM_LOCK_DIR"):
            attach.attach(SYSTEM, device(30))
        with attach.attach(SYSTEM, device(2)) as mine:
            assert mine.held

    def test_a_stopped_process_in_the_way_is_an_error_not_a_hang(self, monkeypatch, tmp_path):
        import fcntl

        with attach.attach(SYSTEM, device(0)):
            pass
        monkeypatch.setattr(locks, "GUARD_TIMEOUT_SECONDS", 0.05)
        with (tmp_path / "locks" / "ipu16" / "guard.lock").open() as guard:
            fcntl.flock(guard, fcntl.LOCK_EX)
            with pytest.raises(attach.LockDirectoryError, match="Another process has been looking for free IPUs"):
                attach.attach(SYSTEM, device(0))

    def test_an_unreadable_note_beside_a_lock(self, tmp_path):
        with attach.attach(SYSTEM, device(0)):
            (tmp_path / "locks" / "ipu16" / "ipu0.lock").write_text("{")
            assert attach.in_use(SYSTEM)[0].pid == 0
