"""Trace events of one program, ready but for the time: the plugin adds that when they happen.

Which there are follows Graphcore's driver. `profiling.enable_ipu_trace_events` turns them on; loading an engine and
transfers need `profiling.enable_io_trace` as well. Only variables are transferred by themselves: what a call is given
and what it returns are streamed while the program executes, and are no events.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import Any

from tf_ipu_shim.messages import trace_pb2


@dataclasses.dataclass(frozen=True)
class DeviceTensor:
    """A variable that a program keeps on the device between runs.

    Args:
        parameter: the program's argument that it is.
        bytes: its size.
        output: the program's result that its new value is; None if the program does not write it.
    """

    parameter: int
    bytes: int
    output: int | None = None


def templates(
    ordinal: int, module: str, profiling: Any, tensors: Sequence[DeviceTensor], *, tensor_map: str = "", info: str = ""
) -> list[bytes]:
    """The events of a program, as the plugin takes them.

    Args:
        ordinal: of the TensorFlow device.
        module: the program's name.
        profiling: the `IpuOptions.Profiling` in force.
        tensors: the program's variables.
        tensor_map: JSON, which tensor lies on which tiles.
        info: JSON, what is known of the program's instructions.

    Returns:
        Nothing when no events are wanted; else serialised `IpuTraceEvent`s without time: COMPILE_BEGIN, COMPILE_END,
        LOAD_ENGINE, HOST_TO_DEVICE_TRANSFER, DEVICE_TO_HOST_TRANSFER, EXECUTE. The three in the middle are empty when
        transfers are not wanted.

    Source: `tensorflow/compiler/plugin/poplar/driver/poplar_executor.cc`.

    Example:
        >>> profiling = config_pb2.IpuOptions.Profiling(enable_ipu_trace_events=True)
        >>> trace_pb2.IpuTraceEvent.FromString(templates(0, "cluster", profiling, [])[5]).execute.module_name
        'cluster'
    """
    if not profiling.enable_ipu_trace_events:
        return []
    kinds = trace_pb2.IpuTraceEvent
    begin = kinds(type=kinds.COMPILE_BEGIN, ordinal=ordinal)
    begin.compile_begin.module_name = module
    end = kinds(type=kinds.COMPILE_END, ordinal=ordinal)
    end.compile_end.module_name, end.compile_end.tensor_map, end.compile_end.instruction_info = module, tensor_map, info
    load = kinds(type=kinds.LOAD_ENGINE, ordinal=ordinal)
    load.load_engine.module_name = module
    to_device = kinds(type=kinds.HOST_TO_DEVICE_TRANSFER, ordinal=ordinal)
    to_device.data_transfer.data_transfer = _transfer(
        [(f"{tensor.parameter}.0", tensor.parameter, tensor.bytes) for tensor in tensors]
    )
    to_host = kinds(type=kinds.DEVICE_TO_HOST_TRANSFER, ordinal=ordinal)
    to_host.data_transfer.data_transfer = _transfer(
        [(f"out_{tensor.output}.0", tensor.output, tensor.bytes) for tensor in tensors if tensor.output is not None]
    )
    execute = kinds(type=kinds.EXECUTE, ordinal=ordinal)
    execute.execute.module_name = module
    transfers = [load, to_device, to_host]
    return [
        begin.SerializeToString(),
        end.SerializeToString(),
        *(event.SerializeToString() if profiling.enable_io_trace else b"" for event in transfers),
        execute.SerializeToString(),
    ]


def _transfer(tensors: Sequence[tuple[str, int, int]]) -> str:
    described = [
        {"name": name, "parameter_index": index, "flat_tensor_index": 0, "size": size} for name, index, size in tensors
    ]
    return json.dumps({"tensors": described, "total_size": sum(size for _, _, size in tensors)})
