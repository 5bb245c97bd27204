"""Traces a Python function into a FuncGraph called by one `IpuProgram` op in the user's graph.

Uses `FuncGraph` and its captures, `atomic_function.from_func_graph`, `Graph._attr_scope`, `Graph._functions` and the
XLA control flow context; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from typing import Any

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir import traced_functions, vocabulary
from tf_ipu_shim.frontend.tracing import access_order, host_variables, inlined_calls, side_effects, summaries
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private import variables as tf_variables
from tf_ipu_shim.tf_private.control_flow import control_flow_ops
from tf_ipu_shim.tf_private.functions import atomic_function
from tf_ipu_shim.tf_private.graphs import auto_control_deps, func_graph, ops
from tf_ipu_shim.tf_private.graphs import device as device_lib
from tf_ipu_shim.tf_private.operations import array_ops
from tf_ipu_shim.tf_private.protos import attr_value_pb2, function_pb2
from tf_ipu_shim.tf_private.variables import variable_scope

_serial = itertools.count()


def in_compilation() -> bool:
    """Returns whether the current graph, or one it is nested in, is being compiled."""
    return control_flow_ops.get_enclosing_xla_context() is not None


def enter_compilation(graph: Any) -> None:
    """Makes TensorFlow build control flow that XLA can compile: functional loops with a bound."""
    tf_graphs.set_control_flow_context(graph, control_flow_ops.XLAControlFlowContext())


def has_session_semantics(graph: Any) -> bool:
    """Whether a graph's loops and branches run only ops that their results need, as in TensorFlow 1.

    Those that TensorFlow makes functional, in `tf.function` and `tf.switch_case`, run all of their side effects.
    """
    return isinstance(graph, tf_graphs.DefunGraph) or getattr(graph, "_ipu_like_a_session", False)


def mark_scratch(graph: Any) -> None:
    """Notes that a graph is traced only to create objects such as variables, not as part of a program."""
    graph._ipu_never_runs = True


def may_run(graph: Any) -> bool:
    """Returns whether a graph may become a program, see `mark_scratch`."""
    while graph is not None:
        if getattr(graph, "_ipu_never_runs", False) or _is_inference_scratch(graph):
            return False
        graph = getattr(graph, "outer_graph", None)
    return True


def _is_inference_scratch(graph: Any) -> bool:
    """Returns whether TensorFlow discards a graph, in which it only infers shapes of a function's results.

    Keras 2.15.0 and tf_keras 2.21.0 call layers in a graph that they name after the layer. AutoGraph calls the body of
    a loop in a graph called "tmp" if a variable has no value before the loop. Neither belongs to a `tf.function`.
    """
    name = getattr(graph, "name", "")
    return name.endswith("_scratch_graph") or (
        # Of a `tf.function` it is known by then; graphs of other functions have none.
        name == "tmp" and getattr(graph, "structured_input_signature", ()) is None
    )


@contextmanager
def attribute_scope(values: Mapping[str, attr_value_pb2.AttrValue]) -> Iterator[None]:
    """Sets these attributes on every op made inside; does nothing if ops run eagerly."""
    with ExitStack() as stack:
        graph = ops.get_default_graph()
        if not _is_eager():
            stack.enter_context(tf_graphs.attr_scope(graph, dict(values)))
        yield


def inherit_attributes(graph: Any) -> None:
    """Applies the compiler attributes around a function call to the ops inside the function."""
    attribute = tf_graphs.attr_scope_map(graph.outer_graph).get(vocabulary.FRONTEND_ATTRIBUTE)
    if attribute is not None:
        tf_graphs.attr_scope_map(graph)[vocabulary.FRONTEND_ATTRIBUTE] = attribute


@contextmanager
def resource_variable_scope() -> Iterator[None]:
    """Creates variables inside the scope as resource variables, the only kind on an IPU."""
    if _is_eager():
        yield
        return
    scope = variable_scope.get_variable_scope()
    before = scope.use_resource
    tf_variables.set_use_resource(scope, True)
    try:
        yield
    finally:
        tf_variables.set_use_resource(scope, before)


def trace_function(
    name: str, function: Callable[..., Any], arguments: Sequence[Any]
) -> tuple[func_graph.FuncGraph, Any]:
    """Calls a Python function with placeholders in a separate graph."""
    summaries.skip_summaries()
    outer = ops.get_default_graph()
    # In TensorFlow 1 there is one graph with one set of collections: the global step, update ops, losses.
    collections = None if ops.executing_eagerly_outside_functions() else tf_graphs.collections_of(outer)
    graph = func_graph.FuncGraph(f"{name}_ipu_program_{next(_serial)}", collections=collections)
    # Loops in the function order their side effects as the script does, as `tf.function` has them.
    tf_graphs.order_side_effects(graph)
    graph._ipu_in_stock_order = not outer.building_function
    graph._ipu_like_a_session = not ops.executing_eagerly_outside_functions() and (
        not outer.building_function or has_session_semantics(outer)
    )
    # TensorFlow's own functions take the caller's device only where it is a Python function.
    tf_graphs.copy_device_scopes(graph, outer)
    inherit_attributes(graph)
    enter_compilation(graph)
    order = auto_control_deps.AutomaticControlDependencies() if outer.building_function else nullcontext()
    # There, too, names of ops begin with the scope around them; a `tf.function` begins again.
    scope = "" if collections is None else outer.get_name_scope()
    named = graph.name_scope(f"{scope}/") if scope else nullcontext()
    with _enter_graph(outer), graph.as_default(), named, order, resource_variable_scope():
        placeholders = [graph.capture(argument) for argument in arguments]
        returned = function(*[array_ops.identity(p) if _is_plain_tensor(p) else p for p in placeholders])
    summaries.remove_host_summaries(graph)
    if not outer.building_function:
        _order_variables(graph, arguments)
    on_the_host = side_effects.host_side_effects(graph)
    graph.control_outputs = list(getattr(order, "ops_which_must_run", on_the_host))
    traced_functions.remember(graph)
    # An error that names an op's line needs the graph as long as the program can run.
    outer._ipu_traced = (*getattr(outer, "_ipu_traced", ()), graph)
    return graph, returned


def _order_variables(graph: func_graph.FuncGraph, arguments: Sequence[Any]) -> None:
    """Orders a program's variables by creation, as TensorFlow 1 does, not by use."""
    argument_ids = set(map(id, arguments))
    captures = list(graph.captures)
    handles = [pair for pair in captures if id(pair[0]) not in argument_ids and pair[0].dtype == dtypes.resource]
    in_order = iter(sorted(handles, key=lambda pair: tf_graphs.number_of(pair[0].op)))
    handle_ids = set(map(id, handles))
    for external, _ in captures:
        graph.function_captures.pop(id(external), False)
    graph.inputs = []
    for pair in captures:
        graph.add_capture(*(next(in_order) if id(pair) in handle_ids else pair))


