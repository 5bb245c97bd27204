"""Translates the HLO of one XLA program to values and steps of a memory block.

It follows Poplar's treatment of an instruction. Reshapes, broadcasts and slices are views of their operands.
Element-wise work is in place if an operand dies. All else needs new memory, without library temporaries.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from typing import Any

from tf_ipu_shim.cycle_model import Computation, SyncPoint
from tf_ipu_shim.cycle_model.sizes import ElementCount
from tf_ipu_shim.machine.memory import Block, LoopResults, Mode, Value
from tf_ipu_shim.memory_model.computations.computations import ComputationClassifier, ComputationContext
from tf_ipu_shim.memory_model.computations.outlined_calls import OutlinedInstruction
from tf_ipu_shim.memory_model.computations.work import UNKNOWN_TRIPS
from tf_ipu_shim.memory_model.hlo import user_op_calls
from tf_ipu_shim.memory_model.hlo.conditionals import CalledComputation, arguments_of_size, place_results, used_elements
from tf_ipu_shim.memory_model.hlo.instructions import ELEMENTWISE, UPDATES, VIEWS, is_gradient, shape_bytes
from tf_ipu_shim.memory_model.hlo.loop_counters import find_counters
from tf_ipu_shim.memory_model.hlo.repeated_pushes import find_pushes
from tf_ipu_shim.memory_model.hlo.running_order import post_order
from tf_ipu_shim.memory_model.hlo.trees import Tree, argument_leaves, is_same, leaves_of, origin, with_leaves
from tf_ipu_shim.memory_model.shapes.batch_axes import Axis, elementwise_axis
from tf_ipu_shim.memory_model.shapes.batch_operands import MiniBatch
from tf_ipu_shim.memory_model.walk.analysis_options import AnalysisOptions
from tf_ipu_shim.memory_model.walk.program_results import ProgramResult, results_of
from tf_ipu_shim.tf_private.protos import xla_data_pb2

Mapped = Callable[[Any, str, str, str, str, OutlinedInstruction | None], None]
"""Takes an instruction, its name on the IPU, op, function, matmul's compute set, and place in an outlined function."""

EFFECTS = frozenset({"infeed", "outfeed", "send", "send-done", "recv", "recv-done"})
_RESULTS = "XLA_Retvals"  # XLA's own name for the copies that keep results apart from arguments
# Instructions that make no new value.
_FORWARDING = frozenset({"parameter", "tuple", "get-tuple-element", "optimization-barrier"})
_SINGLE_OF_HALF = (xla_data_pb2.F16, xla_data_pb2.F32)
_CONTROL_FLOW = frozenset({"conditional", "while"})
_PATH_LIMIT = 256  # instructions to look at between a variable's next value and its last one


@dataclasses.dataclass(frozen=True, kw_only=True)
class HloEnvironment:
    """The context of an XLA program in the analysis.

    Args:
        owner_of: returns the name to report for an op's own name.
        classifier: describes what each instruction computes; None without cycle estimates.
        key_of: returns a new key for each loop and branch, with cycle estimates.
        mapped: called for each tensor that has separate memory; None without a tensor map.
        mini_batch: tracks the mini-batch through the block, if sizes need it.
        away: values that are loaded for this program only: updates of them are not kept on the chip.
        neighbours: for arguments made elsewhere, the axis whose neighbours are adjacent on the tiles.
    """

    owner_of: Callable[[str], str] = str
    classifier: ComputationClassifier | None = None
    key_of: Callable[[], int] = int
    mapped: Mapped | None = None
    options: AnalysisOptions = dataclasses.field(default_factory=AnalysisOptions)
    mini_batch: MiniBatch | None = None
    away: Container[int] = ()
    neighbours: Mapping[int, int] = dataclasses.field(default_factory=dict)


