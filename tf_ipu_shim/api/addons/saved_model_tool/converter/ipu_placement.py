"""`ipu_tensorflow_addons.saved_model_tool.converter.ipu_placement`: selects the nodes that run on the IPU."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.api.addons.saved_model_tool.converter import utils
from tf_ipu_shim.api.addons.saved_model_tool.converter.converter import Converter
from tf_ipu_shim.frontend.conversion import graph_nodes, host_part

_IPU = "/device:IPU:0"


class IPUPlacement(Converter):
    """Places all nodes on the IPU, except placeholders and the nodes that `excluded_nodes` names.

    With `remove_excluded_nodes`, the excluded nodes are removed: the tensors that they pass to the IPU become the
    model's inputs, and keep their names.

    Args:
        param: an `IpuConversionParams`: its `ipu_placement`, `excluded_nodes` and `remove_excluded_nodes`.

    Raises:
        ValueError: `excluded_nodes` is not a list of regular expressions.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.ipu_placement.IPUPlacement`.
    """

    def __init__(self, param: Any) -> None:
        self._excluded = graph_nodes.check_patterns(param.excluded_nodes, "excluded_nodes")
        self._places = param.ipu_placement
        self._removes = param.remove_excluded_nodes

    def apply(self, graph_def: Any, signature_def: Any) -> tuple[Any, Any]:
        """See `Converter.apply`.

        Raises:
            ValueError: excluded nodes are to be removed, and one of them needs a result of the IPU, or is an output of
                the model.
        """
        if not self._places:
            return graph_def, signature_def
        for node in graph_def.node:
            if node.op != "Placeholder" and not graph_nodes.matches(node.name, self._excluded):
                utils.add_ipu_scope(node, _IPU)
        if self._removes and self._excluded:
            return host_part.remove_host_part(graph_def, signature_def)
        return graph_def, signature_def
