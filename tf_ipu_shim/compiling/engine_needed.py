"""Whether a program has anything to compile.

Graphcore's compiler makes no engine for a program that only gives constants, only hands on what it is given, or only
computes on scalars, element by element: the driver answers those itself. So they count as no compilation and appear in
no trace. Assigning a variable is a result like the others.
"""

from __future__ import annotations

from tf_ipu_shim.lowering import op_types, vocabulary
from tf_ipu_shim.lowering.function_graph import FunctionGraph, Node
from tf_ipu_shim.lowering.program import LoweredProgram, ProgramRequest

_HANDS_ON = frozenset(
    "Identity IdentityN StopGradient PreventGradient EnsureShape Snapshot ReadVariableOp _Arg _Retval".split()
)
_CONSTANT = vocabulary.SHAPE_QUERIES | {"ZerosLike", "OnesLike", "VariableShape"}
_ASSIGNS = "AssignVariableOp"
_ELEMENTWISE = frozenset(
    "Abs Acos Acosh Add AddN AddV2 Asin Asinh AssignAddVariableOp AssignSubVariableOp AssignVariableOp Atan Atan2 "
    "Atanh Cast Ceil Cos Cosh Div DivNoNan Equal Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Inv Less "
    "LessEqual Log Log1p LogicalAnd LogicalNot LogicalOr Maximum Minimum Mod Mul MulNoNan Neg NotEqual Pow RealDiv "
    "Reciprocal Relu Rint Round Rsqrt Select SelectV2 Sigmoid Sign Sin Sinh Sqrt Square SquaredDifference Sub Tan Tanh "
    "TruncateDiv TruncateMod Xdivy Xlogy".split()
)


def needs_engine(request: ProgramRequest, program: LoweredProgram) -> bool:
    """Whether Graphcore's compiler would make an engine of a program.

    Args:
        request: the traced function and its arguments.
        program: what it was lowered to.
    """
    functions = {function.signature.name: function for function in program.functions}
    graphs = [FunctionGraph.parse(functions[name]) for name in program.programs]
    if not any(_computes(graph) for graph in graphs):
        return False
    return not (len(graphs) == 1 and _all_scalar(request) and all(_is_scalar_step(node) for node in graphs[0].nodes))


def _computes(graph: FunctionGraph) -> bool:
    computed: set[Node | None] = set()
    constant: set[Node | None] = set()
    for node in graph.nodes:
        if node.op in _CONSTANT:
            constant.add(node)
        elif any(producer in computed for producer in node.producers):
            computed.add(node)
        elif all(producer in constant for producer in node.producers) and not op_types.is_stateful(node.op):
            constant.add(node)
        elif node.op not in _HANDS_ON and node.op not in (_ASSIGNS, "NoOp"):
            computed.add(node)
    results = [graph.producer(tensor) for tensor in graph.returns]
    return any(node in computed for node in [*results, *graph.control_returns])


def _all_scalar(request: ProgramRequest) -> bool:
    variables = zip(request.variable_types, request.variable_shapes)
    return all(shape == () for shape in request.arg_shapes) and all(
        kind == 0 or shape == () for kind, shape in variables
    )


def _is_scalar_step(node: Node) -> bool:
    if node.op == "Const":
        return not node.proto.attr["value"].tensor.tensor_shape.dim
    return node.op in _ELEMENTWISE or node.op in _HANDS_ON or node.op == "NoOp"
