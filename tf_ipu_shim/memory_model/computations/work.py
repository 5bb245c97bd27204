"""Counts the work of a run: ops, elements, flops of matmuls and the number of XLA launches.

It is read from the HLO of each program, which the memory plan looks at anyway. The execution mode of a program is
chosen by it (`driver.execution_choice`).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tf_ipu_shim.compiler.kernels import random_launches
from tf_ipu_shim.cycle_model.sizes import MatmulSizes
from tf_ipu_shim.tf_private.protos import function_pb2

UNKNOWN_TRIPS = 16
"""The assumed iterations of a loop whose trip count is unknown."""
WIDE = 100_000
"""Numbers of an op from which on its kernel runs on all cores."""
SMALL_PRODUCT = 5e7
"""Multiplications and additions of a matmul below which its kernel runs on one core."""
_SQUARE_PRODUCT = 2e7
"""The same for XLA's matmuls of matrices with sides of at least `_SMALL_SIDE`, which run on all cores."""
_SMALL_SIDE = 128

# Costs nothing in either way.
_FREE = frozenset(
    "add-dependency after-all bitcast constant domain get-tuple-element iota opt-barrier optimization-barrier "
    "parameter partition-id replica-id reshape tuple".split()
)
_PASSES_ON = frozenset({"bitcast", "convert", "copy", "reshape"})
_CALLS = frozenset({"call", "fusion"})
_CONTROL_FLOW = frozenset({"while", "conditional", *_CALLS})
# Takes time by what it takes, or by how often it looks at that.
_BY_OPERANDS = frozenset(
    "convolution dot dynamic-update-slice reduce reduce-window scatter select-and-scatter sort".split()
)
_UPDATES = frozenset({"dynamic-update-slice", "scatter"})
# XLA compiles each separately; element-wise work is fused with its neighbours.
_UNFUSED_OPS = frozenset("convolution dot gather reduce reduce-window scatter select-and-scatter sort while".split())


@dataclasses.dataclass
class Work:
    """Amounts of work; loop bodies count once per iteration.

    Args:
        ops: TensorFlow ops that compute something.
        passes: elements that all other ops produce, elementwise or by moving data: one each.
        wide_passes: the same for ops that produce `WIDE` elements or more.
        inner: elements that such ops read: sums, windows and sorts read more than they produce.
        products: multiplications and additions of matmuls.
        small_products: the same for matmuls of fewer than `SMALL_PRODUCT` each.
        even_products: the same for the small ones whose matrix sides are all `_SMALL_SIDE` or more.
        square_products: the same for the even ones that XLA runs on all cores.
        grouped_convolutions: the same for convolutions whose outputs each read only some channels, and their gradients.
        looped_convolutions: the same for convolutions within a loop of an XLA program.
        windows: elements that gradients of pooling read.
        iterations: the iterations of loops within XLA programs.
        results: elements that XLA programs return, including new values of variables.
        updates: elements of variables of which only some rows or a slice are new.
    """

    ops: float = 0.0
    passes: float = 0.0
    wide_passes: float = 0.0
    inner: float = 0.0
    products: float = 0.0
    small_products: float = 0.0
    even_products: float = 0.0
    square_products: float = 0.0
    convolutions: float = 0.0
    grouped_convolutions: float = 0.0
    looped_convolutions: float = 0.0
    windows: float = 0.0
    iterations: float = 0.0
    results: float = 0.0
    updates: float = 0.0

    def add(self, other: Work, times: float = 1.0) -> None:
        """Adds other work a number of times."""
        for field in dataclasses.fields(self):
            setattr(self, field.name, getattr(self, field.name) + times * getattr(other, field.name))


class Size(NamedTuple):
    """The size of an XLA program, for its compile time.

    Args:
        instructions: instructions in loops count once, in reduction functions not at all.
        alone: how many of them XLA compiles by themselves.
    """

    instructions: int
    alone: int


def _dynamic_op(module: Any) -> str:
    """Returns the name of an op of which XLA knows only the largest size; empty if there is none."""
    for computation in module.computations:
        for instruction in computation.instructions:
            if True in instruction.shape.is_dynamic_dimension:
                return str(instruction.metadata.op_name or instruction.name)
    return ""


