"""Launches XLA for random ops in execution mode `kernels`, so that both modes draw the same numbers.

TensorFlow's kernels and XLA make other numbers of the same bits. A script's random numbers do not depend on the
execution mode: these ops are XLA launches of one op each in both modes. For random ops of constants both modes use
TensorFlow's kernels (`constant_folding`). Seeds become keys in another way, too.
"""

from __future__ import annotations

from collections.abc import Container

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.vocabulary import LAUNCHED
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, op_def_pb2, types_pb2

_KEYS = frozenset({"StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg"})
DEPENDS_ON_FOLDING = _KEYS.union(LAUNCHED)
"""Ops whose random numbers differ if XLA's compiler computes them."""


def launch_functions(
    node: node_def_pb2.NodeDef, name: str
) -> tuple[function_pb2.FunctionDef, function_pb2.FunctionDef]:
    """Returns two functions that replace an op: one computes it, the other launches the first with XLA."""
    inputs, (output,) = op_types.input_types(node), op_types.output_types(node).items()
    constants = LAUNCHED[node.op]
    order = [*constants, *(index for index in range(len(inputs)) if index not in constants)]
    program = function_pb2.FunctionDef()
    program.signature.name = f"{name}_program"
    program.signature.input_arg.extend(_argument(index, inputs[index]) for index in order)
    only = program.node_def.add(name="only", op=node.op, input=[f"input_{index}" for index in range(len(inputs))])
    for attribute, value in node.attr.items():
        if attribute != vocabulary.CHIP_ATTRIBUTE:
            only.attr[attribute].CopyFrom(value)
    _add_result(program, f"only:{output[0]}:0", output[1][0])
    caller = function_pb2.FunctionDef()
    caller.signature.name = name
    caller.signature.input_arg.extend(_argument(index, kind) for index, kind in enumerate(inputs))
    launch = caller.node_def.add(name="launch", op=vocabulary.LAUNCH, device=node.device)
    launch.input.extend(f"input_{index}" for index in order)
    launch.attr[vocabulary.CHIP_ATTRIBUTE].CopyFrom(node.attr[vocabulary.CHIP_ATTRIBUTE])
    launch.attr["Tconstants"].list.type.extend(inputs[index] for index in constants)
    launch.attr["Targs"].list.type.extend(inputs[index] for index in order[len(constants) :])
    launch.attr["Nresources"].i = 0
    launch.attr["Tresults"].list.type.extend(output[1])
    launch.attr["function"].func.name = program.signature.name
    _add_result(caller, "launch:results:0", output[1][0])
    return caller, program


def narrow_seeds(function: function_pb2.FunctionDef, folded: Container[str]) -> None:
    """Makes ops that derive keys from seeds use the lower 32 bits, as XLA does: TensorFlow's kernels keep the sign.

    Args:
        function: it is changed.
        folded: ops of constants that XLA's compiler computes by the kernels.
    """
    for node in list(function.node_def):
        if node.op in _KEYS and node.name not in folded:
            kind = node.attr["Tseed"]
            for target in (types_pb2.DT_UINT32, types_pb2.DT_INT64):
                cast = function.node_def.add(name=f"{node.name}/to_{target}", op="Cast", input=[node.input[0]])
                cast.attr["SrcT"].type, cast.attr["DstT"].type = kind.type, target
                node.input[0], kind.type = f"{cast.name}:y:0", target


def _argument(index: int, kind: int) -> op_def_pb2.OpDef.ArgDef:
    return op_def_pb2.OpDef.ArgDef(name=f"input_{index}", type=kind)


def _add_result(function: function_pb2.FunctionDef, tensor: str, kind: int) -> None:
    function.signature.output_arg.add(name="output", type=kind)
    function.ret["output"] = tensor


__all__ = ["DEPENDS_ON_FOLDING", "LAUNCHED", "launch_functions", "narrow_seeds"]
