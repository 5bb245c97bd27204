"""A compiled program on one IPU against the same function under `jit_compile=True` on the CPU."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.programs import forms, models
from benchmarks.results import Result
from benchmarks.runner import Settings, compare

TOY_EXTRA_US = 60.0
RATIO = 1.02


def run(settings: Settings) -> Iterator[Result]:
    forms.configure(num_cpus=2)
    toys = [
        models.addition(),
        models.affine(),
        models.mlp_step(4, [8, 8, 4], "toy MLP step"),
    ]
    large = [
        models.mlp_step(128, [784, 512, 512, 10], "MLP step"),
        models.matmul_chain(512, 8, "matmul chain"),
        models.conv_step(32, 28, 8, "conv step"),
    ]
    if settings.quick:
        large = [models.conv_step(4, 8, 2, "conv step")]
    for form, make in forms.FORMS.items():
        for model in toys:
            yield compare(
                f"{form}: {model.name}",
                make(model, forms.IPU),
                make(model, forms.CPU),
                settings,
                extra_us=TOY_EXTRA_US,
            )
        for model in large:
            yield compare(
                f"{form}: {model.name}",
                make(model, forms.IPU),
                make(model, forms.CPU),
                settings,
                ratio=RATIO,
                tolerance=1e-3,
            )
    # TensorFlow itself cuts a graph at each device other than the one that it is fed from, and pays for that.
    for form in ("Session", "function"):
        for model in toys:
            make = forms.FORMS[form]
            yield compare(
                f"{form}: {model.name}, against a second CPU device",
                make(model, forms.IPU),
                make(model, forms.SECOND_CPU),
                settings,
                extra_us=TOY_EXTRA_US,
            )
