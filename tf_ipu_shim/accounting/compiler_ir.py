"""XLA's own program for a function, made without running anything: what `experimental_get_compiler_ir` does.

It needs an eager context, with the function and its variables in it. This module keeps one of its own, so that a
graph-mode script's global context stays as it is, and stands in variables of the right type and shape whose memory is
never touched. Uses `context.Context`, `TFE_Py_Execute`, `Context.get_compiler_ir` and `hlo_pb2`; checked on TensorFlow
2.15.1 and 2.21.0.
"""

from __future__ import annotations

import inspect
import itertools
import re
import threading
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from tensorflow.compiler.xla.service import hlo_pb2
from tensorflow.core.framework import function_pb2, types_pb2
from tensorflow.core.protobuf import config_pb2
from tensorflow.python import pywrap_tfe
from tensorflow.python.eager import context
from tensorflow.python.framework import dtypes, errors, tensor_spec

from tf_ipu_shim.lowering.functions import AS_WRITTEN
from tf_ipu_shim.runtime import interrupts

_DEVICE = "/job:localhost/replica:0/task:0/device:CPU:0"
# A shared name with which TensorFlow makes a variable that lives as long as its handle.
_ANONYMOUS = b"cd2c89b7-88b7-44c8-ad83-06c2a9158347"
_HANDLES = frozenset({types_pb2.DT_RESOURCE, types_pb2.DT_VARIANT})
# `GetCompilerIr` makes a graph of the function, which its context keeps: tens of kilobytes each. A new context takes
# milliseconds. Checked on TensorFlow 2.15.1 and 2.21.0.
_ASKED_OF_A_CONTEXT = 100
_serial = itertools.count()


class Argument(NamedTuple):
    """An argument of a function.

    Args:
        type: its `DataType`, for a variable that of its value; 0 for a variable that has no value yet.
        shape: dimensions.
        variable: whether it is a variable's handle.
    """

    type: int
    shape: tuple[int, ...]
    variable: bool = False


_Like = tuple[int, tuple[int, ...]]  # the type and shape of variables that look alike


class NoProgramError(Exception):
    """XLA gives no program for a function; its reason."""


def _new_context() -> context.Context:
    """One with two threads for a device that nothing is computed on."""
    config = config_pb2.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=1)
    return context.Context(config=config)


