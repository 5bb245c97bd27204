"""Queries and configures one TensorFlow IPU device: IPU count, seed, synthetic data."""

from __future__ import annotations

import enum
import re

from tf_ipu_shim.configuration.arguments import note_arguments

_DEVICE = re.compile(r"(?:^|/)(?:device:)?IPU:(\d+)$", re.IGNORECASE)


class SyntheticDataCategory(enum.IntEnum):
    """The kinds of data for which `TF_POPLAR_FLAGS` can select synthetic data.

    Source: `tensorflow.python.ipu.utils` (SDK 2.1 and newer).

    Example:
        >>> use_synthetic_data_for(SyntheticDataCategory.Infeed)
        False
    """

    Seed = 0
    Infeed = 1
    Outfeed = 2
    HostEmbedding = 3
    Parameters = 4
    Unknown = 5


def get_num_of_ipus_in_device(ipu_device: str, device: str = "cpu") -> int:
    """Returns the number of IPUs of a TensorFlow device.

    Args:
        ipu_device: the device, such as `/device:IPU:0`.
        device: the CPU device that Graphcore's op ran on; any will do here.

    Returns:
        The number of IPUs; 1 for `/device:IPU:0` when nothing is configured.

    Raises:
        tf.errors.InvalidArgumentError: if the device does not exist.

    Source: `tensorflow.python.ipu.utils` (SDK 1.3 and newer).

    Example:
        >>> get_num_of_ipus_in_device("/device:IPU:0")
        1
    """
    from tf_ipu_shim.runtime import devices

    note_arguments("get_num_of_ipus_in_device", device=device)
    return devices.get(_device_ordinal(ipu_device), attach=False).num_ipus


def reset_ipu_seed(
    seed: int,
    device: str = "/device:IPU:0",
    cpu_device: str = "cpu",
    experimental_identical_replicas: bool = False,
) -> None:
    """Sets the seed of the random numbers that a device draws, at once, in graph mode too.

    Args:
        seed: any integer.
        device: the device, such as `/device:IPU:0`.
        cpu_device: the CPU device that Graphcore's op ran on; any will do here.
        experimental_identical_replicas: whether all replicas draw the same numbers.

    Raises:
        TypeError: if the seed is not an integer.
        tf.errors.InvalidArgumentError: if the text names no IPU device.

    Source: `tensorflow.python.ipu.utils`.

    Example:
        >>> reset_ipu_seed(42)
    """
    import operator

    from tf_ipu_shim.runtime import seed as seeds

    note_arguments("reset_ipu_seed", cpu_device=cpu_device)
    try:
        seed_value = operator.index(seed)
    except TypeError:
        raise TypeError(
            f"`seed` must be an integer; received {seed!r}, a {type(seed).__name__}. Pass an integer."
        ) from None
    seeds.reset(_device_ordinal(device), seed_value, bool(experimental_identical_replicas))


def use_synthetic_data_for(synthetic_data_category: int) -> bool:
    """Returns whether `TF_POPLAR_FLAGS` requests synthetic data of a kind instead of transfers.

    Args:
        synthetic_data_category: a `SyntheticDataCategory`.

    Raises:
        ValueError: the category does not exist.

    Source: `tensorflow.python.ipu.utils` (SDK 2.1 and newer).

    Example:
        >>> use_synthetic_data_for(1)
        False
    """
    from tf_ipu_shim.runtime import op_requests

    return op_requests.is_synthetic(int(synthetic_data_category))


def _device_ordinal(device: str) -> int:
    match = _DEVICE.search(device) if isinstance(device, str) else None
    if match is None:
        from tensorflow.compat.v2 import errors

        raise errors.InvalidArgumentError(
            None, None, f"{device!r} is not an IPU device; expected a device string such as /device:IPU:0. Pass one."
        )
    return int(match[1])
