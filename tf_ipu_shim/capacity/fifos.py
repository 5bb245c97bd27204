"""Computes the cycles of a pipeline stage's FIFO copies from its layers."""

from __future__ import annotations

from collections.abc import Sequence

from tf_ipu_shim.capacity.layers import Layer
from tf_ipu_shim.cycle_model import Computation, phases_of
from tf_ipu_shim.cycle_model.sizes import FIFO_WORD, FifoSizes
from tf_ipu_shim.machine.chips import ChipSpec

_RING = 2
"""Slots of a FIFO for several mini-batches: copies are as fast for more of them."""


class StageFifos:
    """Copies of the tensors of a mini-batch that wait in a stage for its backward pass.

    Args:
        layers: that are put into stages.
        times: mini-batches of a run.
    """

    def __init__(self, layers: Sequence[Layer], chip: ChipSpec, times: float) -> None:
        self._layers, self._chip, self._times = layers, chip, times
        self._trains = any(layer.weight_bytes for layer in layers)
        self._found: dict[tuple[int, int, bool], float] = {}

    def cycles(self, first: int, end: int, recomputes: bool) -> float:
        """Returns the cycles of a run, for layers as a stage that is not the last one."""
        if not self._trains:
            return 0.0
        key = (first, end, recomputes)
        if key not in self._found:
            sizes = self._sizes(first, end, recomputes)
            words = sum(size for size, _ in sizes) // FIFO_WORD
            copies = Computation("fifo", "", FifoSizes(words, sum(count for _, count in sizes), _RING), FIFO_WORD)
            self._found[key] = self._times * sum(phase.cycles for phase in phases_of(copies, self._chip))
        return self._found[key]

    def _sizes(self, first: int, end: int, recomputes: bool) -> list[tuple[int, int]]:
        """Returns bytes and number of the tensors that a stage keeps: of its inputs, and of its layers."""
        own = self._layers[first:end]
        taken = [
            (output.bytes, 1)
            for layer in self._layers[:first]
            for output in layer.outputs
            if any(first <= consumer < end for consumer, _ in output.consumers)
        ]
        if recomputes:
            return [*taken, *((layer.fed_bytes, layer.fed_tensors) for layer in own)]
        return [*taken, *((layer.activation_bytes, layer.activations) for layer in own)]
