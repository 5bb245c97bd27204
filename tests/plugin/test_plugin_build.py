"""How the plugin's library is built and cached. A stand-in for TensorFlow and a few lines of C++ keep it fast."""

import concurrent.futures
import dataclasses
import os
import pathlib
import re
import shlex
import shutil
import stat
import subprocess

import pytest

from tf_ipu_shim import cli, errors
from tf_ipu_shim.plugin import build, cache, compiler, message_headers, private_symbols, translation_units

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

TENSORFLOW = build.TensorFlowBuild("9.9.9", "v9.9.9-0-gabc", ("-std=c++17",), ())
GOOD = 'extern "C" int answer() { return 42; }\n'


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    """Only directories of the test's own are used."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(cache, "PREBUILT_DIRECTORY", tmp_path / "prebuilt")
    monkeypatch.setattr(cache, "KEPT_DIRECTORY", tmp_path / "nowhere" / "kept")  # cannot be made
    monkeypatch.delenv(cache.ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.delenv(compiler.ENVIRONMENT_VARIABLE, raising=False)


@pytest.fixture
def compiler_runs(tmp_path, monkeypatch):
    """A compiler that writes a line for each run; returns a function that counts them."""
    log = tmp_path / "runs"
    program = tmp_path / "counting-g++"
    program.write_text(f'#!/bin/sh\necho "$@" >> {shlex.quote(str(log))}\nsleep 0.2\nexec g++ "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    return lambda: len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "good.cc"
    path.write_text(GOOD)
    return path


def built(*sources, **options):
    return build.ensure_built(sources, tensorflow=options.pop("tensorflow", TENSORFLOW), **options)


def answer(library: pathlib.Path) -> int:
    import ctypes

    return ctypes.CDLL(str(library)).answer()


@pytest.mark.parametrize("level", [None, "1", "3"])
def test_builds_once_and_says_so_once(source, compiler_runs, capfd, monkeypatch, level):
    """Whatever is logged: one line at the start, one at the end, where nobody looks at a terminal."""
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    if level:
        monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", level)
    library = built(source)
    assert answer(library) == 42
    first, last = capfd.readouterr().err.splitlines()
    assert re.fullmatch(r"Building the IPU plugin for TensorFlow 9\.9\.9, once: 1 file, about \d+ s \.\.\.", first)
    assert re.fullmatch(rf"The IPU plugin is built: {re.escape(str(library))} \(\d+ s\)", last)
    runs = compiler_runs()
    assert built(source) == library
    assert compiler_runs() == runs
    assert capfd.readouterr().err == ""


def test_failed_build_says_so(source, capfd):
    source.write_text("nonsense\n")
    with pytest.raises(errors.PluginError):
        built(source)
    assert re.search(r"\nThe IPU plugin was not built \(\d+ s\)\n$", capfd.readouterr().err)


@pytest.mark.slow
def test_sources_include_what_they_need(tmp_path):
    """Each file compiles alone, and so in any division into units."""
    message_headers.write(tmp_path)
    tensorflow = build.TensorFlowBuild.installed()
    flags = [f"-isystem{flag[2:]}" if flag.startswith("-I") else flag for flag in tensorflow.compile_flags]
    flags += [f"-I{compiler.SOURCE_DIRECTORY}", f"-I{tmp_path}", "-fsyntax-only", "-x", "c++", "-"]

    def compile_alone(source):
        process = subprocess.run(["g++", *flags], input=f'#include "{source}"\n', capture_output=True, text=True)
        return process.stderr if process.returncode else ""

    sources = [path for path in compiler.SOURCE_DIRECTORY.rglob("*.cc") if path.name != private_symbols.PROGRAM]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        errors = dict(zip(sources, pool.map(compile_alone, sources)))
    assert {path.name: error[:2000] for path, error in errors.items() if error} == {}


@pytest.mark.parametrize(("available", "collects"), [(64, False), (2, True)])
def test_the_compiler_collects_garbage_if_memory_is_short(
    source, compiler_runs, tmp_path, monkeypatch, available, collects
):
    monkeypatch.setattr(translation_units, "_MEMORY", tmp_path / "memory")
    (tmp_path / "memory").write_text(f"MemAvailable: {available << 20} kB\n")
    built(source)
    assert compiler_runs() and ("ggc-min-heapsize" in (tmp_path / "runs").read_text()) != collects


def test_several_sources_make_one_library(source, tmp_path):
    other = tmp_path / "other.cc"
    other.write_text('#include "other.h"\nextern "C" int twice() { return 2 * answer(); }\n')
    header = tmp_path / "other.h"
    header.write_text('extern "C" int answer();\n')
    import ctypes

    assert ctypes.CDLL(str(built(source, other, header))).twice() == 84


@pytest.mark.parametrize(
    "changes",
    [
        {"version": "9.9.8"},
        {"git_version": "v9.9.9-1-gdef"},
        {"compile_flags": ("-std=c++17", "-D_GLIBCXX_USE_CXX11_ABI=0")},
    ],
)
def test_library_of_another_tensorflow_is_not_used(source, changes):
    other = dataclasses.replace(TENSORFLOW, **changes)
    assert built(source) != built(source, tensorflow=other)


def test_changed_source_or_header_is_built_anew(source, tmp_path):
    header = tmp_path / "value.h"
    header.write_text("#define VALUE 1\n")
    source.write_text('#include "value.h"\nextern "C" int answer() { return VALUE; }\n')
    first = built(source, header)
    header.write_text("#define VALUE 2\n")
    second = built(source, header)
    assert (answer(first), answer(second)) == (1, 2)


@pytest.mark.parametrize("content", [b"", b"\x7fELF", "half", "flipped"])
def test_broken_cache_file_is_built_anew(source, content):
    library = built(source)
    whole = library.read_bytes()
    if content == "half":
        content = whole[: len(whole) // 2]
    elif content == "flipped":
        content = whole[:1000] + bytes([whole[1000] ^ 1]) + whole[1001:]
    library.unlink()
    library.write_bytes(content)
    assert built(source) == library
    assert library.read_bytes() != content
    assert answer(library) == 42


def test_two_processes_at_once_build_once(source, compiler_runs, python, tmp_path):
    code = (
        "import sys, pathlib\nfrom tf_ipu_shim.plugin import build\n"
        "tensorflow = build.TensorFlowBuild('9.9.9', 'v9.9.9-0-gabc', ('-std=c++17',), ())\n"
        f"print(build.ensure_built([{str(source)!r}], tensorflow=tensorflow))\n"
    )
    loud = {"TF_CPP_MIN_LOG_LEVEL": "0", cache.ENVIRONMENT_VARIABLE: str(tmp_path / "cache")}
    with concurrent.futures.ThreadPoolExecutor() as pool:
        processes = list(pool.map(lambda _: python("-c", code, environment=loud), range(3)))
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len({process.stdout for process in processes}) == 1
    assert compiler_runs() == 2  # one object, one link
    said = [process.stderr for process in processes]
    assert sum("Building the IPU plugin" in text for text in said) == 1
    assert all("Waiting for another process" in text or "Building" in text for text in said if text)


def test_what_a_killed_build_left_is_cleared(source):
    library = built(source)
    here, older, at_work = (f"{name}.so" for name in (library.stem, "older", "at_work"))
    left = {name: library.parent / f".building-{name}-abc" for name in (here, older, at_work)}
    for directory in left.values():
        directory.mkdir()
        (directory / "good.o").touch()
    (library.parent / "older.so.lock").touch()
    with cache.build_lock(library.parent, at_work, lambda: None):
        built(source, rebuild=True)
        assert [name for name, directory in left.items() if directory.exists()] == [at_work]


def test_no_compiler(source, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    with pytest.raises(errors.PluginError, match=r"'g\+\+' was not found.*apt-get install g\+\+"):
        built(source)


def test_other_systems_are_told_of_containers(source, monkeypatch):
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    with pytest.raises(errors.PluginError, match="this is Darwin. Run scripts in a Linux container"):
        built(source)


def test_no_compiler_is_needed_once_built(source, tmp_path, monkeypatch):
    library = built(source)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert built(source) == library


def test_failing_compiler_shows_its_first_errors(source):
    source.write_text("int f() { return nonsense; }\n")
    with pytest.raises(errors.PluginError, match=r"good\.cc failed with exit status 1(.|\n)*'nonsense' was not"):
        built(source)
    assert list(cache.cache_directories()[0].glob(".building-*")) == []


def test_undefined_symbol_is_found_when_building(source):
    source.write_text('int missing();\nextern "C" int answer() { return missing(); }\n')
    with pytest.raises(errors.PluginError, match=r"linking failed(.|\n)*missing"):
        built(source)


def test_a_linker_that_cannot_is_not_needed(source, tmp_path, monkeypatch):
    """As one for another processor than the compiler's."""
    (tmp_path / "ld.gold").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "ld.gold").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert answer(built(source)) == 42


