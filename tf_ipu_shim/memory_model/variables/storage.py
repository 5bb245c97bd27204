"""Decides where variables and gradient accumulators are stored: on chip or remote, whole or sharded.

Programs here always have them whole and in their arenas. This is the storage that Graphcore's compiler would choose for
the same options, only for the memory model.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.loops.pipeline_description import PipelineDescription
from tf_ipu_shim.memory_model.variables import variable_kinds
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2


@dataclasses.dataclass(frozen=True)
class StoredBytes:
    """Bytes of one tensor per replica, on chip and in remote memory.

    Args:
        on_chip: bytes of it that are always on the chip.
        remote: bytes of it in remote memory.
        is_shared: whether the replicas have a part each.
    """

    on_chip: int
    remote: int = 0
    is_shared: bool = False


@dataclasses.dataclass(frozen=True)
class Storage:
    """The options that decide the storage.

    Args:
        minimum_bytes: the bytes that a tensor must have for each replica that shares it, to be stored off the chip.
        recomputes: whether pipelines compute activations again instead of keeping them.
        offloaded: kinds of variables that are in remote memory.
        shared: kinds of variables that the replicas share.
        schedule: the schedule of pipelines, if it differs from the script's.
        offloads_activations: whether pipelines' FIFOs are in remote memory, if that differs from the script.

    Example:
        >>> storage = Storage(replicas=2, shared=frozenset({"optimizer_state"}))
        >>> storage.of("optimizer_state", elements=1001, element_bytes=4).on_chip
        2004
    """

    replicas: int = 1
    minimum_bytes: int = 128
    recomputes: bool = False
    offloaded: frozenset[str] = frozenset()
    shared: frozenset[str] = frozenset()
    schedule: str | None = None
    offloads_activations: bool = False

    def of(self, kind: str, elements: int, element_bytes: int) -> StoredBytes:
        """Returns the memory that stores a tensor.

        Source: docs/reference/facts.md, section "Remote memory".
        """
        size = elements * element_bytes
        replicas = self.replicas if kind in self.shared else 1
        if size < self.minimum_bytes * replicas:
            return StoredBytes(size)
        part = -(-elements // replicas) * element_bytes
        if kind in self.offloaded:
            return StoredBytes(0, part, replicas > 1)
        return StoredBytes(part, 0, replicas > 1)

    def scheduled(self, pipeline: PipelineDescription) -> PipelineDescription:
        """Returns a pipeline with the schedule and FIFO location of these options."""
        if self.schedule is not None:
            pipeline = dataclasses.replace(pipeline, schedule=self.schedule)
        return dataclasses.replace(pipeline, offload_activations=True) if self.offloads_activations else pipeline


def read_storage_options(
    library: Mapping[str, function_pb2.FunctionDef], options: Any, replicas: int, remote_buffers: bool
) -> Storage:
    """Returns the storage options of a program."""
    offloaded: set[str] = set()
    shared: set[str] = set()

    def choose(kind: str, offload: bool | None, share: bool | None, default: bool = False) -> None:
        if default if offload is None else offload:
            offloaded.add(kind)
        if share:
            shared.add(kind)

    for function in library.values():
        for node in function.node_def:
            if vocabulary.PIPELINE_ATTRIBUTE in node.attr:
                found = PipelineDescription.from_json(node.attr[vocabulary.PIPELINE_ATTRIBUTE].s)
                if found.training:
                    state, sharing = found.offload_weight_update_variables, found.replicated_optimizer_state_sharding
                    choose(variable_kinds.STATE, state, sharing, remote_buffers)
                    choose(variable_kinds.WEIGHT, found.offload_weights, found.replicated_weight_sharding)
                    choose(variable_kinds.ACCUMULATOR, found.offload_gradient_accumulation_buffers, False)
            elif node.op == vocabulary.ASSIGN_VARIABLE and vocabulary.ACCUMULATOR_ATTRIBUTE in node.attr:
                choose(
                    variable_kinds.STATE,
                    *_optimizer_state_options(node, vocabulary.ACCUMULATOR_ATTRIBUTE),
                    remote_buffers,
                )
            elif vocabulary.UPDATE_ATTRIBUTE in node.attr:
                choose(
                    variable_kinds.STATE, *_optimizer_state_options(node, vocabulary.UPDATE_ATTRIBUTE), remote_buffers
                )
    return Storage(
        replicas=replicas,
        minimum_bytes=options.minimum_remote_tensor_size,
        recomputes=options.speed_size_config.allow_recompute,
        offloaded=frozenset(offloaded),
        shared=frozenset(shared),
    )


def _optimizer_state_options(node: node_def_pb2.NodeDef, attribute: str) -> tuple[bool | None, bool | None]:
    """Returns whether optimizer state is offloaded and sharded; None if the script leaves it open."""
    state, sharing = json.loads(node.attr[attribute].s)
    return state, sharing
