"""Implements `precompiled_user_op`: custom ops that a user's shared library builds with Poplar's graph API."""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow.compat.v2 as tf

from tf_ipu_shim import plugin
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.ops import emulation_registry as registry
from tf_ipu_shim.frontend.ops.user_ops.codelet_emulations import run_emulation
from tf_ipu_shim.frontend.ops.user_ops.user_op_arguments import UserOpCall, user_op_call
from tf_ipu_shim.poplar_sdk import bridge
from tf_ipu_shim.tf_private.graphs import ops

_FIRST_FUNCTION = "Build"


class _Library(NamedTuple):
    """The file of a library and the functions of one of its ops."""

    path: str
    digest: str
    gp_path: str
    op_name: str


def precompiled_user_op(
    inputs: Sequence[Any],
    library_path: str,
    gp_path: str = "",
    outs: Mapping[str, Any] | None = None,
    name: str = "UserOp",
    op_name: str = _FIRST_FUNCTION,
    separate_gradients: bool = False,
    inputs_with_gradients: Sequence[int] | None = None,
    attributes: str | None = None,
    gradient_attributes: str | None = None,
) -> list[tf.Tensor]:
    """Returns an op that a shared library builds with the Poplar graph API.

    The library is compiled from C++ against the Poplar headers of `tf-ipu poplar`. If `register_emulation` has a
    function for the library, that function runs instead, and no library is needed.

    Args:
        inputs: tensors.
        library_path: the path of the shared library.
        gp_path: the path of compiled codelets (`.gp`) or their source; empty for none.
        outs: `output_types` and `output_shapes`, a list each. None for no outputs.
        name: the name of the op.
        op_name: prefix of the library's functions.
        separate_gradients: whether the gradient of each input has its own op: `Build_grad` then builds the one with the
            index that it receives. Otherwise it builds all.
        inputs_with_gradients: indices of the inputs that have gradients; None for all.
        attributes: string for the op's functions.
        gradient_attributes: string for the functions of its gradient.

    Returns:
        A tensor for each output.

    Raises:
        ValueError: an argument is not valid, or an emulation returns tensors of other shapes or dtypes.
        NotFoundError: the library does not exist, or lacks a function.
        InternalError: the library cannot be loaded, is of another API level, or fails.

    Source: `tensorflow.python.ipu.ops.custom_ops.precompiled_user_op`.

    Example:
        >>> outputs = {"output_types": [tf.float32], "output_shapes": [[2]]}
        >>> def step(x, y):
        ...     return precompiled_user_op([x, y], "./libadd.so", outs=outputs)
    """
    call = user_op_call(inputs, outs, inputs_with_gradients, attributes, gradient_attributes)
    path = os.fspath(library_path)
    emulation = registry.find_emulation(path, op_name)
    if emulation is not None:
        note_arguments("precompiled_user_op", gp_path=gp_path, separate_gradients=separate_gradients)
        with tf.name_scope(name or "UserOp"):
            return run_emulation(emulation, call)
    library = _Library(_existing(path, op_name), _digest(path), _absolute(gp_path), op_name)
    return _make_op(library, call, name or "UserOp", separate_gradients)


def _existing(path: str, op_name: str) -> str:
    """Returns the absolute path of a library; a missing one is an error."""
    if os.path.exists(path):
        return os.path.abspath(path)
    file = os.path.basename(path)
    key = file if op_name == _FIRST_FUNCTION else f"{file}:{op_name}"
    raise tf.errors.NotFoundError(
        None,
        None,
        f"{path}: the file does not exist; expected a compiled library. Compile it in a shell with the output of "
        "`tf-ipu poplar --shell`. Without its source, register a TensorFlow function that computes the same:\n"
        f"    ipu.custom_ops.register_emulation({key!r}, lambda *inputs: ...)",
    )


def _absolute(path: str | os.PathLike[str] | None) -> str:
    return os.path.abspath(path) if path else ""


