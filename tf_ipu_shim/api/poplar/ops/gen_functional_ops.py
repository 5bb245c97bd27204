"""`gen_functional_ops`: recomputation checkpoints as an op; its ops that call functions are not supported."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.frontend.pipelines import pipelining_ops


def recomputation_checkpoint(inputs: Any, name: Any = None) -> Any:
    """See `pipelining_ops.recomputation_checkpoint`."""
    return pipelining_ops.recomputation_checkpoint(inputs, name or "RecomputationCheckpoint")
