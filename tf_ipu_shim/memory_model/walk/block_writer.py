"""What one part of a program writes down for each IPU: blocks, and which values are in them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.loops.pipeline_description import PipelineDescription
from tf_ipu_shim.cycle_model import Computation
from tf_ipu_shim.machine.memory import Block, Mode, Step, Value
from tf_ipu_shim.memory_model.shapes.shape_inference import Known
from tf_ipu_shim.memory_model.variables import pipeline_memory
from tf_ipu_shim.memory_model.walk.analysis_context import Accounts, Feed
from tf_ipu_shim.memory_model.walk.load_sinking import put_loads
from tf_ipu_shim.memory_model.walk.recomputation import Mark
from tf_ipu_shim.tf_private.protos import node_def_pb2

VIEWS = vocabulary.VIEWS | {"BroadcastTo", "Transpose", vocabulary.READ_VARIABLE}
"""Ops that are looked at one by one, and that need no memory of their own."""


@dataclasses.dataclass
class Held:
    """A tensor of an emitted function.

    Args:
        known: its type and shape.
        variable: the number of the program's argument, for a variable's handle; else -1.
        is_fed: whether it is an argument of the program.
        name: of what makes it.
        at: the number of its value on each IPU that has it.
        is_remote: whether it is an accumulator in remote memory, of which an IPU has a copy only while it works on it.
        outside: for an argument of a loop's or branch's function: the walk around it, and what it is there.
        is_constant: whether its value is known before anything runs.
        is_element: whether it is an element of an infeed.
    """

    known: Known
    variable: int = -1
    is_fed: bool = False
    name: str = ""
    at: dict[int, int] = dataclasses.field(default_factory=dict)
    outside: tuple[BlockWriter, Held] | None = None
    is_remote: bool = False
    is_constant: bool = False
    is_element: bool = False


class _Copy(NamedTuple):
    """A copy with the host that others may go with.

    Args:
        block: that it is in.
        step: its number there.
        bytes: that it moves.
        loads: whether they come from the host.
    """

    block: Block
    step: int
    bytes: int
    loads: bool


def _merged(copy: Step, other: Step) -> Step:
    """Two copies with the host as one."""
    works = [one.work for one in (copy, other) if one.work is not None]
    work = works[0]._replace(sizes=(sum(one.sizes[0] for one in works),)) if works else None
    return copy._replace(takes=copy.takes + other.takes, gives=copy.gives + other.gives, work=work)


class BlockWriter:
    """Writes the blocks of one emitted function, or of the program's one node.

    Args:
        walk: what is known of the whole program, and what is written down of it.
        blocks: what each IPU runs in it.
        function_name: of the function; empty for the program.
        pipeline: name of the pipeline whose mini-batch it is in; empty for none.
    """

    def __init__(self, walk: Accounts, blocks: dict[int, Block], function_name: str = "", pipeline: str = "") -> None:
        self.walk, self.function_name, self.pipeline = walk, function_name, pipeline
        self.blocks = blocks
        self.bound: dict[int, list[int]] = {}  # values of the walk around this one that are used on each IPU
        self._last_copy: _Copy | None = None
        self.marks: dict[str, Mark] = {}  # ops of stages that are computed anew

    def block(self, ipu: int) -> Block:
        """What an IPU runs, where a new part of the program begins."""
        block = self.blocks.setdefault(ipu, Block(f"IPU {ipu}"))
        block.begin_segment()
        return block

    def value(self, ipu: int, held: Held) -> int:
        """The number of a tensor's value on an IPU; it is brought there from outside, or from the host, if need be."""
        if held.variable >= 0 and held.outside is None:
            return self.walk.variable(ipu, held.variable)
        if ipu not in held.at:
            block = self.blocks.setdefault(ipu, Block(f"IPU {ipu}"))
            if held.outside is not None:
                around, there = held.outside
                outer = around.value(ipu, there)
                self.bound.setdefault(ipu, []).append(outer)
                given = around.blocks[ipu].values[outer]
                held.at[ipu] = block.add(given._replace(mode=Mode.BORROWED, of=(), home=-1))
            else:
                held.at[ipu] = block.add(Value(self.walk.sizes.of(held.known), held.name, "argument"))
                if not held.is_fed:
                    name = f"copy of {held.name} from the host"
                    # What the compiler knows is in the program, and takes no time to bring.
                    work = None if held.is_constant else self.moved("host", name, self.walk.sizes.of(held.known))
                    is_of_scope = not (held.is_element or held.is_constant)
                    self.copy(ipu, Step(name, (), (held.at[ipu],), work=work), is_of_scope)
                    if held.is_element:
                        self._map_element(held, ipu, work)
        return held.at[ipu]

    def copy(self, ipu: int, step: Step, is_of_scope: bool) -> None:
        """Adds a copy with the host; one for a scope there may go with the one before, up to the bytes asked for.

        Args:
            ipu: the IPU.
            step: the copy.
            is_of_scope: whether it is for ops on the host, and not for a feed.
        """
        block, last = self.block(ipu), self._last_copy
        size = sum(block.values[number].bytes for number in (*step.takes, *step.gives))
        together = last is not None and last.block is block and last.step == len(block.steps) - 1
        if is_of_scope and together and last is not None and bool(step.gives) == last.loads:
            if last.bytes + size <= self.walk.plannings.copies_together:
                self._last_copy = last._replace(bytes=last.bytes + size)
                block.steps[-1] = _merged(block.steps[-1], step)
                return
        block.run(step.owner, step.takes, step.gives, work=step.work)
        self._last_copy = _Copy(block, len(block.steps) - 1, size, bool(step.gives)) if is_of_scope else None

    def _map_element(self, held: Held, ipu: int, work: Computation | None) -> None:
        """An infeed is on the IPU that first takes an element of it; others have it from there on a real system."""
        if len(held.at) > 1:
            self.map_tensor("inter-ipu-copy", held, ipu)
            return
        self.map_tensor("infeed", held, ipu, True)
        self.walk.feeds.append(Feed(self.blocks[ipu], ipu, self.walk.sizes.of(held.known), work, held.name))

    def map_tensor(self, below: str, held: Held, ipu: int, is_feed: bool = False, owner: str = "") -> None:
        """Has a tensor outside XLA programs in the tensor map, where one is wanted.

        Args:
            below: what makes it.
            held: the tensor.
            ipu: where it is.
            is_feed: whether it comes from an infeed, or goes to an outfeed.
            owner: the op that it is named by, if not by what makes it.
        """
        if self.walk.tensors is not None:
            known, name = held.known, owner or held.name
            self.walk.tensors.tensor(below, name, known.type, known.shape, ipu, is_feed, self.function_name)

    def parameters(self, ipu: int, given: Sequence[Held]) -> tuple[list[int], dict[int, Step]]:
        """What an XLA program takes; its part of the block begins with this.

        Returns:
            The numbers of the values. Of those that are not whole on the chip, or not at all, the steps that bring
            them, which `load` puts where they are wanted.
        """
        numbers = {index: self.value(ipu, held) for index, held in enumerate(given) if self._is_whole(held)}
        block, loads = self.block(ipu), {}
        for index, held in enumerate(given):
            if index not in numbers:
                kind, name = "accumulator", held.name
                if held.variable >= 0:
                    self.walk.variable(ipu, held.variable)
                    is_shared = self.walk.stored(held.variable).is_shared
                    kind = "exchange" if is_shared else self.walk.kind_of(held.variable)
                    name = self.walk.name_of(held.variable)
                size = self.walk.sizes.of(held.known)
                numbers[index] = block.add(Value(size, name, kind))
                work = self.moved("remote", f"load of {name}", size)
                loads[numbers[index]] = Step(f"load of {name}", (), (numbers[index],), work=work, late=True)
        return [numbers[index] for index in range(len(given))], loads

    def load(self, ipu: int, begin: int, loads: Mapping[int, Step]) -> None:
        """Puts loads into what an IPU runs, each before the first step that takes what it brings.

        Args:
            ipu: the IPU.
            begin: the number of the program's first step.
            loads: steps by the number of the value that they bring.
        """
        if loads:
            put_loads(self.blocks[ipu], begin, loads)

    def _is_whole(self, held: Held) -> bool:
        if held.variable >= 0:
            return self.walk.stored(held.variable).on_chip == self.walk.size_of(held.variable)
        return not held.is_remote

    def moved(self, kind: str, name: str, *sizes: int) -> Computation | None:
        """A copy, where cycles are wanted; see `Computation` for the arguments."""
        return None if self.walk.names is None else Computation(kind, name, sizes, 1)

    def other(self, node: node_def_pb2.NodeDef, gives: Sequence[Known]) -> Computation | None:
        """An op that is not looked into, where cycles are wanted: by what it gives. Views take no time."""
        if self.walk.names is None or node.op in VIEWS:
            return None
        size = sum(map(self.walk.sizes.of, gives))
        if node.op == vocabulary.COLLECTIVE:
            sums = node.attr["kind"].s == b"sum"
            together = self.walk.plannings.sums_together if sums else self.walk.plannings.gathers_together
            return self.moved("collective", node.name, size, node.attr["group_size"].i, together, 1 + sums)
        return Computation("other", node.name, (-(-size // 4),))

    def begin_pipeline(self, pipeline: PipelineDescription, ipus: Sequence[int]) -> dict[int, list[int]]:
        """Adds what a pipeline keeps of the mini-batches in it; returns the numbers of these values by IPU."""
        made: dict[int, list[int]] = {}
        for one in pipeline_memory.kept(self.walk.pipeline_on_ipus(pipeline), self.walk.storage.recomputes, ipus):
            if one.remote:
                self.walk.keep_remote(one.ipu, one.kind, one.bytes)
                continue
            block = self.block(one.ipu)
            number = block.add(Value(one.bytes, one.owner, one.kind))
            block.run(one.owner, (), (number,))
            made.setdefault(one.ipu, []).append(number)
        return made
