"""Names computations as PopLibs' own layers do, for ops that represent such a layer."""

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
        layer: the same for all layers that have one function; empty if that is not known.
    """

    name: str
    layer: str


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
        if of and node.op == "Mul":
            first = next(iter(of))
            found[node.name] = LibraryName(_GRADIENTS[first.name], first.layer if len(of) == 1 else "")
    return found
