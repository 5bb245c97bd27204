"""Validates and prints pipeline stage assignments, for all kinds of models."""

from __future__ import annotations

import enum
import itertools
import numbers
from collections.abc import Callable, Sequence
from typing import Any

from tf_ipu_shim import sdk

_WIDTH = 98
_NEW_WORDS_SINCE = (2, 6)


class Wording(enum.Enum):
    """The emulated SDK's messages for wrong assignments."""

    FIRST = "functional and Sequential models up to SDK 2.5"
    SUBCLASSED = "subclassed models of SDK 2.5"
    CURRENT = "all models since SDK 2.6"


def current_wording(subclassed: bool = False) -> Wording:
    """Returns the words of the emulated SDK."""
    if sdk.current() >= _NEW_WORDS_SINCE:
        return Wording.CURRENT
    return Wording.SUBCLASSED if subclassed else Wording.FIRST


def wrong_kind_error(
    layer: str, nested: bool, expected_types: Sequence[type], value: Any, wording: Wording
) -> ValueError:
    """Returns the error for an assignment that does not fit its layer."""
    names = " or ".join(f"`{kind.__name__}`" for kind in expected_types)
    if wording != Wording.CURRENT:
        need = "need to" if wording == Wording.FIRST else "must"
        return ValueError(
            f"All elements of `pipeline_stage_assignment` {need} be instances of {names}. That of layer {layer} "
            f"is a {type(value).__name__}."
        )
    return ValueError(
        f"The pipeline stage assignment for {'nested model' if nested else 'layer'} {layer} in "
        f"`pipeline_stage_assignment` must be an instance of {names}. It is a {type(value).__name__}."
    )


def wrong_order_error(layer: str, value: str) -> ValueError:
    """Returns the error for an assignment of another layer."""
    return ValueError(
        "The order of `pipeline_stage_assignment` does not match the post-order generated from the graph: "
        f"found {value} where {layer} belongs. Keep the order of get_pipeline_stage_assignment()."
    )


def check_assignments(assignments: Any, expected: int, wording: Wording, count_name: str = "number of layers") -> None:
    """Checks that assignments are a list of the right length."""
    if not isinstance(assignments, list):
        raise ValueError(
            f"`pipeline_stage_assignment` needs to be a list. {type(assignments).__name__} was given: change the "
            "elements of what get_pipeline_stage_assignment() returns, and pass it."
        )
    if len(assignments) != expected:
        quantity, expectation = "length", f"number of layers in the graph ({expected})"
        if wording == Wording.FIRST:
            quantity, expectation = "size", f"{count_name} in the model (currently {expected})"
        raise ValueError(
            f"The {quantity} of the provided `pipeline_stage_assignment` ({len(assignments)}) does not match the "
            f"{expectation}. "
            "A layer counts as often as it is called. Add or remove assignments."
        )


def check_stage(layer: str, stage: Any) -> None:
    """Checks the number of a layer's stage."""
    if stage is not None and not isinstance(stage, numbers.Integral):
        raise TypeError(f"`pipeline_stage` of layer {layer} must be an integer, not {stage!r}. Pass an integer.")


def print_summary(
    model: Any,
    heads: Sequence[tuple[str, float]],
    rows: Sequence[Sequence[Sequence[str]]],
    line_length: int | None,
    print_fn: Callable[[str], Any] | None,
) -> None:
    """Prints the stage of each layer as a table."""
    show = print_fn or print
    width = line_length or _WIDTH
    ends = [int(width * end) for _, end in heads]

    def line(cells: Sequence[str]) -> None:
        line_text = ""
        for cell, end in zip(cells, ends):
            line_text = (line_text[:-1] + " " if line_text else "") + cell
            line_text = line_text[:end].ljust(end)
        show(line_text)

    show(f'Model: "{model.name}"')
    show("_" * width)
    line([head for head, _ in heads])
    show("=" * width)
    for index, row in enumerate(rows):
        for cells in itertools.zip_longest(*row, fillvalue=""):
            line(cells)
        show(("=" if index == len(rows) - 1 else "_") * width)
