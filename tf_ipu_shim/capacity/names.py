"""Maps ops of a program to the layers of a Keras model, by their names."""

from __future__ import annotations

from collections.abc import Iterable

from tf_ipu_shim.machine.memory import Block, Step
from tf_ipu_shim.machine.memory.layer_names import layers_of_variables

GRADIENTS = ("gradient_tape/", "gradients/")
_VARIABLES = ("weight", "optimizer_state", "accumulator")


class LayerNames:
    """Maps op names to layers: the part after the model's name, or the first part in pipeline stages.

    Args:
        in_stages: whether the program is a pipeline. Ops after its last layer are the loss, in the last stage.
    """

    def __init__(self, weighted: Iterable[str], in_stages: bool = False) -> None:
        self._weighted = frozenset(weighted)
        self._in_stages = in_stages
        self.order: list[str] = []
        self._model = ""
        self._seen: set[str] = set()
        self._with: dict[str, str] = {}  # layers without weights: the one before
        self._early: set[str] = set()  # ops of no layer that come before the first one

    def register_op(self, name: str) -> None:
        """Registers an op, in execution order, except recomputed ones."""
        if self.order:  # an op may begin before the first layer, such as with labels
            self._early.discard(name)
        if name.startswith(GRADIENTS) or name in self._seen:
            return
        self._seen.add(name)
        parts = self._parts(name)
        weighted_index = next((index for index, part in enumerate(parts) if part in self._weighted), None)
        if weighted_index is not None:
            self._model = self._model or name.split("/")[weighted_index]
            if parts[weighted_index] not in self.order:
                self.order.append(parts[weighted_index])
            return
        layer = self._behind_model(name)
        if layer and self.order:  # its last op decides: random numbers may be made at any time before
            self._with[layer] = self.order[-1]
        elif not self.order:
            self._early.add(name)

    def register_views(self, owners: Iterable[str]) -> None:
        """Registers a part's ops in order, for layers that compute nothing, such as a slice."""
        last = ""
        for name in owners:
            if not name.startswith(GRADIENTS):
                layer = self.layer_of(name)
                if not layer and last and (view := self._behind_model(name)):
                    self._with[view] = last
                last = layer or last

    def layer_of(self, name: str) -> str:
        """Returns the layer with weights whose stage an op is in; empty if unknown."""
        layer = next((part for part in self._parts(name) if part in self._weighted), "") or self._behind_model(name)
        return layer if layer in self._weighted else self._with.get(layer, "")

    def is_early(self, name: str) -> bool:
        """Returns whether an op of no layer came before all layers."""
        return name in self._early

    def _parts(self, name: str) -> list[str]:
        """Returns the parts of a name that may be a layer's."""
        return name.split("/")[0 if self._in_stages else 1 : -1]

    def _behind_model(self, name: str) -> str:
        parts = name.split("/")
        if self._in_stages:
            layer = next((part for part in parts[:-1] if f"{part}/" not in GRADIENTS), "")
            return "" if layer.startswith("while") else layer  # the loop around the stages
        if not self._model or self._model not in parts[:-2]:
            return ""
        return parts[parts.index(self._model) + 1]


class LayerIndex:
    """Maps each op to the index of its layer.

    Args:
        blocks: all of the program, for ops without a layer's name: optimizer ops belong to the layer that they update.
    """

    def __init__(self, names: LayerNames, blocks: Iterable[Block]) -> None:
        self._names = names
        self.order = names.order
        self._places = {name: index for index, name in enumerate(names.order)}
        self._updates: dict[str, int] = {}
        blocks = list(blocks)
        self._layers = layers_of_variables(value.owner for block in blocks for value in block.values)
        for block in blocks:
            for step in block.steps:
                if step.owner not in self._updates and not self._is_of_model(step.owner):
                    index = self._updated(block, step)
                    if index is not None:
                        self._updates[step.owner] = index
        for block in blocks:
            self._add_what_only_updates_use(block)

    @property
    def count(self) -> int:
        """Number of layers."""
        return len(self.order)

    def _add_what_only_updates_use(self, block: Block) -> None:
        """Adds to the updates the ops that only they use, such as powers of an optimizer's decay rates."""
        users: dict[int, set[str]] = {value_id: {""} for value_id in block.results}
        for step in reversed(block.steps):
            owner = step.owner
            used_by = {user for value_id in step.outputs for user in users.get(value_id, ())}
            if used_by and used_by <= self._updates.keys() and not self._is_of_model(owner):
                self._updates.setdefault(owner, min(self._updates[user] for user in used_by))
            for value_id in step.inputs:
                users.setdefault(value_id, set()).add(owner)

    def _is_of_model(self, owner: str) -> bool:
        return owner.startswith(GRADIENTS) or self.is_in_layer(owner)

    def _updated(self, block: Block, step: Step) -> int | None:
        """Returns the layer whose variable or gradient a step uses."""
        for value in (block.values[value_id] for value_id in step.inputs):
            if value.kind in _VARIABLES and self._layers[value.owner] in self._places:
                return self._places[self._layers[value.owner]]
            if value.owner.startswith(GRADIENTS) and self.is_in_layer(value.owner):
                return self.index_of(value.owner)
        return None

    def is_in_layer(self, name: str) -> bool:
        """Returns whether an op's name contains its layer."""
        return self._names.layer_of(name) in self._places

    def is_update(self, name: str) -> bool:
        """Returns whether an op accumulates gradients or updates variables."""
        return name in self._updates

    def index_of(self, name: str) -> int:
        """Returns the index of an op's layer; ops of no layer count to the first or last one."""
        index = self._places.get(self._names.layer_of(name), self._updates.get(name))
        return index if index is not None else 0 if self._names.is_early(name) else self.count - 1
