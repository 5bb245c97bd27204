"""What another user could have written is not trusted, and not written to."""

import os
import pathlib
import stat
import subprocess
import sys

import pytest

from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.sharing import attach, private_files

pytestmark = pytest.mark.without_tensorflow

SYSTEM = systems.named("ipu16")
STRANGER = 12345


@pytest.fixture
def give_away(monkeypatch):
    """Makes what is at a path somebody else's."""

    def give(path):
        if os.getuid() == 0:
            os.chown(path, STRANGER, -1, follow_symlinks=False)
        else:
            uid = os.getuid()
            monkeypatch.setattr(os, "getuid", lambda: uid + 1)

    return give


@pytest.fixture
def own(tmp_path):
    """A directory of the user's own, in one that is too."""
    path = tmp_path / "parent" / "own"
    path.mkdir(mode=0o755, parents=True)
    return path


def test_a_directory_of_ones_own(own):
    assert private_files.distrust_of_directory(own) == ""


@pytest.mark.parametrize("bits", [stat.S_IWGRP, stat.S_IWOTH])
@pytest.mark.parametrize("place", ["own", "parent"])
def test_others_could_write(own, bits, place):
    changed = own if place == "own" else own.parent
    changed.chmod(0o755 | bits)
    assert private_files.distrust_of_directory(own) == f"{changed} may be written to by others (chmod go-w)"


def test_a_sticky_directory_is_no_place_but_may_be_on_the_way(own):
    own.parent.chmod(0o1777)
    assert private_files.distrust_of_directory(own) == ""
    assert "may be written to by others" in private_files.distrust_of_directory(own.parent)


def test_another_users_directory(own, give_away):
    """Not as root, it is all of the user's that is said to be another's: the first directory on the way is named."""
    give_away(own)
    named = own if os.getuid() == 0 else ""
    assert f"{named} belongs to user" in private_files.distrust_of_directory(own)


def test_where_a_link_leads_counts(own, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(own)
    assert private_files.distrust_of_directory(link) == ""
    own.chmod(0o777)
    assert f"{own} may be written to" in private_files.distrust_of_directory(link)


def test_what_is_no_directory(own):
    (own / "file").write_text("")
    assert private_files.distrust_of_directory(own / "file").endswith("is no directory")
    assert "No such file" in private_files.distrust_of_directory(own / "nothing")


def test_files(own, give_away):
    file = own / "file"
    file.write_text("")
    file.chmod(0o644)
    assert private_files.distrust_of_file(file.stat()) == ""
    file.chmod(0o664)
    assert "may be written to by others" in private_files.distrust_of_file(file.stat())
    assert private_files.distrust_of_file(own.stat()) == "is no file"
    file.chmod(0o644)
    give_away(file)
    assert "belongs to user" in private_files.distrust_of_file(file.stat())


def test_nothing_is_opened_through_a_link(own):
    precious = own / "precious"
    precious.write_text("precious")
    (own / "link").symlink_to(precious)
    with pytest.raises(PermissionError, match="symbolic link"):
        private_files.open_own(own / "link", os.O_RDWR | os.O_CREAT)
    assert precious.read_text() == "precious"


def test_files_replace_links(own):
    precious, link = own / "precious", own / "link"
    precious.write_text("precious")
    link.symlink_to(precious)
    private_files.replace(link, b"new")
    assert (precious.read_text(), link.read_text(), link.is_symlink()) == ("precious", "new", False)
    with pytest.raises(IsADirectoryError):
        private_files.replace(own, b"new")
    assert sorted(file.name for file in own.iterdir()) == ["link", "precious"]


def test_a_fifo_is_refused_at_once(own):
    os.mkfifo(own / "fifo")
    with pytest.raises(PermissionError, match="no file"):
        private_files.open_own(own / "fifo", os.O_RDONLY)


def test_another_users_file(own, give_away):
    (own / "theirs").write_text("theirs")
    give_away(own / "theirs")
    with pytest.raises(PermissionError, match="belongs to user"):
        private_files.open_own(own / "theirs", os.O_RDWR)


def test_ipus_are_not_locked_through_links(monkeypatch, tmp_path):
    """As another user would lay them in a directory that all may write to."""
    precious = tmp_path / "precious"
    precious.write_text("precious")
    shared = tmp_path / "shared"
    folder = shared / "ipu16"
    folder.mkdir(parents=True)
    folder.chmod(0o700)
    shared.chmod(0o1777)
    for ipu in range(16):
        (folder / f"ipu{ipu}.lock").symlink_to(precious)
    monkeypatch.setenv("TF_IPU_SHIM_LOCK_DIR", str(shared))
    with pytest.raises(attach.LockDirectoryError, match="symbolic link(.|\n)*Set TF_IPU_SHIM_LOCK_DIR"):
        attach.attach(SYSTEM, SYSTEM.device(0))
    assert precious.read_text() == "precious"


@pytest.mark.parametrize("spoil", ["link", "writable"])
def test_ipus_are_not_locked_where_others_may_write(monkeypatch, tmp_path, spoil):
    folder = tmp_path / "locks" / "ipu16"
    folder.parent.mkdir()
    if spoil == "link":
        (tmp_path / "elsewhere").mkdir()
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir()
        folder.chmod(0o777)
    monkeypatch.setenv("TF_IPU_SHIM_LOCK_DIR", str(folder.parent))
    with pytest.raises(attach.LockDirectoryError, match="symbolic link|others may write"):
        attach.attach(SYSTEM, SYSTEM.device(0))


@pytest.mark.parametrize("special", ["/dev/zero", "fifo"])
def test_flags_are_read_from_files_alone(tmp_path, special):
    """In a process with little memory, which a device without an end would fill."""
    path = pathlib.Path(special)
    if special == "fifo":
        path = tmp_path / "fifo"
        os.mkfifo(path)
    script = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "from tf_ipu_shim.machine.environment import flags\n"
        "try: flags.parse(sys.argv[1])\n"
        "except flags.UnknownFlagError as error: print(error)\n"
    )
    answer = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, timeout=60)
    assert "not a regular file" in answer.stdout, answer.stderr


def test_a_huge_file_of_flags(tmp_path):
    from tf_ipu_shim.machine.environment import flags

    file = tmp_path / "flags"
    file.write_text(" " * (1 << 21))
    with pytest.raises(flags.UnknownFlagError, match="more than 1048576 characters"):
        flags.parse(str(file))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
def test_engine_options_that_are_nested_too_deeply(text):
    from tf_ipu_shim.machine.environment import engine_options

    with pytest.raises(ValueError, match="nested too deeply"):
        engine_options.parse(text)
