"""`ipu_tensorflow_addons.saved_model_tool.converter.manual_shard`: assigns nodes to IPUs by name patterns."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.api.addons.saved_model_tool.converter.converter import Converter
from tf_ipu_shim.compiler.ir import sharding_annotations, vocabulary
from tf_ipu_shim.frontend.conversion import graph_nodes, host_part


class ManualSharding(Converter):
    """Spreads nodes over IPUs by regular expressions.

    A node runs on the IPU whose list has the first expression that is found in its name, else on the first IPU.
    `ipu_shard` does the same in a script; `merge_subgraphs=True` makes one program of all of them.

    Args:
        param: an `IpuConversionParams`: its `manual_sharding`, a list of regular expressions for each IPU, and
            `num_ipus`.

    Raises:
        TypeError: `manual_sharding` is not a list of lists of strings.
        ValueError: there are more lists than IPUs, or fewer.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.manual_shard.ManualSharding`.
    """

    def __init__(self, param: Any) -> None:
        self._shards: list[list[str]] = param.manual_sharding or []
        if self._shards:
            _check(self._shards, param.num_ipus)

    def apply(self, graph_def: Any, signature_def: Any) -> tuple[Any, Any]:
        """See `Converter.apply`.

        Raises:
            ValueError: no node is on an IPU.
        """
        if not self._shards:
            return graph_def, signature_def
        placed = [node for node in graph_def.node if host_part.is_on_ipu(node)]
        if not placed:
            raise ValueError(
                "No ops placed on IPU device to shard: all nodes are on the host, but manual_sharding needs "
                "nodes on the IPU. Leave out manual_sharding, or ipu_placement=False."
            )
        for node in placed:
            annotation = sharding_annotations.sharding_annotation(self._shard_of(node.name))
            node.attr[vocabulary.SHARDING_ATTRIBUTE].s = annotation
        return graph_def, signature_def

    def _shard_of(self, name: str) -> int:
        return next(
            (index for index, shard_patterns in enumerate(self._shards) if graph_nodes.matches(name, shard_patterns)), 0
        )


def _check(shards: Any, num_ipus: int) -> None:
    if not isinstance(shards, list):
        raise TypeError(f"manual_sharding must be a list, not {type(shards).__name__}: give a list for each IPU.")
    graph_nodes.check_pattern_lists(shards, "manual_sharding")
    if len(shards) != num_ipus:
        raise ValueError(
            f"The length of manual_sharding ({len(shards)}) should be num_ipus ({num_ipus}): give a list for each IPU."
        )
