"""`tf-ipu info` against the published listings of `gc-info`: docs/reference/facts.md, section "Device listings"."""

import json
import os
import re
import subprocess
import sys

import pytest

import tf_ipu_shim
from tf_ipu_shim import cli
from tf_ipu_shim.machine import systems
from tf_ipu_shim.machine.gc_tools import listing
from tf_ipu_shim.machine.sharing import attach
from tf_ipu_shim.machine.sharing.locks import Holder

pytestmark = pytest.mark.without_tensorflow

PUBLISHED_M2000 = """\
Graphcore device listing:
Partition: p1 [active]
-+- Id: [0], target: [Fabric], IPU-M host: [10.1.5.10], IPU#: [3]
-+- Id: [1], target: [Fabric], IPU-M host: [10.1.5.10], IPU#: [2]
-+- Id: [2], target: [Fabric], IPU-M host: [10.1.5.10], IPU#: [1]
-+- Id: [3], target: [Fabric], IPU-M host: [10.1.5.10], IPU#: [0]
-+- Id: [4], target: [Multi IPU]
 |--- Id: [0], DNC Id: [0], IPU-M host: [10.1.5.10], IPU#: [3]
 |--- Id: [1], DNC Id: [1], IPU-M host: [10.1.5.10], IPU#: [2]
-+- Id: [5], target: [Multi IPU]
 |--- Id: [2], DNC Id: [0], IPU-M host: [10.1.5.10], IPU#: [1]
 |--- Id: [3], DNC Id: [1], IPU-M host: [10.1.5.10], IPU#: [0]
-+- Id: [6], target: [Multi IPU]
 |--- Id: [0], DNC Id: [0], IPU-M host: [10.1.5.10], IPU#: [3]
 |--- Id: [1], DNC Id: [1], IPU-M host: [10.1.5.10], IPU#: [2]
 |--- Id: [2], DNC Id: [2], IPU-M host: [10.1.5.10], IPU#: [1]
 |--- Id: [3], DNC Id: [3], IPU-M host: [10.1.5.10], IPU#: [0]
"""
PUBLISHED_ADDRESSES = "1a 1b 23 24 3d 3e 43 44 8b 8c 8e 8f b8 b9 ba bb".split()


def test_machine_listing(monkeypatch, capsys):
    monkeypatch.setenv("TF_IPU_SHIM_SYSTEM", "m2000")
    assert cli.main(["info", "-l"]) == 0
    assert capsys.readouterr().out == PUBLISHED_M2000


def test_another_system_and_the_version(capsys):
    assert cli.main(["info", "--system", "m2000", "-l"]) == 0
    assert capsys.readouterr().out == PUBLISHED_M2000
    with pytest.raises(SystemExit) as stop:
        cli.main(["--version"])
    assert (stop.value.code, capsys.readouterr().out) == (0, f"tf_ipu_shim {tf_ipu_shim.__version__}\n")


