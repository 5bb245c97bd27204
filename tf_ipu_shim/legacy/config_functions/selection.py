"""`IpuOptions` functions that select IPUs, set when devices attach to them, and describe the IPU Model."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from tf_ipu_shim.configuration import translate
from tf_ipu_shim.configuration.enums import DeviceConnectionType
from tf_ipu_shim.legacy.config_functions.deprecation import replaced_by_ipu_config


@replaced_by_ipu_config
def auto_select_ipus(opts: Any, num_ipus: int | Sequence[int]) -> Any:
    """Asks for numbers of IPUs; the first free ones are taken.

    Args:
        opts: an `IpuOptions`; it is changed.
        num_ipus: IPUs of `/device:IPU:0`, or of each TensorFlow device.

    Returns:
        `opts`.

    Raises:
        Exception: if devices were chosen before, or `num_ipus` is not a number, list or tuple.

    Source: `tensorflow.python.ipu.utils` (SDK 1.2 to 2.3).

    Example:
        >>> len(auto_select_ipus(ipu.utils.create_ipu_config(), [1, 4]).device_config)
        2
    """
    _refuse_second(opts)
    counts: Any = num_ipus
    if isinstance(counts, bool) or not isinstance(counts, (numbers.Integral, list, tuple)):
        raise Exception(f"`num_ipus` must be an integer, list or tuple; received {counts!r}.")
    for number in [counts] if isinstance(counts, numbers.Integral) else counts:
        translate.set_number(opts.device_config.add(), "auto_count", number, "`num_ipus`")
    return opts


@replaced_by_ipu_config
def select_ipus(opts: Any, indices: Sequence[int]) -> Any:
    """Asks for devices by the ids that `tf-ipu info -l` lists.

    Args:
        opts: an `IpuOptions`; it is changed.
        indices: one Poplar device id for each TensorFlow device.

    Returns:
        `opts`.

    Raises:
        Exception: if devices were chosen before, `indices` is not a list or tuple, or an id is in it twice.

    Source: `tensorflow.python.ipu.utils` (SDK 1.2 to 2.3).

    Example:
        >>> select_ipus(ipu.utils.create_ipu_config(), [24]).device_config[0].cfg_index
        24
    """
    _refuse_second(opts)
    if not isinstance(indices, (list, tuple)):
        raise Exception(f"`indices` must be a list or tuple; received {indices!r}. For one device write [{indices!r}].")
    if len(set(indices)) != len(indices):
        raise Exception(f"All device indices in `indices` must be unique; they are {list(indices)}.")
    for index in indices:
        translate.set_number(opts.device_config.add(), "cfg_index", index, "`indices`")
    return opts


@replaced_by_ipu_config
def set_ipu_connection_type(
    opts: Any,
    connection_type: DeviceConnectionType | None = DeviceConnectionType.ALWAYS,
    ipu_version: str | int | None = "",
    enable_remote_buffers: bool = False,
) -> Any:
    """Says when TensorFlow devices attach to their IPUs.

    Args:
        opts: an `IpuOptions`; it is changed.
        connection_type: when configured (also if None), when first used, or never.
        ipu_version: the chip to compile for if none is attached: `ipu1`, `ipu2`, `ipu21`, or only the number.
        enable_remote_buffers: whether that chip has remote buffers.

    Returns:
        `opts`.

    Raises:
        Exception: if devices never attach and `ipu_version` is missing.

    Source: `tensorflow.python.ipu.utils` (SDK 1.2 to 2.3).
    """
    connection = DeviceConnectionType(connection_type or DeviceConnectionType.ALWAYS)
    if connection in (DeviceConnectionType.NEVER, DeviceConnectionType.PRE_COMPILE) and not ipu_version:
        raise Exception(
            f"`ipu_version` must be specified when `connection_type` is set to {connection.name}: nothing else says "
            "which chip to compile for. Use ipu1, ipu2 or ipu21."
        )
    opts.device_connection_type = connection.value
    opts.ipu_version = _version(ipu_version)
    opts.enable_remote_buffers_without_device = enable_remote_buffers
    return opts


@replaced_by_ipu_config
def set_ipu_model_options(
    opts: Any,
    compile_ipu_code: bool = True,
    tiles_per_ipu: int | None = None,
    ipu_model_version: str | int | None = "ipu2",
) -> Any:
    """Describes the simulated chip; used with the flag `--use_ipu_model`.

    Args:
        opts: an `IpuOptions`; it is changed.
        compile_ipu_code: compile the chip's own code when simulating.
        tiles_per_ipu: tiles of each IPU; None for the chip's own number.
        ipu_model_version: `ipu1`, `ipu2` or `ipu21`; None for the default.

    Returns:
        `opts`.

    Source: `tensorflow.python.ipu.utils` (SDK 1.2 to 2.3).
    """
    opts.ipu_model_config.compile_ipu_code = compile_ipu_code
    translate.set_number(opts.ipu_model_config, "tiles_per_ipu", tiles_per_ipu or 0, "`tiles_per_ipu`")
    opts.ipu_model_config.ipu_model_version = _version(ipu_model_version)
    return opts


def _version(value: str | int | None) -> str:
    return f"ipu{value}" if isinstance(value, int) else value or ""


def _refuse_second(opts: Any) -> None:
    if opts.device_config:
        raise Exception(
            "IPU devices have already been configured. Call `auto_select_ipus` or `select_ipus` once; "
            "a list chooses several TensorFlow devices."
        )
