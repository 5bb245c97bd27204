"""Writes the dumps that `TF_POPLAR_FLAGS` requests: the schedule as DOT and the tensor map."""

from __future__ import annotations

import pathlib
import sys

from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.driver.compilation import module_name
from tf_ipu_shim.driver.engine_needed import needs_engine
from tf_ipu_shim.machine.environment import flags
from tf_ipu_shim.machine.memory.dot import dot_of
from tf_ipu_shim.machine.sharing import private_files
from tf_ipu_shim.memory_model import bug_report
from tf_ipu_shim.memory_model.memory_plan import PlanDetails
from tf_ipu_shim.memory_model.variables.io_tiles import io_tiles_of
from tf_ipu_shim.memory_model.variables.tensor_map import tensor_map_json
from tf_ipu_shim.runtime import log
from tf_ipu_shim.runtime.device import IpuDevice


def is_requested() -> bool:
    """Returns whether one of the flags is set."""
    poplar_flags = flags.current()
    return poplar_flags.dump_schedule_as_dot or bool(poplar_flags.tensor_map_file_path)


def write_dumps(request: ProgramRequest, program: LoweredProgram, device: IpuDevice, details: PlanDetails) -> None:
    """Writes the requested dumps of a program that Graphcore would compile an engine for.

    The schedule is printed to stderr. The tensor map is the file `MODULE.tensor_map.json` of the directory, which is
    created; failed writes are logged.

    Source: docs/reference/facts.md, section "TF_POPLAR_FLAGS".
    """
    if not is_requested() or request.single_op or not needs_engine(request, program):
        return
    module = module_name(request.function)
    try:
        _write(module, request, program, device, details)
    except OSError as error:
        log.warning(f"The tensor map of {module} cannot be written: {error}")
    except Exception as error:
        bug_report.warn(request, error, "without the dumps that TF_POPLAR_FLAGS asks for")


def _write(
    module: str, request: ProgramRequest, program: LoweredProgram, device: IpuDevice, details: PlanDetails
) -> None:
    poplar_flags = flags.current()
    if poplar_flags.dump_schedule_as_dot and sys.stderr is not None:
        sys.stderr.write(dot_of(module, details.blocks, details.line_of))
        sys.stderr.flush()
    if poplar_flags.tensor_map_file_path:
        folder = pathlib.Path(poplar_flags.tensor_map_file_path)
        folder.mkdir(parents=True, exist_ok=True)
        io_tiles = io_tiles_of(device.options)
        tensor_map = tensor_map_json(module, request, program, device.chip, details.tensors, io_tiles, details.blocks)
        private_files.replace(folder / f"{module}.tensor_map.json", tensor_map.encode())
