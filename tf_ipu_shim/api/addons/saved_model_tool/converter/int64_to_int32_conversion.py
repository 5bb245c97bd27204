"""`ipu_tensorflow_addons.saved_model_tool.converter.int64_to_int32_conversion`: converts int64 tensors to int32."""

from __future__ import annotations

from typing import Any

import numpy as np

from tf_ipu_shim.api.addons.saved_model_tool.converter.converter import Converter
from tf_ipu_shim.frontend.conversion import graph_nodes
from tf_ipu_shim.frontend.conversion.retyping import DtypeConversion
from tf_ipu_shim.tf_private.protos import types_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util

# Ops to which any bound beyond an axis means its end.
_SLICES = frozenset({"StridedSlice", "Slice"})


class Int64Conversion(Converter):
    """Replaces int64 by int32, if `int64_to_int32_conversion` says so.

    Nodes that `excluded_nodes` keeps on the host stay int64, with casts between them and the rest. Inputs and outputs
    of the signature change with their nodes.

    Args:
        param: an `IpuConversionParams`.

    Raises:
        ValueError: `excluded_nodes` is not a list of regular expressions.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.int64_to_int32_conversion.Int64Conversion`.
    """

    def __init__(self, param: Any) -> None:
        self.int64_to_int32_conversion = param.int64_to_int32_conversion
        self._excluded = graph_nodes.check_patterns(param.excluded_nodes, "excluded_nodes")

    def apply(self, graph_def: Any, signature_def: Any) -> tuple[Any, Any]:
        """See `Converter.apply`.

        Raises:
            ValueError: a constant has a value outside int32's range.
        """
        if not self.int64_to_int32_conversion:
            return graph_def, signature_def
        retyping = DtypeConversion(
            types_pb2.DT_INT64, types_pb2.DT_INT32, lambda name: graph_nodes.matches(name, self._excluded), _narrowed
        )
        return retyping.apply(graph_def, signature_def)


def _narrowed(node: Any, readers: list[Any]) -> Any:
    values = tensor_util.MakeNdarray(node.attr["value"].tensor)
    limits = np.iinfo(np.int32)
    clipped = np.clip(values, limits.min, limits.max)
    if (clipped != values).any() and not all(reader.op in _SLICES for reader in readers):
        raise ValueError(
            f"The constant {node.name} has the value "
            f"{(values[clipped != values].flat[0] if values.shape else values)}, which int32 cannot "
            "represent. Keep the ops that read it on the host with excluded_nodes, or leave out "
            "int64_to_int32_conversion."
        )
    return tensor_util.make_tensor_proto(clipped.astype(np.int32))
