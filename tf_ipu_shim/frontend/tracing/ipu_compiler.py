"""`tensorflow.python.ipu.ipu_compiler`: compiles a function for the IPU."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorflow.compat.v2 import errors as errors_impl
from tensorflow.compat.v2 import nest

from tf_ipu_shim.frontend.tracing import tracing
from tf_ipu_shim.tf_private import tensors as tf_tensors
from tf_ipu_shim.tf_private.control_flow import control_flow_ops
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.functions import def_function
from tf_ipu_shim.tf_private.graphs import device as device_lib
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops

_NAME = re.compile(r"[A-Za-z]\w*")


def compile(computation: Callable[..., Any], inputs: Sequence[Any] | None = None) -> Any:
    """Builds an op that runs a function on the IPU, compiled with XLA.

    The program and its number of IPUs are determined when the op first runs: the system may be configured after the
    graph is built.

    Args:
        computation: a Python function with one argument for each input. It returns tensors, then operations to run with
            them.
        inputs: a list of values that convert to tensors, or of nested structures of them.

    Returns:
        As Graphcore's: a list of tensors for a tensor or a flat sequence of tensors; an operation if the function
        returns only operations, or None. A nested result keeps its structure.

    Raises:
        TypeError: `inputs` is not a list.
        ValueError: the function returns operations before tensors or an object that is not a tensor. Or it uses tensors
            of another graph, or is called in another compiled function.
        Exception: none of its ops is on an IPU device: use `ipu_scope`.

    Source: `tensorflow.python.ipu.ipu_compiler.compile`.

    Example:
        >>> with ipu.scopes.ipu_scope("/device:IPU:0"):
        ...     (total,) = ipu.ipu_compiler.compile(lambda a, b: a + b, [tf.constant(1.0), tf.constant(2.0)])
        >>> float(total)
        3.0
    """
    if context.executing_eagerly():
        device = context.context().device_name  # a tf.function does not take over the device it is called under

        def compiled() -> Any:
            with ops.device(device):
                return _compile_traced(computation, inputs)

        return def_function.function(compiled, autograph=False)()
    return _compile_traced(computation, inputs)


def compile_named(name: str, computation: Callable[..., Any]) -> Any:
    """As `compile` in a session's graph, for a function without inputs.

    Example:
        >>> with tf.Graph().as_default(), ipu.scopes.ipu_scope("/device:IPU:0"):
        ...     compile_named("train", lambda: tf.constant(1.0) + 1.0)
        [<tf.Tensor 'output_0:0' shape=() dtype=float32>]
    """
    return _compile_traced(computation, [], name)


@dataclasses.dataclass(frozen=True)
class TracedComputation:
    """A traced function, ready to compile.

    Args:
        graph: its ops; its inputs and captured tensors are in `external_captures`, the inputs first.
        inputs: its inputs as tensors of the graph around.
    """

    name: str
    graph: Any
    inputs: list[Any]
    result: ComputationResult


def trace_computation(
    computation: Callable[..., Any], inputs: Sequence[Any] | None, program: str = ""
) -> TracedComputation:
    """Traces a function as `compile` does, with the same arguments and errors.

    Example:
        >>> with tf.Graph().as_default():
        ...     trace_computation(lambda a: a + 1.0, [2.0]).result.tensors[0].dtype
        tf.float32
    """
    if inputs is None:
        inputs = []
    if not isinstance(inputs, Sequence):
        raise TypeError(f"inputs must be a list, not {type(inputs).__name__}. Put a single input into a list.")
    _check_not_nested()
    flat = [ops.convert_to_tensor(value) for value in nest.flatten(inputs)]
    result = ComputationResult()

    def function(*arguments: Any) -> None:
        ops.get_default_graph()._ipu_compiled = True
        result.unpack(computation(*nest.pack_sequence_as(inputs, list(arguments))))

    name = ops.get_default_graph().unique_name("cluster", mark_as_used=False)
    try:
        graph, _ = tracing.trace_function(program or _program_name(computation) or name, function, flat)
    except TypeError as error:
        if "_ref" in str(error):  # TensorFlow's own words for writing to one: "expected types ([tf.float32_ref, ...])"
            raise _reference_variable_error(str(error)) from None  # whose text is in it
        raise
    _check_captured_tensors(graph)
    _check_resource_variables(graph)
    return TracedComputation(name, graph, flat, result)


def _program_name(function: Any) -> str:
    """Returns the name that the script gave a function, by which profiles call its program; empty for a lambda."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", "")
    return name if _NAME.fullmatch(name) else ""


def _compile_traced(computation: Callable[..., Any], inputs: Sequence[Any] | None, program: str = "") -> Any:
    function = trace_computation(computation, inputs, program)
    graph, result = function.graph, function.result
    if all(operation.type == "NoOp" for operation in graph.get_operations()):
        return control_flow_ops.no_op(name="output_0")  # nothing to compile, so any device will do
    program = tracing.add_program_op(graph, _ipu_device_of(graph), result.tensors, result.operations, function.name)
    return result.pack_outer(program)


