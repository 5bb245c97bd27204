"""Parses the plugin's request for a program into a job for a device."""

from __future__ import annotations

import dataclasses
from typing import Any

from google.protobuf import message as protobuf

from tf_ipu_shim import errors
from tf_ipu_shim.compiler.checks.diagnostics import program_name
from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.compiler.passes import legacy_calls
from tf_ipu_shim.machine.ids import Device
from tf_ipu_shim.messages import program_pb2
from tf_ipu_shim.plugin.library import Call, Library
from tf_ipu_shim.runtime.device import IpuDevice


@dataclasses.dataclass(frozen=True)
class Job:
    """A call of a traced function to be lowered for a device.

    Args:
        call: the plugin's call that asks for it, while it lasts.
        request: the traced function and its arguments.
    """

    library: Library
    call: Call
    request: ProgramRequest
    device: IpuDevice

    @property
    def program(self) -> str:
        """The program's name for users."""
        return program_name(self.request.function, self.request.name)


def parse_message(request: bytes) -> Any:
    """Parses a serialised `ProgramRequest`."""
    try:
        return program_pb2.ProgramRequest.FromString(request)
    except protobuf.DecodeError as error:
        raise errors.PluginError(f"The plugin sent {len(request)} bytes, no ProgramRequest: {error}.") from error


def parse_call(message: Any) -> ProgramRequest:
    """Returns the call that a message requests, and checks it."""
    library = {function.signature.name: function for function in message.library.function}
    if message.function not in library:
        raise errors.PluginError(
            f"The plugin asks for function {message.function!r} of program {message.name!r}, and sent "
            f"{sorted(library) or 'no functions'}."
        )
    if len(message.arguments) != len(library[message.function].signature.input_arg):
        raise errors.PluginError(
            f"The plugin sent {len(message.arguments)} arguments for {message.function!r} of program "
            f"{message.name!r}, which takes {len(library[message.function].signature.input_arg)}."
        )
    return make_call(
        message.name, message.function, Device(message.ordinal), library, message.arguments, message.single_op
    )


def make_call(
    name: str, function: str, ordinal: Device, library: Any, arguments: Any, single_op: bool = False
) -> ProgramRequest:
    """Returns a call of a function with `Argument` messages; legacy calls in the library become call ops."""
    return ProgramRequest(
        name=name,
        function=function,
        ordinal=ordinal,
        library=legacy_calls.convert_legacy_calls(library),
        arg_types=[argument.type for argument in arguments],
        arg_shapes=[_sizes(argument.shape) for argument in arguments],
        variable_names=[argument.variable.name for argument in arguments],
        variable_types=[argument.variable.type for argument in arguments],
        variable_shapes=[_sizes(argument.variable.shape) for argument in arguments],
        single_op=single_op,
    )


def _sizes(shape: Any) -> tuple[int, ...]:
    return tuple(dimension.size for dimension in shape.dim)
