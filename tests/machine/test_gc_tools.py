"""`gc-info`, `gc-inventory` and `gc-monitor`: commands that scripts start to know what there is."""

import json
import os
import re
import sys

import pytest

from tf_ipu_shim.cli import tools
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.sharing import attach

pytestmark = pytest.mark.without_tensorflow


@pytest.fixture
def ran(monkeypatch, capsys):
    """A command with its words, in this process: status, output, error."""

    def run(command, *words):
        monkeypatch.setattr(sys, "argv", ["command", *words])
        return command(), *capsys.readouterr()

    return run


@pytest.mark.parametrize(("system", "architecture"), [("dss8440", 1), ("pod4", 2), ("bow-pod16", 2)])
def test_the_architecture_as_a_script_looks_for_it(ran, monkeypatch, system, architecture):
    monkeypatch.setenv("TF_IPU_SHIM_SYSTEM", system)
    status, out, err = ran(tools.gc_info, "-d", "0", "--ipu-arch")
    assert (status, err) == (0, "")
    assert int(re.match(r"ipu(\d)", out).group(1)) == architecture


def test_devices_are_listed_as_tf_ipu_info_lists_them(ran):
    status, out, _ = ran(tools.gc_info, "-l")
    assert status == 0
    assert out.startswith("Graphcore device listing:\n")
    assert len(re.findall(r"^-\+- Id: ", out, flags=re.M)) == 31  # 16 IPUs alone, 8 pairs, 4 fours, 2 eights, all


def test_the_inventory_as_a_script_looks_for_remote_buffers(ran, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SYSTEM", "pod4")
    status, out, err = ran(tools.gc_inventory, "-j")
    assert (status, err) == (0, "")
    devices = json.loads(out)["devices"]
    assert [device["id"] for device in devices] == [str(number) for number in range(7)]
    assert devices[0]["remote buffers"] == "1"
    assert all(isinstance(value, str) for device in devices for value in device.values())
    assert [device["ipu power"] for device in devices] == ["80.00W"] * 4 + ["160.00W"] * 2 + ["320.00W"]
    assert {device["board power"] for device in devices} == {"320.00W"}


def test_the_inventory_as_text(ran, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SYSTEM", "pod4")
    status, out, _ = ran(tools.gc_inventory)
    assert status == 0
    assert out.count("Device Info:") == 7
    assert out.count("  ipu ids: ") == 3


@pytest.mark.parametrize(("system", "boards"), [("pod4", 1), ("pod16", 4), ("pod64", 16)])
def test_boards_are_counted(ran, monkeypatch, system, boards):
    monkeypatch.setenv("TF_IPU_SHIM_SYSTEM", system)
    status, out, _ = ran(tools.gc_monitor, "-j")
    cards = json.loads(out)["cards"]
    assert (status, len(cards)) == (0, boards)
    assert [ipu["id"] for card in cards for ipu in card["ipus"]] == [str(number) for number in range(4 * boards)]


def test_who_is_attached(ran):
    system = systems.current()
    with attach.attach(system, system.device(16)):
        status, out, _ = ran(tools.gc_monitor, "--json")
        shown = ran(tools.gc_monitor)[1]
    ipus = [ipu for card in json.loads(out)["cards"] for ipu in card["ipus"]]
    assert status == 0
    assert {ipu["id"]: [p["PID"] for p in ipu["PIDs"]] for ipu in ipus if ipu["PIDs"]} == {
        "5": [str(os.getpid())],
        "7": [str(os.getpid())],
    }
    assert f"{os.getpid()}" in shown.splitlines()[-1]


@pytest.mark.parametrize(
    ("command", "name"),
    [(tools.gc_info, "gc-info"), (tools.gc_inventory, "gc-inventory"), (tools.gc_monitor, "gc-monitor")],
)
def test_a_system_that_does_not_exist_is_a_line_of_the_command(ran, monkeypatch, command, name):
    monkeypatch.setenv("TF_IPU_SHIM_SYSTEM", "pod5")
    status, out, err = ran(command)
    assert (status, out) == (2, "")
    assert err.startswith(f"{name}: ")
    assert "pod5" in err
    assert err.count("\n") == 1


def test_a_device_that_does_not_exist_is_a_line_of_the_command(ran):
    status, out, err = ran(tools.gc_info, "-d", "99", "-i")
    assert (status, out) == (2, "")
    assert err.startswith("gc-info: ")
    assert "99" in err
