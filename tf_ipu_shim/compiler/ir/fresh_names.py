"""Names for ops that a pass adds to a function."""

from __future__ import annotations

from tf_ipu_shim.tf_private.protos import function_pb2


class FreshNames:
    """Gives out names that nothing in a function has.

    Args:
        function: whose ops and arguments have names.
    """

    def __init__(self, function: function_pb2.FunctionDef) -> None:
        self._taken = {node.name for node in function.node_def}
        self._taken.update(argument.name for argument in function.signature.input_arg)

    def like(self, name: str) -> str:
        """A name like this one; it is taken from then on."""
        made, number = name, 0
        while made in self._taken:
            number += 1
            made = f"{name}_{number}"
        self._taken.add(made)
        return made
