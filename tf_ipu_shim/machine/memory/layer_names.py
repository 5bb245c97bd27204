"""Derives the Keras layer of each variable from the variable's name."""

from __future__ import annotations

from collections.abc import Iterable

_COUNTERS = ("iter", "iteration")  # each of Keras' optimizers has one


def layers_of_variables(names: Iterable[str]) -> dict[str, str]:
    """Maps names of variables to the names of their layers.

    Example:
        >>> layers_of_variables(["dense/kernel", "Adam/dense/kernel/m", "Adam/iter"])
        {'dense/kernel': 'dense', 'Adam/dense/kernel/m': 'dense', 'Adam/iter': 'iter'}
    """
    parts = {name: name.split("/") for name in names}
    optimizers = {first for first, *rest in parts.values() if rest and rest[0] in _COUNTERS}
    return {name: split[1] if split[0] in optimizers and len(split) > 1 else split[0] for name, split in parts.items()}
