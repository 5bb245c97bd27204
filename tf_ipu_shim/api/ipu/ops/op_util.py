"""`tensorflow.python.ipu.ops.op_util`: helpers shared by several Graphcore modules, which some scripts import."""

from tf_ipu_shim.frontend.ops.op_util import (
    accumulate_gradients,
    bool_to_three_state,
    get_accumulator_dtype,
    get_activation_name,
)

__all__ = [
    "accumulate_gradients",
    "bool_to_three_state",
    "get_accumulator_dtype",
    "get_activation_name",
]
