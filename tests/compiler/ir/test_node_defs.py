"""Names of tensors, copies of nodes and constants: one module for the whole compiler."""

import re

import numpy as np
import pytest
from checkout import ROOT
from tensorflow.core.framework import function_pb2, node_def_pb2, types_pb2
from tensorflow.python.framework import tensor_util

from tf_ipu_shim.compiler.ir import node_defs
from tf_ipu_shim.compiler.ir.node_defs import TensorName


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("x", ("x", "", 0)),
        ("split:output:2", ("split", "output", 2)),
        ("a/b.c:handle:10", ("a/b.c", "handle", 10)),
    ],
)
def test_tensor_names_are_read_and_written(text, parts):
    assert TensorName.parse(text) == parts
    assert str(TensorName.parse(text)) == text


def test_names_of_a_graph_def_have_no_output():
    assert TensorName.parse("split:3") == ("split", "", 3)
    assert TensorName.parse("split") == ("split", "", 0)


@pytest.mark.parametrize("text", ["split", "split:output:2", "^split"])
def test_the_producer_of_any_input(text):
    assert node_defs.producer_name(text) == "split"


def test_a_result_of_a_renamed_node():
    assert node_defs.with_producer("split:output:2", "new") == "new:output:2"
    assert node_defs.with_producer("x", "y") == "y"
    assert node_defs.result_index("split:output:12") == 12
    assert [node_defs.is_argument(text) for text in ("x", "x:y:0")] == [True, False]


def test_data_and_control_inputs():
    node = node_def_pb2.NodeDef(input=["x", "add:z:0", "^init", "^save"])
    assert node_defs.data_inputs(node) == ["x", "add:z:0"]
    assert node_defs.control_inputs(node) == ["^init", "^save"]
    assert node_defs.awaited_nodes(node) == ["init", "save"]


def test_copies_leave_the_original_alone():
    node = node_def_pb2.NodeDef(name="sum", input=["x"])
    function = function_pb2.FunctionDef(node_def=[node])
    copy = node_defs.copy_node(node, ["y", "z"])
    copy.attr["T"].type = types_pb2.DT_INT32
    emptied = node_defs.copy_function(function, [copy])
    assert (list(node.input), dict(node.attr)) == (["x"], {})
    assert [list(one.node_def[0].input) for one in (function, emptied)] == [["x"], ["y", "z"]]


def test_annotations_are_the_attributes_of_placement():
    node = node_def_pb2.NodeDef(name="sum")
    for name in ("T", "_XlaSharding", "_output_shapes"):
        node.attr[name].s = b"value"
    other = node_def_pb2.NodeDef()
    node_defs.copy_annotations(node, other)
    assert list(other.attr) == ["_XlaSharding"]


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (3, types_pb2.DT_INT32, np.int32(3)),
        ([-1], types_pb2.DT_INT64, np.array([-1])),
        (np.float16(0.5), types_pb2.DT_HALF, np.float16(0.5)),
        (tensor_util.make_tensor_proto([True]), types_pb2.DT_BOOL, np.array([True])),
    ],
)
def test_constants(value, kind, expected):
    node = node_defs.constant("one", value, kind, node_def_pb2.NodeDef(device="/device:IPU:1"))
    made = tensor_util.MakeNdarray(node.attr["value"].tensor)
    assert (node.op, node.attr["dtype"].type, node.device) == ("Const", kind, "/device:IPU:1")
    assert made.dtype == expected.dtype
    np.testing.assert_array_equal(made, expected)


def test_nothing_else_reads_tensor_names_or_copies_protos():
    """But for the parser of whole functions, for which each call would count."""
    own = re.compile(
        r"""partition\(":"\)|split\(":"|startswith\("\^"|\[0\] ?[=!]= ?"\^"|(Node|Function)Def\(\)\n.*CopyFrom"""
    )
    exempt = {"compiler/ir/node_defs.py", "compiler/ir/function_graph.py"}
    package = ROOT / "tf_ipu_shim"
    files = [path for room in ("compiler", "driver", "memory_model") for path in (package / room).rglob("*.py")]
    found = {str(path.relative_to(package)) for path in files if own.search(path.read_text())}
    assert found - exempt == set()
