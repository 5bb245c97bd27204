"""Tells whether TensorFlow uses oneDNN kernels on this machine, and holds the kernel label that selects them."""

from __future__ import annotations

from tf_ipu_shim.poplar_sdk.toolchain.sources import cpu_features
from tf_ipu_shim.tf_private.utilities import _pywrap_util_port  # checked on 2.15.1 and 2.21.0

LABEL = b"MklNameChangeOp"
"""The attribute `_kernel` of ops whose kernels accept and return tensors in TensorFlow's own layout."""


def enabled() -> bool:
    """Returns whether the CPU's ops use oneDNN (`TF_ENABLE_ONEDNN_OPTS`); the IPU's then do too."""
    return _pywrap_util_port.IsMklEnabled()


def has_avx512() -> bool:
    """Returns whether the processor has the instructions that many of oneDNN's kernels need."""
    return "avx512bw" in cpu_features()
