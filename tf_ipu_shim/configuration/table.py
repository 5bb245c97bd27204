"""Reads every option of `IPUConfig` from `options.csv`: its type, default, SDKs, protobuf field and effect.

One row is the whole truth about an option. `tree` builds the configuration from the rows, `translate` the protobuf.
Flags and engine options have their rows in `machine/environment/flags` and `machine/environment/engine_options`,
arguments of calls in `arguments.csv`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Union

from tf_ipu_shim import data_files
from tf_ipu_shim.configuration import enums
from tf_ipu_shim.configuration.verification import VerificationOptions
from tf_ipu_shim.machine.environment import reasons

CATEGORIES: dict[str, str] = {
    "convolutions": "How convolutions are planned.",
    "device_connection": "When, and whether, TensorFlow devices attach to IPUs.",
    "slices": "How embedding lookups and updates are planned.",
    "experimental": "Options that may change or vanish.",
    "experimental.multi_replica_distribution": "Several processes that together run one replicated program.",
    "floating_point_behaviour": "Floating-point exceptions and rounding.",
    "io_tiles": "Tiles set apart for transfers, so that they overlap with computation.",
    "ipu_model": "The simulated chip; used with the flag --use_ipu_model.",
    "matmuls": "How matmuls are planned.",
    "norms": "How batch, group, layer and instance normalisation are computed.",
    "norms.experimental": "Normalisation options that may change or vanish.",
    "optimizations": "Passes over the graph before it is compiled.",
    "optimizations.math": "Algebraic simplification.",
    "pooling": "How pooling is planned.",
    "scheduling": "The order in which instructions run.",
    "_profiling": "Reports and trace events.",
    "_verified_transfers": "Verified transfers between host and device.",
}
_TYPES: dict[str, Any] = {
    **{kind.__name__: kind for kind in (bool, int, list, dict, VerificationOptions)},
    "list[int]": list[int],
    "tuple[int, ...]": tuple[int, ...],
}


@dataclass(frozen=True)
class Option:
    """One option.

    Args:
        default: the default, or a function that makes a fresh one.
        annotation: the type, if it is not the default's own.
        since: the first SDK that has it.
        older: for older SDKs: the last release, the type and the default.
        field: dotted protobuf field, empty if `translate` handles it; a leading `!` means its opposite.
        effect: its effect here, one of `machine.environment.effects.EFFECTS`.
    """

    path: str
    default: Any
    annotation: Any
    since: tuple[int, int]
    until: tuple[int, int]
    older: tuple[tuple[tuple[int, int], Any, Any], ...]
    field: str
    effect: str
    doc: str
    meaning: str
    deprecated: str | None

    def in_release(self, sdk: tuple[int, int]) -> tuple[Any, Any]:
        """Type and a fresh default in the given SDK."""
        for last, annotation, default in self.older:
            if sdk <= last:
                return annotation, default
        default = self.default() if isinstance(self.default, Callable) else self.default  # type: ignore[arg-type]
        return (type(default) if self.annotation is None else self.annotation), default


def options_of(sdk: tuple[int, int]) -> list[Option]:
    """The options that `IPUConfig` has in an SDK; SDKs before 2.1 have no `IPUConfig`, and use the options of 2.1."""
    line = max(tuple(sdk), (2, 1))
    return [option for option in OPTIONS if option.since <= line <= option.until]


def _option(row: dict[str, str]) -> Option:
    return Option(
        path=row["path"],
        default=_value(row["default"]),
        annotation=_type(row["type"]) if row["type"] else None,
        since=_release(row["since"]),
        until=_release(row["until"]),
        older=tuple(_older(row["older"])),
        field=row["field"],
        effect=row["effect"],
        doc=row["description"],
        meaning=reasons.fill(row["meaning"]),
        deprecated=row["deprecated"] or None,
    )


def _older(text: str) -> Iterator[tuple[tuple[int, int], Any, Any]]:
    """Reads `2.1 bool False; 2.4 int|bool 0`: the type and default up to an SDK."""
    for part in filter(None, text.split("; ")):
        release, annotation, default = part.split(" ")
        yield _release(release), _type(annotation), _value(default)


def _release(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


def _type(text: str) -> Any:
    """Reads `int` or `int|bool`."""
    return Union[tuple(_TYPES.get(name) or getattr(enums, name) for name in text.split("|"))]


def _value(text: str) -> Any:
    """Reads a literal, a member of an enum such as `SelectionOrder.AUTO`, or a type that makes the default."""
    if text in _TYPES:
        return _TYPES[text]
    name, _, member = text.partition(".")
    return getattr(enums, name)[member] if name.isidentifier() and member else ast.literal_eval(text)


OPTIONS: tuple[Option, ...] = tuple(map(_option, data_files.rows(__file__, "options.csv")))
