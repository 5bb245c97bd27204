"""Whether a program has anything to compile.

Graphcore's compiler makes no engine for a program that only gives constants, only hands on what it is given, or only
computes on scalars, element by element: the driver answers those itself. So they count as no compilation and appear in
no trace. Assigning a variable is a result like the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorflow.core.framework import function_pb2

from tf_ipu_shim.lowering import op_types
from tf_ipu_shim.lowering.function_graph import FunctionGraph, Node
from tf_ipu_shim.lowering.program import LoweredProgram, ProgramRequest

_HANDS_ON = frozenset(
    "Identity IdentityN StopGradient PreventGradient EnsureShape Snapshot ReadVariableOp _Arg _Retval".split()
)
_CONSTANT = op_types.SHAPE_QUERIES | {"ZerosLike", "OnesLike", "VariableShape"}
_ASSIGNS = "AssignVariableOp"
_ELEMENTWISE = frozenset(
    "Abs Acos Acosh Add AddN AddV2 Asin Asinh AssignAddVariableOp AssignSubVariableOp AssignVariableOp Atan Atan2 Atanh "
    "Cast Ceil Cos Cosh Div DivNoNan Equal Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Inv Less LessEqual "
    "Log Log1p LogicalAnd LogicalNot LogicalOr Maximum Minimum Mod Mul MulNoNan Neg NotEqual Pow RealDiv Reciprocal "
    "Relu Rint Round Rsqrt Select SelectV2 Sigmoid Sign Sin Sinh Sqrt Square SquaredDifference Sub Tan Tanh TruncateDiv "
    "TruncateMod Xdivy Xlogy".split()
)


def compiles(request: ProgramRequest, program: LoweredProgram) -> bool:
    """Whether Graphcore's compiler would make an engine of a program.

    Args:
        request: the traced function and its arguments.
        program: what it was lowered to.
    """
    functions = {function.signature.name: function for function in program.functions}
    graphs = [FunctionGraph(functions[cluster.function]) for cluster in program.clusters]
    if not any(_computes(graph) for graph in graphs):
        return False
    return not (len(graphs) == 1 and _all_scalar(request) and all(_is_scalar_step(node) for node in graphs[0].nodes))


def _computes(graph: FunctionGraph) -> bool:
    computed: set[Node] = set()
    constant: set[Node] = set()
    for node in graph.nodes:
        producers = node.producers
        if any(producer in computed for producer in producers):
            computed.add(node)
        elif node.op in _CONSTANT or (
            all(producer in constant for producer in producers) and not op_types.is_stateful(node.op)
        ):
            constant.add(node)
        elif node.op not in _HANDS_ON and node.op not in (_ASSIGNS, "NoOp"):
            computed.add(node)
    # What nobody needs is not in the graph.
    return bool(computed)


def _all_scalar(request: ProgramRequest) -> bool:
    variables = zip(request.variable_types, request.variable_shapes)
    return all(shape == () for shape in request.arg_shapes) and all(
        kind == 0 or shape == () for kind, shape in variables
    )


def _is_scalar_step(node: Node) -> bool:
    if node.op == "Const":
        return not node.proto.attr["value"].tensor.tensor_shape.dim
    return node.op in _ELEMENTWISE or node.op in _HANDS_ON or node.op == "NoOp"


def written_arguments(function: str, library: Mapping[str, function_pb2.FunctionDef]) -> set[int]:
    """Which arguments of a function are variables that it, or a function it calls, writes.

    Args:
        function: its name.
        library: all functions by name.
    """
    return _Written(library).of(function)


_READS = frozenset("ReadVariableOp ResourceGather ResourceGatherNd VariableShape VarIsInitializedOp".split())


class _Written:
    def __init__(self, library: Mapping[str, function_pb2.FunctionDef]) -> None:
        self._library = library
        self._known: dict[str, set[int]] = {}

    def of(self, function: str) -> set[int]:
        if function not in self._known:
            self._known[function] = set()  # for recursive functions
            if function in self._library:
                self._known[function] = self._in(FunctionGraph(self._library[function]))
        return self._known[function]

    def _in(self, graph: FunctionGraph) -> set[int]:
        argument_of = {name: index for index, name in enumerate(graph.arguments)}  # tensor -> the argument it is
        written: set[int] = set()
        for node in graph.nodes:
            held = [argument_of.get(text) for text in node.inputs]
            if node.op in ("Identity", "IdentityN"):
                for index, argument in enumerate(held):
                    if argument is not None:
                        argument_of[f"{node.name}:output:{index}"] = argument
            elif node.op in op_types.FUNCTION_ATTRIBUTES:
                written |= self._through_call(node, held)
            elif node.op not in _READS:
                resources = [kind == op_types.RESOURCE for kind in op_types.input_types(node.proto)]
                written |= {a for a, is_resource in zip(held, resources) if a is not None and is_resource}
        return written

    def _through_call(self, node: Node, held: Sequence[int | None]) -> set[int]:
        if node.op in op_types.BRANCHES:
            held = held[1:]  # the first one chooses the branch
        inner = {index for called in op_types.called_functions(node.proto) for index in self.of(called)}
        return {argument for index, argument in enumerate(held) if argument is not None and index in inner}
