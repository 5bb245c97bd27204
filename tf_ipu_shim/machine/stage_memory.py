"""What a stage of a pipeline that is to come needs, added up from its layers."""

from __future__ import annotations

from typing import NamedTuple


class StageLayer(NamedTuple):
    """A layer of a stage, in bytes.

    Args:
        always: its weights, their optimizer state, and accumulated gradients.
        gradients: of its weights for the mini-batch in work.
        kept: results of its forward pass, and what is fed to it, that the backward pass takes; of one mini-batch.
        comes_in: what layers before it hand to it, or to one behind it.
        fed: the part of `kept` that is fed to it.
    """

    always: float
    gradients: float
    kept: float
    comes_in: float = 0.0
    fed: float = 0.0


class StageMemory:
    """A stage that layers are added to, in their order: each addition takes the same time.

    The backward pass goes from the last layer to the first. When it is at one, there are the gradients of that one's
    weights and of all behind it, what is kept of that one and of all before it, and the gradient that it hands on,
    which is as large as what the layer before it makes and keeps. That is largest somewhere: where, depends on whether
    weights or activations are larger.

    Args:
        waiting: mini-batches that wait in the stage, besides the one in work.
        recomputes: whether of these only what comes into the stage is kept.

    Example:
        >>> stage = StageMemory(waiting=2, recomputes=False)
        >>> stage.add(StageLayer(always=30, gradients=10, kept=5, comes_in=1))
        >>> stage.bytes  # 30, two times 1 + 5 that wait, and 1 + 5 + 10
        58
    """

    def __init__(self, waiting: int, recomputes: bool) -> None:
        self._waiting, self._recomputes = waiting, recomputes
        self._always = self._kept = self._comes_in = self._fed = self._last_kept = 0.0
        self._behind = 0.0  # of the largest moment: all but what comes into the stage
        self._layers = 0

    def add(self, layer: StageLayer) -> None:
        """Adds the next layer."""
        if not self._layers:
            self._comes_in = layer.comes_in
        self._layers += 1
        self._always += layer.always
        self._kept += layer.kept
        self._fed += layer.fed
        self._behind = max(self._behind + layer.gradients, self._kept + self._last_kept + layer.gradients)
        self._last_kept = layer.kept - layer.fed

    @property
    def bytes(self) -> int:
        """What the stage needs with the layers that it has."""
        each = self._comes_in + (self._fed if self._recomputes else self._kept)
        return round(self._always + self._waiting * each + self._comes_in + self._behind)
