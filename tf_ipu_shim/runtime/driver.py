"""What the plugin's ops ask of this process's runtime: devices, configurations, seeds, flags."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tf_ipu_shim.machine import flags
from tf_ipu_shim.messages import config_pb2
from tf_ipu_shim.runtime import devices, seed
from tf_ipu_shim.runtime.device import NEVER, PRE_COMPILE

if TYPE_CHECKING:
    from tf_ipu_shim.plugin.library import Library

# How an op may use a device, as `first_use.h` numbers it.
_RUNS, _GIVES_ZEROS, _COMPILES_ONLY = b"0", b"1", b"2"
# `SyntheticDataCategory` of Graphcore's config.proto. The last one, "unknown", is no category of the flag.
_SYNTHETIC_CATEGORIES = ("seed", "infeed", "outfeed", "hostembedding", "parameters")


def install(library: Library) -> None:
    """Has the plugin's ops ask here.

    Args:
        library: the loaded plugin.
    """
    library.set_handlers(HANDLERS)


def _attach(request: bytes) -> bytes:
    device = devices.get(int(request))
    return {PRE_COMPILE: _GIVES_ZEROS, NEVER: _COMPILES_ONLY}.get(device.connection, _RUNS)


def _configure(request: bytes) -> bytes:
    devices.configure(config_pb2.IpuOptions.FromString(request))
    return b""


def _reset_devices(_: bytes) -> bytes:
    devices.reset()
    return b""


def _reset_seed(request: bytes) -> bytes:
    ordinal, value, identical_replicas = map(int, request.split())
    seed.reset(ordinal, value, bool(identical_replicas))
    return b""


def _model_used(_: bytes) -> bytes:
    return b"%d" % flags.current().use_ipu_model


def _configuration(_: bytes) -> bytes:
    from tensorflow.core.framework import attr_value_pb2

    options = devices.configured()
    copies = [] if options is None else [options.SerializeToString()] * devices.count()
    return attr_value_pb2.AttrValue.ListValue(s=copies).SerializeToString()


def _num_ipus(request: bytes) -> bytes:
    return b"%d" % devices.get(int(request), attach=False).num_ipus


def is_synthetic(category: int) -> bool:
    """Whether data of a kind are made up instead of sent, as `TF_POPLAR_FLAGS` is now.

    Args:
        category: a `SyntheticDataCategory`: 0 seeds, 1 infeeds, 2 outfeeds, 3 host embeddings,
            4 parameters, 5 any other.

    Raises:
        ValueError: there is no such category.

    Example:
        >>> is_synthetic(1)
        False
    """
    in_force = flags.current()
    if not 0 <= category <= len(_SYNTHETIC_CATEGORIES):
        raise ValueError(f"Category of synthetic data must be from 0 to {len(_SYNTHETIC_CATEGORIES)}, not {category}.")
    if category == len(_SYNTHETIC_CATEGORIES):
        return in_force.use_synthetic_data
    return in_force.is_synthetic(_SYNTHETIC_CATEGORIES[category])


def _synthetic_data(request: bytes) -> bytes:
    return b"%d" % is_synthetic(int(request))


HANDLERS: dict[str, Callable[[bytes], bytes]] = {
    "attach": _attach,
    "configure": _configure,
    "reset_devices": _reset_devices,
    "reset_seed": _reset_seed,
    "model_used": _model_used,
    "configuration": _configuration,
    "num_ipus": _num_ipus,
    "synthetic_data": _synthetic_data,
}
"""By the name under which the plugin calls them; each takes and gives text, or a serialised message."""
