"""Starts embedded-runtime engines and calls them from a host graph."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim import plugin
from tf_ipu_shim.messages import poplar_executable_pb2
from tf_ipu_shim.runtime import application_file
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.tensors import tensor_shape, tensor_util

_HOST = "/device:CPU:0"
_TIMEOUT_MICROSECONDS = 5000


class RuntimeContext:
    """The handle of a started engine: its name, signature and start tensor.

    Args:
        name: the name of the engine.
        executable_file: the application's file.
        executable_proto: its `PoplarExecutableProto`.
        start_output: the tensor that says that the engine was started.

    Source: `tensorflow.python.ipu.ops.embedded_runtime.RuntimeContext`.

    Example:
        >>> infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(tf.zeros([2])).repeat())
        >>> outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
        >>> double = lambda: ipu.loops.repeat(16, lambda x: outfeed.enqueue(2.0 * x), [], infeed)
        >>> compiled = ipu.application_compile_op.experimental_application_compile_op(double)
        >>> context = embedded_runtime_start(compiled, [], "named")
        >>> context.name(), context.output_types()
        ('named', [tf.float32])
    """

    def __init__(self, name: str, executable_file: Any, executable_proto: Any, start_output: Any) -> None:
        self._name = name
        self._executable_file = executable_file
        self._executable_proto = executable_proto
        self._start_output = start_output

    def __repr__(self) -> str:
        return f"<RuntimeContext of engine {self._name!r}, which runs {self._executable_file!r}>"

    def name(self) -> str:
        """Returns the engine's name."""
        return self._name

    def signature(self) -> Any:
        """Returns the inputs and outputs of the engine: an `EmbeddedRuntimeSignature`."""
        return self._executable_proto.embedded_runtime_config.signature

    def output_types(self) -> list[Any]:
        """Returns the dtype of each result of a call."""
        return [dtypes.as_dtype(tensor.data_type) for tensor in self.signature().streamed_outputs]

    def start_output(self) -> Any:
        """Returns the tensor that a call depends on: the engine is started when it is computed."""
        return self._start_output


def embedded_runtime_start(
    executable_file: Any, inputs: Sequence[Any] | Mapping[str, Any], name: str, timeout: int | None = None
) -> RuntimeContext:
    """Starts an engine that runs an application, unless one of this name runs.

    The engine attaches to separate IPUs, in addition to those that the process has configured. It runs in a thread that
    outlives sessions. It keeps the arguments of its first start.

    Args:
        executable_file: the file that `experimental_application_compile_op` has written: a path, or a string tensor
            with a known value.
        inputs: the application's inputs: a list of tensors in the order of the signature, or a dictionary by their
            names, `"XLA_Args/<variable>"`.
        name: the name of the engine. One name is one engine in the process.
        timeout: how many microseconds a replicated application waits for further batches before it runs with
            synthetic ones; 5000 by default.

    Returns:
        The context for `embedded_runtime_call`.

    Raises:
        ValueError: `inputs` is not a list or dictionary, or there are more or fewer than expected, or one is missing or
            has another shape.
        TypeError: an input has another dtype, or `executable_file` is not a path.
        tf.errors.NotFoundError: the file does not exist.
        tf.errors.InvalidArgumentError: it is not an application.
        tf.errors.AlreadyExistsError: when the op runs: an engine of this name runs another application.
        tf.errors.InternalError: when the op runs: no IPUs are free.

    Source: `tensorflow.python.ipu.ops.embedded_runtime.embedded_runtime_start`.

    Example:
        >>> infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(tf.zeros([2])).repeat())
        >>> outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
        >>> double = lambda: ipu.loops.repeat(16, lambda x: outfeed.enqueue(2.0 * x), [], infeed)
        >>> path = ipu.application_compile_op.experimental_application_compile_op(double)
        >>> context = embedded_runtime_start(path, [], "started")
        >>> embedded_runtime_call([tf.constant([1.0, 2.0])], context)[0].numpy().tolist()
        [2.0, 4.0]
    """
    file = ops.convert_to_tensor(_executable_path(executable_file), dtypes.string)
    executable = poplar_executable_pb2.PoplarExecutableProto.FromString(_find_opaque_blob(file))
    expected = executable.embedded_runtime_config.signature.inputs
    if isinstance(inputs, Mapping):
        tensors = [_find_input(inputs, tensor.name) for tensor in expected]
    elif isinstance(inputs, list):
        tensors = inputs
    else:
        raise ValueError(
            f"Expected the inputs to be a list. Received a {type(inputs).__name__}: give a list of tensors, or a "
            "dictionary by their names."
        )
    if len(tensors) != len(expected):
        raise ValueError(
            f"Embedded application runtime expects {len(expected)} inputs, but {len(tensors)} were provided. They are: "
            f"{', '.join(tensor.name for tensor in expected) or 'none'}. Pass one value for each input."
        )
    tensors = _check_tensors(tensors, expected)
    with ops.device(_HOST):
        start_output = plugin.load().ops.application_runtime(
            inputs=tensors,
            filename=file,
            engine_name=name,
            timeout_us=_TIMEOUT_MICROSECONDS if timeout is None else timeout,
        )
    return RuntimeContext(name, executable_file, executable, start_output)