def test_card_listing(capsys):
    assert cli.main(["info", "--list-devices"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["Graphcore device listing:", ""]
    assert lines[2] == "-+- Id:  [0], type:      [PCIe], PCI Domain: [0000:1a:00.0]"
    assert lines[17] == "-+- Id: [15], type:      [PCIe], PCI Domain: [0000:bb:00.0]"
    assert [line.split(":")[-2] for line in lines[2:18]] == PUBLISHED_ADDRESSES
    start = lines.index("-+- Id: [24], type: [Multi IPU]")
    assert lines[start + 1 : start + 5] == [
        " |--- PCIe Id:  [5], DNC Id: [0], PCI Domain: [0000:3e:00.0]",
        " |--- PCIe Id:  [7], DNC Id: [1], PCI Domain: [0000:44:00.0]",
        " |--- PCIe Id:  [4], DNC Id: [2], PCI Domain: [0000:3d:00.0]",
        " |--- PCIe Id:  [6], DNC Id: [3], PCI Domain: [0000:43:00.0]",
    ]
    assert lines[-1] == " |--- PCIe Id:  [8], DNC Id: [15], PCI Domain: [0000:8b:00.0]"


@pytest.mark.parametrize("system", systems.SYSTEMS.values(), ids=lambda system: system.name)
def test_every_system_has_a_line_for_every_ipu_of_every_device(system):
    lines = listing.device_list(system).splitlines()
    members = sum(device.num_ipus for device in system.devices if device.num_ipus > 1)
    assert len(lines) == 2 + len(system.devices) + members
    assert len({listing.address(system, ipu) for ipu in range(system.num_ipus)}) == (
        system.num_ipus // (4 if system.fabric else 1)
    )


def test_one_device_only(capsys):
    assert cli.main(["info", "-d", "16"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "-+- Id: [16], type: [Multi IPU]"
    assert len(lines) == 5


def test_attributes(monkeypatch, capsys):
    monkeypatch.setenv("TF_IPU_SHIM_SYSTEM", "m2000")
    assert cli.main(["info", "-d", "0", "-i"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Device Info:\n  id: 0\n  target: Fabric\n")
    for line in ("board ipu index: 3", "board type: M2000", "clock: 1330MHz", "ipu architecture: ipu2"):
        assert f"  {line}\n" in out
    assert "  remote buffers supported: 1\n" in out
    assert "  in use by process: none\n" in out


def test_attributes_of_a_multi_ipu_device(capsys):
    system = systems.current()
    with attach.attach(system, system.device(5)):
        assert cli.main(["info", "-d", "24", "-i"]) == 0
    out = capsys.readouterr().out
    assert "  ipu ids: 5, 7, 4, 6\n" in out
    assert f"  in use by process: {os.getpid()}\n" in out


def test_who_is_attached(capsys):
    system = systems.current()
    assert cli.main(["info"]) == 0
    assert "No process is attached" in capsys.readouterr().out
    with attach.attach(system, system.device(24)):
        assert cli.main(["info"]) == 0
    out = capsys.readouterr().out
    assert "Simulated system: ipu16" in out
    assert "897 MiB" in out
    assert [f"{os.getpid()}", "24", "0s", "4,5,6,7"] == out.splitlines()[-1].split()[:4]


def test_table_of_processes():
    one = Holder(pid=7, command="python a.py", since=1000.0, device_id=16)
    nobody = Holder(pid=0, command="", since=0.0, device_id=-1)
    lines = listing.processes({5: one, 7: one, 2: nobody}, now=1000.0 + 3725).splitlines()
    assert lines[1].split() == ["PID", "Device", "Time", "IPUs", "Command"]
    assert lines[2].split() == ["?", "?", "?", "2", "?"]
    assert lines[3].split() == ["7", "16", "1h02m", "5,7", "python", "a.py"]
    assert "1m40s" in listing.processes({5: one}, now=1100.0)


def test_json(capsys):
    system = systems.current()
    with attach.attach(system, system.device(16)):
        assert cli.main(["info", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["system"]["name"] == "ipu16"
    assert data["chip"]["total_bytes"] == 940_572_672
    assert data["devices"][24] == {"id": 24, "ipus": [5, 7, 4, 6]}
    assert [(entry["ipu"], entry["pid"], entry["device"]) for entry in data["in_use"]] == [
        (5, os.getpid(), 16),
        (7, os.getpid(), 16),
    ]


@pytest.mark.parametrize(
    ("words", "system", "message"),
    [
        (["info", "-d", "31"], "ipu16", "no IPU device with id 31.*expected 0 to 30"),
        (["info", "-i"], "ipu16", "-i needs the device to describe: -d ID"),
        (["info", "--system", "ipu61"], "ipu16", "no simulated system 'ipu61'"),
        (["schedule", "--svg", "/no/such/directory/x.svg"], "ipu16", "^tf-ipu schedule: /no/such/directory/x.svg: "),
        (["poprun", "--num-replicas=1", "no-such-program"], "ipu16", "there is no command 'no-such-program'"),
        (["poprun", "--num-replicas=1", "no-such.py"], "ipu16", "can't open file 'no-such.py'"),
        (["info"], "ipu61", "no simulated system 'ipu61'. Did you mean 'ipu16'"),
    ],
)
def test_refused(monkeypatch, capsys, words, system, message):
    monkeypatch.setenv("TF_IPU_SHIM_SYSTEM", system)
    assert cli.main(words) == 2
    captured = capsys.readouterr()
    assert (captured.out == "") == (words[0] != "schedule")
    assert re.search(message, captured.err)


@pytest.mark.parametrize(
    "word, hint",
    [
        ("inform", "there is no command 'inform'"),
        ("chekc", "Did you mean tf-ipu check?"),
        ("first.py", "Run the script: tf-ipu run first.py"),
        ("help", "Did you mean tf-ipu --help?"),
        ("version", "Did you mean tf-ipu --version?"),
        ("nothing", "tf-ipu -h lists the commands."),
    ],
)
def test_unknown_command(capsys, word, hint):
    with pytest.raises(SystemExit) as exit_info:
        cli.main([word])
    assert exit_info.value.code == 2
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize(
    "word, meant",
    [("--sytem", "--system"), ("--json", "--format json"), ("--fromat", "--format"), ("--nothing", None)],
)
def test_an_unknown_option_says_which_was_meant(capsys, word, meant):
    with pytest.raises(SystemExit) as stop:
        cli.main(["info", word])
    assert stop.value.code == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert f"unrecognized arguments: {word}" in told
    assert told.partition("; ")[2] == (f"did you mean {meant}?" if meant else "")


@pytest.mark.parametrize(("word", "hint"), [("Interlaved", "; did you mean Interleaved?"), ("Both", "")])
def test_an_unknown_value_says_which_was_meant(capsys, word, hint):
    with pytest.raises(SystemExit) as stop:
        cli.main(["schedule", "--schedule", word])
    assert stop.value.code == 2
    assert re.search(rf"invalid choice: '{word}' \(choose from [^)]*\){re.escape(hint)}$", capsys.readouterr().err)


def test_help_names_every_command(capsys):
    assert cli.main([]) == 2
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in cli.COMMANDS)


def test_a_reader_that_goes_away():
    command = f"{sys.executable} -m tf_ipu_shim.cli info -l | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "Graphcore device listing:\n"
    assert done.stderr == ""
