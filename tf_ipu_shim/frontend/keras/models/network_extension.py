"""Assigns pipeline stages in models that have a graph of layer calls."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.frontend.keras.models import networks, pipelined_programs
from tf_ipu_shim.frontend.keras.models.pipelined_extension import PipelinedExtension
from tf_ipu_shim.frontend.keras.stages import assignments as checks
from tf_ipu_shim.frontend.keras.stages import stage_plan
from tf_ipu_shim.frontend.keras.stages.pipeline_stage_assignment import stage_of
from tf_ipu_shim.tf_private import keras_members


class NetworkExtension(PipelinedExtension):
    """IPU extension of models with a known graph of layer calls."""

    _layer_kind: Any = None
    _nested_kind: Any = None

    def _wording(self) -> checks.Wording:
        return checks.current_wording()

    def _network(self) -> networks.Network:
        """Returns the model's graph."""
        raise NotImplementedError

    def get_pipeline_stage_assignment(self) -> list[Any]:
        """Returns the pipeline stage of each call of a layer, in post-order; None if it has none."""
        if self._ipu.stages is not None:
            return list(self._ipu.stages)
        return self._assignments(self._network())

    def set_pipeline_stage_assignment(self, pipeline_stage_assignment: list[Any]) -> None:
        """Sets the pipeline stage of each call of a layer.

        Args:
            pipeline_stage_assignment: one for each call, in the order in which they were got.

        Raises:
            TypeError: a stage is not an integer.
            ValueError: they do not match the model, a stage is empty, or a layer precedes the source of its inputs.
        """
        network = self._network()
        counted = "total number of invocations of layers"
        checks.check_assignments(pipeline_stage_assignment, len(network.nodes), self._wording(), counted)
        if self._wording() == checks.Wording.FIRST:
            pipeline_stage_assignment = self._sort_assignments(network, pipeline_stage_assignment)
        self._check_assignments(network, pipeline_stage_assignment)
        steps = self._layer_steps(network, pipeline_stage_assignment)
        stage_plan.check_set_gaps(steps, self._wording())
        pipelined_programs.staged_network(self, network, steps, ())
        self._set_stages(pipeline_stage_assignment)

    def print_pipeline_stage_assignment_summary(self, line_length: int | None = None, print_fn: Any = None) -> None:
        """Prints the pipeline stage of each call of a layer."""
        heads = [("Layer (type) (node index)", 0.4), ("Input Layers", 0.8), ("Pipeline Stage", 1.0)]
        checks.print_summary(self, heads, _summary_rows(self.get_pipeline_stage_assignment()), line_length, print_fn)

    def _has_recorded_stages(self) -> bool:
        return any(_recorded_stage(node) is not None for node in self._network().nodes)

    def _check_recorded_stages(self) -> None:
        network = self._network()
        if not any(_recorded_stage(node) is not None for node in network.nodes):
            return
        for node in network.nodes:
            if _recorded_stage(node) is None and not networks.is_nested_call(node):
                raise ValueError(
                    "All layers of a pipelined model must have an associated pipeline stage. However, "
                    f"{node.layer.name} has not been assigned to one. Make or call it in a PipelineStage, or set the "
                    "stages with set_pipeline_stage_assignment()."
                )
        steps = self._layer_steps(network, None)
        stage_plan.check_recorded_gaps(steps)
        pipelined_programs.staged_network(self, network, steps, ())

    def _make_staged_model(self, infeed: Any) -> pipelined_programs.StagedModel:
        if self._ipu.stages is None:
            self._check_recorded_stages()
        network = self._network()
        steps = self._layer_steps(network, self._ipu.stages)
        stage_plan.check_gaps(steps)
        return pipelined_programs.staged_network(self, network, steps, ())

    def _layer_steps(self, network: networks.Network, stages: list[Any] | None) -> list[Any]:
        steps = networks.steps_of_network(network, (), stages, lambda _: None)
        for step in steps:
            checks.check_stage(step.name, step.stage)
            if step.assignment is not None and step.stage is None:
                raise ValueError(
                    f"Layer {step.name}{self._index_of_call(step.assignment)} has not been assigned a pipeline stage "
                    "in `pipeline_stage_assignment`. Give every call of a layer one."
                )
        return steps

    def _index_of_call(self, assignment: Any) -> str:
        """Returns which of a layer's calls is assigned; empty for a layer of an inner `Sequential`, which has one."""
        if not hasattr(assignment, "node_index"):
            return ""
        index = "node index" if self._wording() == checks.Wording.FIRST else "node_index"
        return f" with {index} {assignment.node_index}"

    def _assignments(self, network: networks.Network) -> list[Any]:
        assignments = []
        for node in network.nodes:
            index = keras_members.inbound_nodes(node.layer).index(node)
            if networks.is_nested_call(node):
                inner = node.layer.get_pipeline_stage_assignment()
                outer = _recorded_stage(node)
                for assignment in inner:
                    if not assignment.is_nested_model and assignment.pipeline_stage is None:
                        assignment.pipeline_stage = outer
                assignments.append(self._nested_kind(node.layer, index, inner))
            else:
                assignments.append(
                    self._layer_kind(node.layer, index, None if self._ipu.stages_reset else _recorded_stage(node))
                )
        return assignments

    def _sort_assignments(self, network: networks.Network, stages: list[Any]) -> list[Any]:
        """Returns assignments in the order of the calls; up to SDK 2.5 a script may pass them in any order."""
        stage_of_call: dict[int, Any] = {}
        for stage in stages:
            if not isinstance(stage, self._layer_kind) or not 0 <= stage.node_index < len(
                keras_members.inbound_nodes(stage.layer)
            ):
                return stages
            call = id(keras_members.inbound_nodes(stage.layer)[stage.node_index])
            if call in stage_of_call:
                raise ValueError(
                    f"Duplicate assignment for layer {stage.layer.name} with node index {stage.node_index}; "
                    "expected one for each call of a layer. Remove one of them."
                )
            stage_of_call[call] = stage
        return (
            [stage_of_call[id(node)] for node in network.nodes]
            if all(id(n) in stage_of_call for n in network.nodes)
            else stages
        )

    def _check_assignments(self, network: networks.Network, stages: Any) -> None:
        for assignment, node in zip(stages, network.nodes):
            nested = networks.is_nested_call(node)
            kind = self._nested_kind if nested else self._layer_kind
            if not isinstance(assignment, kind):
                raise checks.wrong_kind_error(node.layer.name, nested, [kind], assignment, self._wording())
            layer = assignment.nested_model if nested else assignment.layer
            calls = len(keras_members.inbound_nodes(node.layer))
            if layer is node.layer and not 0 <= assignment.node_index < calls:
                raise ValueError(
                    f"Layer {layer.name} has {calls} invocation(s) in the model, and is assigned by the node "
                    f"index {assignment.node_index}; expected an index below that number. Keep the assignments of "
                    "get_pipeline_stage_assignment()."
                )
            if layer is not node.layer or keras_members.inbound_nodes(layer)[assignment.node_index] is not node:
                raise checks.wrong_order_error(node.layer.name, f"{layer.name} (node index {assignment.node_index})")


def _recorded_stage(node: Any) -> int | None:
    node_stage = stage_of(node)
    return node_stage if node_stage is not None else stage_of(node.layer)


def _summary_rows(stages: list[Any]) -> list[list[list[str]]]:
    rows: list[list[list[str]]] = []
    for stage in stages:
        if stage.is_nested_model:
            rows.append([[f"{stage.nested_model.name} ({type(stage.nested_model).__name__})"], [], []])
            rows += _summary_rows(stage.pipeline_stage_assignments)
            continue
        inbound = stage.inbound_layers if hasattr(stage, "node_index") else []
        inbound = inbound if isinstance(inbound, (list, tuple)) else [inbound]
        index = f" ({stage.node_index})" if hasattr(stage, "node_index") else ""
        rows.append(
            [
                [f"{stage.layer.name} ({type(stage.layer).__name__}){index}"],
                [layer.name for layer in inbound],
                [str(stage.pipeline_stage)],
            ]
        )
    return rows
