"""Keeps this process's embedded-runtime engines: the plugin's op starts them, process exit stops them."""

from __future__ import annotations

import atexit
import threading
from typing import Any

from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim import plugin
from tf_ipu_shim.driver import applications
from tf_ipu_shim.frontend.applications.engine import Engine
from tf_ipu_shim.messages import driver_pb2
from tf_ipu_shim.runtime import application_file, op_requests

_lock = threading.Lock()
_engines: dict[str, Engine] = {}


def install() -> None:
    """Makes the plugin's `ApplicationRuntime` op start engines here."""
    op_requests.start_application = start


def start(request: Any) -> Any:
    """Starts an engine; the plugin ensures that names are unique."""
    executable, weights = application_file.read(request.file)
    signature = executable.embedded_runtime_config.signature
    if len(signature.inputs) != request.inputs:
        raise _error_status(
            f"Embedded application runtime expects {len(signature.inputs)} inputs, but {request.inputs} were provided."
        )
    if not signature.streamed_inputs and not signature.streamed_outputs:
        raise _error_status(
            f"{request.file!r} has neither infeeds nor outfeeds, so a call could not pass or return data. Put the "
            "computation into ipu.loops.repeat with an IPUInfeedQueue and an IPUOutfeedQueue."
        )
    applications.refuse_host_code(plugin.load(), executable.program.library.function)
    engine = Engine(request.engine, executable, weights)
    with _lock:
        _engines[request.engine] = engine
    engine.start()
    return driver_pb2.ApplicationStarted(
        infeeds=[_tensor(tensor) for tensor in signature.streamed_inputs],
        outfeeds=[_tensor(tensor) for tensor in signature.streamed_outputs],
        outfeed_ids=engine.outfeed_ids,
        replicas=executable.embedded_runtime_config.replicas,
    )


def _tensor(tensor: Any) -> Any:
    shape = [dimension.size for dimension in tensor.shape.dim]
    return driver_pb2.ApplicationTensor(type=tensor.data_type, shape=shape, feed=tensor.feed)


def _error_status(message: str) -> Exception:
    error: Exception = errors_impl.InvalidArgumentError(None, None, message)
    return error


def _close_engines() -> None:
    with _lock:
        engines = list(_engines.values())
        _engines.clear()
    for engine in engines:
        engine.close()


atexit.register(_close_engines)
