"""Attaches matmul and convolution planner options to ops, for the cycle model and for Poplar's checks.

Poplar reads an op's options when it compiles the program, so that a wrong one fails the run and not the call.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tensorflow.compat.v2 import dtypes, nest
from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.cycle_model import planning
from tf_ipu_shim.frontend.tracing import ipu_compiler, tracing
from tf_ipu_shim.memory_model.computations import planner_options
from tf_ipu_shim.runtime import ignored_options
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.eager import context, custom_gradient
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops
from tf_ipu_shim.tf_private.protos import attr_value_pb2

# Of a matmul whose gradients have separate planner options; their names are in saved graphs.
_GRADIENT = "IpuPlannedMatMul"


@contextlib.contextmanager
def planner_scope(**options: Mapping[str, Any] | None) -> Iterator[None]:
    """Sets planner options of matmuls and convolutions created inside, if they are valid (see `check_options`).

    Example:
        >>> with planner_scope(convolution={"partialsType": "half"}):
        ...     y = tf.nn.conv2d(tf.ones([1, 4, 4, 2]), tf.ones([3, 3, 2, 2]), 1, "SAME")
    """
    attribute = planner_attribute(**options)
    with tracing.attribute_scope({} if attribute is None else {vocabulary.PLANNING_ATTRIBUTE: attribute}):
        yield


def planner_attribute(**options: Mapping[str, Any] | None) -> attr_value_pb2.AttrValue | None:
    """Returns the attribute that `planner_scope` sets on ops; None without options."""
    valid_options = {
        opcode: dict(opcode_options)
        for opcode, opcode_options in options.items()
        if opcode_options and _find_error(opcode_options) is None
    }
    return attr_value_pb2.AttrValue(s=json.dumps(valid_options, default=str).encode()) if valid_options else None


class RecurrentOptions(NamedTuple):
    """Planner options of a recurrent layer's matmuls."""

    forward: Mapping[str, Any]
    backward: Mapping[str, Any]


@contextlib.contextmanager
def recurrent_planner_scope(options: RecurrentOptions | None) -> Iterator[None]:
    """Sets planner options of matmuls created inside and of their gradients."""
    if options is None:
        yield
        return
    attribute = planner_attribute(dot=options.backward)
    overrides = {"MatMul": _GRADIENT} if attribute is not None and not context.executing_eagerly() else {}
    attributes = {vocabulary.GRADIENT_PLANNING_ATTRIBUTE: attribute} if attribute is not None else {}
    graph = ops.get_default_graph()
    with (
        planner_scope(dot=options.forward),
        tracing.attribute_scope(attributes),
        graph.gradient_override_map(overrides),
    ):
        yield


@ops.RegisterGradient(_GRADIENT)
def _planned_matmul_gradient(operation: Any, gradient: Any) -> Any:
    """Returns the gradients of a matmul with planner options for each."""
    options = json.loads(operation.get_attr(vocabulary.GRADIENT_PLANNING_ATTRIBUTE))
    with planner_scope(**options):
        return ops.gradient_registry.lookup("MatMul")(operation, gradient)


def recurrent_options(partials_dtype: Any, options: Any, proportion: Any = None) -> dict[str, Any]:
    """Planner options of the matmuls of one pass of a recurrent layer.

    Example:
        >>> recurrent_options("float16", '{"availableMemoryProportion": "0.2"}')
        {'partialsType': 'half', 'availableMemoryProportion': '0.2'}
    """
    parsed = parse_options(options)
    partials = "half" if dtypes.as_dtype(partials_dtype) == dtypes.float16 else "float"
    return {planning.PARTIALS: partials, planning.PROPORTION: proportion, **(parsed or {})}


def parse_options(options: Any) -> Any:
    """Returns options as a dictionary, from a dictionary or JSON."""
    return json.loads(options) if isinstance(options, str) else options


def find_ignored_options(options: Any) -> dict[str, Any]:
    """Returns the options without effect, for the memory report and the log.

    Example:
        >>> find_ignored_options({"partialsType": "half", "planType": "serial"})
        {'planType': 'serial'}
    """
    mapping = options if isinstance(options, dict) else {}
    return {name: value for name, value in mapping.items() if name not in planning.READ}


def record_ignored_options(call: str, options: Any, name: str = "options") -> None:
    """Records a call's options without effect, for the memory report and the log."""
    row = f"{call}({name})"
    if ignored := find_ignored_options(options):
        ignored_options.note_arguments({row: ignored})


def check_options(results: Any, *options: Mapping[str, Any] | str | None, library: str | None = None) -> Any:
    """Makes a program fail that contains an op with invalid options, names among them if the library is given."""
    wrong = next((message for option in options if (message := _find_error(option, library)) is not None), None)
    if wrong is None:
        return results
    if context.executing_eagerly():
        raise errors_impl.InternalError(None, None, wrong)
    if type(ops.get_default_graph()) is not ops.Graph:
        return nest.map_structure(lambda tensor: _attach_check(tensor, wrong), results)
    # A session runs the op by itself, and Poplar compiles that: a separate program that can only fail.
    flat = nest.flatten(results)

    @custom_gradient.custom_gradient
    def fail(*values: Any) -> Any:
        with ops.device(flat[0].device):
            failing = ipu_compiler.compile(
                lambda *taken: [_attach_check(array_ops.identity(value), wrong) for value in taken], list(values)
            )
        return failing, lambda *gradients: gradients

    return nest.pack_sequence_as(results, nest.flatten(fail(*flat)))


def check_read_options(results: Any, operations: Sequence[Any], *received: Mapping[str, Mapping[str, Any]]) -> None:
    """Makes a program fail whose ops have invalid options; options of a library without an op here are not read."""
    for options in received:
        for library, library_options in options.items():
            if _find_error(library_options, library) is not None and planner_options.reads_options(
                library, _op_types(operations)
            ):
                check_options(results, library_options, library=library)


def _op_types(operations: Sequence[Any]) -> Iterator[str]:
    nodes = [operation.node_def for operation in operations]
    library = {function.signature.name: function for function in operations[0].graph.as_graph_def().library.function}
    while nodes:
        node = nodes.pop()
        yield node.op
        for name in op_types.called_functions(node):
            if name in library:
                nodes.extend(library.pop(name).node_def)


def _attach_check(tensor: Any, wrong: str) -> Any:
    tf_graphs.set_attr(tensor.op, vocabulary.REFUSED_ATTRIBUTE, attr_value_pb2.AttrValue(s=wrong.encode()))
    return tensor


def _find_error(options: Mapping[str, Any] | str | None, library: str | None = None) -> str | None:
    return planner_options.find_error(parse_options(options) or {}, library)  # "null" is none, too
