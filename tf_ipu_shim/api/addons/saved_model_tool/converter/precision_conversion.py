"""`ipu_tensorflow_addons.saved_model_tool.converter.precision_conversion`: converts float32 to float16 or back."""

from __future__ import annotations

from typing import Any

import numpy as np
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.api.addons.saved_model_tool.converter import utils
from tf_ipu_shim.api.addons.saved_model_tool.converter.converter import Converter
from tf_ipu_shim.frontend.conversion import graph_nodes
from tf_ipu_shim.frontend.conversion.retyping import DtypeConversion
from tf_ipu_shim.tf_private.protos import types_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util


class PrecisionConversion(Converter):
    """Replaces float32 by float16 (`precision_mode="FP16"`), or the reverse (`"FP32"`).

    Constants are rounded. A float32 larger than any float16, as in the mask of an attention, becomes the largest
    float16: infinity times zero would be NaN. Inputs and outputs of the signature change too.

    Args:
        param: an `IpuConversionParams`: its `precision_mode` and `precision_conversion_excluded_nodes`.

    Raises:
        ValueError: the mode is unknown; the excluded nodes are not a list of regular expressions.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.precision_conversion.PrecisionConversion`.
    """

    def __init__(self, param: Any) -> None:
        self._target = None if param.precision_mode is None else utils.str_to_dtype(param.precision_mode)
        self._excluded = graph_nodes.check_patterns(
            param.precision_conversion_excluded_nodes, "precision_conversion_excluded_nodes"
        )

    def apply(self, graph_def: Any, signature_def: Any) -> tuple[Any, Any]:
        """See `Converter.apply`."""
        if self._target is None:
            return graph_def, signature_def
        source = types_pb2.DT_FLOAT if self._target == types_pb2.DT_HALF else types_pb2.DT_HALF
        retyping = DtypeConversion(
            source,
            self._target,
            lambda name: graph_nodes.matches(name, self._excluded),
            lambda node, readers: self._rounded(node),
        )
        return retyping.apply(graph_def, signature_def)

    def _rounded(self, node: Any) -> Any:
        target = dtypes.as_dtype(self._target)
        values = tensor_util.MakeNdarray(node.attr["value"].tensor).astype(np.float64)
        finite = np.isfinite(values)
        clipped = np.where(finite, np.clip(values, target.min, target.max), values)
        return tensor_util.make_tensor_proto(clipped.astype(target.as_numpy_dtype), target)
