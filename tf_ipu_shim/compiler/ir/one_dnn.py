"""Whether TensorFlow runs ops by oneDNN on this machine, and how its kernels of that kind are asked for."""

from __future__ import annotations

from tf_ipu_shim.tf_private.protos import node_def_pb2
from tf_ipu_shim.tf_private.utilities import _pywrap_util_port  # checked on 2.15.1 and 2.21.0

LABEL = b"MklNameChangeOp"
"""The attribute `_kernel` of ops whose kernels take and give tensors in TensorFlow's own layout."""


def enabled() -> bool:
    """Whether the CPU's ops run by oneDNN (`TF_ENABLE_ONEDNN_OPTS`): the IPU's do as they do."""
    return _pywrap_util_port.IsMklEnabled()


def copy_of(node: node_def_pb2.NodeDef) -> node_def_pb2.NodeDef:
    """A node by itself: one of a function is lost with it."""
    copy = node_def_pb2.NodeDef()
    copy.CopyFrom(node)
    return copy