def embedded_runtime_call(inputs: Sequence[Any], context: RuntimeContext) -> Any:
    """Passes a batch to an engine and returns the application's results for it.

    Calls from several threads and sessions are answered in the order of their arrival.

    Args:
        inputs: a tensor for each of the signature's `streamed_inputs`: one element of each infeed.
        context: the context of the engine.

    Returns:
        A list of tensors, one for each of the signature's `streamed_outputs`; an operation if there are none.

    Raises:
        ValueError: there are more or fewer inputs than expected, or one has another shape.
        TypeError: `inputs` is not a list or dictionary, `context` is not a `RuntimeContext`, or an input has another
            dtype.
        tf.errors.InternalError: when the op runs: the application failed, as by a floating-point exception. Batches
            that it had then fail too; the IPUs are reset for later calls.

    Source: `tensorflow.python.ipu.ops.embedded_runtime.embedded_runtime_call`.

    Example:
        >>> infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(tf.zeros([2])).repeat())
        >>> outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
        >>> double = lambda: ipu.loops.repeat(16, lambda x: outfeed.enqueue(2.0 * x), [], infeed)
        >>> path = ipu.application_compile_op.experimental_application_compile_op(double)
        >>> context = embedded_runtime_start(path, [], "called")
        >>> embedded_runtime_call([tf.constant([1.0, 2.0])], context)[0].numpy().tolist()
        [2.0, 4.0]
    """
    started: Any = context
    if not isinstance(started, RuntimeContext):
        raise TypeError(
            f"context must be what embedded_runtime_start returns, a RuntimeContext, not {type(started).__name__}."
        )
    if not isinstance(inputs, (list, tuple)):
        raise TypeError(
            f"Expected the inputs of a call to be a list in the order of the signature, or a dictionary by name. "
            f"Received {inputs!r}. Pass one of these."
        )
    signature = context.signature()
    if len(inputs) != len(signature.streamed_inputs):
        raise ValueError(
            f"Embedded application call expects {len(signature.streamed_inputs)} inputs, but {len(inputs)} were "
            "provided: give one element of each infeed."
        )
    with ops.device(_HOST):
        results = plugin.load().ops.application_call(
            infeeds=_check_tensors(inputs, signature.streamed_inputs),
            anchor=context.start_output(),
            outfeed_types=context.output_types(),
            engine_name=context.name(),
        )
    if not signature.streamed_outputs:
        return results
    for result, tensor in zip(results, signature.streamed_outputs):
        result.set_shape(tensor_shape.as_shape(tensor.shape))
    return results


def embedded_runtime_start_and_call(
    executable_file: Any, startup_inputs: Sequence[Any] | Mapping[str, Any], call_inputs: Sequence[Any], name: str
) -> Any:
    """Starts an engine and calls it.

    Args:
        executable_file: as for `embedded_runtime_start`.
        startup_inputs: `inputs` of `embedded_runtime_start`.
        call_inputs: `inputs` of `embedded_runtime_call`.
        name: the name of the engine.

    Returns:
        As `embedded_runtime_call`.

    Raises:
        ValueError: as the two.
        TypeError: as the two.

    Source: `tensorflow.python.ipu.ops.embedded_runtime.embedded_runtime_start_and_call`.

    Example:
        >>> infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(tf.zeros([2])).repeat())
        >>> outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
        >>> double = lambda: ipu.loops.repeat(16, lambda x: outfeed.enqueue(2.0 * x), [], infeed)
        >>> path = ipu.application_compile_op.experimental_application_compile_op(double)
        >>> embedded_runtime_start_and_call(path, [], [tf.constant([1.0, 2.0])], "both")[0].numpy().tolist()
        [2.0, 4.0]
    """
    return embedded_runtime_call(call_inputs, embedded_runtime_start(executable_file, startup_inputs, name))


def _find_opaque_blob(executable_file: Any) -> bytes:
    """Returns the serialised `PoplarExecutableProto` in a file, whose path is a string tensor with a known value."""
    path = tensor_util.constant_value(executable_file)
    if path is None:
        raise ValueError(
            "executable_file is a tensor that is only known when the graph runs: the application's path "
            "must be known when the graph is built. Pass a string, or compile in a separate session "
            "first and pass the path that it returns."
        )
    name = path if isinstance(path, bytes) else path.item()
    executable = application_file.read_executable(name.decode())
    blob: bytes = executable.SerializeToString()
    return blob


def _executable_path(executable_file: Any) -> Any:
    if isinstance(executable_file, os.PathLike):
        return os.fspath(executable_file)
    if tensor_util.is_tf_type(executable_file) or isinstance(executable_file, (str, bytes, np.ndarray, np.str_)):
        return executable_file
    raise TypeError(
        "executable_file must be the path of an application that experimental_application_compile_op has written, "
        f"not {executable_file!r}. Pass the path that experimental_application_compile_op returned."
    )


def _find_input(inputs: Mapping[str, Any], name: str) -> Any:
    if name not in inputs:
        raise ValueError(
            f"Failed to find input tensor with name '{name}' in input dictionary. It has: {', '.join(inputs)}. Add "
            "this input to the dictionary."
        )
    return inputs[name]


def _check_tensors(operands: Sequence[Any], expected: Any) -> list[Any]:
    tensors = []
    for position, (value, tensor) in enumerate(zip(operands, expected)):
        where = f"at position {position} ('{tensor.name}')"
        if value is None:
            raise TypeError(f"The input {where} is None; expected a value. Pass one.")
        if not hasattr(value, "shape") or not hasattr(value, "dtype"):
            value = ops.convert_to_tensor(value)
        shape = tensor_shape.as_shape(tensor.shape)
        if not shape.is_compatible_with(tensor_shape.as_shape(value.shape)):
            raise ValueError(
                f"Mismatched input shape {where}. Expected {shape.as_list()}, but input {position} has shape "
                f"{list(value.shape)}. Reshape the input."
            )
        dtype = dtypes.as_dtype(tensor.data_type)
        if dtypes.as_dtype(value.dtype).base_dtype != dtype:
            raise TypeError(
                f"Mismatched input dtype {where}. Expected {dtype}, but input {position} has dtype {value.dtype}. Cast "
                "the input."
            )
        tensors.append(ops.convert_to_tensor(value))
    return tensors
