"""Runs `tf.xla.experimental.compile` on the IPU when TensorFlow 1 scripts call it in an `ipu_scope`.

Checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim import patches
from tf_ipu_shim.frontend.tracing import ipu_compiler
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.utilities import xla

_WHY = "under an ipu_scope it compiles for the IPU, as in Graphcore's TensorFlow"


def install() -> None:
    """Makes `tf.xla.experimental.compile` compile for the IPU if its caller is under an `ipu_scope`.

    TensorFlow marks the ops for its graph passes to find, but these do not know a plugin's devices.
    """
    for module in (xla, tf.xla.experimental, tf.compat.v1.xla.experimental):
        patches.replace(module, "compile", _patch_compile, _WHY)


def _patch_compile(stock: Callable[..., Any]) -> Callable[..., Any]:
    def compile(computation: Callable[..., Any], inputs: Any = None) -> Any:
        return ipu_compiler.compile(computation, inputs) if is_in_ipu_scope() else stock(computation, inputs)

    compile.__doc__ = stock.__doc__
    return compile


def is_in_ipu_scope() -> bool:
    """Returns whether ops of the session's graph that are made here are on an IPU device."""
    if context.executing_eagerly():
        return False  # where TensorFlow runs the function op by op
    for function in reversed(tf_graphs.device_functions(ops.get_default_graph())):
        if kind := getattr(tf_graphs.device_spec_of(function), "device_type", None):  # a script may give any function
            return kind == "IPU"
    return False
