"""Answers requests of the plugin's ops: devices, configurations, seeds, synthetic data, applications."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from google.protobuf import message as protobuf
from tensorflow.compat.v2 import dtypes
from tensorflow.compat.v2 import errors as tf_errors

from tf_ipu_shim import errors
from tf_ipu_shim.machine.environment import engine_options, flags
from tf_ipu_shim.messages import config_pb2, driver_pb2
from tf_ipu_shim.runtime import devices, seed
from tf_ipu_shim.runtime.device import NEVER, ON_DEMAND, PRE_COMPILE
from tf_ipu_shim.runtime.jobs import collectives

if TYPE_CHECKING:
    from tf_ipu_shim.plugin.library import Library

# `SyntheticDataCategory` of Graphcore's config.proto. The last one, "unknown", is no category of the flag.
_SYNTHETIC_CATEGORIES = ("seed", "infeed", "outfeed", "hostembedding", "parameters")


def install(library: Library) -> None:
    """Registers these handlers with the plugin."""
    library.set_handlers(HANDLERS)


def _attach(request: Any) -> Any:
    device = devices.get(request.ordinal, attach=False)
    _check_engine_options(device)
    if request.attach or device.connection != ON_DEMAND:
        device.attach()
    if failure := device.load():
        raise tf_errors.InternalError(None, None, failure)
    uses = driver_pb2.DeviceUse
    running = uses.RUNS if device.attached else uses.UNATTACHED
    return uses(use={PRE_COMPILE: uses.GIVES_ZEROS, NEVER: uses.COMPILES_ONLY}.get(device.connection, running))


def _check_engine_options(device: Any) -> None:
    for message in engine_options.unrecognised(device.engine_options).values():
        where = "Correct it in compilation_poplar_options of the IPUConfig or in POPLAR_ENGINE_OPTIONS."
        raise tf_errors.InternalError(None, None, f"[Poplar][Compile engine] invalid_option: {message} {where}")


def _configure(request: Any) -> Any:
    try:
        options = config_pb2.IpuOptions.FromString(request.options)
    except protobuf.DecodeError as error:
        raise ValueError(
            f"The config of {len(request.options)} bytes is not a serialised IpuOptions ({error}); "
            "expected one. Pass what SerializeToString() of an IpuOptions returns."
        ) from error
    devices.configure(options)
    return driver_pb2.Nothing()


def _reset_devices(_: Any) -> Any:
    devices.reset()
    return driver_pb2.Nothing()


def _reset_seed(request: Any) -> Any:
    seed.reset(request.ordinal, request.seed, request.identical_replicas)
    return driver_pb2.Nothing()


def _uses_ipu_model(_: Any) -> Any:
    return driver_pb2.YesOrNo(yes=flags.current().use_ipu_model)


def _configuration(_: Any) -> Any:
    options = devices.configured()
    copies = [] if options is None else [options.SerializeToString()] * devices.count()
    return driver_pb2.Configurations(options=copies)


def _num_ipus(request: Any) -> Any:
    return driver_pb2.DeviceSize(ipus=devices.get(request.ordinal, attach=False).num_ipus)


def is_synthetic(category: int) -> bool:
    """Returns whether data of a category is synthesised instead of transferred.

    Example:
        >>> is_synthetic(1)
        False
    """
    in_force = flags.current()
    if not 0 <= category <= len(_SYNTHETIC_CATEGORIES):
        raise ValueError(
            f"Category of synthetic data must be from 0 to {len(_SYNTHETIC_CATEGORIES)}, not {category}. Choose a "
            "category in this range."
        )
    if category == len(_SYNTHETIC_CATEGORIES):
        return in_force.use_synthetic_data
    return in_force.is_synthetic(_SYNTHETIC_CATEGORIES[category])


def _synthetic_data(request: Any) -> Any:
    return driver_pb2.YesOrNo(yes=is_synthetic(request.category))


@dataclasses.dataclass(frozen=True)
class Handler:
    """Handles one kind of request from the plugin.

    Args:
        answer: the class of the result of `handle`.
    """

    request: Any
    answer: Any
    handle: Callable[[Any], Any]

    def __call__(self, request: bytes) -> bytes:
        """Answers a serialised question."""
        try:
            message = self.request.FromString(request)
        except protobuf.DecodeError as error:
            name = self.request.DESCRIPTOR.name
            raise errors.PluginError(f"The plugin sent {len(request)} bytes, no {name}: {error}.") from error
        return self.handle(message).SerializeToString()


def _start_application(request: Any) -> Any:
    if start_application is None:
        raise errors.PluginError("No embedded application can start: tf_ipu_shim.frontend is not loaded.")
    return start_application(request)


def _gather_instances(request: Any) -> Any:
    values = np.frombuffer(request.values, dtypes.as_dtype(request.type).as_numpy_dtype).reshape(request.shape)
    title = f"{request.name!r} between replicas of a program"
    (gathered,) = collectives.run("gather", request.name, [values], title=title)
    return driver_pb2.AllReplicaValues(values=gathered.tobytes())


def _explain_compile_error(request: Any) -> Any:
    if explain_compile_error is None:
        raise errors.PluginError("No program of this process was lowered here.")
    message = explain_compile_error(request.call, request.text)
    return driver_pb2.CompileErrorText(text=message)


explain_compile_error: Callable[[int, str], str] | None = None
"""Says why XLA cannot compile a program, given the plugin's call and XLA's text (`driver.uncompilable`)."""

start_application: Callable[[Any], Any] | None = None
"""Starts the engine of an `ApplicationStart`, and returns an `ApplicationStarted`: `frontend.applications` says how."""

_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "attach": _attach,
    "configure": _configure,
    "reset_devices": _reset_devices,
    "reset_seed": _reset_seed,
    "gather_instances": _gather_instances,
    "model_used": _uses_ipu_model,
    "configuration": _configuration,
    "num_ipus": _num_ipus,
    "start_application": _start_application,
    "explain_compile_error": _explain_compile_error,
    "synthetic_data": _synthetic_data,
}
HANDLERS = {
    name: Handler(getattr(driver_pb2, request), getattr(driver_pb2, answer), _FUNCTIONS[name])
    for name, (request, answer) in driver_pb2.CALLS.items()
}
"""By the name under which the plugin calls them."""
