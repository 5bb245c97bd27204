"""Describes a program's compilation for the plugin: its name, trace events and progress bar."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.compiler.ir.written_variables import written_arguments
from tf_ipu_shim.machine.environment import flags
from tf_ipu_shim.messages import program_pb2
from tf_ipu_shim.runtime import trace
from tf_ipu_shim.tf_private.protos import function_pb2

# Ops that take Poplar long to compile. Graphcore's bar shows by itself from five of them on.
_EXPENSIVE = frozenset(
    "BatchMatMul BatchMatMulV2 BatchMatMulV3 Cholesky Conv2D Conv2DBackpropFilter Conv2DBackpropInput Conv3D "
    "Conv3DBackpropFilterV2 Conv3DBackpropInputV2 DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter "
    "DepthwiseConv2dNativeBackpropInput Einsum MatMul MatrixTriangularSolve".split()
)
_ENOUGH_FOR_A_BAR = 5
_STDERR = 2


class EventDetails(NamedTuple):
    """The description of a program for its compilation's trace event.

    Args:
        tensor_map: JSON, on which tiles its arguments are.
        info: JSON: the pass (forward, backward, update) that each of its matmuls belongs to.
        graph_report: JSON: its functions and ops, or the path of a file with it; empty if not requested.
        execution_report: the same with the cycles of a run.
    """

    tensor_map: str = ""
    info: str = ""
    graph_report: str = ""
    execution_report: str = ""


def describe(
    request: ProgramRequest,
    launches: Sequence[str],
    variable_chips: Sequence[int],
    profiling: Any,
    cache: str = "",
    details: EventDetails = EventDetails(),  # noqa: B008
) -> Any:
    """Returns the `program_pb2.Compilation` by which the plugin reports a compilation."""
    module = module_name(request.function)
    described = program_pb2.Compilation(module=module, launches=launches, progress_bar=shows_bar(request.library))
    if profiling.enable_ipu_trace_events:
        # Synthetic parameters are not moved between host and IPU.
        tensors = [] if flags.current().is_synthetic("parameters") else _tensors(request, variable_chips)
        described.events.CopyFrom(
            trace.events_of(request.ordinal, module, profiling, tensors, cache=cache, **details._asdict())
        )
    return described


def module_name(function: str) -> str:
    """Returns XLA's name for a function's module.

    Example:
        >>> module_name("__inference_step_12")
        'a_inference_step_12'
    """
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", function)
    if name.startswith("__"):
        return f"a{name[1:]}"
    return name if re.match(r"[A-Za-z_]", name) else f"_{name}"


def shows_bar(library: Mapping[str, function_pb2.FunctionDef]) -> bool:
    """Returns whether compiling these functions shows a progress bar, by the flag `--show_progress_bar`."""
    choice = flags.current().show_progress_bar
    if choice != "auto":
        return choice == "true"
    return os.isatty(_STDERR) and _expensive_ops(library) >= _ENOUGH_FOR_A_BAR


def _expensive_ops(library: Mapping[str, function_pb2.FunctionDef]) -> int:
    return sum(node.op in _EXPENSIVE for function in library.values() for node in function.node_def)


def _tensors(request: ProgramRequest, variable_chips: Sequence[int]) -> list[trace.DeviceTensor]:
    written = written_arguments(request.function, request.library)
    results = len(request.library[request.function].signature.output_arg)
    tensors = []
    for index, ipu in enumerate(variable_chips):
        if ipu < 0:
            continue
        output = None
        if index in written:
            # XLA returns the new values of variables after the function's own results.
            output, results = results, results + 1
        size = _bytes(request.variable_types[index], request.variable_shapes[index])
        tensors.append(trace.DeviceTensor(index, size, output))
    return tensors


def _bytes(kind: int, shape: tuple[int, ...]) -> int:
    size = dtypes.as_dtype(kind).size if kind else 0
    for dimension in shape:
        size *= dimension
    return size
