"""Checks and printing of assignments, the same for all kinds of models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

_LAYER_COLUMN, _STAGE_COLUMN = 0.75, 0.25
_WIDTH = 98


def check_list(assignments: Any, expected: int, what: str) -> None:
    """Checks that assignments are a list of the right length.

    Args:
        assignments: what was given.
        expected: how many are.
        what: of which there are as many, such as `"layers"`.

    Raises:
        ValueError: they are not.
    """
    if not isinstance(assignments, list):
        raise ValueError(
            f"`pipeline_stage_assignment` needs to be a list. {type(assignments).__name__} was given: change the "
            "elements of what get_pipeline_stage_assignment() returns, and hand it back."
        )
    if len(assignments) != expected:
        raise ValueError(
            f"The length of the provided `pipeline_stage_assignment` ({len(assignments)}) does not match the total "
            f"number of {what} ({expected})."
        )


def print_summary(
    model: Any, rows: Sequence[tuple[str, str, str]], line_length: int | None, print_fn: Callable[[str], Any] | None
) -> None:
    """Prints the stage of each layer as a table.

    Args:
        model: the Keras model.
        rows: layer with its type, the layers it takes from, stage.
        line_length: characters of a line.
        print_fn: prints a line.
    """
    show = print_fn or print
    width = line_length or _WIDTH
    columns = [int(width * 0.45), int(width * 0.75), width]

    def line(cells: Sequence[str]) -> None:
        text = ""
        for cell, end in zip(cells, columns):
            text = (text + cell)[: end - 1].ljust(end)
        show(text.rstrip())

    show(f'Model: "{model.name}"')
    show("_" * width)
    line(("Layer (type) (node index)", "Input Layers", "Pipeline Stage"))
    show("=" * width)
    for place, row in enumerate(rows):
        line(row)
        show(("=" if place == len(rows) - 1 else "_") * width)