def add_program_op(
    graph: func_graph.FuncGraph, device: str, outputs: Sequence[Any], controls: Sequence[Any], name: str
) -> Any:
    """Adds the op that runs a traced function to the graph around it."""
    if not ops.get_default_graph().building_function:
        host_variables.hoist_host_reads(graph)
    function = make_function(graph, outputs, controls)
    library = function_pb2.FunctionDefLibrary(function=graph.as_graph_def().library.function)
    library.function.append(function.definition)
    inlined_calls.without_inlined_calls(library.function)
    shapes = [tensor.shape.as_proto() for tensor in outputs]
    with ops.device(device):
        # The op is made by hand: the generated wrapper returns the outputs, and there may be none.
        op = tf_graphs.create_op(
            ops.get_default_graph(),
            vocabulary.PROGRAM,
            graph.external_captures,
            [tensor.dtype for tensor in outputs],
            name=name,
            attrs={
                "Tin": _dtypes(graph.external_captures),
                "Tout": _dtypes(outputs),
                "function": attr_value_pb2.AttrValue(s=graph.name.encode()),
                "library": attr_value_pb2.AttrValue(s=library.SerializeToString(deterministic=True)),
                "output_shapes": attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(shape=shapes)),
                "device_ordinal": attr_value_pb2.AttrValue(i=_device_ordinal(device)),
            },
        )
    for inner, outer in zip(outputs, op.outputs):
        outer.set_shape(inner.shape)
    return op


def _device_ordinal(device: str) -> int:
    index = device_lib.DeviceSpec.from_string(device).device_index
    return 0 if index is None else index


def add_nested_call(
    graph: func_graph.FuncGraph, outputs: Sequence[Any], controls: Sequence[Any], inputs: Sequence[Any] | None = None
) -> list[Any]:
    """Calls a traced function within another that is being traced, so that both are lowered together."""
    function = make_function(graph, outputs, controls)
    current = ops.get_default_graph()
    tf_graphs.add_function_recursive(current, function)
    op = tf_graphs.create_op(
        current,
        "StatefulPartitionedCall",
        graph.external_captures if inputs is None else list(inputs),
        [tensor.dtype for tensor in outputs],
        name="call",
        attrs={
            "Tin": _dtypes(graph.external_captures),
            "Tout": _dtypes(outputs),
            "f": attr_value_pb2.AttrValue(func=attr_value_pb2.NameAttrList(name=graph.name)),
        },
    )
    for inner, outer in zip(outputs, op.outputs):
        outer.set_shape(inner.shape)
    return list(op.outputs) or [op]


def make_function(graph: func_graph.FuncGraph, outputs: Sequence[Any], controls: Sequence[Any]) -> Any:
    """Makes TensorFlow's function of a traced graph."""
    graph.outputs = list(outputs)
    graph.control_outputs = list(dict.fromkeys([*graph.control_outputs, *controls]))
    if not graph.outer_graph.building_function:
        access_order.order_accesses(graph)
        graph.control_outputs += side_effects.unneeded_side_effects(
            graph, [*(output.op for output in graph.outputs), *graph.control_outputs]
        )
    return atomic_function.from_func_graph(graph.name, graph, {})


@contextmanager
def _enter_graph(graph: Any) -> Iterator[None]:
    """Makes `init_scope` work in a graph that is the default without having been entered."""
    if graph.building_function:
        yield
    else:
        with graph.as_default():
            yield


def _dtypes(tensors: Sequence[Any]) -> attr_value_pb2.AttrValue:
    enums = [tensor.dtype.base_dtype.as_datatype_enum for tensor in tensors]
    return attr_value_pb2.AttrValue(list=attr_value_pb2.AttrValue.ListValue(type=enums))


def _is_plain_tensor(tensor: Any) -> bool:
    return tensor.dtype.name not in ("resource", "variant")


def _is_eager() -> bool:
    from tf_ipu_shim.tf_private.eager import context

    return context.executing_eagerly()