class HloAnalyzer:
    """Adds the instructions of an HLO module to a block."""

    def __init__(self, module: Any, block: Block, environment: HloEnvironment | None = None) -> None:
        environment = environment or HloEnvironment()
        self._away, self._post_order = environment.away, environment.options.post_order
        self._neighbours = environment.neighbours
        self._sizes = environment.options.sizes
        self._enter(block, environment.mini_batch)
        self._computations = {computation.id: computation for computation in module.computations}
        self._entry = self._computations[module.entry_computation_id]
        # (result, parameter); a program with one result gives it as it is, and not in a tuple.
        self._aliases = [
            (entry.output_shape_index[0] if entry.output_shape_index else 0, entry.parameter_number)
            for entry in module.input_output_alias.entries
        ]
        self._owner_of, self._key_of = environment.owner_of, environment.key_of
        self._classifier = environment.classifier
        self._mapped, self._function = environment.mapped, ""
        self._context: ComputationContext | None = None
        self._pushes: set[int] = set()  # instructions that write to a list what it has already
        self._homes_inside: dict[tuple[int, int], int] = {}  # (loop or branch, element of what it gives) to variable

    def _enter(self, block: Block, mini_batch: MiniBatch | None) -> None:
        self._block, self._mini_batch = block, mini_batch
        self._axes: dict[int, Axis] = {} if mini_batch is None else mini_batch.axes

    def analyze(self, arguments: Sequence[int]) -> list[int]:
        """Adds all steps; returns the result values."""
        variables = self._homes(arguments)
        results = self._run(self._entry, list(arguments), variables)
        stored = {output for output, _ in self._aliases}
        leaves = results if isinstance(results, list) else [results]
        return [leaf for index, result in enumerate(leaves) if index not in stored for leaf in leaves_of(result)]

    def written(self, arguments: Sequence[int]) -> set[int]:
        """Returns the arguments that are variables with a next value."""
        return {arguments[parameter] for _, parameter in self._aliases}

    def results(self) -> list[ProgramResult]:
        """Describes each result, once it is analyzed."""
        return results_of(self._entry, {output for output, _ in self._aliases}, self._context)

    def _homes(self, arguments: Sequence[int]) -> dict[int, int]:
        """Maps instructions whose result ends in a variable, and may reuse its memory, to the variable."""
        by_id = {instruction.id: instruction for instruction in self._entry.instructions}
        parameters = {i.parameter_number: i.id for i in self._entry.instructions if i.opcode == "parameter"}
        root = by_id[self._entry.root_id]
        variables: dict[int, int] = {}
        for output, parameter in self._aliases:
            start = root.operand_ids[output] if root.opcode == "tuple" else root.id
            end = parameters[parameter]
            came_from = {start: start}
            stack = [start]
            while stack and end not in came_from and len(came_from) < _PATH_LIMIT:
                position = stack.pop()
                for operand in reversed(self._may_overwrite(by_id, by_id[position])):
                    if operand not in came_from:
                        came_from[operand] = position
                        stack.append(operand)
            position = end
            while came_from.get(position, position) != position:
                position = came_from[position]
                variables[position] = arguments[parameter]
                source = by_id[position]
                if source.opcode == "get-tuple-element" and by_id[source.operand_ids[0]].opcode in _CONTROL_FLOW:
                    self._homes_inside[source.operand_ids[0], source.tuple_index] = arguments[parameter]
        return variables

    @staticmethod
    def _may_overwrite(by_id: Mapping[int, Any], instruction: Any) -> list[int]:
        """Returns operands whose memory the result may reuse."""
        operands = list(instruction.operand_ids)
        if instruction.opcode == "get-tuple-element":
            source = by_id[operands[0]]
            if source.opcode == "conditional":
                return arguments_of_size(by_id, source, shape_bytes(instruction.shape))
            initial = by_id[source.operand_ids[0]] if source.opcode == "while" else source
            return [initial.operand_ids[instruction.tuple_index]] if initial.opcode == "tuple" else []
        if instruction.opcode in UPDATES:
            return operands[:1]
        if instruction.opcode in ELEMENTWISE or instruction.opcode in VIEWS or instruction.opcode == "copy":
            size = shape_bytes(instruction.shape)
            return [operand for operand in operands if shape_bytes(by_id[operand].shape) == size]
        return []

    def _run(self, computation: Any, arguments: Sequence[Tree], variables: Mapping[int, int]) -> Tree:
        """Adds the steps of a computation; returns its result."""
        needed = self._needed(computation)
        self._enter_computation(computation, arguments, needed)
        results: dict[int, Tree] = {}
        shapes: dict[int, Any] = {}
        stored = {place for place, home in self._homes_inside.items() if home in self._away}
        used_leaves = used_elements(computation, needed, stored)
        summed = _casts_of_sums(computation, needed)
        for instruction in post_order(computation) if self._post_order else computation.instructions:
            instruction_id = instruction.id
            if instruction_id not in needed:
                continue
            opcode, operand_ids = instruction.opcode, list(instruction.operand_ids)
            shapes[instruction_id] = instruction.shape
            operands = [results[operand] for operand in operand_ids]
            if opcode in _FORWARDING or instruction_id in self._pushes:
                results[instruction_id] = _forwarded(instruction, operands, arguments)
            elif opcode == "call":
                enclosing = self._context
                results[instruction_id] = self._run(self._called(instruction)[0], operands, {})
                self._context = enclosing
            elif opcode == "while":
                results[instruction_id] = self._loop(instruction, operands[0])
            elif opcode == "conditional":
                results[instruction_id] = self._branch(instruction, operands, used_leaves[instruction_id])
            else:
                operand_leaves = [shapes[operand] for operand in operand_ids]
                home = variables.get(instruction_id, -1)
                results[instruction_id] = self._plain(
                    instruction, opcode, operands, operand_leaves, home, instruction_id in summed
                )
        return results[computation.root_id]

    def _enter_computation(self, computation: Any, arguments: Sequence[Tree], needed: Collection[int]) -> None:
        """Makes a computation the current one, if cycles are wanted."""
        if self._classifier is not None:
            by_id = {
                instruction.id: instruction for instruction in computation.instructions if instruction.id in needed
            }
            values, leaves = self._block.values, argument_leaves(by_id, arguments)
            keys = {item_id: (id(self._block), origin(self._block, leaf)) for item_id, leaf in leaves.items()}
            sources = {item_id: values[value_id] for item_id, (_, value_id) in keys.items()}
            weights = {item_id: value.owner for item_id, value in sources.items() if value.kind == "weight"}
            given = {item_id: self._neighbours[leaf] for item_id, leaf in leaves.items() if leaf in self._neighbours}
            self._context = self._classifier.context_of(by_id, weights, keys, given)

    def _called(self, instruction: Any) -> list[Any]:
        return [self._computations[callee] for callee in instruction.called_computation_ids]

    def _loop(self, instruction: Any, initial: Tree) -> Tree:
        block, name = self._block, self._name(instruction, instruction.metadata.op_name)
        body, condition = self._called(instruction)
        trips = self._trips(instruction)
        if self._classifier is not None and trips is not None:
            self._classifier.counters.update(find_counters(body))
        leaves, pushed = leaves_of(initial), self._invariant_lists(body, initial)
        inside, axes = self._inside(body, [initial], Mode.CARRIED)
        while self._shrink_mini_batch(leaves, axes):  # such as a state, and then a list of states
            inside, axes = self._inside(body, [initial], Mode.CARRIED)
        inner, arguments, results = inside
        test, _ = self._inside(condition, [initial], Mode.BORROWED)
        loop_results: list[int] = []
        values: list[int] = []
        shapes = _leaves(instruction.shape)
        for index, (leaf, argument, result) in enumerate(zip(leaves, leaves_of(arguments[0]), leaves_of(results))):
            if not is_same(inner, result, argument):
                leaf = self._loop_value(leaf, shapes[index], name, values)
            size = block.values[leaf].bytes
            leaf = leaves[pushed[index]] if index in pushed else leaf
            values.append(leaf)
            if is_same(inner, result, argument):  # such as the weights: no op writes to them
                inner.values[argument] = inner.values[argument]._replace(mode=Mode.BORROWED)
                value = Value(size, name, block.values[leaf].kind, Mode.VIEW, (leaf,))
            else:
                home = self._homes_inside.get((instruction.id, index), -1)
                value = Value(size, name, "temporary", Mode.IN_PLACE, (leaf,), home)
            loop_results.append(block.add(value))
        self._axes.update((value_id, axis) for value_id, axis in zip(loop_results, axes) if axis is not None)
        sync_point, places = self._sync_point(instruction, trips), _loop_results(instruction.shape)
        block.run(name, values, loop_results, (test.block, inner), True, sync_point, loop_results=places)
        return with_leaves(initial, iter(loop_results))

    def _invariant_lists(self, body: Any, initial: Tree) -> dict[int, int]:
        """Returns lists whose elements are all one loop variable: leaf of elements to leaf of tensor."""
        if not isinstance(initial, list):
            return {}
        begins = list(itertools.accumulate((len(leaves_of(part)) for part in initial), initial=0))
        pushes = find_pushes(body)
        self._pushes.update(push.update for push in pushes)
        return {begins[push.list_index]: begins[push.tensor_index] for push in pushes}

    def _loop_value(self, leaf: int, shape: Any, name: str, others: Sequence[int]) -> int:
        """Returns a loop variable's own memory; constants and duplicates are copied before the loop."""
        values, source = self._block.values, leaf
        while values[source].mode is Mode.VIEW and len(values[source].of) == 1:
            source = values[source].of[0]
        is_constant = values[source].mode is Mode.ALWAYS and values[source].kind == "constant"
        elements = math.prod(shape.dimensions)
        if elements < 2 or not (is_constant or leaf in others):
            return leaf
        size, owner = values[leaf].bytes, values[leaf].owner
        copy_of = self._block.add(Value(size, name, "temporary"))
        if leaf in self._axes:
            self._axes[copy_of] = self._axes[leaf]
        work = Computation("copy", f"Copy_{owner}_to_{name}", ElementCount(elements), max(1, size // elements))
        # A constant is written where the loop begins: until then nothing needs the memory.
        inputs = () if is_constant else (leaf,)
        timed = work if self._classifier is not None else None
        self._block.run(name, inputs, (copy_of,), work=timed, late=is_constant)
        return copy_of

    def _branch(self, instruction: Any, operands: Sequence[Tree], used: Container[int]) -> Tree:
        """Adds a conditional; only used elements are results of its branches."""
        name = self._name(instruction, instruction.metadata.op_name)
        branches = self._called(instruction)
        walked = [
            self._inside(body, [branch_operands], Mode.BORROWED)
            for body, branch_operands in zip(branches, operands[1:])
        ]
        inside = [branch for branch, _ in walked]
        results = self._new_values(instruction.shape, name)
        self._shrink_mini_batch(leaves_of(results), walked[0][1])
        variables = {index: home for (of, index), home in self._homes_inside.items() if of == instruction.id}
        branch_operands = [leaves_of(operand) for operand in operands[1:]]
        place_results(self._block, leaves_of(results), branch_operands, inside, variables)
        for index, value_id in enumerate(leaves_of(results)):
            if index not in used:
                self._block.values[value_id] = self._block.values[value_id]._replace(bytes=0, mode=Mode.NEW, of=())
        blocks = [branch.block for branch in inside]
        for inner in blocks:
            inner.results = [value_id for index, value_id in enumerate(inner.results) if index in used]
        values = [leaf for operand in operands for leaf in leaves_of(operand)]
        self._block.run(name, values, leaves_of(results), blocks, work=self._sync_point(instruction, None))
        return results

    def _trips(self, loop: Any) -> int | None:
        """Returns a loop's trip count; None if unknown or not wanted."""
        if self._classifier is None or self._context is None:
            return None
        return self._classifier.work.known_trips(self._context.by_id, loop, self._called(loop)[1])

    def _sync_point(self, instruction: Any, trips: int | None) -> SyncPoint | None:
        """Returns the sync point of a loop (with trip count) or conditional; None without cycle estimates."""
        if self._classifier is None:
            return None
        parts = tuple(range(len(self._called(instruction))))
        if instruction.opcode == "conditional":
            return SyncPoint(self._key_of(), parts=parts, branches=True)
        times = UNKNOWN_TRIPS if trips is None else trips
        return SyncPoint(self._key_of(), times, parts, counted=trips is not None, condition=0)

    def _inside(
        self, computation: Any, operands: Sequence[Tree], mode: Mode
    ) -> tuple[CalledComputation, list[Axis | None]]:
        """Returns a computation as a separate block, and the mini-batch axis of each result."""
        inner = copy.copy(self)
        block = Block(computation.name)
        inner._enter(block, MiniBatch(block, self._sizes.batch_divisor) if self._mini_batch is not None else None)
        inner._homes_inside, inner._function, inner._neighbours = {}, computation.name, {}
        outer = self._block.values
        arguments: list[Tree] = []
        for tree in operands:
            leaves = [inner._block.add(outer[leaf]._replace(mode=mode, of=(), home=-1)) for leaf in leaves_of(tree)]
            axes = zip(leaves, map(self._axes.get, leaves_of(tree)))
            inner._axes.update((leaf, axis) for leaf, axis in axes if axis is not None)
            arguments.append(with_leaves(tree, iter(leaves)))
        results = inner._run(computation, arguments, {})
        inner._block.results = leaves_of(results)
        called = CalledComputation(inner._block, arguments, results)
        return called, [inner._axes.get(leaf) for leaf in inner._block.results]

    def _shrink_mini_batch(self, value_ids: Sequence[int], axes: Sequence[Axis | None]) -> bool:
        """Shrinks values that have the mini-batch axis; returns whether there are any."""
        found = False
        if not self._sizes.divides_batch:
            return found
        for value_id, axis in zip(value_ids, axes):
            value = self._block.values[value_id]
            if axis is not None and value_id not in self._axes and value.mode is not Mode.ALWAYS:
                self._axes[value_id], found = axis, True
                self._block.values[value_id] = value._replace(bytes=-(-value.bytes // self._sizes.batch_divisor))
        return found

    @staticmethod
    def _needed(computation: Any) -> set[int]:
        needed = {computation.root_id}
        for instruction in reversed(computation.instructions):
            if instruction.id in needed or instruction.opcode in EFFECTS or instruction.custom_call_has_side_effect:
                needed.add(instruction.id)
                needed.update(instruction.operand_ids)
        return needed

    def _plain(
        self,
        instruction: Any,
        opcode: str,
        operands: Sequence[Tree],
        shapes: Sequence[Any],
        home: int,
        is_part: bool,
    ) -> Tree:
        block, shape, op_name = self._block, instruction.shape, instruction.metadata.op_name
        values = [leaf for operand in operands for leaf in leaves_of(operand)]
        name = self._name(instruction, op_name, values)
        kind = shape.element_type
        if kind == xla_data_pb2.TUPLE or user_op_calls.is_user_op(instruction):
            results = self._new_values(shape, name)
            self._shrink_mini_batch(leaves_of(results), self._axes_in_tuple(instruction, values, shapes))
            values = user_op_calls.with_memory(block, instruction, name, values, leaves_of(results))
            block.run(name, values, leaves_of(results), work=self._computation(instruction, name))
            return results
        size = self._sizes.of_shape(shape)
        if opcode == "constant":
            return block.add(Value(size, name, "constant", Mode.ALWAYS))
        is_view = is_part or _is_free_copy(opcode, op_name, shapes, kind)
        mode, of = _memory_of("bitcast" if is_view else opcode, values)
        category = "gradient" if is_gradient(op_name) else "temporary"
        value_id = block.add(Value(size, name, category, mode, of, home if mode is Mode.IN_PLACE else -1))
        if self._mini_batch is not None:
            self._mini_batch.record(instruction, values, shapes, value_id)
        work = None if is_view else self._computation(instruction, name)
        block.run(name, values, (value_id,), work=work)
        if mode is not Mode.VIEW:
            self._map(instruction, name, work)
        return value_id

    def _axes_in_tuple(self, instruction: Any, values: Sequence[int], shapes: Sequence[Any]) -> list[Axis | None]:
        """Returns the mini-batch axis of each array in a tuple, if wanted."""
        parts = instruction.shape.tuple_shapes
        if not self._sizes.divides_batch or len(values) != len(shapes):
            return [None] * len(parts)
        return [elementwise_axis(part, shapes, [self._axes.get(leaf) for leaf in values]) for part in parts]

    def _map(self, instruction: Any, name: str, work: Computation | None) -> None:
        """Adds a result to the tensor map unless it is part of another."""
        if self._mapped is None or self._classifier is None or self._context is None:
            return
        below = self._classifier.name_of_instruction(instruction, self._context, name)
        if below:
            product = work.name if work is not None and work.kind == "product" else ""
            self._mapped(instruction, below, name, self._function, product, self._context.outlined.get(instruction.id))

    def _computation(self, instruction: Any, name: str) -> Computation | None:
        if self._classifier is None or self._context is None:
            return None
        return self._classifier.computation(instruction, self._context, name)

    def _new_values(self, shape: Any, name: str) -> Tree:
        """Returns new values for a shape."""
        if shape.element_type == xla_data_pb2.TUPLE:
            return [self._new_values(part, name) for part in shape.tuple_shapes]
        kind = "gradient" if is_gradient(name) else "temporary"
        return self._block.add(Value(self._sizes.of_shape(shape), name, kind))

    def _name(self, instruction: Any, op_name: str, values: Sequence[int] = ()) -> str:
        """Returns the TensorFlow op's name, or for XLA's own instructions their operand's."""
        if op_name and op_name != _RESULTS:
            return self._owner_of(op_name)
        return self._block.values[values[0]].owner if values else f"{instruction.opcode} (XLA)"


def _is_free_copy(opcode: str, op_name: str, shapes: Sequence[Any], kind: int) -> bool:
    """Returns whether a copy is free: a conversion to the same type, or XLA's copy of a result."""
    return (opcode == "convert" and shapes[0].element_type == kind) or (opcode == "copy" and op_name == _RESULTS)


def _casts_of_sums(computation: Any, needed: Container[int]) -> set[int]:
    """Returns casts of float16 used only by reductions, which an IPU accumulates in float32 directly."""
    shapes = {instruction.id: instruction.shape.element_type for instruction in computation.instructions}
    found = {
        cast.id
        for cast in computation.instructions
        if cast.opcode == "convert" and (shapes[cast.operand_ids[0]], cast.shape.element_type) == _SINGLE_OF_HALF
    }
    for instruction in computation.instructions if found else ():
        if instruction.id in needed:
            found.difference_update(instruction.operand_ids[1 if instruction.opcode == "reduce" else 0 :])
    return found - {computation.root_id}


def _leaves(shape: Any) -> list[Any]:
    """Returns the array shapes within a shape, from left to right."""
    if shape.element_type != xla_data_pb2.TUPLE:
        return [shape]
    return [leaf for part in shape.tuple_shapes for leaf in _leaves(part)]


def _loop_results(shape: Any) -> LoopResults:
    """Returns the places of a loop's arrays in its result."""
    parts = shape.tuple_shapes
    sizes = (None if part.element_type == xla_data_pb2.TUPLE else shape_bytes(part) for part in parts)
    return LoopResults(tuple(index for index, part in enumerate(parts) for _ in _leaves(part)), tuple(sizes))


def _memory_of(opcode: str, values: Sequence[int]) -> tuple[Mode, tuple[int, ...]]:
    """Returns the memory that holds a result, and its operands."""
    if opcode in VIEWS:
        return Mode.VIEW, tuple(values)
    if opcode in ELEMENTWISE:
        return Mode.IN_PLACE, tuple(values)
    return (Mode.IN_PLACE, tuple(values[:1])) if opcode in UPDATES else (Mode.NEW, ())


def mark_activations(block: Block) -> None:
    """Marks as activations the forward values that gradients use."""
    values = block.values
    used: set[int] = set()
    for step in reversed(block.steps):
        for inner in step.inside:
            mark_activations(inner)
        results = [values[value_id] for value_id in step.outputs]
        if any(value.kind == "gradient" for value in results):
            used.update(step.inputs)
            continue
        for value_id, value in zip(step.outputs, results):
            if value_id in used and value.mode is Mode.VIEW:
                used.update(value.of)
    for value_id in used:
        if values[value_id].kind == "temporary":
            values[value_id] = values[value_id]._replace(kind="activation")


def _forwarded(instruction: Any, operands: Sequence[Tree], arguments: Sequence[Tree]) -> Tree:
    """Returns the value that an instruction passes on without making one."""
    if instruction.opcode == "parameter":
        return arguments[instruction.parameter_number]
    if instruction.opcode == "tuple":
        return list(operands)
    source = operands[0]
    if instruction.opcode == "get-tuple-element" and isinstance(source, list):
        return source[instruction.tuple_index]
    return source
