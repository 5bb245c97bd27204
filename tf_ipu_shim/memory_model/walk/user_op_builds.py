"""Builds the users' Poplar ops of a program when it is compiled, and finds those that must not be cached."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from tensorflow.compat.v2 import errors

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.program import LoweredProgram, ProgramRequest
from tf_ipu_shim.compiler.xla_semantics import user_ops
from tf_ipu_shim.memory_model.variables.io_tiles import io_tiles_of
from tf_ipu_shim.poplar_sdk import bridge, op_calls
from tf_ipu_shim.runtime.device import IpuDevice
from tf_ipu_shim.tf_private.protos import node_def_pb2

_serial = itertools.count()


def target_of(device: IpuDevice, program: str) -> str:
    """Returns the build target of a program's user ops without the number of IPUs: type, chip, compute tiles, program.

    Each call is another program, with separate state.
    """
    tiles = io_tiles_of(device.options).compute_tiles(device.chip).tiles
    kind = "IPU_MODEL" if device.on_model else "IPU"
    return f"{kind} {device.chip.target} {tiles} {program}_{next(_serial)}"


def target_in(program: LoweredProgram) -> str:
    """Returns what the build targets of the user ops in a lowered program begin with; empty without such ops."""
    return next((node.attr["target"].s.decode().rpartition(" ")[0] for _, node in _user_ops_of(program)), "")


def build(program: LoweredProgram, describe: Callable[[str, Any], str]) -> None:
    """Builds each user's Poplar op of a program, in order: an op can use the codelets that earlier ones have added."""
    scopes = {**program.traced, **{cluster.function: cluster.scope for cluster in program.clusters}}
    for name, node in _user_ops_of(program):
        call, described = user_ops.call_of(node), describe(scopes.get(name, name), node)
        try:
            bridge.describe(call)
            bridge.load().locate(call, described)
        except errors.OpError as error:
            raise type(error)(None, None, f"{error.message.rstrip('.')}. Op {described}.") from None


def calls_of(program: LoweredProgram) -> list[bytes]:
    """Returns the calls of a program's user ops, in the order in which they are built."""
    return list(dict.fromkeys(user_ops.call_of(node) for _, node in _user_ops_of(program)))


def build_again(calls: Iterable[bytes], request: ProgramRequest, describe: Callable[[str, Any], str]) -> None:
    """Builds the user ops of a program from the cache, in the order in which they were built when it was compiled.

    Their names and lines in the script, for messages of their runs, are those of the request.
    """
    nodes = {
        user_ops.name_of(node): (name, node)
        for name, function in request.library.items()
        for node in user_ops.user_ops_in(function.node_def)
    }
    for call in calls:
        bridge.load().build(call)
        if found := nodes.get(op_calls.name_of(call)):
            bridge.load().locate(call, describe(*found))


def _user_ops_of(program: LoweredProgram) -> list[tuple[str, node_def_pb2.NodeDef]]:
    """Returns function and op of each user's Poplar op, in the order of the traced program."""
    found = [
        (function.signature.name, node)
        for function in program.functions
        for node in user_ops.user_ops_in(function.node_def)
    ]
    return sorted(found, key=lambda each: each[1].attr[vocabulary.BUILD_ORDER_ATTRIBUTE].i)


def unhashable_op(request: ProgramRequest) -> str:
    """Returns the name of a user's Poplar op whose library does not say that it can be cached; empty for none."""
    nodes = (node for function in request.library.values() for node in user_ops.user_ops_in(function.node_def))
    return next((node.name for node in nodes if not node.attr["is_hashable"].b), "")


def check_pre_compilation(request: ProgramRequest) -> None:
    """Refuses to compile a program for other processes if a user's op may differ there."""
    if name := unhashable_op(request):
        raise errors.InvalidArgumentError(
            None,
            None,
            f"{name} cannot be pre-compiled: its metadata function does not set is_hashable; expected true. Set it in "
            "the library if the op and all it depends on stay the same.",
        )
