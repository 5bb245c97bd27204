"""Writes serving exports from TensorFlow 2: one function with a signature and its variables.

Uses `FuncGraph.variables`, `FuncGraph._watched_variables` and `CapturableResource.resource_handle`; checked on
TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from tf_ipu_shim.frontend.serving import loading, served_call
from tf_ipu_shim.frontend.serving import plan as plans
from tf_ipu_shim.frontend.serving.plan import ExportPlan
from tf_ipu_shim.frontend.serving.references import find_referenced
from tf_ipu_shim.frontend.tracing import compiled_functions
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.functions import def_function
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops
from tf_ipu_shim.tf_private.saved_models import autotrackable, load, resource, save, signature_constants, trackable_view
from tf_ipu_shim.tf_private.variables import resource_variable_ops

_KEY = signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY


def export(plan: ExportPlan) -> Callable[..., Any]:
    """Writes the SavedModel, and reads it again."""
    weights = _WeightCopies()
    served = _name_arguments(plan, lambda *values: _add_serving_function(plan, weights, values))
    concrete = served.get_concrete_function()
    served_call.check_stock_ops(concrete.graph.as_graph_def())
    module = autotrackable.AutoTrackable()
    setattr(module, loading.ON_IPUS, list(weights.copies.values()))
    captured = {id(tensor) for tensor in concrete.graph.external_captures}
    on_host = [variable for variable in concrete.graph.variables if id(variable.handle) in captured]
    setattr(module, loading.ON_HOST, on_host)
    module.resources = _find_resources(plan, concrete)
    save.save(module, plan.empty_directory(), signatures={_KEY: concrete})
    served_call.strip_ipu_devices(plan.directory)
    return _check_reload(plan)


class _WeightCopies:
    """Copies of the variables of the prediction: it shares none with the steps on the host, which is another device."""

    def __init__(self) -> None:
        self.copies: dict[int, Any] = {}

    def replaced(self, graph: Any, tensor: Any) -> Any:
        """Returns the replacement of a tensor that the prediction captured."""
        for variable in tf_graphs.watched_variables(graph):
            if variable.handle is tensor:
                return self._copy(variable).handle
        return tensor

    def _copy(self, variable: Any) -> Any:
        if id(variable.handle) not in self.copies:
            with ops.init_scope(), ops.device(loading.HOST):
                self.copies[id(variable.handle)] = resource_variable_ops.ResourceVariable(
                    array_ops.identity(variable.read_value()), trainable=False, name=variable.name.partition(":")[0]
                )
        return self.copies[id(variable.handle)]


def _add_serving_function(plan: ExportPlan, weights: _WeightCopies, values: Sequence[Any]) -> dict[str, Any]:
    tensors = list(values)
    with ops.device(loading.HOST):
        if plan.before is not None:
            tensors = plans.pass_tensors(plan.before, plan.before(tensors), plan.predict)
    tensors = served_call.add_call(plan, tensors, weights.replaced)
    with ops.device(loading.HOST):
        if plan.after is not None:
            tensors = plan.after(plans.pass_tensors(plan.predict, tensors, plan.after))
    return dict(zip(plan.names(len(tensors)), tensors))


def _name_arguments(plan: ExportPlan, function: Callable[..., Any]) -> Any:
    """Returns a `tf.function` whose arguments have the names of a request's inputs."""

    def request(*values: Any) -> Any:
        return function(*values)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    request.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(spec.name, kind) for spec in plan.request]
    )
    return def_function.function(request, input_signature=plan.request, autograph=False)


def _check_reload(plan: ExportPlan) -> Any:
    model = load.load(plan.directory)
    signature = model.signatures[_KEY]
    keys = list(signature.structured_outputs)
    names = plan.names(len(keys))

    def run(*values: Any) -> Any:
        outputs = signature(**{spec.name: value for spec, value in zip(plan.request, values)})
        return plan.returned([outputs[name] for name in names])

    function = _name_arguments(plan, run)
    compiled_functions.annotate_program(function)
    function._ipu_model = model  # its variables live as long as the function
    return function


def _find_resources(plan: ExportPlan, concrete: Any) -> list[Any]:
    """Tables and the like that the steps use: a SavedModel saves only tables that something in it refers to."""
    captured_ids = {id(tensor) for tensor in concrete.graph.external_captures}
    steps = [step.function for step in (plan.before, plan.predict, plan.after) if step is not None]
    return [
        descendant
        for root in find_referenced(steps)
        for descendant in trackable_view.TrackableView(root).descendants()
        if isinstance(descendant, resource.CapturableResource) and id(descendant.resource_handle) in captured_ids
    ]
