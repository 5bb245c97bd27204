"""Traces and annotates the call of a served model that runs on IPUs.

To stock TensorFlow it is a call of a function of stock ops. The annotations are attributes that it ignores.
`Operation._set_attr` and `FuncGraph.captures` checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tf_ipu_shim import errors
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.serving.plan import ExportPlan
from tf_ipu_shim.frontend.tracing import tracing
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.graphs import device as device_lib
from tf_ipu_shim.tf_private.graphs import func_graph
from tf_ipu_shim.tf_private.operations import array_ops
from tf_ipu_shim.tf_private.protos import attr_value_pb2, graph_pb2, saved_model_pb2

_FORMAT = 1
_IN_THIS_PROCESS = ("PyFunc", "PyFuncStateless", "EagerPyFunc")


@dataclasses.dataclass(frozen=True)
class ServedCall:
    """The content of a served call's annotation.

    Args:
        shapes: the shapes of the outputs; None for an unknown rank or size.
        ipus: how many IPUs the call needs.
    """

    shapes: list[list[int | None] | None]
    ipus: int
    iterations: int

    def to_bytes(self) -> bytes:
        """As the attribute holds it."""
        return json.dumps({"format": _FORMAT, **dataclasses.asdict(self)}, sort_keys=True).encode()

    @classmethod
    def from_bytes(cls, serialized: bytes) -> ServedCall:
        """Reads the attribute."""
        fields = json.loads(serialized)
        if fields.pop("format") != _FORMAT:
            raise errors.UnsupportedError(
                "The SavedModel was exported for IPUs by another release of tf_ipu_shim, in a form that this one does "
                "not know. Export it again, or load it without importing `ipu`: stock TensorFlow runs it."
            )
        return cls(**fields)


def add_call(
    plan: ExportPlan, arguments: Sequence[Any], replaced: Callable[[Any, Any], Any] | None = None
) -> list[Any]:
    """Calls the prediction in the current graph."""
    outputs: list[Any] = []

    def predict(*values: Any) -> None:
        # An output that is an unchanged input needs a separate op.
        outputs.extend(array_ops.identity(tensor) for tensor in plan.predict(values))

    around = func_graph.FuncGraph("served_call")  # so that the current graph captures nothing that is replaced
    with around.as_default():
        stand_ins = [array_ops.placeholder(spec.dtype, spec.shape) for spec in plan.predict.signature]
        graph, _ = tracing.trace_function("served", predict, stand_ins)
    if not outputs:
        raise ValueError(
            f"`{plan.predict.label}` returned nothing. A served model has at least one output. Return a tensor."
        )
    argument_by_id = {id(stand_in): argument for stand_in, argument in zip(stand_ins, arguments)}
    captured = {id(inside): outside for outside, inside in around.captures}
    inputs = []
    for tensor in graph.external_captures:
        outside = captured.get(id(tensor), tensor)  # what is eager is captured past `around`
        inputs.append(
            argument_by_id[id(tensor)]
            if id(tensor) in argument_by_id
            else replaced(graph, outside)
            if replaced
            else outside
        )
    results = tracing.add_nested_call(graph, outputs, [], inputs)
    served_call = ServedCall([_static_shape(tensor) for tensor in outputs], plan.ipus, plan.iterations)
    tf_graphs.set_attr(results[0].op, vocabulary.SERVED_ATTRIBUTE, attr_value_pb2.AttrValue(s=served_call.to_bytes()))
    return results


def _static_shape(tensor: Any) -> list[int | None] | None:
    return None if tensor.shape.rank is None else tensor.shape.as_list()


def check_stock_ops(graph_def: graph_pb2.GraphDef) -> None:
    """Refuses ops that stock TensorFlow cannot run."""
    for node in all_nodes(graph_def):
        if node.op in _IN_THIS_PROCESS:
            raise errors.UnsupportedError(
                f"A model with a Python function ({node.name}) cannot be exported for serving: another process does "
                "not have the function. Write it with TensorFlow's ops, or call it where requests are made."
            )
        if node.op in vocabulary.PLUGIN_OPS:
            raise errors.UnsupportedError(
                f"A model that uses {node.op} ({node.name}) cannot be exported for serving: TensorFlow Serving does "
                "not have this op. Serve a model without feeds, collectives and host embeddings."
            )


def strip_ipu_devices(directory: str) -> None:
    """Removes IPU devices from a SavedModel: its server may have none."""
    path = pathlib.Path(directory) / "saved_model.pb"
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    for meta_graph in model.meta_graphs:
        for node in all_nodes(meta_graph.graph_def):
            if node.device and device_lib.DeviceSpec.from_string(node.device).device_type == "IPU":
                node.device = ""
    path.write_bytes(model.SerializeToString(deterministic=True))


def all_nodes(graph_def: graph_pb2.GraphDef) -> Iterable[Any]:
    """Yields the nodes of a graph and of its functions."""
    yield from graph_def.node
    for function in graph_def.library.function:
        yield from function.node_def
