"""Forms of calls, headers and conversions that published programs use, which `programs/call_forms.cpp` has."""

import pathlib
import subprocess

import pytest
from poplar_programs import compile_program

pytestmark = [pytest.mark.without_tensorflow, pytest.mark.subprocess]

SOURCE = pathlib.Path(__file__).parent / "programs" / "call_forms.cpp"


@pytest.fixture(scope="module")
def facts():
    words = [str(compile_program(SOURCE, "pvti"))]
    printed = subprocess.run(words, capture_output=True, text=True, check=True, timeout=120).stdout
    return dict(line.split(": ", 1) for line in printed.splitlines())


def test_a_step_is_a_sequence(facts):
    assert facts["out"] == "1 2 3 4 5 6"


def test_time_between_two_stamps(facts):
    assert facts["time"] == "1.500000 s"


def test_a_callback_that_only_fetches(facts):
    assert [float(number) for number in facts["counted"].strip("[]").split()] == [5, 6, 7]


def test_constants_from_arrays_and_half_classes(facts):
    assert [float(number) for number in facts["halves"].strip("[]").split()] == [1, -2.5]
    assert [int(number) for number in facts["numbers"].strip("[]").split()] == [7, -8]


def test_a_matrix_of_one_element_for_a_field(facts):
    assert float(facts["twice"].strip("[]")) == 7


def test_empty_options_are_no_number_of_ipus(facts):
    assert facts["cpus"] == "1 1 2"


def test_values_of_debug_information_are_text(facts):
    assert facts["api"] == "sum"
