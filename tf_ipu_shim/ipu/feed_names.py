"""Names of feeds: unique in a process, so that queues of several graphs and sessions never meet."""

from __future__ import annotations

import itertools

_serial = itertools.count()


def unique(kind: str, name: str = "") -> str:
    """A feed id.

    Args:
        kind: `"infeed"` or `"outfeed"`.
        name: what a script calls the queue, as SDKs up to 2.3 had it.

    Example:
        >>> unique("infeed", "images").startswith("infeed_images_")
        True
    """
    return f"{kind}_{name}_{next(_serial)}" if name else f"{kind}_{next(_serial)}"


def device_ordinal(value: int | None) -> int:
    """The TensorFlow device of a queue; 0 where none is given.

    Raises:
        ValueError: it is no integer, or a negative one.
    """
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"Device ordinal must be an integer, not {value!r}.")
    if value < 0:
        raise ValueError(f"Device ordinal must be >= 0, not {value}.")
    return value
