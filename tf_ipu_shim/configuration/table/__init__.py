"""Every option of `IPUConfig` as data: type, default, SDKs, protobuf field and effect.

One row is the whole truth about an option. `tree` builds the configuration from the rows, `translate` the protobuf.
The rows are in a file for each subject; flags and engine options have their rows in `machine/environment/flags` and
`machine/environment/engine_options`, arguments of calls in `configuration/arguments`.
"""

from __future__ import annotations

from tf_ipu_shim.configuration.table import arithmetic, compiler, devices, libraries, reports, transfers
from tf_ipu_shim.configuration.table.option import Option as Option

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

_ORDER = ["", *CATEGORIES]
OPTIONS: tuple[Option, ...] = tuple(
    sorted(
        (row for subject in (devices, libraries, arithmetic, transfers, compiler, reports) for row in subject.OPTIONS),
        key=lambda row: _ORDER.index(row.path.rpartition(".")[0]),
    )
)


def options_of(sdk: tuple[int, int]) -> list[Option]:
    """The options that `IPUConfig` has in an SDK; SDKs before 2.1, which have no `IPUConfig`, get those of 2.1."""
    line = max(tuple(sdk), (2, 1))
    return [option for option in OPTIONS if option.since <= line <= option.until]
