"""Encodes calls of users' Poplar ops for the library that builds them, and replaces the ops by custom calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tensorflow.compat.v2 import errors

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.node_defs import TensorName, control_inputs, copy_function, data_inputs
from tf_ipu_shim.poplar_sdk.op_calls import OpCall, describe_tensor
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, tensor_shape_pb2

CALL_TARGET = "TfIpuShimUserOp"
"""The plugin's custom-call target."""
_TEXT_FIELDS = ("library_path", "library_digest", "gp_path", "op_name", "target")


def user_ops_in(nodes: Iterable[node_def_pb2.NodeDef]) -> Iterator[node_def_pb2.NodeDef]:
    """Yields the users' Poplar ops among nodes."""
    return (node for node in nodes if node.op in vocabulary.USER_OPS)


def call_of(node: node_def_pb2.NodeDef) -> bytes:
    """Returns the description of a library's op, in the format that the op's kernel writes."""
    attributes = node.attr
    texts = {name: attributes[name].s.decode() for name in _TEXT_FIELDS}
    gradient_size = attributes["gradient_size"].i
    call = OpCall(
        **texts,
        gradient_size=gradient_size,
        partial_derivative=attributes["partial_derivative_index"].i,
        separate_gradients=attributes["separate_gradients"].b,
        attributes=attributes["gradient_attributes" if gradient_size else "attributes"].s.decode(),
        name=name_of(node),
        inputs=_tensors(node, "Input", op_types.input_types(node), attributes["input_shapes"].list.shape),
        outputs=_tensors(node, "Output", attributes["output_types"].list.type, attributes["output_shapes"].list.shape),
    )
    return call.encode()


def name_of(node: node_def_pb2.NodeDef) -> str:
    """Returns the name that a library's op gets."""
    return node.attr["debug_name"].s.decode() or node.name


def _tensors(
    node: node_def_pb2.NodeDef,
    title: str,
    types: Sequence[int],
    shapes: Sequence[tensor_shape_pb2.TensorShapeProto],
) -> list[str]:
    if len(types) != len(shapes):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"{node.name} has {len(types)} {title.lower()}s and {len(shapes)} shapes; expected one for each. Pass "
            "as many shapes.",
        )
    described = []
    for index, (kind, shape) in enumerate(zip(types, shapes)):
        sizes = [dimension.size for dimension in shape.dim]
        if shape.unknown_rank or min(sizes, default=0) < 0:
            raise errors.InvalidArgumentError(
                None,
                None,
                f"{title} {index} of {node.name} has a shape that is not known when the program is compiled; expected "
                "every dimension, as Poplar's graph needs them. Give the tensor a static shape, for instance with "
                "tf.ensure_shape, and batches with drop_remainder=True.",
            )
        described.append(describe_tensor(kind, sizes))
    return described


def with_custom_calls(function: function_pb2.FunctionDef) -> function_pb2.FunctionDef:
    """Returns a function with custom calls for users' Poplar ops, or the function itself if it has none."""
    if not any(user_ops_in(function.node_def)):
        return function
    copy = copy_function(function)
    replace_user_ops(copy)
    return copy


def replace_user_ops(function: function_pb2.FunctionDef) -> None:
    """Replaces the users' Poplar ops of a function by custom calls."""
    replaced = {node.name for node in user_ops_in(function.node_def)}
    for node in function.node_def:
        for index, tensor_name in enumerate(node.input):
            node.input[index] = _result_name(tensor_name, replaced)
    for result, tensor_name in list(function.ret.items()):
        function.ret[result] = _result_name(tensor_name, replaced)
    for node in function.node_def:
        if node.name in replaced:
            _replace(node)


def _result_name(tensor_name: str, replaced: set[str]) -> str:
    """Returns the name of a result, which differs between custom calls and users' ops."""
    name = TensorName.parse(tensor_name)
    if name.output != "output" or name.producer not in replaced:
        return tensor_name
    return str(name._replace(output="results"))


def _replace(node: node_def_pb2.NodeDef) -> None:
    inputs, outputs = data_inputs(node), node.attr["output_types"].list
    call = node_def_pb2.NodeDef(name=node.name, op="XlaCustomCallV2", input=[*inputs, *control_inputs(node)])
    call.attr["call_target_name"].s = CALL_TARGET.encode()
    call.attr["backend_config"].s = b"%d %d %b" % (len(inputs), len(outputs.type), call_of(node))
    call.attr["has_side_effect"].b = op_types.is_stateful(node.op)
    call.attr["operand_dtypes"].list.SetInParent()
    call.attr["operand_dtypes"].list.type.extend(op_types.input_types(node))
    call.attr["result_dtypes"].list.CopyFrom(outputs)
    call.attr["result_shapes"].list.CopyFrom(node.attr["output_shapes"].list)
    for name, value in node.attr.items():
        if name.startswith("_"):
            call.attr[name].CopyFrom(value)
    node.CopyFrom(call)
