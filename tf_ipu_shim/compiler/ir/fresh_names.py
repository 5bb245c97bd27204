"""Generates unused node names within a function."""

from __future__ import annotations

from tf_ipu_shim.tf_private.protos import function_pb2


class FreshNames:
    """Returns names that no node of a function has."""

    def __init__(self, function: function_pb2.FunctionDef) -> None:
        self._taken = {node.name for node in function.node_def}
        self._taken.update(argument.name for argument in function.signature.input_arg)

    def unique(self, name: str) -> str:
        """Returns an unused name similar to this one and reserves it."""
        candidate, suffix = name, 0
        while candidate in self._taken:
            suffix += 1
            candidate = f"{name}_{suffix}"
        self._taken.add(candidate)
        return candidate
