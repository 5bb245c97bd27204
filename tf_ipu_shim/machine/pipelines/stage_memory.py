"""Computes the memory of a pipeline stage from its layers, with and without recomputation."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple, TypeVar

_Tensor = TypeVar("_Tensor", bound=Hashable)


class ConsumedBytes(NamedTuple):
    """An input of a layer from an earlier layer.

    Args:
        since: the last layer before it that makes this or uses it too. Stages that begin later receive it.
    """

    since: int
    bytes: int


def consumed_by_layers(
    values: Iterable[tuple[int, Iterable[int], int]], layers: int
) -> list[tuple[ConsumedBytes, ...]]:
    """Returns the values that each layer consumes from earlier ones.

    Example:
        >>> [[tuple(one) for one in taken] for taken in consumed_by_layers([(0, [1, 3], 64), (1, [3], 8)], 4)]
        [[], [(0, 64)], [], [(1, 72)]]
    """
    layer_inputs: list[dict[int, int]] = [{} for _ in range(layers)]
    for maker, users, size in values:
        since = maker
        for user in sorted(user for user in users if user > maker):
            layer_inputs[user][since] = layer_inputs[user].get(since, 0) + size
            since = user
    return [tuple(ConsumedBytes(*pair) for pair in sorted(inputs.items())) for inputs in layer_inputs]


class StageLayer(NamedTuple):
    """A layer of a stage, in bytes.

    Args:
        always: its weights, their optimizer state, and accumulated gradients.
        gradients: the gradients of its weights for the current mini-batch.
        kept: forward results and fed values that the backward pass uses; of one mini-batch.
        fed: the part of `kept` that is fed to it.
    """

    position: int
    always: float
    gradients: float
    kept: float
    inputs: tuple[ConsumedBytes, ...] = ()
    fed: float = 0.0


class StageMemory:
    """The memory of a stage to which layers are added in order.

    The backward pass goes from the last layer to the first. At a layer, three kinds of tensors are live. First, the
    gradients of its weights and of all later layers' weights. Second, the tensors kept of this and all earlier layers.
    Third, the gradient that it passes on, as large as the previous layer's kept result. The layer at which the sum is
    largest depends on whether weights or activations are larger. Tensors that pass the stage without being used are not
    counted.

    Args:
        waiting: mini-batches that wait in the stage, besides the one in flight.
        recomputes: whether only the stage's inputs are kept of these mini-batches.

    Example:
        >>> stage = StageMemory(waiting=2, recomputes=False)
        >>> stage.add(StageLayer(position=4, always=30, gradients=10, kept=5, inputs=(ConsumedBytes(3, 1),)))
        >>> stage.bytes  # 30, two times 1 + 5 that wait, and 1 + 5 + 10
        58
    """

    def __init__(self, waiting: int, recomputes: bool) -> None:
        self._waiting, self._recomputes = waiting, recomputes
        self._always = self._kept = self._comes_in = self._fed = self._last_kept = 0.0
        self._behind = 0.0  # of the largest moment: all but what comes into the stage
        self._first: int | None = None

    def add(self, layer: StageLayer) -> None:
        """Adds the next layer."""
        if self._first is None:
            self._first = layer.position
        self._comes_in += sum(input_name.bytes for input_name in layer.inputs if input_name.since < self._first)
        self._always += layer.always
        self._kept += layer.kept
        self._fed += layer.fed
        self._behind = max(self._behind + layer.gradients, self._kept + self._last_kept + layer.gradients)
        self._last_kept = layer.kept - layer.fed

    @property
    def bytes(self) -> int:
        """The memory of a stage with the given layers."""
        mini_batch_bytes = self._comes_in + (self._fed if self._recomputes else self._kept)
        return round(self._always + self._waiting * mini_batch_bytes + self._comes_in + self._behind)


def stashed(
    stashed_tensors: Iterable[_Tensor],
    checkpoints: Iterable[_Tensor],
    operands_of: Callable[[_Tensor], Iterable[_Tensor]],
    is_own: Callable[[_Tensor], bool],
) -> tuple[set[_Tensor], set[_Tensor]]:
    """Returns the tensors that a recomputing stage keeps of a waiting mini-batch.

    Tensors passed to later stages that its own gradients do not read are not counted.

    Example:
        >>> made_of = {"product": ["x", "scale"], "tanh": ["product"], "sum": ["tanh", "labels"]}
        >>> both = stashed(["tanh", "x"], [], made_of.__getitem__, made_of.__contains__)
        >>> [sorted(one) for one in both]
        [['scale', 'x'], []]
    """
    named = set(checkpoints)
    own_tensors = {value for value in named if is_own(value)}
    comes_in = named - own_tensors
    seen, pending = set(own_tensors), list(stashed_tensors)
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        if is_own(value):
            pending.extend(operands_of(value))
        else:
            comes_in.add(value)
    return comes_in, own_tensors
