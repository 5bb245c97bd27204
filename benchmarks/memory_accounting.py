"""A program with memory accounting on against the same with it off, step by step once it is compiled."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.programs import forms, models
from benchmarks.results import Result
from benchmarks.runner import Call, Settings, compare
from benchmarks.worker import Worker

TARGET = 1.02
SWITCH = "TF_IPU_SHIM_MEMORY_PLAN"


def run(settings: Settings) -> Iterator[Result]:
    for name, function in (("toy MLP step", "toy"), ("MLP step", "large")):
        ours = Worker(__name__, function, {SWITCH: None})
        reference = Worker(__name__, function, {SWITCH: "off"})
        try:
            yield compare(f"{name}, accounting on against off", ours, reference, settings, ratio=TARGET)
        finally:
            ours.close()
            reference.close()
        if settings.quick:
            return


def toy() -> Call:
    """Returns a step whose time is mostly the cost of a call."""
    forms.configure()
    return forms.session(models.mlp_step(4, [8, 8, 4], "toy MLP step"), forms.IPU)


def large() -> Call:
    """Returns a step of some milliseconds."""
    forms.configure()
    return forms.session(models.mlp_step(128, [784, 512, 512, 10], "MLP step"), forms.IPU)
