"""The ranges within which the real figure of an estimate lies."""

from __future__ import annotations

ERROR_FACTORS = {
    "product": 2.0,
    "elementwise": 1.5,
    "cast": 1.5,
    "reduce": 2.0,
    "window": 3.0,
    "gather": 3.0,
    "update": 3.0,
    "fifo": 3.0,
    "norm": 2.0,
    "copy": 2.0,
    "random": 3.0,
    "sort": 4.0,
    "other": 10.0,
    "host": 2.0,
    "feed": 2.0,
    "remote": 2.0,
    "exchange": 2.0,
    "collective": 2.0,
    "user_op": 3.0,
}
"""By kind of computation: the real figure is expected between ours divided by this and ours times it."""