def _grouped_convolutions(module: Any) -> set[tuple[str, int]]:
    """Returns ops and element types of convolutions whose outputs each read only some channels."""
    return {
        (instruction.metadata.op_type, instruction.shape.element_type)
        for computation in module.computations
        for instruction in computation.instructions
        if instruction.opcode == "convolution"
        and max(instruction.feature_group_count, instruction.batch_group_count) > 1
    }


@dataclasses.dataclass
class ProgramWork:
    """The work of one run of a program.

    Args:
        work: the work of XLA programs that are launched for one iteration, or once.
        chunked_work: the work of iterations that run in chunks, several in one XLA program.
        launches: launches of XLA programs, except of chunks.
        compiled: how large each XLA program is, by its function.
        random: random ops, which are XLA programs of one op each in both execution modes.
        feeds: for each infeed the elements that are consumed, and their samples by the first axis.
        dynamic: an op whose result has a size that follows from values; empty if there is none.
        grouped_convolutions: ops and XLA's element types of grouped convolutions.
    """

    work: Work = dataclasses.field(default_factory=Work)
    chunked_work: Work = dataclasses.field(default_factory=Work)
    launches: float = 0.0
    iterations: float = 0.0
    compiled: dict[str, Size] = dataclasses.field(default_factory=dict)
    random: float = 0.0
    feeds: dict[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    dynamic: str = ""
    grouped_convolutions: set[tuple[str, int]] = dataclasses.field(default_factory=set)
    _times: float = 1.0
    _fed_times: float = 1.0
    _chunks: bool = False

    def launch(self, function: str, module: Any, library: Iterable[function_pb2.FunctionDef]) -> None:
        """Adds an XLA program at its launch."""
        hlo, nodes = HloWork(module), [node for each in library for node in each.node_def]
        self.compiled[function] = hlo.size
        self.dynamic = self.dynamic or _dynamic_op(module)
        self.grouped_convolutions |= _grouped_convolutions(module)
        work = hlo.count()
        (self.chunked_work if self._chunks else self.work).add(work, self._times)
        self.random += self._times * sum(node.op in random_launches.LAUNCHED for node in nodes)
        if not self._chunks:
            self.launches += self._times

    @contextlib.contextmanager
    def repeated(self, times: int | None, in_chunks: bool = False, mini_batches: int | None = None) -> Iterator[None]:
        """Counts the enclosed launches as a loop's body."""
        before = self._times, self._chunks, self._fed_times
        known = mini_batches if times is None else times
        self._fed_times *= UNKNOWN_TRIPS if known is None else known
        self._times *= UNKNOWN_TRIPS if times is None else times
        self._chunks |= in_chunks
        self.iterations += self._times if in_chunks else 0
        try:
            yield
        finally:
            self._times, self._chunks, self._fed_times = before

    def feed(self, name: str, shapes: Iterable[Sequence[int] | None]) -> None:
        """Adds an element that an infeed dequeues."""
        elements, samples = self.feeds.get(name, (0.0, 0.0))
        first = next((shape[0] for shape in shapes if shape), 1)
        self.feeds[name] = elements + self._fed_times, samples + self._fed_times * first


class HloWork:
    """Counts the work of one XLA program.

    Args:
        module: the program before XLA optimises it.
    """

    def __init__(self, module: Any) -> None:
        self._computations = {computation.id: computation for computation in module.computations}
        self._entry = self._computations[module.entry_computation_id]
        self._counted: dict[int, Work] = {}
        self._converting: dict[int, set[int]] = {}

    @property
    def size(self) -> Size:
        """Size for compilation."""
        pending, seen = [self._entry.id], {self._entry.id}
        count = alone = 0
        while pending:
            computation = self._computations[pending.pop()]
            count -= len(self._noop_conversions(computation))
            for instruction in computation.instructions:
                opcode = instruction.opcode
                count += opcode not in _FREE
                alone += opcode in _UNFUSED_OPS
                if opcode in _CONTROL_FLOW:
                    called = [callee for callee in instruction.called_computation_ids if callee not in seen]
                    seen.update(called)
                    pending.extend(called)
        return Size(count, alone)

    def count(self) -> Work:
        """Returns the work of one run."""
        work = Work()
        work.add(self._of(self._entry))
        updates = sum(self._updated.values())
        work.updates += updates
        work.results += elements_of(self._entry.program_shape.result) - updates
        return work

    @functools.cached_property
    def _updated(self) -> dict[int, int]:
        """The sizes of parameters of which some elements are new, by the instructions that return them.

        One that is returned twice is in place once.
        """
        by_id = {instruction.id: instruction for instruction in self._entry.instructions}
        root = by_id[self._entry.root_id]
        returned = root.operand_ids if root.opcode == "tuple" else ()
        values = {_source(by_id, instruction_id).id: instruction_id for instruction_id in reversed(returned)}
        return {
            instruction_id: elements_of(by_id[value].shape)
            for value, instruction_id in values.items()
            if by_id[value].opcode in _UPDATES and _source(by_id, by_id[value].operand_ids[0]).opcode == "parameter"
        }

    def _of(self, computation: Any) -> Work:
        if computation.id not in self._counted:
            self._counted[computation.id] = self._added_up(computation)
        return self._counted[computation.id]

    def _added_up(self, computation: Any) -> Work:
        work, names = Work(), set()
        by_id = {instruction.id: instruction for instruction in computation.instructions}
        for opcode, instruction in _computing_instructions(computation, self._noop_conversions(computation)):
            names.add(instruction.metadata.op_name)
            if opcode == "while":
                work.add(*self._loop_work(by_id, instruction))
            elif opcode == "conditional":
                branches = [self._of(branch) for branch in self._called(instruction)]
                work.add(max(branches, key=_extent))
            elif opcode in _CALLS:
                for called in self._called(instruction):
                    work.add(self._of(called))
            else:
                _add_plain(work, opcode, instruction, by_id)
        work.ops += len(names)
        return work

    def _noop_conversions(self, computation: Any) -> set[int]:
        if computation.id not in self._converting:
            updated = self._updated if computation is self._entry else ()
            copies = {each.id for each in computation.instructions if each.id in updated and each.opcode in _PASSES_ON}
            self._converting[computation.id] = _noop_conversions(computation) | copies
        return self._converting[computation.id]

    def _loop_work(self, outer: Mapping[int, Any], loop: Any) -> tuple[Work, float]:
        """Returns the work of a loop's iteration and the trip count."""
        body, condition = self._called(loop)
        work = Work(iterations=1.0)
        work.add(self._of(body))
        work.add(self._of(condition))
        work.looped_convolutions += work.convolutions
        work.convolutions = 0.0
        return work, self.trips(outer, loop, condition)

    def _called(self, instruction: Any) -> list[Any]:
        return [self._computations[callee] for callee in instruction.called_computation_ids]

    def trips(self, outer: Mapping[int, Any], loop: Any, condition: Any) -> float:
        """Returns the trip count of a loop that counts up to a constant; `UNKNOWN_TRIPS` for others."""
        known = self.known_trips(outer, loop, condition)
        return float(UNKNOWN_TRIPS if known is None else known)

    def known_trips(self, outer: Mapping[int, Any], loop: Any, condition: Any) -> int | None:
        """Returns the trip count of a loop that counts up to a constant, or None."""
        condition, root = self._condition(condition)
        tests = {instruction.id: instruction for instruction in condition.instructions}
        bounds = [self._bound(outer, loop, tests, instruction_id) for instruction_id in _conjuncts(tests, root)]
        return min([bound for bound in bounds if bound is not None], default=None)

    def _condition(self, condition: Any) -> tuple[Any, int]:
        """Returns a loop's condition and its result, looking through TensorFlow's wrapper."""
        by_id = {instruction.id: instruction for instruction in condition.instructions}
        root = by_id[condition.root_id]
        if root.opcode == "get-tuple-element" and by_id[root.operand_ids[0]].opcode == "call":
            (called,) = self._called(by_id[root.operand_ids[0]])
            root_instruction = next(
                instruction for instruction in called.instructions if instruction.id == called.root_id
            )
            if root_instruction.opcode == "tuple":
                return called, root_instruction.operand_ids[root.tuple_index]
        return condition, root.id

    def _bound(self, outer: Mapping[int, Any], loop: Any, tests: Mapping[int, Any], instruction_id: int) -> int | None:
        """Returns the trip count that one comparison allows, or None."""
        test = tests[instruction_id]
        if test.opcode != "compare" or test.comparison_direction != "LT":
            return None
        first, limit = (self._value(outer, loop, tests, operand) for operand in test.operand_ids)
        return max(0, limit - first) if first is not None and limit is not None else None

    def _value(self, outer: Mapping[int, Any], loop: Any, inside: Mapping[int, Any], instruction_id: int) -> int | None:
        """Returns a constant, or a loop variable's initial value."""
        source = _source(inside, instruction_id)
        if not _is_carried(inside, source):
            return _literal(source)
        initial = outer[loop.operand_ids[0]]
        return self._integer(outer, initial.operand_ids[source.tuple_index]) if initial.opcode == "tuple" else None

    def _integer(self, by_id: Mapping[int, Any], instruction_id: int) -> int | None:
        """Returns a constant, or the final counter of an earlier loop (a gradient loop repeats its forward loop)."""
        source = _source(by_id, instruction_id)
        if source.opcode == "get-tuple-element" and by_id[source.operand_ids[0]].opcode == "while":
            return self._final_counter(by_id, by_id[source.operand_ids[0]], source.tuple_index)
        return _literal(source)

    def _final_counter(self, outer: Mapping[int, Any], loop: Any, index: int) -> int | None:
        """Returns the final value of a loop counter, or None."""
        body, condition = self._called(loop)
        by_id = {instruction.id: instruction for instruction in body.instructions}
        root, initial = by_id[body.root_id], outer[loop.operand_ids[0]]
        if root.opcode != "tuple" or initial.opcode != "tuple":
            return None
        counted = _source(by_id, root.operand_ids[index])
        if counted.opcode != "add":
            return None
        parts = [_source(by_id, operand) for operand in counted.operand_ids]
        carried = [part for part in parts if _is_carried(by_id, part) and part.tuple_index == index]
        if len(carried) != 1 or 1 not in map(_literal, parts):
            return None
        first, trips = (
            self._integer(outer, initial.operand_ids[index]),
            self.known_trips(outer, loop, condition),
        )
        return None if first is None or trips is None else first + trips


def _is_carried(inside: Mapping[int, Any], instruction: Any) -> bool:
    """Returns whether an instruction of a loop's body or condition is one of the loop variables."""
    return instruction.opcode == "get-tuple-element" and inside[instruction.operand_ids[0]].opcode == "parameter"


def _literal(instruction: Any) -> int | None:
    if instruction.opcode != "constant" or instruction.shape.dimensions:
        return None
    literal = [*instruction.literal.s32s, *instruction.literal.s64s]
    return literal[0] if literal else None


def _conjuncts(by_id: Mapping[int, Any], instruction_id: int) -> Iterable[int]:
    """Returns the conditions that are joined by "and"."""
    source = _source(by_id, instruction_id)
    if source.opcode != "and":
        return [source.id]
    return [part for operand in source.operand_ids for part in _conjuncts(by_id, operand)]


def _source(by_id: Mapping[int, Any], instruction_id: int) -> Any:
    source = by_id[instruction_id]
    while True:
        before = by_id[source.operand_ids[0]] if source.operand_ids else source
        if source.opcode in _PASSES_ON:
            source = before
        elif source.opcode == "get-tuple-element" and before.opcode == "tuple":
            source = by_id[before.operand_ids[source.tuple_index]]
        else:
            return source


def _computing_instructions(computation: Any, idle: set[int]) -> list[tuple[str, Any]]:
    """Returns the instructions that cost time, with their kinds.

    Matmuls accept matrices of either order.
    """
    instructions = [(instruction.opcode, instruction) for instruction in computation.instructions]
    multiplied = {operand_id for opcode, each in instructions if opcode == "dot" for operand_id in each.operand_ids}
    transposes = [each for opcode, each in instructions if opcode == "transpose"]
    idle = idle | {
        transpose.id for transpose in transposes if transpose.id in multiplied or _is_noop_transpose(transpose)
    }
    return [(opcode, each) for opcode, each in instructions if opcode not in _FREE and each.id not in idle]


def _noop_conversions(computation: Any) -> set[int]:
    """Returns conversions to the operand's own type, such as around a reduction."""
    converts = {
        instruction.id: instruction for instruction in computation.instructions if instruction.opcode == "convert"
    }
    if not converts:
        return set()
    types = {instruction.id: instruction.shape.element_type for instruction in computation.instructions}
    return {convert_id for convert_id, each in converts.items() if types[each.operand_ids[0]] == types[convert_id]}


def _is_noop_transpose(transpose: Any) -> bool:
    return list(transpose.dimensions) == sorted(transpose.dimensions)


def _add_plain(work: Work, opcode: str, instruction: Any, by_id: Mapping[int, Any]) -> None:
    if opcode == "broadcast":  # which is part of what uses it
        return
    size = elements_of(instruction.shape)
    if opcode not in _BY_OPERANDS:
        _pass(work, size)
        return
    operands = [by_id[operand_id] for operand_id in instruction.operand_ids]
    if opcode == "dot":
        sizes = dot_sizes(instruction, operands)
        _multiply(work, 2.0 * sizes.products, is_even=min(sizes.rows, sizes.inner, sizes.columns) >= _SMALL_SIDE)
    elif opcode == "convolution":
        sizes = convolution_sizes(instruction, operands)
        if sizes.groups > 1:
            work.grouped_convolutions += 2.0 * sizes.products
        else:
            work.convolutions += 2.0 * sizes.products
    elif opcode == "select-and-scatter":
        work.windows += size * math.prod(dimension.size for dimension in instruction.window.dimensions)
    elif opcode == "reduce-window":
        work.inner += size * math.prod(dimension.size for dimension in instruction.window.dimensions)
    elif opcode in ("dynamic-update-slice", "scatter"):
        _pass(work, elements_of(operands[-1 if opcode == "scatter" else 1].shape))
    else:
        work.inner += sum(elements_of(operand.shape) for operand in operands)


def _multiply(work: Work, product: float, is_even: bool) -> None:
    if product >= SMALL_PRODUCT:
        work.products += product
    elif is_even and product >= _SQUARE_PRODUCT:
        work.square_products += product
    elif is_even:
        work.even_products += product
    else:
        work.small_products += product


def _extent(work: Work) -> tuple[float, float]:
    products = work.products + work.small_products + work.even_products + work.square_products
    return products, work.passes + work.wide_passes


def _pass(work: Work, size: int) -> None:
    if size < WIDE:
        work.passes += size
    else:
        work.wide_passes += size


def dot_sizes(instruction: Any, operands: Sequence[Any]) -> MatmulSizes:
    """Returns the sizes of a matmul."""
    dnums = instruction.dot_dimension_numbers
    lhs, right = (operand.shape.dimensions for operand in operands[:2])
    groups = math.prod(lhs[axis] for axis in dnums.lhs_batch_dimensions)
    inner = math.prod(lhs[axis] for axis in dnums.lhs_contracting_dimensions)
    shared = max(1, groups * inner)
    return MatmulSizes(groups, math.prod(lhs) // shared, inner, math.prod(right) // shared)


def convolution_sizes(instruction: Any, operands: Sequence[Any]) -> MatmulSizes:
    """Returns the sizes of a convolution as a matmul."""
    dnums = instruction.convolution_dimension_numbers
    kernel = operands[1].shape.dimensions
    outputs = kernel[dnums.kernel_output_feature_dimension]
    inputs = kernel[dnums.kernel_input_feature_dimension]
    groups = max(1, instruction.feature_group_count) * max(1, instruction.batch_group_count)
    positions = math.prod(kernel[axis] for axis in dnums.kernel_spatial_dimensions)
    rows = elements_of(instruction.shape) // max(1, outputs)
    result = instruction.shape.dimensions
    axes = zip(dnums.kernel_spatial_dimensions, dnums.output_spatial_dimensions)
    window = tuple((kernel[axis], result[place]) for axis, place in axes if kernel[axis] > 1)
    return MatmulSizes(groups, rows, inputs, outputs // groups, positions, window)


def elements_of(shape: Any) -> int:
    """Returns the number of elements of an XLA shape, summed over a tuple."""
    if shape.tuple_shapes:
        return sum(elements_of(part) for part in shape.tuple_shapes)
    return math.prod(shape.dimensions)
