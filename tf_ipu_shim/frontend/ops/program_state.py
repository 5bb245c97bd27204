"""Creates hidden variables that keep an op's state between runs of a program.

Uses `ResourceVariable` and `executing_eagerly_outside_functions`; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.frontend.tracing.internal_variables import internal
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.variables import resource_variable_ops

v1 = tf.compat.v1
_KEPT = "_ipu_program_state"


def program_state(shape: Any, dtype: Any, name: str) -> Any:
    """Returns a new variable of zeros for the program that is being built."""
    if not ops.executing_eagerly_outside_functions():
        with v1.variable_scope(None, name, use_resource=True):
            return internal(v1.get_variable("state", shape, dtype, v1.zeros_initializer(), trainable=False))
    with tf.init_scope():
        # Not `tf.Variable`: a tf.function only creates variables in its first trace.
        state = internal(resource_variable_ops.ResourceVariable(tf.zeros(shape, dtype), trainable=False, name=name))
    graph = ops.get_default_graph()  # functions hold their variables weakly
    setattr(graph, _KEPT, (*getattr(graph, _KEPT, ()), state))
    return state
