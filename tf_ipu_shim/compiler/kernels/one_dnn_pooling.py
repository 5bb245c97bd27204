"""Max-pooling in programs that run by kernels: oneDNN's kernels, as TensorFlow uses them on the CPU.

TensorFlow's own gradient of max-pooling looks for each maximum anew, on one thread, and takes longer than the
convolutions around it. oneDNN's forward kernel writes down where the maxima are (its workspace), and its gradient reads
that. TensorFlow's graph passes put these kernels in place for the CPU alone; here it is done by the same rules, so that
values, also those of equal maxima, are those of stock TensorFlow.
"""

from __future__ import annotations

from tf_ipu_shim.compiler.ir.one_dnn import LABEL, copy_of, enabled
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, types_pb2

_FORWARD, _GRADIENT = "MaxPool", "MaxPoolGrad"
_NATIVE = {_FORWARD: "_MklNativeMaxPool", _GRADIENT: "_MklNativeMaxPoolGrad"}
_WINDOW = ("ksize", "strides", "padding", "data_format")


def pooled_by_one_dnn(function: function_pb2.FunctionDef) -> dict[str, node_def_pb2.NodeDef]:
    """Has a function's max-pooling of float32 over rows and columns run by oneDNN, its gradients too.

    A gradient takes the workspace of the op that pooled the same tensor. Where that is in another function (a pipeline
    stage that keeps no activations, say) one is added that pools it again.

    Args:
        function: changed.

    Returns:
        For each op that was changed or added the one that it stands for, which messages name.
    """
    if not enabled():
        return {}
    nodes = [node for node in function.node_def if node.op in _NATIVE and _has_kernel(node)]
    pooled = {_what(node): node.name for node in nodes if node.op == _FORWARD}
    stands_for = {node.name: copy_of(node) for node in nodes}
    for node in nodes:
        if node.op == _GRADIENT:
            if _what(node) not in pooled:
                again = _pool_again(function, node)
                pooled[_what(node)] = again.name
                stands_for[again.name] = stands_for[node.name]
            node.input.insert(3, f"{pooled[_what(node)]}:workspace:0")
        node.op = _NATIVE[node.op]
        node.attr["workspace_enabled"].b = True
        node.attr["_kernel"].s = LABEL
    return stands_for


def _has_kernel(node: node_def_pb2.NodeDef) -> bool:
    """Whether oneDNN pools so: within each sample and channel."""
    attributes = node.attr
    return (
        attributes["T"].type == types_pb2.DT_FLOAT
        and attributes["data_format"].s in (b"", b"NHWC")
        and attributes["padding"].s in (b"SAME", b"VALID")
        and all(list(attributes[name].list.i)[::3] == [1, 1] for name in ("ksize", "strides"))
    )


def _what(node: node_def_pb2.NodeDef) -> tuple[object, ...]:
    """What is pooled, and how: the same for an op and its gradient."""
    return (node.input[0], *(node.attr[name].SerializeToString() for name in _WINDOW))


def _pool_again(function: function_pb2.FunctionDef, gradient: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
    node = function.node_def.add(name=f"{gradient.name}/pooled_again", op=_NATIVE[_FORWARD], input=gradient.input[:1])
    for name in ("T", *_WINDOW):
        node.attr[name].CopyFrom(gradient.attr[name])
    node.attr["workspace_enabled"].b = True
    node.attr["_kernel"].s = LABEL
    return node
