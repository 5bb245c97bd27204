"""Fingerprints HLO computations structurally, to find those that the IPU's compiler shares as one function."""

from __future__ import annotations

import hashlib
from typing import Any

from tf_ipu_shim.memory_model.computations.fusions import DRAWN

_WITH_EFFECTS = frozenset(
    "all-gather all-reduce all-to-all custom-call infeed outfeed recv rng rng-bit-generator send".split()
)


_NAMES = ("name", "metadata", "id", "operand_ids", "called_computation_ids", "control_predecessor_ids")


def without_names(instruction: Any) -> Any:
    """Returns a copy of an instruction without its name and its operands' names."""
    plain = type(instruction)()
    plain.CopyFrom(instruction)
    for field in _NAMES:
        plain.ClearField(field)
    return plain


class ComputationFingerprints:
    """Structural fingerprints of computations, independent of names.

    Args:
        module: the program before XLA optimises it.
    """

    def __init__(self, module: Any) -> None:
        self._computations = {computation.id: computation for computation in module.computations}
        self._places = {
            instruction.id: (content.id, place)
            for content in module.computations
            for place, instruction in enumerate(content.instructions)
        }
        self._entry = module.entry_computation_id
        self._known: dict[int, str | None] = {}

    def locate(self, instruction: Any) -> tuple[str, int] | None:
        """Returns the fingerprint of the called computation that contains an instruction, and its index there."""
        callee, place = self._places[instruction.id]
        content = None if callee == self._entry else self.fingerprint(callee)
        return None if content is None else (content, place)

    def fingerprint(self, callee: int) -> str | None:
        """Returns a computation's fingerprint; None with side effects or random numbers."""
        if callee not in self._known:
            self._known[callee] = self._read(self._computations[callee])
        return self._known[callee]

    @staticmethod
    def has_effects(instruction: Any) -> bool:
        """Returns whether an instruction has side effects or draws random numbers."""
        return instruction.opcode in _WITH_EFFECTS or instruction.metadata.op_type in DRAWN

    def _read(self, computation: Any) -> str | None:
        found = hashlib.sha256()
        for instruction in computation.instructions:
            if self.has_effects(instruction):
                return None
            called = [self.fingerprint(callee) for callee in instruction.called_computation_ids]
            if None in called:
                return None
            plain = without_names(instruction)
            plain.operand_ids[:] = [self._places[operand][1] for operand in instruction.operand_ids]
            found.update(plain.SerializeToString(deterministic=True))
            found.update(repr(called).encode())
        found.update(str(self._places[computation.root_id][1]).encode())
        return found.hexdigest()
