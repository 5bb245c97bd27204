"""Options passed to Poplar's engine and libraries by name."""

from __future__ import annotations

from tf_ipu_shim.configuration.table.option import Option
from tf_ipu_shim.machine.environment import reasons
from tf_ipu_shim.machine.environment.effects import CYCLES, MEMORY

OPTIONS: tuple[Option, ...] = (
    Option(
        "compilation_poplar_options",
        dict,
        "Options of the Poplar engine, from name to value, both text. `debug.allowOutOfMemory` lets a program that "
        "does not fit run to its report.",
        "compilation_options",
        effect=MEMORY,
        meaning="see the engine options, of which some change results",
    ),
    Option(
        "gcl_poplar_options",
        dict,
        "Options of the collectives library, from name to value, both text.",
        "gcl_options",
        meaning=reasons.LINKS,
    ),
    Option(
        "convolutions.poplar_options",
        dict,
        "Options of PopLibs convolutions, from name to value, both text.",
        "convolution_options",
        effect=CYCLES,
        meaning=reasons.PRODUCTS,
    ),
    Option(
        "slices.poplar_options",
        dict,
        "Options of PopLibs slicing, from name to value, both text.",
        "slice_options",
        since=(2, 3),
        meaning=reasons.PLANNING,
    ),
    Option(
        "matmuls.clear_pass_type",
        False,
        "Do not tell PopLibs whether a matmul belongs to the forward or the backward pass.",
        "clear_matmul_pass_type",
        meaning=reasons.PLANNING,
    ),
    Option(
        "matmuls.poplar_options",
        dict,
        "Options of PopLibs matmuls, from name to value, both strings.",
        "matmul_options",
        effect=CYCLES,
        meaning=reasons.PRODUCTS,
    ),
    Option(
        "pooling.poplar_options",
        dict,
        "Options of PopLibs pooling, from name to value, both text.",
        "pooling_options",
        meaning=reasons.PLANNING,
    ),
)
