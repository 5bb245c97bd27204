"""Generates feed names that are unique in a process."""

from __future__ import annotations

import itertools
from typing import NoReturn

_serial = itertools.count()


def unique_name(kind: str, name: str = "") -> str:
    """Returns a feed id.

    Example:
        >>> unique_name("infeed", "images").startswith("infeed_images_")
        True
    """
    return f"{kind}_{name}_{next(_serial)}" if name else f"{kind}_{next(_serial)}"


class NonCopyable:
    """A queue that cannot be copied: two queues of one name would consume each other's elements.

    Example:
        >>> import copy
        >>> copy.copy(ipu.ipu_outfeed_queue.IPUOutfeedQueue())
        Traceback (most recent call last):
        ...
        TypeError: An IPUOutfeedQueue cannot be copied or pickled: ...
    """

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"An {type(self).__name__} cannot be copied or pickled: it is bound by its name to the programs of this "
            "process that use it. Hand the queue itself on, or make another one, in another process too."
        )
