"""Propagates constants out of functions: replaces call and branch results with known values.

XLA must know axes, shapes and permutations when it compiles. A gradient takes those of its forward function from that
function's results, and where the call stands in a branch, XLA does not see that they are constants: it compiles with
the largest value that they could have (a shape whose size it calls dynamic), which gives a wrong gradient or an error
about shapes. Example: the gradient of `tf.gather(x, indices, axis=1)` in a `tf.function` called in a `tf.cond`. Where
the call stands in a loop, the gradient's loop takes them from TensorLists, one an iteration. An IPU has no dynamic
shapes, so that such numbers are constants there, too.

A seed that a branch returns is no constant: XLA draws other numbers of a constant seed (`constant_folding`).
"""

from __future__ import annotations

from collections.abc import Sequence

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import copy_node
from tf_ipu_shim.compiler.passes.constant_values import CONSTANT_SOURCES, ConstantValues
from tf_ipu_shim.tf_private.protos import node_def_pb2

# Ops that seeds are computed by, with the inputs that XLA must know when it compiles.
_SEED_OPS: dict[str, tuple[int, ...]] = {
    **dict.fromkeys("Add AddV2 Bitcast BitwiseXor Cast Identity Mul Pack Sub StatelessRandomGetKeyCounter".split(), ()),
    **dict.fromkeys(("ExpandDims", "Reshape", "Squeeze"), (1,)),
    "StridedSlice": (1, 2, 3),
    **vocabulary.LAUNCHED,
}


def propagate_constants(functions: Functions) -> None:
    """Replaces results of calls and branches, and list elements, that are known constants."""
    known = ConstantValues(functions)
    found = {name: _constants_in(functions[name], known) for name in functions.reached()}
    for name, constants in found.items():
        if constants:
            _replace(functions[name], constants)


def _seed_users(graph: FunctionGraph) -> set[str]:
    """Returns the names of random ops, and of ops that compute their seeds element by element."""
    users: set[str] = set()
    pending = [node for node in graph.nodes if node.op in vocabulary.LAUNCHED]
    while pending:
        node = pending.pop()
        if node.name in users:
            continue
        users.add(node.name)
        producers = [producer for place, producer in enumerate(node.producers) if place not in _SEED_OPS[node.op]]
        pending.extend(producer for producer in producers if producer and producer.op in _SEED_OPS)
    return users


def _constants_in(graph: FunctionGraph, known: ConstantValues) -> dict[str, node_def_pb2.NodeDef]:
    """Maps every used tensor with a known value to its replacement constant."""
    if graph.ops.isdisjoint(CONSTANT_SOURCES):
        return {}
    constants: dict[str, node_def_pb2.NodeDef] = {}
    for node in graph.nodes:
        for tensor_name, value in known.constants_of(graph, node):
            new_node = copy_node(value)
            new_node.name = f"{node.name}/result_{tensor_name.rsplit(':', 1)[1]}"
            del new_node.input[:]
            constants[tensor_name] = new_node
    used = {tensor_name for node in graph.nodes for tensor_name in node.inputs}.union(graph.returns)
    return {tensor_name: constant for tensor_name, constant in constants.items() if tensor_name in used}


def _replace(graph: FunctionGraph, constants: dict[str, node_def_pb2.NodeDef]) -> None:
    """Makes consumers of known tensors use the constants."""
    seeds = _seed_users(graph)

    def renamed(tensor_name: str) -> str:
        return f"{constants[tensor_name].name}:output:0" if tensor_name in constants else tensor_name

    def is_seed(node: Node, place: int, tensor_name: str) -> bool:
        producer = graph.producer(tensor_name)
        is_branch = producer is not None and producer.op in vocabulary.BRANCHES
        return is_branch and node.name in seeds and place not in _SEED_OPS[node.op]

    def rule(node: Node) -> Sequence[node_def_pb2.NodeDef] | None:
        if constants.keys().isdisjoint(node.inputs):
            return None
        texts = enumerate(node.proto.input)
        inputs = [
            tensor_name if is_seed(node, place, tensor_name) else renamed(tensor_name) for place, tensor_name in texts
        ]
        return [copy_node(node.proto, inputs)]

    graph.rewrite(rule, before=list(constants.values()))
    graph.results = [result._replace(tensor=renamed(result.tensor)) for result in graph.results]
