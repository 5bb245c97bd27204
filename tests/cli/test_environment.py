"""`tf-ipu env` and `tf-ipu doctor`: every variable is known, and what is wrong is said in one line with its cure."""

import configparser
import os
import re

import pytest
from checkout import ROOT
from packaging.requirements import Requirement

from tf_ipu_shim import cli
from tf_ipu_shim.cli import doctor, env
from tf_ipu_shim.configuration import environment

pytestmark = pytest.mark.without_tensorflow

NAMES = [variable.name for variable in environment.VARIABLES]


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch, tmp_path):
    for name in (*NAMES, "TF_POPLAR_FLAGS", "POPLAR_ENGINE_OPTIONS", *env.TENSORFLOW):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TF_IPU_SHIM_LOCK_DIR", str(tmp_path / "locks"))


def test_every_variable_that_is_read_is_in_the_table():
    read = set()
    for path in (ROOT / "tf_ipu_shim").rglob("*.*"):
        if path.suffix in (".py", ".cc"):
            read |= set(re.findall(r"[\"'](TF_IPU_SHIM_[A-Z_]+)[\"']", path.read_text()))
    assert read == set(NAMES)


def test_env_shows_what_is_in_force(monkeypatch, capsys):
    monkeypatch.setenv("TF_IPU_SHIM_SYSTEM", "pod16")
    monkeypatch.setenv("TF_POPLAR_FLAGS", "--use_ipu_model --ipu_model_tiles=8")
    monkeypatch.setenv("POPLAR_ENGINE_OPTIONS", '{"debug.trace": "true", "of.its.own": "7"}')
    assert cli.main(["env"]) == 0
    shown = capsys.readouterr().out
    assert set(NAMES) <= set(re.findall(r"TF_IPU_SHIM_\w+", shown))
    assert cli.main(["env", "--set"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert {line.split()[1]: line.split()[2] for line in lines if line.startswith("*")} == {
        "TF_IPU_SHIM_LOCK_DIR": os.environ["TF_IPU_SHIM_LOCK_DIR"],
        "TF_IPU_SHIM_SYSTEM": "pod16",
        "--use_ipu_model": "true",
        "--ipu_model_tiles": "8",
        "debug.trace": "true",
        "of.its.own": "7",
    }


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("TF_IPU_SHIM_SDK", "4.0", "SDK 4.0 is not emulated"),
        ("TF_IPU_SHIM_SYSTEM", "pod17", "There is no simulated system 'pod17'"),
        ("TF_IPU_SHIM_EXECUTION_MODE", "fast", "TF_IPU_SHIM_EXECUTION_MODE is 'fast'"),
        ("TF_IPU_SHIM_COMPAT", "old", "TF_IPU_SHIM_COMPAT is 'old'"),
        ("TF_IPU_SHIM_COLLECTIVE_TIMEOUT", "0", "expected a number of seconds above 0"),
        ("TF_IPU_SHIM_LOG_LEVEL", "all", "expected '0', '1', '2' or '3'"),
        ("TF_IPU_SHIM_SYSTM", "pod4", "Did you mean TF_IPU_SHIM_SYSTEM?"),
        ("TF_IPU_SHIM_GREEN_TEA", "1", "is not a variable of tf_ipu_shim. Unset it"),
        ("TF_IPU_SHIM_" + "EXECUTION", "xla", "is now TF_IPU_SHIM_EXECUTION_MODE"),
        ("TF_POPLAR_FLAGS", "--use_ipu_modell", "Did you mean --use_ipu_model"),
        ("POPLAR_ENGINE_OPTIONS", "{", "which is not JSON"),
    ],
)
def test_a_value_that_makes_no_sense(monkeypatch, capsys, variable, value, message):
    monkeypatch.setenv(variable, value)
    assert cli.main(["env", "--set"]) == 2
    assert message in capsys.readouterr().err
    (check,) = doctor.check_variables()
    assert (check.state, message in check.found) == (doctor.PROBLEM, True)


def test_doctor_knows_what_the_package_promises():
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    promised = re.findall(r"Python :: (\d)\.(\d+)", setup["metadata"]["classifiers"])
    versions = [(int(major), int(minor)) for major, minor in promised]
    assert doctor.PYTHONS == (min(versions), max(versions))
    assert [doctor.check_python(version).state for version in ((3, 8), versions[0], versions[-1], (3, 99))] == [
        doctor.PROBLEM,
        doctor.OK,
        doctor.OK,
        doctor.PROBLEM,
    ]


@pytest.mark.parametrize(
    ("machine", "version", "package", "newest"),
    [
        ("x86_64", "3.11", "tensorflow-cpu", "2.15.1"),
        ("aarch64", "3.11", "tensorflow", "2.15.1"),
        ("x86_64", "3.13", "tensorflow", "2.21.0"),
        ("aarch64", "3.13", "tensorflow", "2.21.0"),
    ],
)
def test_one_tensorflow_is_asked_for(machine, version, package, newest):
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    lines = [line for line in setup["options"]["install_requires"].splitlines() if line and line[0] != "#"]
    system = {"platform_machine": machine, "python_version": version}
    asked = [asked for asked in map(Requirement, lines) if asked.marker is None or asked.marker.evaluate(system)]
    (tensorflow,) = (asked for asked in asked if asked.name in ("tensorflow", "tensorflow-cpu"))
    assert tensorflow.name == package and newest in tensorflow.specifier


@pytest.mark.parametrize(
    ("installed", "state"),
    [
        ({}, doctor.PROBLEM),
        ({"tensorflow-cpu": "2.14.1"}, doctor.PROBLEM),
        ({"tensorflow-cpu": "2.15.1"}, doctor.OK),
        ({"tensorflow": "2.21.0rc1"}, doctor.OK),
        ({"tensorflow": "2.15.1", "tensorflow-cpu-aws": "2.15.1"}, doctor.OK),
        ({"tensorflow": "2.22.0"}, doctor.PROBLEM),
        ({"tensorflow": "2.21.0", "tensorflow-cpu": "2.21.0"}, doctor.NOTE),
        ({"tensorflow": "2.21.0", "tensorflow-cpu": "2.20.0"}, doctor.PROBLEM),
    ],
)
def test_tensorflow_packages(installed, state):
    check = doctor.check_tensorflow(installed)
    assert check.state == state
    assert bool(check.cure) == (state != doctor.OK)


def test_a_missing_compiler_matters_where_nothing_is_built(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.check_plugin("built.so", False).state == doctor.OK
    check = doctor.check_plugin(None, False)
    assert (check.state, "apt-get install g++" in check.cure) == (doctor.PROBLEM, True)


def test_who_holds_ipus():
    from tf_ipu_shim.machine import systems
    from tf_ipu_shim.machine.sharing import attach

    system = systems.current()
    with attach.attach(system, system.device(16)):
        check = doctor.check_ipus()
    assert check.state == doctor.NOTE
    assert str(os.getpid()) in check.found
    assert doctor.check_ipus().state == doctor.OK


def test_commands_that_run_scripts_name_every_variable_of_users():
    assert set(cli.VARIABLES_OF_SCRIPTS) == {variable.name for variable in environment.SETTINGS}


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_the_help_of_a_command_names_its_variables(command, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([command, "--help"])
    assert stop.value.code == 0
    shown = capsys.readouterr().out.partition("Environment variables:")[2]
    assert set(re.findall(r"TF_IPU_SHIM_\w+", shown)) == set(cli.COMMANDS[command].variables)
