"""What each instruction of an XLA program computes, for the cycles of the machine model, and what Poplar would call it.

Names follow one rule: scope and name of the TensorFlow op, then XLA's instruction with its number (`add.1`), then what
PopLibs calls its compute set (`Op/Add`). What the IPU's compiler makes of several instructions (see `fusions`), and
products, have a number only where there are several.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from tensorflow.core.framework import function_pb2

from tf_ipu_shim.accounting.alike import AlikeComputations
from tf_ipu_shim.accounting.fusions import DRAWN, ONE_CALL, Fusion, fusions_in, kernels_in
from tf_ipu_shim.accounting.instructions import ELEMENTWISE, VIEWS, shape_bytes
from tf_ipu_shim.accounting.outlined_calls import Place, calls_in, places
from tf_ipu_shim.accounting.plannings import Plannings, marks_of
from tf_ipu_shim.accounting.product_types import INFERENCE, UPDATE, types_of_products
from tf_ipu_shim.accounting.work import HloWork, convolution_sizes, dot_sizes, elements_of
from tf_ipu_shim.lowering import vocabulary
from tf_ipu_shim.machine.cycles import Computation, Planning, vertices
from tf_ipu_shim.names.half_batch_norm import CAST_NAME

# What PopLibs calls element-wise work, where that is not XLA's word in capitals.
_OPERATIONS = {
    "abs": "Absolute",
    "exponential": "Exponent",
    "exponential-minus-one": "ExponentMinusOne",
    "log": "Logarithm",
    "log-plus-one": "LogarithmOnePlus",
    "sign": "Signum",
    "cosine": "Cos",
    "sine": "Sin",
    "is-finite": "IsFinite",
}
_SLOW = frozenset(
    "atan2 cbrt cosine divide erf exponential exponential-minus-one log log-plus-one logistic power remainder rsqrt "
    "sine sqrt tan tanh".split()
)
# Ops that PopLibs has one function for, by TensorFlow's name: XLA's name for them here, PopLibs', whether it is slow.
_OWN = {
    "Relu": ("relu", "Nonlinearity", False),
    "Relu6": ("relu", "Nonlinearity", False),
    "Sigmoid": ("sigmoid", "Nonlinearity", True),
    "ReluGrad": ("relu-grad", "NonLinearityGrad", False),
    "Relu6Grad": ("relu-grad", "NonLinearityGrad", False),
    "SigmoidGrad": ("sigmoid-grad", "NonLinearityGrad", False),
    "TanhGrad": ("tanh-grad", "NonLinearityGrad", False),
    "Tanh": ("tanh", "Op/Tanh", True),
    "Exp": ("exponential", "Op/Exponent", True),
    "Log1p": ("log-plus-one", "Op/LogarithmOnePlus", True),
    "Rsqrt": ("rsqrt", "Op/Rsqrt", True),
    "Sqrt": ("sqrt", "Op/Sqrt", True),
    "BiasAdd": ("fusion", "Op/Add", False),
}
# Random ops: XLA's name for them here, and PopLibs'. XLA has a program of many steps for each.
_DRAWN = {
    "StatelessRandomUniform": ("rng", "uniform"),
    "StatelessRandomUniformInt": ("rng", "uniform"),
    "StatelessRandomUniformFullInt": ("rng", "uniform"),
    "StatelessRandomNormal": ("rng", "normal"),
    "StatelessTruncatedNormal": ("truncated-normal", "truncatedNormal"),
}
# Instructions whose first one has no number.
_BARE = frozenset(
    "avg-pool avg-pool-grad batch-norm-grad batch-norm-inference batch-norm-training convolution dot dynamic-slice "
    "dynamic-update-slice fusion inter-ipu-copy max-pool max-pool-grad multi-slice multi-update-add "
    "negate relu relu-grad scaled-inplace scaled-inplace-xb-y sigmoid sigmoid-grad sort tanh-grad "
    "truncated-normal".split()
)
# What has one function for all that are alike, like products.
_SHARED = frozenset("batch-norm-grad batch-norm-inference batch-norm-training weights-transpose-chans-flip-x-y".split())
_LOOKED_AT = _OWN.keys() | {"BiasAddGrad"}
_FREE = frozenset({"constant", "parameter", "tuple", "get-tuple-element", "after-all"})
_HANDING_ON = VIEWS | _FREE | {"convert", "copy"}
_RANDOM = frozenset({"rng", "rng-bit-generator"})
_NAMES = {
    "dynamic-slice": "dynamic-slice/dynamicSlice",
    "gather": "multi-slice/output/multiSlice/MultiSlice",
    "scatter": "multi-update-add/multiUpdateAdd",
    "dynamic-update-slice": "dynamic-update-slice/dynamicUpdateSlice",
    "convert": "convert/Cast",
    "dot": "dot/Conv_1",
    "sort": "sort",
    "batch-norm-grad": "batch-norm-grad/batchNormGradients",
    "batch-norm-inference": "batch-norm-inference/batchNormalise",
    "batch-norm-training": "batch-norm-training/batchNormalise",
}


class ComputeSetNames:
    """Names of a whole program's compute sets.

    Products of the same shapes and types are one function in Poplar's program, which is called for each of them: it has
    the name of the first. So have norms, updates that are part of something, kernels that are turned round, calls of
    outlined functions, and all that is in branches or loops that contain the same. Each IPU has functions of its own.

    Attributes:
        products: the op and the type of each product, see `product_types`.
        kernels: the variables that convolutions of the forward pass take as they are.
    """

    def __init__(self) -> None:
        self.products: list[tuple[str, int]] = []
        self.kernels: set[str] = set()
        self._counts: dict[str, int] = {}
        self._shared: dict[Hashable, str] = {}
        self._groups: dict[Hashable, int] = {}

    def name(self, owner: str, below: str, same: Hashable = None, group: Hashable = None) -> str:
        """The name of a compute set.

        Args:
            owner: scope and name of the op.
            below: what XLA calls the instruction, and PopLibs the compute set.
            same: what tells it apart from others that it could share a function with; None where it cannot.
            group: the same for all that have one number together; None for one that has its own.

        Example:
            >>> names = ComputeSetNames()
            >>> [names.name("a", "add/Op/Add"), names.name("b", "add/Op/Add")]
            ['a/add.1/Op/Add', 'b/add.2/Op/Add']
        """
        if same is not None and same in self._shared:
            return self._shared[same]
        first, _, rest = below.partition("/")
        count = self._groups.get(group, -1)
        if count < 0:
            count = self._counts.get(first, 0 if first in _BARE else 1)
            self._counts[first] = count + 1
        if group is not None:
            self._groups[group] = count
        parts = [owner, f"{first}.{count}" if count else first, rest]
        made = "/".join(part for part in parts if part)
        if same is not None:
            self._shared[same] = made
        return made

    def instruction_info(self) -> str:
        """JSON of the types of all products, as trace events have it; a program without updates infers."""
        trains = any(kind == UPDATE for _, kind in self.products)
        types = {f"{op}.{number}": kind if trains else INFERENCE for number, (op, kind) in enumerate(self.products, 1)}
        return json.dumps({"ml_types": types})


class Context(NamedTuple):
    """What is known of the instructions of one computation together.

    Args:
        by_id: these.
        fusions: what is part of something, see `fusions_in`.
        of_calls: those that stand for an op which is one call.
        key: tells it apart from all others.
        outlined: those that belong to calls of outlined functions.
    """

    by_id: Mapping[int, Any]
    fusions: Mapping[int, Fusion | None]
    of_calls: Collection[int]
    key: object
    outlined: Mapping[int, Place]


class InstructionReader:
    """Tells what instructions of one XLA program compute.

    Args:
        module: the program.
        functions: what it was made of, with the ops as the script has them.
        names: of the whole program; changed.
        plannings: of products that have no mark of their own.
        ipu: that runs it.

    Attributes:
        work: counts iterations of loops.
        counters: instructions that count iterations which are known before a loop runs.
    """

    def __init__(
        self,
        module: Any,
        functions: Sequence[function_pb2.FunctionDef],
        names: ComputeSetNames,
        plannings: Plannings,
        ipu: int,
    ) -> None:
        self.work = HloWork(module)
        self.counters: set[int] = set()
        self._alike, self._ipu = AlikeComputations(module), ipu
        self._plannings, self._marks = plannings, marks_of(functions)
        self._ops = {
            node.name: node.op for function in functions for node in function.node_def if node.op in _LOOKED_AT
        }
        self._activations = _activations(functions)
        self._names, self._calls = names, calls_in(functions)

    def enter(self, by_id: Mapping[int, Any], weights: Mapping[int, str]) -> Context:
        """Looks at the instructions of one computation together, when the walk comes to it.

        Args:
            by_id: these.
            weights: those that are variables of the program, with their names.
        """
        names = self._names
        names.kernels.update(kernels_in(by_id, weights))
        flipped = {number for number, name in weights.items() if name in names.kernels}
        fusions = fusions_in(by_id, self._ops, flipped)
        fusions.update(dict.fromkeys(self.counters.intersection(by_id)))
        names.products.extend(types_of_products(by_id, fusions, weights))
        return Context(by_id, fusions, _of_calls(by_id), object(), places(by_id, self._calls, self._alike))

    def computation(self, instruction: Any, context: Context, owner: str) -> Computation | None:
        """What an instruction computes; None for a view, for what is part of another, and for what takes no time.

        Args:
            instruction: of the program.
            context: the instructions around it.
            owner: the name of its op.
        """
        by_id = context.by_id
        fusion = _fusion_of(instruction, context, owner)
        if fusion is None:
            return None
        if instruction.metadata.op_type in DRAWN:
            return self._random(instruction, fusion, owner)
        operands = [by_id[number] for number in instruction.operand_ids]
        kind, sizes = _kind_and_sizes(instruction, operands, by_id)
        if not kind and not fusion.name:
            return None
        below = _below(instruction, operands)
        below, kind, sizes = self._named(instruction, below, kind, sizes, fusion)
        size = _element_bytes(instruction.shape)
        planning = self._planning(instruction) if kind == "product" else Planning()
        same: Hashable
        if _is_shared(instruction, kind, fusion):
            shapes = _shapes(operands) if instruction.opcode == "convolution" else ()
            same = (instruction.opcode, below, sizes, size, planning, shapes)
        elif instruction.id in context.outlined:
            place = context.outlined[instruction.id]
            same = (place.content, place.number, below)
        else:
            same = self._alike.place(instruction)
        same = None if same is None else (self._ipu, same)
        owner = self._activations.get(owner, owner) if fusion.name == "relu" else owner
        group = (context.key, fusion.group) if fusion.group else None
        return Computation(kind, self._names.name(fusion.op or owner, below, same, group), sizes, size, planning)

    def called(self, instruction: Any, context: Context, owner: str) -> str:
        """What an instruction is called on the IPU, without a number; nothing for what is part of another.

        Args: as for `computation`.
        """
        fusion = _fusion_of(instruction, context, owner)
        if fusion is None or fusion.group not in (0, instruction.id):
            return ""
        operands = [context.by_id[number] for number in instruction.operand_ids]
        below, *_ = self._named(
            instruction, _below(instruction, operands), *_kind_and_sizes(instruction, operands, context.by_id), fusion
        )
        return below.partition("/")[0]

    def _planning(self, product: Any) -> Planning:
        return self._plannings.of(product.opcode, self._marks.get(product.metadata.op_name, {}))

    def _named(
        self, instruction: Any, below: str, kind: str, sizes: tuple[int, ...], fusion: Fusion
    ) -> tuple[str, str, tuple[int, ...]]:
        """What PopLibs has a function for has its name."""
        own = _OWN.get(self._ops.get(instruction.metadata.op_name, ""))
        if own is not None and kind == "elementwise":
            arithmetic = vertices.TRANSCENDENTAL if own[2] else 1
            return f"{own[0]}/{own[1]}", kind, (*sizes[:2], arithmetic, sizes[3])
        if not fusion.name:
            return below, kind, sizes
        below = f"{fusion.name}/{fusion.library or below.partition('/')[2]}"
        return below, *_fused_sizes(instruction, kind, sizes, fusion)

    def _random(self, instruction: Any, fusion: Fusion, owner: str) -> Computation:
        name, library = _DRAWN[instruction.metadata.op_type]
        made = self._names.name(owner, f"{fusion.name or name}/{library}")
        return Computation("random", made, (elements_of(instruction.shape),), _element_bytes(instruction.shape))


def _activations(functions: Sequence[function_pb2.FunctionDef]) -> dict[str, str]:
    """The scripts' own names of activations that TensorFlow's rewriting has put into the norm before them.

    An op that hands on what the norm gives has that name.
    """
    found: dict[str, str] = {}
    for function in functions:
        norms = {node.name for node in function.node_def if node.op == "_FusedBatchNormEx"}
        for node in function.node_def if norms else ():
            taken = node.input[0].partition(":")[0] if node.op == "Identity" else ""
            if taken in norms:
                found[taken] = node.name
    return found


_NOT_FUSED = Fusion()


def _fusion_of(instruction: Any, context: Context, owner: str) -> Fusion | None:
    """What an instruction is part of; None where it is no compute set of its own."""
    if _is_of_seed(owner) or _is_cast_of_norm(instruction):
        return None
    fusion = context.fusions.get(instruction.id, _NOT_FUSED)
    if instruction.metadata.op_type not in ONE_CALL:
        return fusion
    if instruction.id not in context.of_calls:
        return None
    return fusion or _NOT_FUSED


def _fused_sizes(instruction: Any, kind: str, sizes: tuple[int, ...], fusion: Fusion) -> tuple[str, tuple[int, ...]]:
    if not kind:  # a view that is rearranged
        return "copy", (elements_of(instruction.shape),)
    if kind == "elementwise" and fusion.operands:
        return kind, (sizes[0], fusion.operands, *sizes[2:])
    return kind, sizes


def _is_of_seed(op: str) -> bool:
    """Whether an op makes seeds of others, as the lowering does where tiles have seeds of their own."""
    return f"/{vocabulary.SEED_NAME}" in op or f"/{vocabulary.SPLIT_SEED_NAME}" in op


def _is_cast_of_norm(instruction: Any) -> bool:
    """Whether XLA on the CPU converts halves for a norm, which on an IPU takes them as they are."""
    op = instruction.metadata
    is_of_norm = op.op_type.startswith(("FusedBatchNorm", "_FusedBatchNorm")) or CAST_NAME in op.op_name
    return instruction.opcode == "convert" and is_of_norm


def _is_shared(instruction: Any, kind: str, fusion: Fusion) -> bool:
    """Whether all instructions that are alike are calls of one function."""
    is_named_by_another = bool(fusion.op) and not fusion.group
    is_alone = kind != "product" and not fusion.shared and not _SHARED & {fusion.name, instruction.opcode}
    return is_named_by_another or not is_alone


def _of_calls(by_id: Mapping[int, Any]) -> set[int]:
    """The instruction that stands for an op that is one call: a pool's window, else what gives the op's result.

    A computation that consists of nothing but one such op is a part of it.
    """
    made = [i for i in by_id.values() if i.metadata.op_type in ONE_CALL and i.opcode not in _HANDING_ON]
    last = {i.metadata.op_name: i.id for i in made}
    last.update((i.metadata.op_name, i.id) for i in made if i.opcode == "reduce-window")
    if len(last) == 1 and all(
        i.metadata.op_type in ONE_CALL or i.opcode in ("parameter", "tuple") for i in by_id.values()
    ):
        return set()
    return set(last.values())


def _kind_and_sizes(instruction: Any, operands: Sequence[Any], by_id: Mapping[int, Any]) -> tuple[str, tuple[int, ...]]:
    opcode, size = instruction.opcode, elements_of(instruction.shape)
    if opcode in VIEWS or opcode in _FREE:
        return "", ()
    if opcode == "dot":
        return "product", dot_sizes(instruction, operands)
    if opcode == "convolution":
        return "product", convolution_sizes(instruction, operands)
    if opcode == "convert":
        return "cast", (size, _element_bytes(operands[0].shape), _element_bytes(instruction.shape))
    if opcode in ELEMENTWISE:
        arithmetic = vertices.TRANSCENDENTAL if opcode in _SLOW else 1
        return "elementwise", (size, len(operands), arithmetic, _broadcast(operands, by_id))
    return _moving(instruction, operands)


def _moving(instruction: Any, operands: Sequence[Any]) -> tuple[str, tuple[int, ...]]:
    """Sums, and what looks numbers up or moves them."""
    opcode, size = instruction.opcode, elements_of(instruction.shape)
    if opcode == "reduce":
        taken = operands[0].shape
        lengths = axes_in_turn(taken.dimensions, instruction.dimensions)
        return "reduce", (elements_of(taken), max(1, size), *lengths)
    if opcode in ("reduce-window", "select-and-scatter"):
        return "window", (size, math.prod(dimension.size for dimension in instruction.window.dimensions))
    if opcode in ("gather", "dynamic-slice"):
        return "gather", (size, elements_of(operands[0].shape))
    if opcode in ("scatter", "dynamic-update-slice"):
        return "update", (elements_of(operands[-1 if opcode == "scatter" else 1].shape),)
    if opcode == "copy":
        return "copy", (size,)
    if opcode in _RANDOM:
        return "random", (size,)
    if opcode == "sort":
        axes = list(operands[0].shape.dimensions)
        return "sort", (size, axes[instruction.dimensions[0]] if axes else 1)
    return "other", (size,)


def axes_in_turn(shape: Sequence[int], summed: Collection[int]) -> list[int]:
    """Lengths of a sum's axes from the innermost out, neighbours together: summed over and kept in turn.

    Args:
        shape: of what is summed.
        summed: numbers of the axes that are summed over.

    Example:
        >>> axes_in_turn([20, 7, 7, 64], [0, 1, 2])
        [1, 64, 980]
    """
    lengths = [1]
    for axis in reversed(range(len(shape))):
        if (axis in summed) != (len(lengths) % 2 == 1):
            lengths.append(1)
        lengths[-1] *= shape[axis]
    return lengths


def _broadcast(operands: Sequence[Any], by_id: Mapping[int, Any]) -> int:
    """Numbers of operands that are broadcast, of which each tile needs some; single ones are part of the vertex."""
    made = (by_id[operand.operand_ids[0]] for operand in operands if operand.opcode == "broadcast")
    return sum(size for size in (elements_of(source.shape) for source in made) if size > 1)


def _element_bytes(shape: Any) -> int:
    if shape.tuple_shapes:
        return max((_element_bytes(part) for part in shape.tuple_shapes), default=4)
    return max(1, shape_bytes(shape) // max(1, elements_of(shape)))


def _shapes(instructions: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(instruction.shape.dimensions) for instruction in instructions)


def _below(instruction: Any, operands: Sequence[Any]) -> str:
    """What XLA and PopLibs call it, below the op's own name."""
    opcode, op = instruction.opcode, instruction.metadata.op_type
    if opcode in _NAMES:
        return _NAMES[opcode]
    if opcode == "convolution":
        return _convolution(instruction, operands)
    if opcode in ("reduce-window", "select-and-scatter"):
        sizes = "x".join(str(dimension.size) for dimension in instruction.window.dimensions if dimension.size > 1)
        kind = "avg" if op.startswith("Avg") else "max"
        return f"{kind}-pool{'-grad' if op.endswith('Grad') else ''}/{kind}Pool{sizes}/{kind.title()}Pooling"
    if opcode in _RANDOM:
        return "rng/uniform"
    if opcode == "compare":
        return f"compare/Op/{_DIRECTIONS.get(instruction.comparison_direction, 'Compare')}"
    if opcode in ELEMENTWISE:
        return f"{opcode}/Op/{_OPERATIONS.get(opcode) or opcode.title().replace('-', '')}"
    return str(opcode)


def _convolution(instruction: Any, operands: Sequence[Any]) -> str:
    numbers = instruction.convolution_dimension_numbers
    kernel = operands[1].shape.dimensions
    sizes = "x".join(str(kernel[axis]) for axis in numbers.kernel_spatial_dimensions)
    strides = [axis.stride for axis in instruction.window.dimensions]
    stride = f"_stride{'x'.join(map(str, strides))}" if any(step > 1 for step in strides) else ""
    return f"convolution/Conv_{sizes or 1}{stride}"


_DIRECTIONS = {
    "EQ": "Equal",
    "NE": "NotEqual",
    "LT": "LessThan",
    "LE": "LessThanEqual",
    "GT": "GreaterThan",
    "GE": "GreaterThanEqual",
}