def test_the_linker_of_cxx_is_used(source, compiler_runs, tmp_path, monkeypatch):
    monkeypatch.setenv("CXX", f"{os.environ['CXX']} -fuse-ld=bfd")
    built(source)
    assert compiler_runs() and "gold" not in (tmp_path / "runs").read_text()


def test_compiler_that_does_not_start(source, tmp_path, monkeypatch):
    program = tmp_path / "text"
    program.write_text("\x00")
    program.chmod(0o755)
    monkeypatch.setenv("CXX", str(program))
    with pytest.raises(errors.PluginError, match="does not start"):
        built(source)


def test_no_sources(tmp_path):
    with pytest.raises(errors.PluginError, match="install tf_ipu_shim again"):
        built(tmp_path / "only.h")


def test_next_place_is_used_where_the_first_cannot_be_written(source, tmp_path, monkeypatch):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a directory should be")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    library = built(source)
    assert library.parent == tmp_path / f"tf_ipu_shim-{os.getuid()}"
    assert stat.S_IMODE(library.parent.stat().st_mode) == 0o700


def test_no_place_at_all(source, tmp_path, monkeypatch):
    blocked = tmp_path / "blocked"
    blocked.write_text("")
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(blocked / "below"))
    with pytest.raises(
        errors.PluginError, match="no directory to keep(.|\n)*blocked(.|\n)*Set TF_IPU_SHIM_PLUGIN_CACHE_DIR"
    ):
        built(source)


