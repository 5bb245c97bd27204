"""Makes both execution modes draw the same random numbers: narrows seeds, and names the ops that need XLA.

TensorFlow's kernels and XLA make other numbers of the same bits. A script's random numbers do not depend on the
execution mode: these ops are XLA launches of one op each (`op_launches`). For random ops of constants both modes use
TensorFlow's kernels (`constant_folding`). Seeds become keys in another way, too.
"""

from __future__ import annotations

from collections.abc import Container

from tf_ipu_shim.compiler.ir.vocabulary import LAUNCHED
from tf_ipu_shim.tf_private.protos import function_pb2, types_pb2

_KEYS = frozenset({"StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg"})
DEPENDS_ON_FOLDING = _KEYS.union(LAUNCHED)
"""Ops whose random numbers differ if XLA's compiler computes them."""


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


__all__ = ["DEPENDS_ON_FOLDING", "LAUNCHED", "narrow_seeds"]
