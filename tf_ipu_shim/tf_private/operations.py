"""Imports TensorFlow modules of ops that `tf` and `tf.raw_ops` lack or define with other arguments."""

from __future__ import annotations

from tensorflow.python.ops import (
    array_ops,  # placeholder, where_v2: names of both versions in one module
    array_ops_stack,  # stack without Keras' dispatch
    bitwise_ops,  # bitwise ops without dispatch
    clip_ops,  # clip_by_value with its gradient
    gen_array_ops,  # ops with positional arguments
    gen_bitwise_ops,  # ops with positional arguments
    gen_functional_ops,  # a conditional of functions that are named
    gen_logging_ops,  # the Assert op and timestamps themselves
    gen_math_ops,  # a cast that is not left out
    gen_nn_ops,  # batch normalisation and its gradients, which are patched
    gen_stateless_random_ops,  # random ops of a seed and nothing else
    init_ops_v2,  # Initializer, the base of ours
    lookup_ops,  # tables of TensorFlow 1
    math_ops,  # names of both versions in one module
    metrics_impl,  # the streaming mean of TensorFlow 1
    nn_ops,  # top_k
    random_ops,  # random_uniform with the seed of TensorFlow 1
    script_ops,  # numpy_function, and the register of functions that it keeps
    special_math_ops,  # einsum without dispatch
    state_ops,  # assign_add on variables of either version
    summary_ops_v2,  # all summaries of a graph
)

assert_op = gen_logging_ops._assert  # the op `Assert` itself: `tf.debugging.Assert` adds a conditional around it


def has_python_functions() -> bool:
    """Returns whether functions of Python are registered that ops may call."""
    return script_ops._py_funcs.size() > 0
