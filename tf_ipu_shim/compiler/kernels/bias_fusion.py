"""Fuses BiasAdd into float32 convolutions and matmuls (oneDNN fused kernels) for execution mode `kernels`.

TensorFlow's graph rewriting makes the same of them on the CPU. The fused op reads and writes all activations once; two
ops would do so twice. The bias gradient would read its gradients once more. A relu stays its own op: in oneDNN's kernel
NaN becomes 0.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.compiler.ir.node_defs import control_inputs, copy_node, producer_name
from tf_ipu_shim.compiler.ir.one_dnn import LABEL, enabled
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, types_pb2

_FUSED = {"Conv2D": "_MklNativeFusedConv2D", "MatMul": "_MklNativeFusedMatMul"}
_RESULTS = {
    "Conv2D": "output",
    "MatMul": "product",
    "BiasAdd": "output",
    "BiasAddGrad": "output",
}
_FILTER_GRADIENT, _BIAS_GRADIENT = "Conv2DBackpropFilter", "BiasAddGrad"
_BOTH_GRADIENTS = "_MklNativeConv2DBackpropFilterWithBias"


def fuse_biases(function: function_pb2.FunctionDef) -> dict[str, node_def_pb2.NodeDef]:
    """Fuses biases into the ops that produce their operands, and also their gradients.

    A fused op has the name of the bias op. An op with other consumers or control outputs is not fused.
    """
    if not enabled() or not any(node.op in ("BiasAdd", _BIAS_GRADIENT) for node in function.node_def):
        return {}
    fusion = _Fusion(_Edges(function))
    for node in list(fusion.edges.nodes.values()):
        if node.op == "BiasAdd" and _is_plain(node):
            fusion.fuse(node)
        elif node.op == _FILTER_GRADIENT and _is_plain(node) and node.attr["padding"].s in (b"SAME", b"VALID"):
            fusion.fuse_gradients(node)
    if fusion.gone:
        _remove_fused(function, fusion.gone, fusion.renamed)
    return fusion.stands_for


class _Fusion:
    """Rewrites a function's ops to fused ones."""

    def __init__(self, edges: _Edges) -> None:
        self.edges = edges
        self.gone: set[str] = set()
        self.renamed: dict[str, str] = {}  # tensors
        self.stands_for: dict[str, node_def_pb2.NodeDef] = {}

    def fuse(self, bias: node_def_pb2.NodeDef) -> None:
        source = self.edges.nodes.get(producer_name(bias.input[0]))
        if (
            source is None
            or source.op not in _FUSED
            or not _is_plain(source)
            or not self.edges.has_one_consumer(source)
        ):
            return
        self.stands_for[bias.name] = copy_node(bias)
        self.renamed[_result(bias)] = f"{bias.name}:{_RESULTS[source.op]}:0"
        self.gone.add(source.name)
        bias.CopyFrom(_fused(source, bias))

    def fuse_gradients(self, of_filters: node_def_pb2.NodeDef) -> None:
        of_bias = self.edges.bias_gradient_of(of_filters)
        if of_bias is None:
            return
        self.stands_for[of_filters.name] = copy_node(of_filters)
        self.renamed[_result(of_bias)] = f"{of_filters.name}:bias_grad:0"
        self.gone.add(of_bias.name)
        of_filters.op = _BOTH_GRADIENTS
        of_filters.attr.pop("explicit_paddings", None)
        of_filters.attr["_kernel"].s = LABEL


def _is_plain(node: node_def_pb2.NodeDef) -> bool:
    """Returns whether an op is float32 with channels last and no transposes, as the fused kernels require."""
    attributes = node.attr  # asking it for what it has not would put that in
    if attributes["T"].type != types_pb2.DT_FLOAT:
        return False
    if "transpose_a" in attributes and attributes["transpose_a"].b:
        return False
    return "data_format" not in attributes or attributes["data_format"].s in (b"", b"NHWC")


def _result(node: node_def_pb2.NodeDef) -> str:
    return f"{node.name}:{_RESULTS[node.op]}:0"


class _Edges:
    """Consumers of each tensor in a function."""

    def __init__(self, function: function_pb2.FunctionDef) -> None:
        self.nodes = {node.name: node for node in function.node_def}
        self._users: dict[str, list[str]] = defaultdict(list)  # of a tensor, or (`^name`) who waits for an op
        self._followers: dict[str, list[str]] = defaultdict(list)
        for node in function.node_def:
            for tensor_name in node.input:
                self._users[tensor_name].append(node.name)
                self._followers[producer_name(tensor_name)].append(node.name)
        self._returned = Counter(function.ret.values())
        self._returned.update(f"^{name}" for name in function.control_ret.values())

    def has_one_consumer(self, node: node_def_pb2.NodeDef) -> bool:
        """Returns whether its result has one consumer in the function and no op waits for it."""
        result, waiting = _result(node), f"^{node.name}"
        free = not self._users[waiting] and not self._returned[waiting] and not self._returned[result]
        return free and len(self._users[result]) == 1

    def bias_gradient_of(self, gradient: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef | None:
        """Returns the bias gradient that can be fused with a convolution's filter gradient, or None."""
        for name in self._users[gradient.input[2]]:
            node = self.nodes[name]
            is_only_use = len(node.input) == 1 and not self._users[f"^{name}"] and not self._returned[f"^{name}"]
            if (
                node.op == _BIAS_GRADIENT
                and _is_plain(node)
                and is_only_use
                and not self._leads_to(name, gradient.name)
            ):
                return node
        return None

    def _leads_to(self, name: str, target: str) -> bool:
        seen, pending = {name}, [name]
        while pending:
            for follower in self._followers[pending.pop()]:
                if follower == target:
                    return True
                if follower not in seen:
                    seen.add(follower)
                    pending.append(follower)
        return False


def _fused(source: node_def_pb2.NodeDef, bias: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
    fused = node_def_pb2.NodeDef(name=bias.name, op=_FUSED[source.op])
    waits = dict.fromkeys(tensor_name for node in (source, bias) for tensor_name in control_inputs(node))
    fused.input.extend([*source.input[:2], bias.input[1], *waits])
    for attribute in op_types.op_def(fused.op).attr:
        if attribute.name in source.attr:
            fused.attr[attribute.name].CopyFrom(source.attr[attribute.name])
    fused.attr["num_args"].i = 1
    if source.op == "Conv2D":
        fused.attr["TArgs"].list.type.append(types_pb2.DT_FLOAT)
    fused.attr["fused_ops"].list.s.append(b"BiasAdd")
    fused.attr["_kernel"].s = LABEL
    return fused


def _remove_fused(function: function_pb2.FunctionDef, removed: set[str], renamed: dict[str, str]) -> None:
    for node_index in reversed(
        [node_index for node_index, node in enumerate(function.node_def) if node.name in removed]
    ):
        del function.node_def[node_index]
    for node in function.node_def:
        for index, tensor_name in enumerate(node.input):
            if tensor_name in renamed:
                node.input[index] = renamed[tensor_name]
    for name, tensor in list(function.ret.items()):
        function.ret[name] = renamed.get(tensor, tensor)
