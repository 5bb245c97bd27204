"""Represents a pipelined model as a list of steps, each in one stage.

A step calls one layer on named tensors, and names its results. The layers of an inner model are separate steps. A step
before them names the inner model's inputs, one after them its outputs.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim.frontend.keras.stages import assignments

Key = tuple[Any, ...]


@dataclasses.dataclass
class PipelineLayerStep:
    """A call of a layer.

    Args:
        stage: the stage of the pipeline; None until known.
        run: reads and writes tensors by name.
        layer: the layer that it calls; None for steps that only name tensors.
        assignment: the assignment of the layer to the stage; None for steps that only name tensors.
    """

    stage: int | None
    run: Callable[[dict[Key, Any]], None]
    inputs: list[Key]
    outputs: list[Key]
    name: str
    layer: Any = None
    assignment: Any = None


class _TensorMap:
    """Tensors of one call of a model, as `Node.map_arguments` expects them: each once for every use."""

    def __init__(self, tensors: dict[Key, Any], path: Key) -> None:
        self._tensors, self._path = tensors, path

    def __getitem__(self, name: str) -> Any:
        key = (*self._path, name)
        return _TensorKey(self._tensors[key])


class _TensorKey:
    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def pop(self) -> Any:
        """Returns the tensor, as many times as asked."""
        return self._tensor


def node_step(node: Any, path: Key) -> PipelineLayerStep:
    """Returns the step of a node of Keras' graph."""
    outputs = [(*path, name) for name in node.flat_output_ids]

    def run(tensors: dict[Key, Any]) -> None:
        args, kwargs = node.map_arguments(_TensorMap(tensors, path))
        for key, value in zip(outputs, nest.flatten(node.layer(*args, **kwargs))):
            tensors[key] = value

    inputs = [(*path, name) for name in node.flat_input_ids]
    return PipelineLayerStep(None, run, inputs, outputs, node.layer.name, node.layer)


def layer_step(layer: Any, key: Key, result: Key) -> PipelineLayerStep:
    """Returns the step of a layer of a `Sequential` model."""

    def run(tensors: dict[Key, Any]) -> None:
        tensors[result] = layer(tensors[key])

    return PipelineLayerStep(None, run, [key], [result], layer.name, layer)


def naming_step(sources: Sequence[Key], targets: Sequence[Key], name: str) -> PipelineLayerStep:
    """Returns a step that adds names for tensors."""

    def run(tensors: dict[Key, Any]) -> None:
        for source, target in zip(sources, targets):
            tensors[target] = tensors[source]

    return PipelineLayerStep(None, run, list(sources), list(targets), name)


def check_steps(steps: Sequence[PipelineLayerStep]) -> int:
    """Checks that layers use outputs of earlier stages; assigns steps that only name tensors to their stages."""
    for index, step in enumerate(steps):
        if step.stage is None:
            later = [other_step.stage for other_step in steps[index + 1 :] if other_step.stage is not None]
            earlier = [other_step.stage for other_step in steps[:index] if other_step.stage is not None]
            step.stage = max(earlier) if step.outputs and earlier else later[0]
    _check_tensor_order(steps)
    return 1 + max((step.stage for step in steps if step.stage is not None), default=-1)


def _check_tensor_order(steps: Sequence[PipelineLayerStep]) -> None:
    stage_of: dict[Key, int] = {}
    for step in steps:
        stage = step.stage or 0
        for key in step.inputs:
            if stage_of.get(key, 0) > stage:
                raise ValueError(
                    f"Layer {step.name} in pipeline stage {stage} has a dependency from a pipeline stage which has not "
                    f"yet been executed: stage {stage_of[key]}. A layer can only take tensors of its own stage and of "
                    "those before. Assign the layer to that stage or a later one."
                )
        stage_of.update((key, stage) for key in step.outputs)


def refuse_weights_on_several_ipus(steps: Sequence[PipelineLayerStep], device_mapping: Sequence[int]) -> None:
    """Checks that all layers with a weight are on one IPU: it is in the memory of one."""
    users: dict[int, tuple[int, int]] = {}
    for step in steps:
        stage = step.stage or 0
        if stage >= len(device_mapping):
            continue
        ipu = device_mapping[stage]
        for weight in getattr(step.layer, "weights", ()):
            first_stage, first_ipu = users.setdefault(id(weight), (stage, ipu))
            if first_ipu != ipu:
                raise ValueError(
                    f"Variable {weight.name.split(':')[0]} of layer {step.name} is used by pipeline stage "
                    f"{first_stage} on IPU {first_ipu} and stage {stage} on IPU {ipu}, but an input can only be used "
                    "by pipeline stages on the same IPU. Map these stages to one IPU with `device_mapping`, or give "
                    "each a layer of its own."
                )


def check_recorded_gaps(steps: Sequence[PipelineLayerStep], from_first: bool = False) -> None:
    """Checks the stages in which layers were made or called, when the model is made.

    It may become a part of another one, so the first of them need not be stage 0 yet.
    """
    used, missing = _find_gaps(steps)
    missing = [stage for stage in missing if from_first or stage > used[0]]
    if missing:
        stages_text, gaps = str(list(used)), f": {missing}"
        if assignments.current_wording() == assignments.Wording.FIRST:
            stages_text, gaps = ", ".join(map(str, used)), f" {', '.join(map(str, missing))}"
        raise ValueError(
            f"Pipeline stages in the graph need to be strictly increasing, found pipeline stages {stages_text}, "
            f"however the following pipeline stages are missing{gaps}. Give every stage a layer."
        )


def check_set_gaps(steps: Sequence[PipelineLayerStep], wording: assignments.Wording) -> None:
    """Checks stages when they are set, as SDKs up to 2.5 do."""
    if wording == assignments.Wording.FIRST:
        check_recorded_gaps(steps, from_first=True)
    used, missing = _find_gaps(steps)
    if missing and wording == assignments.Wording.SUBCLASSED:
        raise ValueError(
            "Pipeline stage assignments must start at 0 and be strictly increasing. The highest assignment found in "
            f"`pipeline_stage_assignment` was stage {used[-1]}, however the preceeding stages {missing} had no "
            "assignments. Give every stage a layer."
        )


def check_gaps(steps: Sequence[PipelineLayerStep]) -> None:
    """Checks stages that were set, when the model runs: until then they may be set again."""
    used, missing = _find_gaps(steps)
    if missing:
        raise RuntimeError(
            "All stages in a pipeline must have at lease one layer assigned to them. The highest stage with an "
            f"assignment is stage {used[-1]}, however the preceeding stages {missing} had no assignments. Assign a "
            "layer to each of these stages, or renumber the stages."
        )


def _find_gaps(steps: Sequence[PipelineLayerStep]) -> tuple[list[int], list[int]]:
    used = sorted({step.stage for step in steps if step.stage is not None})
    return used, sorted(set(range(used[-1] + 1 if used else 0)) - set(used))


def tensors_needed_after(steps: Sequence[PipelineLayerStep], stage: int, outputs: Iterable[Key]) -> list[Key]:
    """Returns names of the tensors that later stages read, in order."""
    needed = [key for step in steps if (step.stage or 0) > stage for key in step.inputs]
    made_later = {key for step in steps if (step.stage or 0) > stage for key in step.outputs}
    return list(dict.fromkeys(key for key in [*needed, *outputs] if key not in made_later))
