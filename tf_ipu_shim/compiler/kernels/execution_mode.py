"""Determines the execution mode that the configuration or an op requires, and falls back from `kernels` to XLA."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.compiler.kernels.op_launches import ops_without_kernel
from tf_ipu_shim.machine.environment import execution_mode
from tf_ipu_shim.machine.environment.execution_mode import KERNELS, XLA
from tf_ipu_shim.runtime import log

if TYPE_CHECKING:
    from tf_ipu_shim.runtime.device import IpuDevice


@dataclasses.dataclass(frozen=True)
class Execution:
    """How a program runs.

    Args:
        mode: `"xla"` or `"kernels"`; `"auto"` until it is chosen.
        is_checked: whether each op's results are checked, so that each must run separately.
        is_rounded: whether float16 results are rounded stochastically, so that each should run separately.
        is_required: whether XLA would compute other results, so that `kernels` is used in any case.
    """

    mode: str
    reason: str
    is_checked: bool = False
    is_rounded: bool = False
    is_required: bool = False


def requested_execution(device: IpuDevice, is_rounded: bool = False, only_kernels: Sequence[str] = ()) -> Execution:
    """Returns the execution mode in a device's configuration."""
    if device.float_checks:
        reason = "floating_point_behaviour: each op's results are checked"
        return Execution(KERNELS, reason, is_checked=True, is_rounded=is_rounded)
    if is_rounded:
        return Execution(KERNELS, "each op's float16 results are rounded stochastically", is_rounded=True)
    mode = execution_mode.requested_mode()
    if only_kernels and mode != KERNELS:
        return _without_xla(only_kernels[0])
    if mode == execution_mode.AUTO and execution_mode.requests_xla_dumps():
        return Execution(XLA, "XLA_FLAGS asks for what XLA compiles")
    return Execution(mode, f"{execution_mode.ENVIRONMENT_VARIABLE}={mode}")


def require_kernels(execution: Execution, op: str) -> Execution:
    """Returns the mode `kernels`, whatever was requested, because of an op that XLA computes otherwise."""
    return dataclasses.replace(execution, is_required=True) if execution.mode == KERNELS else _without_xla(op)


def _without_xla(op: str) -> Execution:
    if execution_mode.requested_mode() == XLA:
        log.warning(
            f"{execution_mode.ENVIRONMENT_VARIABLE} is {XLA!r}, but this program runs in mode kernels: XLA's results "
            f"differ from TensorFlow's for {op}."
        )
    return Execution(KERNELS, f"XLA's results would differ for {op}", is_required=True)


def resolve_execution(
    execution: Execution, program: LoweredProgram, unconverted: Mapping[str, str], is_required: bool
) -> Execution:
    """Resolves the mode `kernels` for a program, which may fall back to XLA.

    Both modes refuse programs that an IPU could not compile. If XLA has returned the HLO of a program, it can compile
    it. Otherwise XLA runs it, and refuses it in its own words if necessary.

    Args:
        program: the program in mode `kernels`.
        unconverted: XLA's errors for the parts that it did not convert to HLO.
        is_required: whether XLA would compute other results, so that it runs only the ops without a kernel.
    """
    reason, missing = "", ", ".join(ops_without_kernel(program))
    if unconverted and not is_required:
        reason = f"XLA has no HLO of the program before it runs: {next(iter(unconverted.values()))}"
    elif missing:
        reason = f"TensorFlow has no kernel for {missing}"
    if not reason:
        return execution
    if execution.is_checked:
        raise errors_impl.UnimplementedError(
            None,
            None,
            f"Floating-point exceptions need each op of a program to run by itself, and those of {program.node.name} "
            f"cannot: {reason}. Switch inv, div0, oflo and nanoo of IPUConfig.floating_point_behaviour off.",
        )
    if execution.is_rounded:
        log.warning(
            f"{missing if is_required else program.node.name} rounds float16 to the nearest, not stochastically as "
            f"configured: that needs each op to run by itself, and {reason}."
        )
        reason = f"{reason}, so that float16 is rounded to the nearest"
    return execution if is_required else Execution(XLA, reason)
