"""Checks that an estimator's model, pipeline and device fit the `num_shards` of its `IPURunConfig`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tf_ipu_shim.compiler.ir import sharding_annotations
from tf_ipu_shim.frontend.sharding import scopes
from tf_ipu_shim.machine import selection
from tf_ipu_shim.runtime import devices
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.tensors import constant_op

_EVERY = -1  # a stage on all IPUs


def show(shards: int) -> None:
    """Marks a traced program with the IPUs of a replica; otherwise the IPUs of its ops are counted."""
    if shards > 1:
        with scopes.ipu_shard(shards - 1):
            constant_op.constant(0, name="last_shard")  # nothing needs it: the lowering looks at its mark


def refuse_others(graph: Any, shards: int) -> None:
    """Refuses a model on more IPUs than a replica has: fewer replicas would run than configured."""
    inside = [node for function in tf_graphs.functions_by_name(graph).values() for node in function.definition.node_def]
    for node in [*(operation.node_def for operation in graph.get_operations()), *inside]:
        mark = sharding_annotations.shard_of(node)
        if mark is not None and (mark.shard or 0) >= shards:
            raise ValueError(
                f"{node.name} is on IPU {mark.shard} of a replica, but `IPURunConfig.num_shards` is "
                f"{shards}; expected at least {(mark.shard or 0) + 1}. Set it to that or more, and "
                "auto_select_ipus to its product with num_replicas."
            )


def check_pipeline(stages: Sequence[Any], mapping: Sequence[int] | None, shards: int) -> None:
    """Refuses a pipeline that is not on all IPUs of a replica."""
    if mapping is not None and _EVERY in mapping:
        return
    needed = len(stages) if mapping is None else len(set(mapping))
    if needed != shards:
        other = ""
        if needed and needed & (needed - 1) == 0:  # auto_select_ipus takes no three of them
            other = f", or set num_shards to {needed} and auto_select_ipus to num_replicas times {needed}"
        raise ValueError(
            f"This pipeline requires {needed} devices, but `IPURunConfig.num_shards` was set to {shards}. "
            f"Map its stages to {shards} with device_mapping{other}."
        )


def check_device(ordinal: int, replicas: int, shards: int) -> None:
    """Refuses a device on which another number of replicas would run."""
    num_ipus = devices.get(ordinal, attach=False).num_ipus
    if num_ipus // selection.ipus_of_replica(shards, num_ipus) != replicas:
        raise ValueError(
            f"`IPURunConfig` configured with {replicas * shards} devices ({replicas} replicas times "
            f"{shards} shards), but /device:IPU:{ordinal} has {num_ipus}; both must be equal. Select "
            f"{replicas * shards} with auto_select_ipus, or with a device that has as many."
        )
