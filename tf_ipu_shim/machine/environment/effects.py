"""Defines the effects that an option of Graphcore's software can have on simulated IPUs.

Every option without effect is reported: it is recorded, with the reason, for the memory report and the log.
"""

from __future__ import annotations

import dataclasses

RESULTS = "changes results"
DEVICES = "changes devices"
MEMORY = "changes the memory model"
MACHINE = "changes the chip"
CYCLES = "changes the cycle model"
OUTPUT = "changes what is written"
RECORDED = "no effect"

EFFECTS = (RESULTS, DEVICES, MEMORY, MACHINE, CYCLES, OUTPUT, RECORDED)
MEANINGS = {
    RESULTS: "values that programs compute, or whether they may run",
    DEVICES: "which IPUs are used, and when they are attached",
    MEMORY: "modelled bytes, or whether a program that does not fit may run",
    MACHINE: "the simulated chip",
    CYCLES: "modelled cycles in profiles and in `tf-ipu fit`, and temporary memory of library ops",
    OUTPUT: "trace events, progress bars, help: what a process writes in addition to its results",
    RECORDED: "nothing; it is checked, listed in the memory report and named in the log",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptionEffect:
    """One option and its effect.

    Args:
        effect: one of `EFFECTS`.
        meaning: its effect, or why it has none.

    Example:
        >>> OptionEffect(name="opt.enableInlining", effect=RECORDED, meaning="there is no Poplar code").effect
        'no effect'
    """

    name: str
    effect: str
    meaning: str
