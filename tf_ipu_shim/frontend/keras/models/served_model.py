"""Exports a Keras model for serving, pipelined or not, as a function of a request's inputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from tensorflow.compat.v2 import dtypes, nest

from tf_ipu_shim.frontend.keras.models import networks
from tf_ipu_shim.frontend.keras.training import programs
from tf_ipu_shim.frontend.serving import exporting, plan, stages
from tf_ipu_shim.tf_private import keras_members
from tf_ipu_shim.tf_private.tensors import tensor_shape, tensor_spec


def export_model(model: Any, export_dir: str, batch_size: Any, **arguments: Any) -> Any:
    """Exports a model."""
    directory = plan.check_directory(export_dir, arguments.get("purge_export_dir", False))
    structure = _input_specs(model, None if batch_size is None else plan.check_count("batch_size", batch_size))
    specs = nest.flatten(structure)
    predict, ipus = _serving_function(model, structure)
    steps = model._steps_per_execution_value()
    with model.distribute_strategy.scope():
        export_plan = plan.make_plan(
            predict,
            directory,
            steps,
            predict_step_signature=specs,
            first_stage=_serve_inputs,
            ipus=ipus,
            **arguments,
        )
        return exporting.export_plan(export_plan)


def _input_specs(model: Any, batch_size: int | None) -> Any:
    """Returns the `TensorSpec`s of the model's inputs, in the structure of the inputs."""
    if networks.has_own_graph(model) and getattr(model, "inputs", None):
        names = iter(model.input_names)
        inputs = model.inputs[0] if networks.is_sequential(model) else keras_members.nested_inputs(model)
        return nest.map_structure(
            lambda tensor: _input_spec(tensor.shape, tensor.dtype, next(names), batch_size), inputs
        )
    shapes = model._ipu.input_shape
    if shapes is None and model._ipu.network is not None:
        shapes = [tensor.shape for tensor in model._ipu.network.inputs]
        shapes = shapes if len(shapes) > 1 else shapes[0]
    if shapes is None:
        raise RuntimeError(
            f"Cannot get model's input signature. Please specify the shapes of its inputs: call `{model.name}`.build("
            "input_shape) before the export."
        )
    dtype = getattr(model, "compute_dtype", None) or dtypes.float32
    if _is_shape(shapes):
        return _input_spec(shapes, dtype, "input_1", batch_size)
    return [_input_spec(shape, dtype, f"input_{i}", batch_size) for i, shape in enumerate(shapes, 1)]


def _is_shape(shapes: Any) -> bool:
    if isinstance(shapes, tensor_shape.TensorShape):
        return True
    return not any(isinstance(shape, (list, tuple, tensor_shape.TensorShape)) for shape in shapes)


def _input_spec(shape: Any, dtype: Any, name: str, batch_size: int | None) -> Any:
    sizes = tensor_shape.TensorShape(shape).as_list()
    if batch_size is not None:
        sizes[0] = batch_size
    if None in sizes:
        raise ValueError(
            f"Not all dimensions of inputs can be inferred: {name} has the shape {tuple(sizes)}. Pass `batch_size`, or "
            "make the model's inputs with all sizes."
        )
    return tensor_spec.TensorSpec(sizes, dtype, name=name)


def _serving_function(model: Any, structure: Any) -> tuple[Callable[..., Any], int]:
    """Returns the model as a function of its inputs, and how many IPUs it needs."""
    model._find_stages((structure,))
    if not model._is_pipelined():

        def predict(*values: Any) -> Any:
            with programs.replica_context(model):
                return model(nest.pack_sequence_as(structure, values), training=False)

        return predict, 1
    staged = model._make_staged_model(_RequestInfeed((structure,)))
    options = model._ipu.options
    pipelined, ipus = stages.check_pipeline(
        staged.functions(_RequestInfeed((structure,)), False, lambda x, y, weights, predicted: nest.flatten(predicted)),
        model._steps_per_execution_value(),
        options.device_mapping,
        options.pipelining_kwargs.get("pipeline_schedule"),
        options.pipelining_kwargs.get("forward_propagation_stages_poplar_options"),
    )
    chained = stages.chain_stages(pipelined, None)

    def predict_in_stages(*values: Any) -> Any:
        with programs.replica_context(model):
            return chained(nest.pack_sequence_as(structure, values))

    return predict_in_stages, ipus


@dataclasses.dataclass
class _RequestInfeed:
    """Replaces the infeed of the stages: a request is an element that only has inputs."""

    _structure: Any


def _serve_inputs(*values: Any) -> Any:
    """Returns a function without argument names: the names of the model's inputs are used."""
