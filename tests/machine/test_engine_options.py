"""`POPLAR_ENGINE_OPTIONS`."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_ipu_shim.machine.environment import engine_options

pytestmark = pytest.mark.without_tensorflow


@given(st.dictionaries(st.text(), st.text()))
def test_texts_are_read_as_they_are(options):
    assert engine_options.parse(json.dumps(options)) == options


def test_the_environment_overrides_the_program(monkeypatch):
    program = {"debug.trace": "true", "debug.allowOutOfMemory": "false"}
    assert engine_options.merged(program) == program
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", '{"debug.allowOutOfMemory": "true", "autoReport.all": "true"}')
    assert engine_options.current() == {"debug.allowOutOfMemory": "true", "autoReport.all": "true"}
    assert engine_options.merged(program) == {
        "debug.trace": "true",
        "debug.allowOutOfMemory": "true",
        "autoReport.all": "true",
    }
    assert program["debug.allowOutOfMemory"] == "false"


def test_numbers_and_booleans_count_as_text():
    assert engine_options.parse('{"a": true, "b": false, "c": 5, "d": 1.50}') == {
        "a": "true",
        "b": "false",
        "c": "5",
        "d": "1.50",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("debug.trace=true", r"POPLAR_ENGINE_OPTIONS is 'debug.trace=true', which is not JSON.*Write a JSON object"),
        ('{"a": "b"', "not JSON"),
        ('["a"]', "not a JSON object"),
        ('"a"', "not a JSON object"),
        ('{"a": null}', "gives 'a' the value null"),
        ('{"a": {"b": "c"}}', "gives 'a' the value {"),
    ],
)
def test_refused(text, message):
    with pytest.raises(ValueError, match=message):
        engine_options.parse(text)


def test_blank_is_nothing():
    assert engine_options.parse("  ") == {}


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("debug.allowOutofMemory", "Did you mean 'debug.allowOutOfMemory'?"),
        ("autoreport.directory", "Did you mean 'autoReport.directory'?"),
        ("allowOutOfMemory", "Did you mean 'debug.allowOutOfMemory'?"),
        ("mine", "Use the name of one, such as 'debug.allowOutOfMemory'."),
    ],
)
def test_misspelt_names_and_those_without_a_group(name, advice):
    options = ["debug.allowOutOfMemory", "opt.ofAnotherRelease", name]
    message = f"Unrecognised option '{name}' of engines. {advice} If not, leave it out."
    assert engine_options.unrecognised(options) == {name: message}
