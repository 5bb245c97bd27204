"""Compiles and runs the cases of the libraries, once a session."""

import pathlib
import subprocess

import pytest
from poplar_cases import read_cases
from poplar_programs import compile_program

SOURCE = pathlib.Path(__file__).parent / "programs" / "libraries.cpp"
LIBRARIES = ("popsparse", "poprand", "popnn", "poplin", "popops", "poputil")


@pytest.fixture(scope="session")
def cases(tmp_path_factory):
    program, folder = compile_program(SOURCE, *LIBRARIES), tmp_path_factory.mktemp("libraries")
    subprocess.run([program, folder / "index", folder / "data"], check=True, timeout=300)
    found = read_cases(folder / "index", folder / "data")
    failed = {name: case.errors["the case"] for name, case in found.items() if "the case" in case.errors}
    assert not failed
    return found
