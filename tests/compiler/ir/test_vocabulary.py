"""The names of ops and attributes are the same in Python and in the plugin."""

import pathlib
import re

import pytest

from tf_ipu_shim import plugin
from tf_ipu_shim.compiler.ir import op_types, vocabulary

pytestmark = pytest.mark.one_version

SOURCES = pathlib.Path(plugin.__file__).with_name("csrc")
# What is registered and in no program, or in one as any op of the host is: Graphcore's driver ops, users' own.
NOT_IN_PROGRAMS = {
    "ApplicationCall",
    "ApplicationRuntime",
    "IPUDeleteOutfeed",
    "IpuApplicationBegin",
    "IpuApplicationCompile",
    "IpuApplicationInfeed",
    "IpuApplicationInput",
    "IpuClearAllXlaCompilationCaches",
    "IpuConfigureHardware",
    "IpuDeleteInfeed",
    "IpuEventTrace",
    "IpuGetConfiguration",
    "IpuGetNumDevices",
    "IpuModelUsed",
    "IpuRecvAtHost",
    "IpuResetDevices",
    "IpuResetSeed",
    "IpuInfeedRestarted",
    "IpuInfeedStarted",
    "IpuShape",
    "IpuSelectIterator",
    "IpuStartInfeed",
    "IpuUseSyntheticDataFor",
    "IpuUserReadWriteOp",
}


def source():
    return "\n".join(path.read_text() for path in sorted([*SOURCES.rglob("*.cc"), *SOURCES.rglob("*.h")]))


def constants(text):
    return dict(re.findall(r'constexpr char (k\w+)\[\] = "(\w+)"', text))


def test_the_plugin_registers_the_ops_of_programs():
    registered = set(re.findall(r'REGISTER_(?:USER_)?OP\(\s*"(\w+)"', source()))
    assert registered - NOT_IN_PROGRAMS == vocabulary.PLUGIN_OPS


@pytest.mark.parametrize("op", sorted(vocabulary.PLUGIN_OPS))
def test_tensorflow_knows_them(op):
    plugin.load()
    assert op_types.op_def(op).name == op


def test_kernels_are_for_ops_that_are_registered():
    named = {op for op in re.findall(r'Name\(\s*"(\w+)"\s*\)', source()) if op.startswith(("Ipu", "Pop", "Repl"))}
    assert named <= vocabulary.PLUGIN_OPS | NOT_IN_PROGRAMS


def test_the_plugin_reads_the_attribute_that_names_the_ipu():
    assert constants(source())["kChipAttr"] == vocabulary.CHIP_ATTRIBUTE


@pytest.mark.parametrize("op", [vocabulary.LAUNCH, vocabulary.INTER_COPY])
def test_ops_inside_a_program_ask_for_no_engine(op):
    """`first_use.cc` lists them by name."""
    source = (SOURCES / "device" / "first_use.cc").read_text()
    (listed,) = re.findall(r"bool RunsWithoutEngine.*?\n}", source, re.DOTALL)
    assert f'"{op}"' in listed


def test_kinds_of_ops():
    """Each op has one role at most among those that decide where it runs."""
    assert vocabulary.ON_DEVICE_OPS <= vocabulary.HOST_OPS
    assert not vocabulary.HOST_OPS & (vocabulary.COLLECTIVES | vocabulary.FUNCTION_ATTRIBUTES.keys())
    assert vocabulary.LOOPS | vocabulary.BRANCHES | vocabulary.CALLS == vocabulary.FUNCTION_ATTRIBUTES.keys()


def test_names_are_spelled_in_one_place():
    """But for the names that Graphcore's functions give their ops, and an attribute of Python objects called `_ipu`."""
    attributes = [value for name, value in vars(vocabulary).items() if name.endswith("_ATTRIBUTE") and value != "_ipu"]
    names = {*vocabulary.PLUGIN_OPS, *vocabulary.INFEEDS, vocabulary.LAUNCH, *attributes}
    quoted = re.compile(r'(?<![`\w])(?<!or )"(?=([^"]+)"(?!`))')
    package = pathlib.Path(vocabulary.__file__).parents[2]

    def spells(line):
        return ">>>" not in line and not names.isdisjoint(quoted.findall(line))

    where = {
        str(path.relative_to(package))
        for path in package.rglob("*.py")
        if any(map(spells, path.read_text().splitlines()))
    }
    assert where == {"compiler/ir/vocabulary.py"}
