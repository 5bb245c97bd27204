"""Builds the trace events of a program, to which the plugin adds times.

The kinds of events are as in Graphcore's driver. `profiling.enable_ipu_trace_events` turns them on; loading an engine
and transfers need `profiling.enable_io_trace` as well. Only variables are transferred separately: arguments and results
of a call are streamed while the program executes, and are not events.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from tf_ipu_shim.machine.ids import Device
from tf_ipu_shim.messages import program_pb2, trace_pb2


@dataclasses.dataclass(frozen=True)
class DeviceTensor:
    """A variable that a program keeps on the device between runs.

    Args:
        parameter: the index of the program's argument.
        output: the index of the program's result with its new value; None if the program does not write it.
    """

    parameter: int
    bytes: int
    output: int | None = None


def events_of(
    ordinal: Device,
    module: str,
    profiling: Any,
    tensors: Sequence[DeviceTensor],
    *,
    tensor_map: str = "",
    info: str = "",
    graph_report: str = "",
    execution_report: str = "",
    cache: str = "",
) -> Any:
    """Returns the events of a program as `program_pb2.ProgramEvents`.

    Source: `tensorflow/compiler/plugin/poplar/driver/poplar_executor.cc`.

    Example:
        >>> from tf_ipu_shim.messages import config_pb2
        >>> profiling = config_pb2.IpuOptions.Profiling(enable_ipu_trace_events=True)
        >>> events_of(0, "cluster", profiling, []).execute.execute.module_name
        b'cluster'
    """
    kind = trace_pb2.IpuTraceEvent
    events = program_pb2.ProgramEvents(
        compile_begin=kind(type=kind.COMPILE_BEGIN, ordinal=ordinal),
        compile_end=kind(type=kind.COMPILE_END, ordinal=ordinal),
        execute=kind(type=kind.EXECUTE, ordinal=ordinal),
        variables=[tensor.parameter for tensor in tensors],
        written=[tensor.parameter for tensor in tensors if tensor.output is not None],
    )
    name = module.encode()
    events.compile_begin.compile_begin.module_name = name
    if cache:
        events.compile_begin.compile_begin.cluster_info = json.dumps({"executable_cache": cache}).encode()
    compiled = events.compile_end.compile_end
    compiled.module_name, compiled.tensor_map, compiled.instruction_info = name, tensor_map.encode(), info.encode()
    compiled.compilation_report = graph_report.encode()
    if execution_report:
        report = kind(execute=trace_pb2.Execute(execution_report=execution_report.encode()))
        events.execution_report, events.report_every = report.SerializeToString(), profiling.report_every_nth_execution
    events.execute.execute.module_name = name
    if profiling.enable_io_trace:
        events.transfers.CopyFrom(_transfers(ordinal, module, tensors))
    return events


def _transfers(ordinal: Device, module: str, tensors: Sequence[DeviceTensor]) -> Any:
    kind = trace_pb2.IpuTraceEvent
    events = program_pb2.TransferEvents(
        load_engine=kind(type=kind.LOAD_ENGINE, ordinal=ordinal),
        host_to_device=kind(type=kind.HOST_TO_DEVICE_TRANSFER, ordinal=ordinal),
        device_to_host=kind(type=kind.DEVICE_TO_HOST_TRANSFER, ordinal=ordinal),
    )
    events.load_engine.load_engine.module_name = module.encode()
    events.host_to_device.data_transfer.data_transfer = _transfer(
        [(f"{tensor.parameter}.0", tensor.parameter, tensor.bytes) for tensor in tensors]
    )
    events.device_to_host.data_transfer.data_transfer = _transfer(
        [(f"out_{tensor.output}.0", tensor.output, tensor.bytes) for tensor in tensors if tensor.output is not None]
    )
    return events


def _transfer(tensors: Sequence[tuple[str, int, int]]) -> bytes:
    described = [
        {"name": name, "parameter_index": index, "flat_tensor_index": 0, "size": size} for name, index, size in tensors
    ]
    return json.dumps({"tensors": described, "total_size": sum(size for _, _, size in tensors)}).encode()
