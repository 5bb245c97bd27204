"""Batch normalisation whose statistics several replicas share: refused, because here each replica has its own."""

from __future__ import annotations

from collections.abc import Iterable

from tensorflow.core.framework import function_pb2
from tensorflow.python.framework import errors_impl

OPTION = "norms.experimental.distributed_batch_norm_replica_group_size"
_BATCH_NORMS = frozenset({"FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"})


def check_shared_statistics(functions: Iterable[function_pb2.FunctionDef], replicas: int, group_size: int) -> None:
    """Refuses programs that would compute other statistics than on IPUs.

    Args:
        functions: all functions of a program.
        replicas: of the program.
        group_size: replicas that are to share statistics in training; 0 and 1 share none.

    Raises:
        UnimplementedError: several replicas train a batch normalisation, and are to share its statistics.
    """
    if replicas < 2 or group_size < 2:
        return
    for function in functions:
        for node in function.node_def:
            if node.op in _BATCH_NORMS and node.attr["is_training"].b:
                raise errors_impl.UnimplementedError(
                    None,
                    None,
                    f"{node.name} ({node.op}) is trained by {replicas} replicas, and {OPTION} is {group_size}: "
                    "statistics that replicas share are not emulated, each would compute its own. Set the option to "
                    "1, or normalise groups of channels (ipu.normalization_ops.group_norm), which needs no batch.",
                )
