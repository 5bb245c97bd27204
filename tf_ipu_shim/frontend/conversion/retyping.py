"""Changes one dtype to another throughout a graph, and inserts casts between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.frontend.conversion import graph_nodes, node_types
from tf_ipu_shim.tf_private.protos import node_def_pb2

Values = Callable[[Any, list[Any]], Any]


class DtypeConversion:
    """A graph in which one dtype replaces another.

    A node keeps its dtype if the caller says so, or if it has no kernel for the other dtype. So do users of variables,
    tables and tensor lists, and calls of library functions. Casts are put between it and the others. Inputs and outputs
    of signatures change with their nodes.

    Args:
        source: the dtype to replace, as `DataType` of the protobuf.
        target: the replacement.
        keeps: whether a node of this name stays unchanged.
        values: returns a constant's value in the target dtype, from its node and the nodes that read it.
    """

    def __init__(self, source: int, target: int, keeps: Callable[[str], bool], values: Values) -> None:
        self._source = source
        self._target = target
        self._keeps = keeps
        self._values = values

    def apply(self, graph_def: Any, signature_def: Any) -> tuple[Any, Any]:
        """Returns the converted graph and its signature; the originals stay."""
        readers = _find_consumers(graph_def)
        result = type(graph_def)()
        result.CopyFrom(graph_def)
        del result.node[:]
        result.node.extend(self._convert_node(node, readers.get(node.name, [])) for node in graph_def.node)
        output_dtypes = {node.name: node_types.output_dtypes(node) for node in result.node}
        self._insert_casts(result, output_dtypes)
        return result, _convert_signature(signature_def, output_dtypes)

    def _convert_node(self, node: Any, readers: list[Any]) -> Any:
        if self._keeps(node.name) or node_types.calls_functions(node) or node_types.touches_state(node):
            return node
        changed = node_types.change_dtype(node, self._source, self._target)
        if changed is None:
            return node
        if changed.op == "Const" and changed.attr["dtype"].type != node.attr["dtype"].type:
            changed.attr["value"].tensor.CopyFrom(self._values(node, readers))
        return changed

    def _insert_casts(self, graph_def: Any, output_dtypes: dict[str, list[int]]) -> None:
        dtypes = {self._source, self._target}
        casts: dict[tuple[graph_nodes.Tensor, int], Any] = {}
        for node in graph_def.node:
            for position, dtype in enumerate(node_types.input_dtypes(node)):
                tensor = graph_nodes.parse_tensor(node.input[position])
                has = output_dtypes[tensor[0]][tensor[1]]
                if has != dtype and {has, dtype} == dtypes:
                    cast = casts.setdefault((tensor, dtype), self._cast(tensor, has, dtype, output_dtypes))
                    node.input[position] = cast.name
        graph_def.node.extend(casts.values())

    @staticmethod
    def _cast(tensor: graph_nodes.Tensor, has: int, dtype: int, output_dtypes: dict[str, list[int]]) -> Any:
        base = f"{tensor[0]}/{tensor[1]}_as_{dtypes.as_dtype(dtype).name}"
        name = next(
            name
            for name in (base + "_" * count for count in range(len(output_dtypes) + 1))
            if name not in output_dtypes
        )
        cast = node_def_pb2.NodeDef(name=name, op="Cast", input=[graph_nodes.format_input(tensor)])
        cast.attr["SrcT"].type, cast.attr["DstT"].type, cast.attr["Truncate"].b = has, dtype, False
        return cast


def _find_consumers(graph_def: Any) -> dict[str, list[Any]]:
    consumers: dict[str, list[Any]] = {}
    for node in graph_def.node:
        for name in node.input:
            if not graph_nodes.is_control(name):
                consumers.setdefault(graph_nodes.node_name(name), []).append(node)
    return consumers


def _convert_signature(signature_def: Any, output_dtypes: dict[str, list[int]]) -> Any:
    result = type(signature_def)()
    result.CopyFrom(signature_def)
    for infos in (result.inputs, result.outputs):
        for info in infos.values():
            node, index = graph_nodes.parse_tensor(info.name)
            if node in output_dtypes:
                info.dtype = output_dtypes[node][index]
    return result