class CompilerIr:
    """Asks XLA for programs. Thread-safe; one for the process is enough: `shared()`."""

    def __init__(self) -> None:
        context.context()  # eager tensors want the global context to be there, if not initialised
        self._context = _new_context()
        self._asked = 0
        self._lock = threading.Lock()
        self._has_platform = "platform_name" in inspect.signature(self._context.get_compiler_ir).parameters

    def hlo(
        self, function: str, library: Iterable[function_pb2.FunctionDef], arguments: Sequence[Argument]
    ) -> hlo_pb2.HloModuleProto:
        """XLA's program for a function, before optimisation.

        Args:
            function: its name.
            library: the function, and what it calls.
            arguments: one for each of its arguments, variables last.

        Returns:
            The program. Its parameters are the arguments; variables that have no value yet are left out.

        Raises:
            NoProgramError: XLA cannot compile the function, or its program depends on an argument's value.
            KeyboardInterrupt: Ctrl-C.
        """
        interrupts.check()
        with self._lock:
            if self._asked == _ASKED_OF_A_CONTEXT:
                self._context, self._asked = _new_context(), 0
            self._asked += 1
            self._context.ensure_initialized()
            added = []
            try:
                for definition in library:
                    if not self._context.has_function(definition.signature.name):
                        self._context.add_function_def(definition)
                        added.append(definition.signature.name)
                return self._hlo(function, arguments)
            finally:
                for name in added:
                    self._context.remove_function(name)

    def _hlo(self, function: str, arguments: Sequence[Argument]) -> hlo_pb2.HloModuleProto:
        values = [argument for argument in arguments if not argument.variable]
        if any(value.type in _HANDLES for value in values):
            # TensorFlow would look for a variable behind it, where there is none, and end the process.
            raise NoProgramError("it takes a handle of what is not known before it runs")
        specs = [tensor_spec.TensorSpec(value.shape, dtypes.as_dtype(value.type)) for value in values]
        handles = self._variables([argument for argument in arguments if argument.variable])
        platform: dict[str, Any] = {"platform_name": None} if self._has_platform else {}
        try:
            serialized = self._context.get_compiler_ir(
                device_name=_DEVICE,
                function_name=function,
                flat_args=specs,
                captured_inputs=handles,
                stage="hlo_serialized",
                **platform,
            )
        except (errors.OpError, ValueError) as error:  # which of the two differs between versions
            reason = re.sub(r"^Failed getting HLO text: ['\"]?", "", str(error).strip())
            raise NoProgramError(reason.split("\n")[0]) from error
        return hlo_pb2.HloModuleProto.FromString(serialized)

    def _variables(self, variables: Sequence[Argument]) -> list[Any]:
        """Handles of variables that look like these: an op makes each, as TensorFlow makes functions of many slowly."""
        values = self._values(dict.fromkeys(_like(variable) for variable in variables if variable.type))
        return [self._variable(variable, values.get(_like(variable))) for variable in variables]

    def _values(self, alike: Iterable[_Like]) -> dict[_Like, Any]:
        """What variables that look alike hold: they share it, and pages that nobody writes to take no memory.

        TensorFlow runs the function that makes it as it is: rewriting it takes longer than running it.
        """
        maker, results = function_pb2.FunctionDef(), list(alike)
        if not results:
            return {}
        maker.signature.name = f"stand_in_values_{next(_serial)}"
        maker.signature.is_stateful = True
        for index, (kind, shape) in enumerate(results):
            maker.signature.output_arg.add(name=f"output_{index}", type=kind)
            maker.ret[f"output_{index}"] = _add_value(maker, index, kind, shape)
        self._context.add_function_def(maker)
        try:
            made = self._run(maker.signature.name, [], ("config_proto", AS_WRITTEN), len(results))
        finally:
            self._context.remove_function(maker.signature.name)
        return dict(zip(results, made))

    def _variable(self, variable: Argument, value: Any) -> Any:
        kind = variable.type or types_pb2.DT_FLOAT
        attributes = ("dtype", kind, "shape", list(variable.shape), "shared_name", _ANONYMOUS, "container", b"")
        (handle,) = self._run("VarHandleOp", [], attributes, 1)
        if value is not None:
            self._run("AssignVariableOp", [handle, value], ("dtype", kind, "validate_shape", False), 0)
        return handle

    def _run(self, op: str, inputs: Sequence[Any], attributes: Sequence[Any], results: int) -> Any:
        """Runs an op or a function."""
        return pywrap_tfe.TFE_Py_Execute(self._context._handle, _DEVICE, op, list(inputs), tuple(attributes), results)


def _like(variable: Argument) -> _Like:
    return variable.type, tuple(variable.shape)


def _add_value(maker: function_pb2.FunctionDef, index: int, kind: int, shape: tuple[int, ...]) -> str:
    """Adds an op that gives memory of a shape, whatever is in it."""
    sizes = maker.node_def.add(name=f"shape_{index}", op="Const")
    sizes.attr["dtype"].type = types_pb2.DT_INT32
    sizes.attr["value"].tensor.dtype = types_pb2.DT_INT32
    sizes.attr["value"].tensor.tensor_shape.dim.add(size=len(shape))
    sizes.attr["value"].tensor.int_val.extend(shape)
    value = maker.node_def.add(name=f"value_{index}", op="Empty", input=[f"{sizes.name}:output:0"])
    value.attr["dtype"].type = kind
    value.attr["init"].b = False
    return f"{value.name}:output:0"


_shared_lock = threading.Lock()
_shared: CompilerIr | None = None


def shared() -> CompilerIr:
    """The one of this process, made at first use."""
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = CompilerIr()
        return _shared
