"""Converts an `IPUConfig` to the `IpuOptions` protobuf."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from tf_ipu_shim.configuration import checks, table
from tf_ipu_shim.configuration.enums import ExecutionProfileType, StochasticRoundingBehaviour
from tf_ipu_shim.configuration.verification import KeyId, VerificationOptions
from tf_ipu_shim.configuration.warnings import warn
from tf_ipu_shim.messages import config_pb2

_FIELDS = {option.path: option.field for option in table.OPTIONS}
_STREAMS = ("inputs", "input_parameters", "outputs", "output_parameters", "checkpoint_in", "checkpoint_out")


def to_protobuf(config: Any) -> Any:
    """Checks a configuration and builds its `IpuOptions`.

    Single numbers in `auto_select_ipus` and `select_ipus` become lists, in the configuration too.
    """
    checks.check(config)
    options = config_pb2.IpuOptions(creator_id=config_pb2.IPU_CONFIG)
    for path, owner, name in config._options():
        if _FIELDS.get(path):
            set_field(options, _FIELDS[path], getattr(owner, name), path)
    for path, field in (("auto_select_ipus", "auto_count"), ("select_ipus", "cfg_index")):
        if type(getattr(config, path)) is int:
            setattr(config, path, [getattr(config, path)])
        for value in getattr(config, path):
            set_number(options.device_config.add(), field, value, path)
    _set_floating_point(options.floating_point_behaviour, config.floating_point_behaviour)
    if "_profiling" in config._attributes and config._profiling.profiling:
        options.profiling.enable_io_trace = options.profiling.enable_ipu_trace_events = True
    if "_verified_transfers" in config._attributes:
        set_verification(options.verified_transfers, config._verified_transfers.key_id_pairs)
    return options


UTILS_SDK = (2, 3)  # the last SDK whose `ipu.utils` configures


def defaults(line: tuple[int, int], creator: Any = config_pb2.IPU_CONFIG) -> Any:
    """Returns an `IpuOptions` with every option's default."""
    options = config_pb2.IpuOptions(creator_id=creator)
    for option in table.options_of(line):
        if option.field:
            set_field(options, option.field, option.in_release(line)[1], option.path)
    return options


def old_defaults() -> Any:
    """Returns the defaults of the functions of `ipu.utils`."""
    options = defaults(UTILS_SDK, config_pb2.IPU_UTILS)
    # Unlike IPUConfig, the old functions merge no remote buffers until told to.
    options.remote_buffer_merging_mode = 0
    return options


def set_field(options: Any, field: str, value: Any, path: str) -> None:
    """Writes one option into the protobuf."""
    *messages, name = field.lstrip("!").split(".")
    for message in messages:
        options = getattr(options, message)
    if isinstance(value, Mapping):
        set_flags(getattr(options, name), value, path)
    elif path == "_profiling.profile_execution" and isinstance(value, bool):
        profile = ExecutionProfileType.DEVICE_PROFILE if value else ExecutionProfileType.NO_PROFILE
        setattr(options, name, profile.value)
    elif isinstance(value, Enum):
        setattr(options, name, value.value)
    elif field.startswith("!"):
        setattr(options, name, not value)
    else:
        set_number(options, name, value, path)


def set_number(message: Any, name: str, value: Any, path: str) -> None:
    """Writes a value; an error names the option of a value that does not fit."""
    try:
        setattr(message, name, value)
    except ValueError as error:
        raise ValueError(
            f"{path} is {value!r}, which its protobuf field {name} cannot hold: {error}"
            ". Set a value that this type can hold."
        ) from None


def set_flags(flags: Any, values: Mapping[str, str], path: str) -> None:
    """Appends options of a Poplar library."""
    for option, value in values.items():
        if not (isinstance(option, str) and isinstance(value, str)):
            raise TypeError(
                f"{path} expects strings as names and values, such as {{'partialsType': 'half'}}; "
                f"it has {option!r}: {value!r}. Write the value as a string: {str(value)!r}."
            )
        flags.add(option=option, value=value)


def set_verification(transfers: Any, keys: VerificationOptions) -> None:
    """Writes the keys of verified transfers."""
    for stream in _STREAMS:
        _set_key(getattr(transfers, stream), getattr(keys, stream))
    for name in ("infeeds", "outfeeds"):
        for feed, key in getattr(keys, name).items():
            _set_key(getattr(transfers, name).add(feed_name=feed).key_id, key)


def _set_key(message: Any, key: KeyId) -> None:
    message.key, message.start_id = key.key, key.start_id


def _set_floating_point(message: Any, category: Any) -> None:
    esr = category.esr
    if isinstance(esr, bool):
        if type(category.get_attribute_metadata("esr").default) is not bool:
            warn("A bool for floating_point_behaviour.esr is deprecated: use a StochasticRoundingBehaviour instead.")
        esr = StochasticRoundingBehaviour.from_bool(esr)
    message.flags_set = True
    message.esr = (StochasticRoundingBehaviour.ON if category.set_all else esr).value
    if category.set_all:
        message.inv = message.div0 = message.oflo = message.nanoo = True
