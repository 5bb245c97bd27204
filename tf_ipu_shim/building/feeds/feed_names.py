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