class ComputationResult:
    """The result of a compiled function, inside and outside of it.

    Attributes:
        tensors: the tensors of the function's graph.
        operations: the operations of that graph, to be run although no tensor needs them.
    """

    def __init__(self) -> None:
        self.tensors: list[Any] = []
        self.operations: list[Any] = []
        self._structure: Any = None
        self._is_flat = True

    def unpack(self, returned: Any) -> None:
        """Sorts the returned values, in the function's graph."""
        self._refuse_estimator_spec(returned)
        self._structure = returned
        self._is_flat = not _is_nested(returned)
        values = _as_list(returned) if self._is_flat else nest.flatten(returned)
        for value in values:
            if isinstance(value, ops.Operation):
                if not self._is_flat:
                    raise ValueError(
                        "A compiled function does not support an Operation as a return value in a non-flat output "
                        f"structure, and {value.name} is one. Return it with the tensors in one flat list, or make "
                        "it a control dependency of a returned tensor."
                    )
                self.operations.append(value)
                continue
            if self.operations:
                raise ValueError(
                    "XLA computation function must return zero or more Tensor values followed by zero or more "
                    f"Operations; {value!r} follows the operation {self.operations[-1].name}. Return the tensors "
                    "before the operations."
                )
            try:
                tensor = ops.convert_to_tensor(value)
            except Exception as error:
                raise ValueError(
                    "XLA computation function return values must all either be Operations or convertible to Tensors. "
                    f"{value!r} is neither: {error}"
                    ". Return tensors or operations."
                ) from error
            self.tensors.append(array_ops.identity(tensor))

    def pack_outer(self, program: Any) -> Any:
        """Returns the same in the caller's graph."""
        if not self.tensors:
            with ops.control_dependencies([program]):
                return control_flow_ops.no_op(name="output_0")
        with ops.device(program.device):
            tensors = [array_ops.identity(tensor, name=f"output_{i}") for i, tensor in enumerate(program.outputs)]
        return tensors if self._is_flat else nest.pack_sequence_as(self._structure, tensors)

    @staticmethod
    def _refuse_estimator_spec(returned: Any) -> None:
        if _holds_estimator_spec(returned):
            raise ValueError(
                "Your computation output contains an EstimatorSpec or is one; expected tensors and "
                "operations. Use IPUEstimator, or return the spec's loss and train_op."
            )


def _holds_estimator_spec(returned: Any) -> bool:
    if type(returned).__name__ in ("EstimatorSpec", "IPUEstimatorSpec"):  # these are named tuples
        return True
    parts = returned.values() if isinstance(returned, Mapping) else returned
    return isinstance(returned, (Mapping, list, tuple)) and any(_holds_estimator_spec(part) for part in parts)


def _as_list(returned: Any) -> list[Any]:
    if returned is None:
        return []
    if isinstance(returned, Sequence) and not isinstance(returned, (str, bytes)):
        return list(returned)
    return [returned]


def _is_nested(returned: Any) -> bool:
    def structured(value: Any) -> bool:
        is_sequence = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
        return is_sequence or isinstance(value, Mapping) or hasattr(type(value), "__attrs_attrs__")

    if isinstance(returned, Sequence) and not isinstance(returned, (str, bytes)):
        return any(structured(value) for value in returned)
    return structured(returned)


def _ipu_device_of(graph: Any) -> str:
    """Returns the IPU device that the function's ops are on."""
    operations = graph.get_operations()
    for operation in operations:
        if _is_ipu_device(operation.device):
            return operation.device
    for function in graph.as_graph_def().library.function:  # bodies of loops and branches
        for node in function.node_def:
            if _is_ipu_device(node.device):
                return str(node.device)
    raise Exception(
        "A computation has been compiled, however it was not placed on an IPU device: none of its "
        f"{len(operations)} ops is. Compile it inside `with ipu.scopes.ipu_scope('/device:IPU:0'):`."
    )


def _is_ipu_device(device: str) -> bool:
    return bool(device) and device_lib.DeviceSpec.from_string(device).device_type == "IPU"


def _enclosing_graphs() -> list[Any]:
    """Returns the current graph, and those it is nested in."""
    graphs, graph = [], ops.get_default_graph()
    while graph is not None:
        graphs.append(graph)
        graph = getattr(graph, "outer_graph", None)
    return graphs


def _check_not_nested() -> None:
    for graph in _enclosing_graphs():
        if getattr(graph, "_ipu_compiled", False):
            raise ValueError(
                f"XLA compiled computations cannot be nested: this is already compiled as part of {graph.name}. Call "
                "the inner function itself instead of ipu_compiler.compile."
            )


def _check_captured_tensors(graph: Any) -> None:
    around = _enclosing_graphs()
    for tensor in graph.external_captures:
        if getattr(tensor, "graph", around[0]) not in around:  # an eager tensor has none
            raise ValueError(
                f"The compiled function uses {tensor.name}, which is from another graph; expected the graph "
                "that compile is called in. Create it there."
            )


def _check_resource_variables(graph: Any) -> None:
    for tensor in graph.external_captures:
        if tf_tensors.is_ref_dtype(tensor.dtype):
            raise _reference_variable_error(f"{tensor.op.type} {tensor.op.name} makes no resource variable.", tensor.op)


def _reference_variable_error(reason: str, operation: Any = None) -> Exception:
    name = "" if operation is None else f" for operation {operation.name}"
    return errors_impl.InvalidArgumentError(
        None,
        operation,
        f"Cannot assign a device{name}: Could not satisfy explicit device specification because no supported kernel "
        f"for IPU devices is available. {reason} Create the variable inside the ipu_scope, or with "
        "tf.compat.v1.get_variable(..., use_resource=True).",
    )
