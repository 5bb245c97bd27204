"""Lists a model's layer calls in execution order with their pipeline stages."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

from tensorflow.compat.v2 import nest

from tf_ipu_shim import keras2
from tf_ipu_shim.frontend.keras.stages import stage_plan
from tf_ipu_shim.frontend.keras.stages.pipeline_stage_assignment import stage_of
from tf_ipu_shim.frontend.keras.stages.stage_plan import Key, PipelineLayerStep
from tf_ipu_shim.frontend.keras.training.model_step import keras_package
from tf_ipu_shim.tf_private import keras_members


@dataclasses.dataclass
class Network:
    """The graph of a functional or Sequential model.

    Args:
        nested_inputs: the inputs in the model's own structure.
        structure: the outputs in the model's own structure.
        nodes: calls of layers, inputs left out: those furthest from the outputs first, as Keras runs them.
    """

    inputs: list[Any]
    outputs: list[Any]
    nested_inputs: Any
    structure: Any
    nodes: list[Any]


def network_of(package: str, inputs: Any, outputs: Any) -> Network:
    """Returns the graph between Keras tensors."""
    flat_inputs, flat_outputs = nest.flatten(inputs), nest.flatten(outputs)
    ordered, _ = keras_members.build_map(keras2.module("engine.functional", package), flat_outputs)
    input_ids = {id(tensor) for tensor in flat_inputs}
    nodes = [node for node in _sort_by_depth(ordered) if not node.is_input and not _produces(node, input_ids)]
    return Network(flat_inputs, flat_outputs, inputs, outputs, nodes)


def _sort_by_depth(ordered: list[Any]) -> list[Any]:
    """Nodes in the order in which Keras runs them; Graphcore's lists of assignments have the same order."""
    depths: dict[int, int] = {}
    of_layers: dict[int, int] = {}
    by_id = {id(node): node for node in ordered}
    for node in reversed(ordered):
        depth = max(depths.setdefault(id(node), 0), of_layers.get(id(node.layer), 0))  # a layer's calls go together
        depths[id(node)] = of_layers[id(node.layer)] = depth
        for parent in node.parent_nodes:
            depths[id(parent)] = max(depth + 1, depths.get(id(parent), 0))
    return sorted((by_id[key] for key in depths if key in by_id), key=lambda node: -depths[id(node)])


def steps_of_network(
    network: Network, path: Key, assignments: list[Any] | None, stamped: Callable[[Any], int | None]
) -> list[PipelineLayerStep]:
    """Returns the steps of a graph."""
    steps: list[PipelineLayerStep] = []
    for index, node in enumerate(network.nodes):
        assignment = assignments[index] if assignments is not None else None
        if is_nested_call(node):
            inner_stamp = None if assignment is not None else _node_stage(node, stamped)
            steps += _nested_steps(node, path, assignment, inner_stamp)
            continue
        step = stage_plan.node_step(node, path)
        step.stage = assignment.pipeline_stage if assignment is not None else _node_stage(node, stamped)
        step.assignment = assignment
        steps.append(step)
    return steps


class ModelSteps(NamedTuple):
    """The steps of a model, and the names of its inputs and outputs."""

    steps: list[PipelineLayerStep]
    inputs: list[Key]
    outputs: list[Key]

    def named(self, inputs: list[Key], outputs: list[Key], layer: str) -> list[PipelineLayerStep]:
        """Returns the steps with the names that the model's inputs and outputs have around it."""
        before = stage_plan.naming_step(inputs, self.inputs, layer)
        return [before, *self.steps, stage_plan.naming_step(self.outputs, outputs, layer)]


def steps_of_sequential(model: Any, path: Key, assignments: list[Any] | None, stamped: int | None = None) -> ModelSteps:
    """Returns the steps of a `Sequential` model."""
    steps: list[PipelineLayerStep] = []
    key: Key = (*path, "input")
    first = key
    for index, layer in enumerate(model.layers):
        assignment = assignments[index] if assignments is not None else None
        result: Key = (*path, index)
        layer_stage = stage_of(layer) if stage_of(layer) is not None else stamped
        if is_nested(layer):
            inner = _steps_of_model(
                layer, (*path, index), assignment and assignment.pipeline_stage_assignments, layer_stage
            )
            steps += inner.named([key], [result], layer.name)
        else:
            step = stage_plan.layer_step(layer, key, result)
            step.stage = assignment.pipeline_stage if assignment is not None else layer_stage
            step.assignment = assignment
            steps.append(step)
        key = result
    return ModelSteps(steps, [first], [key])


def is_nested(layer: Any) -> bool:
    """Returns whether a layer is a model with extensions whose layers are known."""
    from tf_ipu_shim.frontend.keras.models.extensions_base import KerasExtensionBase

    return isinstance(layer, KerasExtensionBase) and layer._has_layer_graph()


def is_nested_call(node: Any) -> bool:
    """Returns whether a call is one of a model with known layers, and runs these layers.

    A subclass called with more than its inputs may run other layers than when it was built.
    """
    if not is_nested(node.layer) or has_own_graph(node.layer):
        return is_nested(node.layer)
    further_arguments = [*node.call_args[1:], *node.call_kwargs.values()]
    return len(node.flat_input_ids) == len(node.layer._network().inputs) and all(
        argument is None for argument in further_arguments
    )


def is_sequential(model: Any) -> bool:
    """Returns whether it is a `Sequential` model."""
    return isinstance(model, keras2.module("engine.sequential", keras_package(model)).Sequential)


def is_functional(model: Any) -> bool:
    """Returns whether it is a `Functional` model but not a `Sequential` one."""
    functional = keras2.module("engine.functional", keras_package(model)).Functional
    return isinstance(model, functional) and not is_sequential(model)


def has_own_graph(model: Any) -> bool:
    """Returns whether the layers of a model are known by Keras itself."""
    return is_sequential(model) or is_functional(model)


def functional_network(model: Any) -> Network:
    """Returns the graph of a `Functional` model."""
    network = network_of(keras_package(model), model.inputs, model.outputs)
    return dataclasses.replace(
        network, nested_inputs=keras_members.nested_inputs(model), structure=keras_members.nested_outputs(model)
    )


def _steps_of_model(model: Any, path: Key, assignments: list[Any] | None, stamped: int | None) -> ModelSteps:
    if is_sequential(model):
        return steps_of_sequential(model, path, assignments, stamped)
    network = model._network()
    steps = steps_of_network(network, path, assignments, lambda _: stamped)
    return ModelSteps(steps, tensor_keys(network.inputs, path), tensor_keys(network.outputs, path))


def tensor_keys(tensors: list[Any], path: Key) -> list[Key]:
    """Returns names of Keras tensors, as nodes call them."""
    return [(*path, str(id(tensor))) for tensor in tensors]


def _nested_steps(node: Any, path: Key, assignment: Any, stamped: int | None) -> list[PipelineLayerStep]:
    inner = (*path, id(node))
    steps = _steps_of_model(node.layer, inner, assignment and assignment.pipeline_stage_assignments, stamped)
    inputs = [(*path, name) for name in node.flat_input_ids]
    results = [(*path, name) for name in node.flat_output_ids]
    return steps.named(inputs, results, node.layer.name)


def _node_stage(node: Any, stamped: Callable[[Any], int | None]) -> int | None:
    for owner in (node, node.layer):
        if stage_of(owner) is not None:
            return stage_of(owner)
    return stamped(node)


def _produces(node: Any, available: set[int]) -> bool:
    return any(id(tensor) in available for tensor in nest.flatten(node.outputs))
