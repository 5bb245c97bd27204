"""Chooses a program's execution mode: XLA programs or TensorFlow's own kernels."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.machine.environment import execution_mode
from tf_ipu_shim.machine.environment.execution_mode import KERNELS, XLA
from tf_ipu_shim.plugin.library import Library
from tf_ipu_shim.runtime import log
from tf_ipu_shim.tf_private.protos import graph_pb2

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
    requested: Execution, plugin: Library, program: LoweredProgram, without_form: Mapping[str, str]
) -> Execution:
    """Resolves the requested mode `kernels` for a program, which may fall back to XLA.

    Both modes refuse programs that an IPU could not compile. If XLA has returned the HLO of a program, it can compile
    it. Otherwise XLA runs it, and refuses it in its own words if necessary.
    """
    reason = ""
    if without_form:
        reason = f"XLA has no HLO of the program before it runs: {next(iter(without_form.values()))}"
    elif missing := _types_without_kernel(plugin, program):
        reason = f"TensorFlow has no kernel for {', '.join(missing)}"
    if not reason:
        return requested
    if requested.is_checked:
        raise errors_impl.UnimplementedError(
            None,
            None,
            f"Floating-point exceptions need each op of a program to run by itself, and those of {program.node.name} "
            f"cannot: {reason}. Switch inv, div0, oflo and nanoo of IPUConfig.floating_point_behaviour off.",
        )
    if requested.is_rounded:
        log.warning(
            f"{program.node.name} rounds float16 to the nearest, not stochastically as configured: that needs each of "
            f"its ops to run by itself, and {reason}."
        )
        reason = f"{reason}, so that float16 is rounded to the nearest"
    return Execution(XLA, reason)


def _types_without_kernel(plugin: Library, program: LoweredProgram) -> list[str]:
    """Returns the op types of a program that have no TensorFlow kernel."""
    nodes = [
        node
        for function in program.functions
        for node in function.node_def
        if vocabulary.CHIP_ATTRIBUTE in node.attr
        and node.op not in {*vocabulary.FUNCTION_ATTRIBUTES, vocabulary.LAUNCH}
    ]
    graph = graph_pb2.GraphDef(node=nodes)
    for index, node in enumerate(graph.node):
        node.name = str(index)
    return list(dict.fromkeys(nodes[int(name)].op for name in plugin.without_kernel(graph.SerializeToString())))