def _digest(path: str) -> str:
    """Returns a digest of a library, so that a program is compiled again if the library is."""
    status = os.stat(path)
    return _digest_of_version(os.path.abspath(path), status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=256)
def _digest_of_version(path: str, _mtime: int, _size: int) -> str:
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()[:16]


def _make_op(library: _Library, call: UserOpCall, name: str, separate_gradients: bool) -> list[tf.Tensor]:
    results = _user_op(library, len(call.inputs), len(call.types), 0)(
        input=call.inputs,
        output_types=call.types,
        input_shapes=[tensor.shape for tensor in call.inputs],
        output_shapes=call.shapes,
        name=name,
        **_library_attributes(library),
        separate_gradients=separate_gradients,
        inputs_with_gradients=call.differentiable,
        attributes=call.attributes,
        gradient_attributes=call.gradient_attributes,
    )
    return list(results) if call.types else []


def _user_op(library: _Library, inputs: int, outputs: int, gradient_size: int) -> Any:
    """Returns the wrapper of the op type: of ops with state, or of ops that may be left out."""
    declared = bridge.metadata(library.path, library.digest, library.op_name, inputs, outputs, gradient_size)
    note_metadata(declared)
    wrappers = plugin.load().ops
    wrapper = wrappers.ipu_stateless_user_op if declared.is_stateless else wrappers.ipu_user_op
    return functools.partial(wrapper, is_hashable=declared.is_hashable)


def note_metadata(declared: bridge.Metadata) -> None:
    """Records a library's declarations without effect."""
    note_arguments(
        "user_op_metadata",
        is_elementwise=declared.is_elementwise,
        replica_identical_outputs=list(declared.replica_identical_outputs) or None,
    )


def _library_attributes(library: _Library) -> dict[str, str]:
    path, digest = library.path, library.digest
    return {"library_path": path, "library_digest": digest, "gp_path": library.gp_path, "op_name": library.op_name}


@ops.RegisterGradient(vocabulary.STATELESS_USER_OP)
@ops.RegisterGradient(vocabulary.USER_OP)
def _user_op_gradient(op: Any, *upstream: Any) -> list[Any]:
    """Builds the gradient by the library's function for it; it is None for integers and inputs without one."""
    indices = list(op.get_attr("inputs_with_gradients"))
    gradients = [
        tf.zeros(output.shape, output.dtype) if tensor is None else tensor
        for tensor, output in zip(upstream, op.outputs, strict=True)
    ]
    operands = [*gradients, *op.inputs, *op.outputs]
    if op.get_attr("separate_gradients"):
        results = [_gradient_op(op, operands, [index], index)[0] for index in indices]
    else:
        results = _gradient_op(op, operands, indices, 0)
    by_input = dict(zip(indices, results, strict=True))
    return [by_input.get(i) if tensor.dtype.is_floating else None for i, tensor in enumerate(op.inputs)]


def _gradient_op(op: Any, operands: Sequence[Any], indices: Sequence[int], partial_derivative: int) -> list[tf.Tensor]:
    library = _Library(*(op.get_attr(name).decode() for name in _ATTRIBUTES))
    inputs = [op.inputs[index] for index in indices]
    results = _user_op(library, len(operands), len(inputs), len(op.outputs))(
        input=operands,
        output_types=[tensor.dtype for tensor in inputs],
        input_shapes=[tensor.shape for tensor in operands],
        output_shapes=[tensor.shape for tensor in inputs],
        name="UserOpGradient",
        **_library_attributes(library),
        separate_gradients=op.get_attr("separate_gradients"),
        gradient_size=len(op.outputs),
        partial_derivative_index=partial_derivative,
        inputs_with_gradients=indices,
        attributes=op.get_attr("attributes").decode(),
        gradient_attributes=op.get_attr("gradient_attributes").decode(),
    )
    return list(results) if inputs else []


_ATTRIBUTES = ("library_path", "library_digest", "gp_path", "op_name")
