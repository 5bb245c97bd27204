"""Ops whose results XLA cannot give as TensorFlow's kernels do: programs with one of them run by kernels.

Sorting puts NaN, and zeros of both signs, elsewhere. A list of tensors that grows stays as long as it is in XLA's
programs, which write to its last element instead. Fake quantisation, special functions and colours of NaN, infinity and
extreme numbers are others.
"""

from __future__ import annotations

from tensorflow.core.framework import node_def_pb2, types_pb2

from tf_ipu_shim.lowering.assertions import Describe
from tf_ipu_shim.lowering.functions import Functions
from tf_ipu_shim.lowering.program import ProgramRequest

_FLOATING = frozenset({types_pb2.DT_HALF, types_pb2.DT_BFLOAT16, types_pb2.DT_FLOAT, types_pb2.DT_DOUBLE})
_SORTING = frozenset({"TopK", "TopKV2"})
_FAKE_QUANTISATION = frozenset(
    f"FakeQuantWithMinMax{kind}{end}" for kind in ("Args", "Vars", "VarsPerChannel") for end in ("", "Gradient")
)
_SPECIAL_FUNCTIONS = frozenset({"Betainc", "IgammaGradA", "Polygamma", "Zeta"})
_COLOURS = frozenset({"AdjustContrastv2", "AdjustHue", "AdjustSaturation", "HSVToRGB"})
_OTHERS = _FAKE_QUANTISATION | _SPECIAL_FUNCTIONS | _COLOURS | {"Angle", "ApproxTopK", "ReciprocalGrad"}
_GROWS = "resize_if_index_out_of_bounds"


def described(request: ProgramRequest, describe: Describe) -> list[str]:
    """Descriptions of such ops of a program.

    Args:
        request: the traced function and its arguments.
        describe: gives the text by which messages name an op.
    """
    functions = Functions(request.library, request.function)
    return [
        describe(name, node.proto)
        for name in functions.reached()
        for node in functions[name].nodes
        if _only_by_kernels(node.proto)
    ]


def _only_by_kernels(node: node_def_pb2.NodeDef) -> bool:
    if node.op in _SORTING:
        return node.attr["T"].type in _FLOATING
    return node.op in _OTHERS or (node.op == "TensorListSetItem" and node.attr[_GROWS].b)
