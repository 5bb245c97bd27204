"""Names the compute sets of ops that are part of a PopLibs layer, such as an LSTM, as PopLibs does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.tf_private.protos import function_pb2

# Of the matmuls with the gradient that a matmul's gradient consists of: one call of PopLibs.
_GRADIENTS = {vocabulary.OUTPUT_GATE: "MulOGate"}
_GRADIENT_SUFFIX = "_grad"  # of the scope of an op's gradient, as TensorFlow names it


class LibraryName(NamedTuple):
    """The name of a compute set in a PopLibs layer.

    Args:
        name: the compute set in the op's scope; or, after a slash, in an XLA instruction of that scope.
        layer: the same for all layers that have one function; empty if that is not known.
    """

    name: str
    layer: str

    def names(self, owner: str, below: str) -> tuple[str, str]:
        """Returns the scope of a computation and its name there.

        Args:
            owner: the op.
            below: the name of a computation outside of a layer.

        Example:
            >>> LibraryName("group-norm-grad/Whiten", "").names("norm/sub", "subtract/Op/Subtract")
            ('norm', 'group-norm-grad/Whiten/Op/Subtract')
            >>> LibraryName("OutputGate", "").names("lstm/Mul", "multiply/Op/Multiply")
            ('lstm/OutputGate', '/Op/Multiply')
        """
        scope, operation = owner.rpartition("/")[0], below.partition("/")[2]
        if "/" in self.name:
            return scope, f"{self.name}/{operation}"
        return f"{scope}/{self.name}", f"/{operation}"


def library_names(functions: Sequence[function_pb2.FunctionDef]) -> dict[str, LibraryName]:
    """Returns the names of annotated ops and, by scope, of their gradients.

    Source: PopLibs `popnn/Lstm.cpp`: `OutputGate` in the forward pass, `MulOGate` for both of its gradients.
    """
    nodes = [node for function in functions for node in function.node_def]
    found: dict[str, LibraryName] = {}
    layers: dict[str, set[LibraryName]] = {}  # by the last part of the op's name
    for node in nodes:
        if vocabulary.LIBRARY_NAME_ATTRIBUTE in node.attr:
            name, _, layer = node.attr[vocabulary.LIBRARY_NAME_ATTRIBUTE].s.decode().partition(" ")
            found[node.name] = LibraryName(name, layer)
            layers.setdefault(node.name.rpartition("/")[2], set()).add(found[node.name])
    for node in nodes if layers else ():
        scope = node.name.rpartition("/")[0].rpartition("/")[2]
        of = layers.get(scope[: -len(_GRADIENT_SUFFIX)]) if scope.endswith(_GRADIENT_SUFFIX) else None
        gradients = {LibraryName(_GRADIENTS[name.name], name.layer) for name in of or () if name.name in _GRADIENTS}
        if gradients and node.op == "Mul":
            first = next(iter(gradients))
            found[node.name] = first if len(gradients) == 1 else first._replace(layer="")
    return found