def test_full_disk_is_told_before_compiling(source, compiler_runs, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: shutil._ntuple_diskusage(1 << 40, 1 << 40, 3 << 20))
    with pytest.raises(errors.PluginError, match="3 MiB are free, and a build needs 16\n") as told:
        built(source)
    assert cache.ENVIRONMENT_VARIABLE in str(told.value) and compiler_runs() == 0


def test_chosen_place_is_used(source, tmp_path, monkeypatch):
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(tmp_path / "chosen"))
    assert built(source).parent == tmp_path / "chosen"


@pytest.mark.parametrize("bits", [0o020, 0o002])
@pytest.mark.parametrize("place", ["file", "directory", "parent"])
def test_library_that_others_can_place_is_not_trusted(source, tmp_path, monkeypatch, bits, place):
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(tmp_path / "parent" / "cache"))
    library = built(source)
    assert cache.find_library(library.name) == library
    path = {"file": library, "directory": library.parent, "parent": library.parent.parent}[place]
    path.chmod(path.stat().st_mode | bits)
    assert cache.find_library(library.name) is None
    if place != "file":
        with pytest.raises(errors.PluginError, match="not safe to load(.|\n)*may be written to by others"):
            built(source)


def test_library_behind_a_link_is_not_trusted(source):
    library = built(source)
    moved = library.with_name("moved.so")
    library.rename(moved)
    library.symlink_to(moved)
    assert cache.find_library(library.name) is None


def test_lock_behind_a_link_is_not_opened(source, tmp_path, monkeypatch):
    library = built(source)
    lock = library.with_name(f"{library.name}.lock")
    precious = tmp_path / "precious"
    precious.write_text("precious")
    lock.unlink()
    lock.symlink_to(precious)
    library.unlink()
    with pytest.raises(PermissionError, match="symbolic link"):
        built(source)
    assert precious.read_text() == "precious"


def test_compiler_with_an_open_quotation(source, monkeypatch):
    monkeypatch.setenv("CXX", "g++ '")
    with pytest.raises(errors.PluginError, match="cannot be split into words"):
        built(source)


def test_library_beside_the_package_comes_first(source):
    library = built(source, directory=cache.PREBUILT_DIRECTORY)
    assert library.parent == cache.PREBUILT_DIRECTORY
    assert built(source) == library


def test_prebuilt_library_needs_no_compiler_nor_this_glibc(source, tmp_path, monkeypatch):
    library = built(source, directory=cache.PREBUILT_DIRECTORY)
    monkeypatch.setattr("platform.libc_ver", lambda: ("glibc", "2.99"))
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert built(source) == library


def test_an_empty_cxx_asks_for_no_compiler(source, monkeypatch):
    library = built(source, directory=cache.PREBUILT_DIRECTORY)
    monkeypatch.setenv("CXX", "")
    assert built(source) == library


def test_a_requested_compiler_builds_beside_the_prebuilt_library(source, compiler_runs):
    library = built(source, directory=cache.PREBUILT_DIRECTORY)
    runs = compiler_runs()
    assert built(source) != library
    assert compiler_runs() == 2 * runs


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """A checkout in which a library can be kept."""
    directory = tmp_path / "checkout" / "tf_ipu_shim" / "plugin" / "kept"
    directory.parent.mkdir(parents=True)
    (tmp_path / "checkout" / "setup.cfg").touch()
    monkeypatch.setattr(cache, "KEPT_DIRECTORY", directory)
    return directory


