"""Implements `application_compile`: traces a function and writes its compiled program to a file when the op runs.

Uses `FuncGraph.captures` and `FuncGraph._watched_variables`; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim import plugin
from tf_ipu_shim.compiler.checks.feed_signature import find_feeds
from tf_ipu_shim.frontend.tracing import ipu_compiler, tracing
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.control_flow import control_flow_ops
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.functions import def_function
from tf_ipu_shim.tf_private.graphs import device as device_lib
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.protos import function_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util

_NAME = "application_compile"


def application_compile(
    func: Callable[..., Any], inputs: Sequence[Any] | None, output_path: str | None, freeze: bool, name: str | None
) -> Any:
    """Returns the tensor of `experimental_application_compile_op`, with the same arguments and errors."""
    if not callable(func):
        raise TypeError(f"The application must be a function, not {func!r}. Pass a function.")
    inputs = [] if inputs is None else inputs
    _check_argument_count(func, inputs)
    if not context.executing_eagerly():
        return _trace_and_compile(func, inputs, output_path, freeze, name)
    # Tensors are inputs of the application; numbers and arrays become constants in it, as in a graph.
    flat = nest.flatten(inputs)
    tensor_indices = [index for index, value in enumerate(flat) if isinstance(value, ops.Tensor)]

    def compiled(*tensors: Any) -> Any:
        symbolic = list(flat)
        for index, tensor in zip(tensor_indices, tensors):
            symbolic[index] = tensor
        return _trace_and_compile(func, nest.pack_sequence_as(inputs, symbolic), output_path, freeze, name)

    return def_function.function(compiled, autograph=False)(*(flat[index] for index in tensor_indices))


def _trace_and_compile(
    func: Callable[..., Any], inputs: Any, output_path: str | None, freeze: bool, name: str | None
) -> Any:
    traced = ipu_compiler.trace_computation(func, inputs)
    graph = traced.graph
    function = tracing.make_function(graph, traced.result.tensors, traced.result.operations)
    library = function_pb2.FunctionDefLibrary(function=graph.as_graph_def().library.function)
    library.function.append(function.definition)
    infeeds, _ = find_feeds(graph.name, {listed.signature.name: listed for listed in library.function})
    iterators = {feed.argument for feed in infeeds}
    variable_names = dict(_variable_names(graph))
    names, frozen = [], []
    for index, tensor in enumerate(graph.external_captures):
        if tensor.dtype.name == "resource":
            names.append(variable_names.get(id(tensor)) or _argument_name(tensor, index))
            # An iterator has no value to freeze: it is an infeed of the engine.
            frozen.append(freeze and index not in iterators)
            continue
        names.append(_argument_name(tensor, index))
        frozen.append(_has_known_value(tensor))
        if not frozen[-1] and index >= len(traced.inputs):
            raise ValueError(
                f"The application uses {tensor.name}, which is computed outside of it; it can only use its "
                "inputs. Add it to `inputs`: it is then an input of the engine."
            )
    with ops.control_dependencies(_add_placement_check(name or _NAME)):
        return plugin.load().ops.ipu_application_compile(
            args=graph.external_captures,
            function=graph.name,
            library=library.SerializeToString(deterministic=True),
            output_shapes=[tensor.shape for tensor in traced.result.tensors],
            path=output_path or "",
            names=names,
            frozen=frozen,
            name=name or _NAME,
        )


def _add_placement_check(name: str) -> list[Any]:
    """Returns an op that TensorFlow cannot place if a script puts the compilation, which runs on the host, on an IPU.

    The session's first run then raises the error, before any op. The op's name states the fix.
    """
    graph = ops.get_default_graph()
    if graph.building_function:
        return []
    probe = control_flow_ops.no_op()
    if device_lib.DeviceSpec.from_string(probe.device).device_type != "IPU":
        return []
    return [plugin.load().ops.ipu_model_used(name=f"{name}_must_be_called_outside_ipu_scope")]


def _check_argument_count(func: Any, inputs: Sequence[Any]) -> None:
    """Refuses a `tf.function` of more arguments in Python's own words, which TensorFlow's have replaced since 2.6."""
    if not isinstance(func, def_function.Function):
        return
    parameters = list(inspect.signature(func.python_function).parameters.values())[len(inputs) :]
    missing = [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    if missing:
        plural = "" if len(missing) == 1 else "s"
        raise TypeError(
            f"{func.__name__}() missing {len(missing)} required positional argument{plural}: {', '.join(missing)}. "
            "Give the application's arguments in `inputs`."
        )


def _has_known_value(tensor: Any) -> bool:
    """Returns whether a tensor has its value already, so that it is part of the application."""
    if isinstance(tensor, ops.EagerTensor):
        return True
    graph = ops.get_default_graph()
    for outer, inner in getattr(graph, "captures", ()):
        if inner is tensor:
            return _has_known_value(outer)
    return tensor_util.constant_value(tensor) is not None


def _variable_names(graph: Any) -> Iterator[tuple[int, str]]:
    """Yields names of variables by the tensor that carries each into the program or a function around it."""
    while graph is not None:
        # `FuncGraph.variables` only has the graph's own; variables that its functions read are noted here.
        watched = tf_graphs.watched_variables(graph)
        name_of = {id(variable.handle): variable.name.split(":")[0] for variable in watched}
        yield from name_of.items()
        for outer, inner in getattr(graph, "captures", ()):
            if id(outer) in name_of:
                yield id(inner), name_of[id(outer)]
        graph = getattr(graph, "outer_graph", None)


def _argument_name(tensor: Any, index: int) -> str:
    if isinstance(tensor, ops.EagerTensor):
        return f"arg_{index}"
    shared = tensor.op.node_def.attr["shared_name"].s.decode() if tensor.op.type == "VarHandleOp" else ""
    return shared or str(tensor.op.name)
