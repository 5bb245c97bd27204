"""Which computations of an XLA program are the same, so that the IPU's compiler makes one function of them."""

from __future__ import annotations

import hashlib
from typing import Any

from tf_ipu_shim.memory_model.computations.fusions import DRAWN

_WITH_EFFECTS = frozenset(
    "all-gather all-reduce all-to-all custom-call infeed outfeed recv rng rng-bit-generator send".split()
)


_NAMES = ("name", "metadata", "id", "operand_ids", "called_computation_ids", "control_predecessor_ids")


def without_names(instruction: Any) -> Any:
    """A copy that says what an instruction does, and not what it or what it takes is called."""
    plain = type(instruction)()
    plain.CopyFrom(instruction)
    for field in _NAMES:
        plain.ClearField(field)
    return plain


class AlikeComputations:
    """Tells what a computation contains, whatever it and its ops are called.

    Args:
        module: the program, as XLA gives it before it optimises it.
    """

    def __init__(self, module: Any) -> None:
        self._computations = {computation.id: computation for computation in module.computations}
        self._places = {
            made.id: (one.id, place) for one in module.computations for place, made in enumerate(one.instructions)
        }
        self._entry = module.entry_computation_id
        self._known: dict[int, str | None] = {}

    def place(self, instruction: Any) -> tuple[str, int] | None:
        """What a computation that others call contains, and which of its instructions this is.

        Args:
            instruction: of the program.

        Returns:
            None for an instruction of the program itself, and for one of a computation that has side effects or draws
            random numbers: these are a function each.
        """
        number, place = self._places[instruction.id]
        content = None if number == self._entry else self.content(number)
        return None if content is None else (content, place)

    def content(self, number: int) -> str | None:
        """What a computation contains, by its number; None for one with side effects or random numbers."""
        if number not in self._known:
            self._known[number] = self._read(self._computations[number])
        return self._known[number]

    @staticmethod
    def has_effects(instruction: Any) -> bool:
        """Whether an instruction does something besides what it gives, or draws random numbers."""
        return instruction.opcode in _WITH_EFFECTS or instruction.metadata.op_type in DRAWN

    def _read(self, computation: Any) -> str | None:
        found = hashlib.sha256()
        for instruction in computation.instructions:
            if self.has_effects(instruction):
                return None
            called = [self.content(number) for number in instruction.called_computation_ids]
            if None in called:
                return None
            plain = without_names(instruction)
            plain.operand_ids[:] = [self._places[operand][1] for operand in instruction.operand_ids]
            found.update(plain.SerializeToString(deterministic=True))
            found.update(repr(called).encode())
        found.update(str(self._places[computation.root_id][1]).encode())
        return found.hexdigest()
