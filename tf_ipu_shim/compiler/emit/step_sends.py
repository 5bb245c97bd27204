"""Makes programs that use `gen_sendrecv_ops` share the session step's rendezvous with host ops.

TensorFlow creates a rendezvous for each called function, unless its definition says otherwise. Edges between devices
within the function would then share names with other programs of the step, so there must be none.
"""

from __future__ import annotations

from collections.abc import Collection

from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.program import LoweredProgram
from tf_ipu_shim.tf_private.protos import function_pb2

# An attribute of functions that the kernel of a call looks for; checked on TensorFlow 2.15.1 and 2.21.0.
_SHARED_RENDEZVOUS = "shared_rendezvous"


def share_step_rendezvous(program: LoweredProgram) -> None:
    """Makes a program that sends tensors run with the rendezvous of its session step."""
    for function in program.functions:
        for node in function.node_def:
            if node.device.startswith("/device:CPU"):
                raise errors_impl.UnimplementedError(
                    None,
                    None,
                    f"{node.name}: ipu_send_to_host is not supported in a program that runs {node.op} on the "
                    "host. Remove outside_compilation_scope, or send the tensor through an IPUOutfeedQueue.",
                )
    sending = {vocabulary.SEND_TO_HOST}
    waiting = list(program.functions)
    while users := [function for function in waiting if _uses(function, sending)]:
        for function in users:
            function.attr[_SHARED_RENDEZVOUS].b = True
            sending.add(function.signature.name)
            waiting.remove(function)


def _uses(function: function_pb2.FunctionDef, names: Collection[str]) -> bool:
    """Returns whether a function has one of these ops or runs one of these functions."""
    return any(
        node.op in names or any(called in names for called in op_types.called_functions(node))
        for node in function.node_def
    )
