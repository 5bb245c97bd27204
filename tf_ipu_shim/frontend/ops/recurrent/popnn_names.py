"""Names the ops of recurrent loops as PopLibs names its own, for memory reports and profiles."""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.tracing import tracing
from tf_ipu_shim.tf_private.protos import attr_value_pb2


def apply_output_gate(gate: Any, activated: Any, layer: str) -> Any:
    """Returns the output of an LSTM: output gate times activated cell state.

    Source: PopLibs `popnn/Lstm.cpp`.

    Example:
        >>> float(apply_output_gate(tf.constant(0.5), tf.constant(0.25), "LSTM"))
        0.125
    """
    name = vocabulary.OUTPUT_GATE
    attribute = attr_value_pb2.AttrValue(s=f"{name} {layer}".encode())
    with tracing.attribute_scope({vocabulary.LIBRARY_NAME_ATTRIBUTE: attribute}):
        return tf.multiply(gate, activated, name=name)
