"""Runs float32 max-pooling and its gradient by oneDNN kernels in execution mode `kernels`.

TensorFlow's gradient of max-pooling searches each maximum again on one thread, and is slower than the convolutions
around it. The forward kernel of oneDNN stores the positions of the maxima (its workspace) for its gradient.
TensorFlow's graph passes use these kernels only for the CPU. The same rules apply here, so values are as in stock
TensorFlow, including for equal maxima.
"""

from __future__ import annotations

from tf_ipu_shim.compiler.ir.node_defs import copy_node
from tf_ipu_shim.compiler.ir.one_dnn import LABEL, enabled
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, types_pb2

_FORWARD, _GRADIENT = "MaxPool", "MaxPoolGrad"
_NATIVE = {_FORWARD: "_MklNativeMaxPool", _GRADIENT: "_MklNativeMaxPoolGrad"}
_WINDOW = ("ksize", "strides", "padding", "data_format")


def use_one_dnn_pooling(function: function_pb2.FunctionDef) -> dict[str, node_def_pb2.NodeDef]:
    """Replaces a function's 2-D float32 max-pooling and gradients by oneDNN's ops.

    A gradient uses the workspace of the op that pooled the same tensor. If that is in another function (a pipeline
    stage that keeps no activations, say) one is added that pools it again.
    """
    if not enabled():
        return {}
    nodes = [node for node in function.node_def if node.op in _NATIVE and _has_kernel(node)]
    pooled = {_pooling_key(node): node.name for node in nodes if node.op == _FORWARD}
    stands_for = {node.name: copy_node(node) for node in nodes}
    for node in nodes:
        if node.op == _GRADIENT:
            if _pooling_key(node) not in pooled:
                pooled_again = _pool_again(function, node)
                pooled[_pooling_key(node)] = pooled_again.name
                stands_for[pooled_again.name] = stands_for[node.name]
            node.input.insert(3, f"{pooled[_pooling_key(node)]}:workspace:0")
        node.op = _NATIVE[node.op]
        node.attr["workspace_enabled"].b = True
        node.attr["_kernel"].s = LABEL
    return stands_for


def _has_kernel(node: node_def_pb2.NodeDef) -> bool:
    """Returns whether oneDNN supports a pooling: within each sample and channel."""
    attributes = node.attr
    return (
        attributes["T"].type == types_pb2.DT_FLOAT
        and attributes["data_format"].s in (b"", b"NHWC")
        and attributes["padding"].s in (b"SAME", b"VALID")
        and all(list(attributes[name].list.i)[::3] == [1, 1] for name in ("ksize", "strides"))
    )


def _pooling_key(node: node_def_pb2.NodeDef) -> tuple[object, ...]:
    """Returns a key of a pooling op that its gradient op shares."""
    return (node.input[0], *(node.attr[name].SerializeToString() for name in _WINDOW))


def _pool_again(function: function_pb2.FunctionDef, gradient: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
    node = function.node_def.add(name=f"{gradient.name}/pooled_again", op=_NATIVE[_FORWARD], input=gradient.input[:1])
    for name in ("T", *_WINDOW):
        node.attr[name].CopyFrom(gradient.attr[name])
    node.attr["workspace_enabled"].b = True
    node.attr["_kernel"].s = LABEL
    return node
