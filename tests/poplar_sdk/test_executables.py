"""Executables that one process stores and another runs, against NumPy."""

import os
import pathlib
import shutil
import subprocess

import numpy
import pytest
from poplar_programs import compile_codelets, compile_program

from tf_ipu_shim.poplar_sdk import toolchain

pytestmark = [pytest.mark.without_tensorflow, pytest.mark.subprocess]

PROGRAMS = pathlib.Path(__file__).parent / "programs"
LIBRARIES = ("poprand", "popops", "poputil")


def run(*words, **variables):
    environment = {**os.environ, **variables}
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def facts(printed):
    return dict(line.split(": ", 1) for line in printed.splitlines() if ": " in line)


@pytest.fixture(scope="module")
def program():
    return compile_program(PROGRAMS / "executable_cases.cpp", *LIBRARIES)


@pytest.fixture(scope="module")
def printed(program, tmp_path_factory):
    """What another process prints; the codelet file is gone by then."""
    folder = tmp_path_factory.mktemp("executables")
    codelets = folder / "codelets.gp"
    codelets.write_bytes(compile_codelets(PROGRAMS / "codelets.cpp").read_bytes())
    run(program, "store", folder / "program.exe", codelets)
    codelets.unlink()
    return run(program, "run", folder / "program.exe")


def test_a_stored_program_computes_what_numpy_does(printed):
    found = {name: numpy.array(text.split(), float) for name, text in facts(printed).items() if name != "sums"}
    x = numpy.arange(16.0).reshape(2, 2, 4)
    y = 0.5 * x.transpose(0, 2, 1).reshape(2, 8)
    y[:, :4] *= 2**5  # three times in the loop, twice in the switch
    numpy.testing.assert_array_equal(found["y"], (y + 1).ravel())
    numpy.testing.assert_array_equal(found["out"], found["y"])
    numpy.testing.assert_array_equal(found["kept"], x[1].ravel())
    numpy.testing.assert_array_equal(found["counts"], [1, 1, 2, 2, 3, 3])


def test_a_stored_program_does_what_the_compiled_one_does(program, printed):
    assert printed == run(program, "direct", compile_codelets(PROGRAMS / "codelets.cpp"))
    drawn = numpy.array(facts(printed)["drawn"].split(), float)
    assert len(set(drawn[:8])) == 8 and (abs(drawn) <= 1).all()


def test_executables_that_cannot_be_read_are_refused(program):
    messages = facts(run(program, "refuse", compile_codelets(PROGRAMS / "codelets.cpp")))
    for name in ("nothing", "other"):
        assert messages[name].startswith("Executable::deserialize: the stream has no executable of this Poplar")
        assert messages[name].endswith("Write one with Executable::serialize in this environment.")
    for name in ("short", "damaged"):
        assert messages[name].startswith("Executable::deserialize: the executable is damaged")
    assert messages["graph"].startswith("Executable::deserialize: the stream has a graph without programs")


def test_an_executable_of_other_libraries_is_refused(program, tmp_path):
    file, other = tmp_path / "program.exe", tmp_path / "lib"
    run(program, "store", file, compile_codelets(PROGRAMS / "codelets.cpp"))
    shutil.copytree(toolchain.build_libraries() / "lib", other)
    assert facts(run(program, "read", file, LD_LIBRARY_PATH=str(other)))["file"] == "no exception"
    with (other / "libpoprand.so").open("ab") as library:
        library.write(b"another build")
    message = facts(run(program, "read", file, LD_LIBRARY_PATH=str(other)))["file"]
    assert message.startswith("Executable::deserialize: the executable was made with another build of libpoprand.so.")