def test_what_was_built_is_found_from_another_home(source, kept, tmp_path, monkeypatch):
    library = built(source)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    found = built(source)
    assert found == kept / library.name and answer(found) == 42
    assert not (tmp_path / "other").exists()
    assert stat.S_IMODE(kept.stat().st_mode) == stat.S_IMODE(found.stat().st_mode) == 0o755


def test_the_cached_library_is_copied_and_stale_ones_go(source, kept, monkeypatch):
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(cache, "KEPT_DIRECTORY", kept / "nowhere" / "kept")
        library = built(source)
    assert built(source) == library and [path.name for path in kept.iterdir()] == [library.name]
    source.write_text(GOOD.replace("42", "43"))
    other_tensorflow = built(source, tensorflow=dataclasses.replace(TENSORFLOW, version="9.9.10"))
    newer = built(source)
    assert {path.name for path in kept.iterdir()} == {newer.name, other_tensorflow.name}


def test_a_rebuilt_library_takes_the_place_of_the_kept_one(source, kept):
    built(source)
    (library,) = kept.iterdir()
    library.write_bytes(b"damaged")
    built(source, rebuild=True)
    assert cache.is_intact(library)


def test_what_a_compiler_of_ones_own_builds_is_not_kept(source, kept, compiler_runs):
    built(source)
    assert compiler_runs() and not kept.exists()


def test_nothing_is_kept_beside_a_directory_that_was_named(source, kept, tmp_path, monkeypatch):
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(tmp_path / "named"))
    assert built(source).parent == tmp_path / "named"
    assert not kept.exists()


def test_a_checkout_that_others_can_write_keeps_nothing(source, kept):
    kept.parent.chmod(0o777)
    library = built(source)
    assert library.parent != kept and not kept.exists()


def test_nothing_is_kept_in_an_installed_package(source, kept):
    """pip would not uninstall it."""
    (kept.parents[2] / "setup.cfg").unlink()
    built(source)
    assert not kept.exists()


def test_nothing_is_kept_in_another_users_checkout(source, kept, monkeypatch):
    owner = kept.parent.stat().st_uid
    monkeypatch.setattr("os.getuid", lambda: owner + 1)
    cache.copy_to_cache(source)
    assert not kept.exists()


def test_rebuild_compiles_again(source, compiler_runs):
    built(source)
    runs = compiler_runs()
    built(source, rebuild=True)
    assert compiler_runs() == 2 * runs


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [(errors.PluginError("no compiler"), 1, "no compiler\n"), (KeyboardInterrupt(), 130, "")],
)
def test_command_line_reports_the_error(monkeypatch, capsys, error, status, told):
    monkeypatch.setattr(build, "ensure_built", lambda **_: (_ for _ in ()).throw(error))
    assert cli.main(["build"]) == status
    assert capsys.readouterr().err == told


def test_every_user_may_read_the_prebuilt_library(source):
    before = os.umask(0o077)  # as a root's may be
    try:
        library = built(source, directory=cache.PREBUILT_DIRECTORY)
    finally:
        os.umask(before)
    for path in (library, library.parent):
        assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert built(source) == library


@pytest.fixture
def checked(tmp_path):
    """Builds a library whose check says `code`, with the real program that asks."""

    def build_it(code):
        source = tmp_path / "checked.cc"
        source.write_text(
            "#include <csignal>\n#include <cstddef>\n"
            f'extern "C" const char* ipu_check_tensorflow(size_t (*size)(const void*)) {{ {code} }}\n'
        )
        return built(source, compiler.SOURCE_DIRECTORY / "tf_private" / private_symbols.PROGRAM)

    return build_it


def test_private_symbols_as_declared(checked):
    assert checked('int* one = new int[10]; return size(one) == 40 ? nullptr : "operator new is another\'s";').exists()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ('return "the size of X is 9; expected 8.";', "the size of X is 9; expected 8."),
        ("raise(SIGSEGV); return nullptr;", "the check ended with signal 11, as wrong layouts do."),
    ],
)
def test_private_symbols_that_differ_are_refused(checked, tmp_path, code, words):
    expected = f"^The IPU plugin cannot be built for this TensorFlow: {words} Install a version that is supported"
    with pytest.raises(errors.PluginError, match=expected.replace("(", r"\(")):
        checked(code)
    assert not list(tmp_path.rglob("ipu-plugin*.so")), "no library is left"


def test_private_symbols_without_a_check_are_refused(source):
    with pytest.raises(errors.PluginError, match="it has no ipu_check_tensorflow"):
        built(source, compiler.SOURCE_DIRECTORY / "tf_private" / private_symbols.PROGRAM)
