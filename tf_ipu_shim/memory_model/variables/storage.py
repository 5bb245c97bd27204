"""Where variables and accumulated gradients are kept: on the chip, in remote memory, whole or shared by the replicas.

Programs here always have them whole and in their arenas; this is what Graphcore's compiler would do with the same
options, for the memory model alone.
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
class Stored:
    """Where one tensor is kept, for each replica.

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
    """The options that decide it.

    Args:
        replicas: of the program.
        minimum_bytes: a tensor must have, for each replica that shares it, to be kept elsewhere than on the chip.
        recomputes: whether pipelines compute activations anew instead of keeping them.
        offloaded: kinds of variables that are in remote memory.
        shared: kinds of variables that the replicas share.
        schedule: of pipelines, where it is another one than the script's.
        offloads_activations: whether pipelines' FIFOs are in remote memory, where that is otherwise than in the script.

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

    def of(self, kind: str, elements: int, element_bytes: int) -> Stored:
        """Where a tensor is kept.

        Args:
            kind: one of `machine.memory.CATEGORIES`.
            elements: their number.
            element_bytes: size of one.

        Source: docs/facts.md, section "Remote memory".
        """
        size = elements * element_bytes
        replicas = self.replicas if kind in self.shared else 1
        if size < self.minimum_bytes * replicas:
            return Stored(size)
        part = -(-elements // replicas) * element_bytes
        if kind in self.offloaded:
            return Stored(0, part, replicas > 1)
        return Stored(part, 0, replicas > 1)

    def scheduled(self, pipeline: PipelineDescription) -> PipelineDescription:
        """A pipeline with the schedule that it would have, and its FIFOs where they would be."""
        if self.schedule is not None:
            pipeline = dataclasses.replace(pipeline, schedule=self.schedule)
        return dataclasses.replace(pipeline, offload_activations=True) if self.offloads_activations else pipeline


def storage_of(
    library: Mapping[str, function_pb2.FunctionDef], options: Any, replicas: int, remote_buffers: bool
) -> Storage:
    """Finds the options of a program.

    Args:
        library: all its functions by name; pipelines and accumulating optimizers leave their options in them.
        options: the `IpuOptions` of the device.
        replicas: of the program.
        remote_buffers: whether the device has them.

    Returns:
        What holds for all its variables. Where several pipelines disagree, what any of them asks for.
    """
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
                choose(variable_kinds.STATE, *_of_state(node, vocabulary.ACCUMULATOR_ATTRIBUTE), remote_buffers)
            elif vocabulary.UPDATE_ATTRIBUTE in node.attr:
                choose(variable_kinds.STATE, *_of_state(node, vocabulary.UPDATE_ATTRIBUTE), remote_buffers)
    return Storage(
        replicas=replicas,
        minimum_bytes=options.minimum_remote_tensor_size,
        recomputes=options.speed_size_config.allow_recompute,
        offloaded=frozenset(offloaded),
        shared=frozenset(shared),
    )


def _of_state(node: node_def_pb2.NodeDef, attribute: str) -> tuple[bool | None, bool | None]:
    """Whether optimizer state is offloaded, and whether replicas share it; None where the script left it open."""
    state, sharing = json.loads(node.attr[attribute].s)
    return state, sharing
