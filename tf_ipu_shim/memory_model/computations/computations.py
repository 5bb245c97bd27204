"""Classifies each HLO instruction as a computation for the cycle model and names it as Poplar does."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.node_defs import producer_name
from tf_ipu_shim.cycle_model import Computation, MatmulOptions
from tf_ipu_shim.cycle_model.sizes import (
    ElementCount,
    ElementwiseSizes,
    RandomSizes,
    Sizes,
    SolveSizes,
)
from tf_ipu_shim.legacy.names import activation
from tf_ipu_shim.memory_model.computations.compute_set_names import ComputeSetNames
from tf_ipu_shim.memory_model.computations.fingerprints import ComputationFingerprints
from tf_ipu_shim.memory_model.computations.fusions import (
    DRAWN,
    GRADIENTS_OF_INPUT,
    ONE_CALL,
    PART,
    Fusion,
    find_fusions,
    find_kernels,
)
from tf_ipu_shim.memory_model.computations.kinds import FREE, RANDOM, element_bytes, kind_and_sizes
from tf_ipu_shim.memory_model.computations.layouts import (
    NORMS,
    PATH_LIMIT,
    Layouts,
    allocate,
    mapped_like,
    operand_layouts,
)
from tf_ipu_shim.memory_model.computations.library_names import library_names
from tf_ipu_shim.memory_model.computations.matmul_passes import matmul_types
from tf_ipu_shim.memory_model.computations.outlined_calls import OutlinedInstruction, find_outlined, outlined_calls_of
from tf_ipu_shim.memory_model.computations.planner_options import PlannerOptions, options_by_op
from tf_ipu_shim.memory_model.computations.work import HloWork, elements_of
from tf_ipu_shim.memory_model.hlo import user_op_calls
from tf_ipu_shim.memory_model.hlo.instructions import ELEMENTWISE, VIEWS, dtype_of
from tf_ipu_shim.tf_private.protos import function_pb2

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
_NONLINEARITIES = {"Relu": "relu", "Relu6": "relu", "Sigmoid": "sigmoid"}
# Ops that PopLibs has one function for, by TensorFlow's name: XLA's name for them here, PopLibs', its operation.
_LIBRARY_NAMES_BY_OP = {
    **{op: (name, "Nonlinearity", name) for op, name in _NONLINEARITIES.items()},
    **{
        f"{op}Grad": (f"{name}-grad", "NonLinearityGrad", f"{name}_grad")
        for op, name in {**_NONLINEARITIES, "Tanh": "tanh"}.items()
    },
    "Tanh": ("tanh", "Op/Tanh", "tanh"),
    "Exp": ("exponential", "Op/Exponent", "exponent"),
    "Log1p": ("log-plus-one", "Op/LogarithmOnePlus", "logarithm_one_plus"),
    "Rsqrt": ("rsqrt", "Op/Rsqrt", "rsqrt"),
    "Sqrt": ("sqrt", "Op/Sqrt", "sqrt"),
    "BiasAdd": ("fusion", "Op/Add", "add"),
    "Erf": ("erf", "Op/Erf", "erf"),
}
# Random ops: XLA's name for them here, and PopLibs'. XLA has a program of many steps for each.
_RANDOM_NAMES = {
    "StatelessRandomUniform": ("rng", "uniform"),
    "StatelessRandomUniformInt": ("rng", "uniform"),
    "StatelessRandomUniformFullInt": ("rng", "uniform"),
    "StatelessRandomNormal": ("rng", "normal"),
    "StatelessTruncatedNormal": ("truncated-normal", "truncatedNormal"),
}
# Computations that share one function if they are alike, such as matmuls.
_SHARED = NORMS | {"weights-transpose-chans-flip-x-y"}
_SEARCHED = _LIBRARY_NAMES_BY_OP.keys() | {"BiasAddGrad"}
_FORWARDING = VIEWS | FREE | {"convert", "copy"}
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


class ComputationContext(NamedTuple):
    """Facts about the instructions of one HLO computation.

    Args:
        fusions: parts of fused operations, see `find_fusions`.
        key: distinguishes it from all others.
        outlined: computations in calls of outlined functions.
        layouts: the memory layouts of tensors.
    """

    by_id: Mapping[int, Any]
    fusions: Mapping[int, Fusion | None]
    of_calls: Collection[int]
    key: object
    outlined: Mapping[int, OutlinedInstruction]
    layouts: Layouts


class ComputationClassifier:
    """Classifies the computations of one XLA program's instructions.

    Args:
        functions: its source functions, with the ops as in the script.
        names: the names of the whole program; changed.
        plannings: the plannings of matmuls without an annotation.

    Attributes:
        work: counts iterations of loops.
        counters: instructions that count iterations which are known before a loop runs.
    """

    def __init__(
        self,
        module: Any,
        functions: Sequence[function_pb2.FunctionDef],
        names: ComputeSetNames,
        plannings: PlannerOptions,
        ipu: int,
    ) -> None:
        self.work = HloWork(module)
        self.counters: set[int] = set()
        self._entry = next(each for each in module.computations if each.id == module.entry_computation_id)
        self._fingerprints, self._ipu = ComputationFingerprints(module), ipu
        self._plannings, self._marks = plannings, options_by_op(functions)
        self._ops = {node.name: node.op for function in functions for node in function.node_def if node.op in _SEARCHED}
        self._activations = _activations(functions)
        self._library_names = library_names(functions)
        self._names, self._calls = names, outlined_calls_of(functions)

    def count_by(self, ops: Collection[str]) -> None:
        """Adds the counters of a loop that contains the whole program, by their ops."""
        self.counters.update(each.id for each in self._entry.instructions if each.metadata.op_name in ops)

    def context_of(
        self,
        by_id: Mapping[int, Any],
        weights: Mapping[int, str],
        keys: Mapping[int, Hashable] = MappingProxyType({}),
        given: Mapping[int, int] = MappingProxyType({}),
    ) -> ComputationContext:
        """Collects facts about the instructions of one HLO computation.

        Args:
            weights: names of the arguments that are variables.
            keys: identifiers of its arguments, distinct from other computations'.
            given: see `Layouts`.
        """
        names = self._names
        names.kernels.update(find_kernels(by_id, weights))
        flipped = {item_id for item_id, name in weights.items() if name in names.kernels}
        fusions = find_fusions(by_id, self._ops, flipped, self._library_names)
        fusions.update(dict.fromkeys(self.counters.intersection(by_id)))
        names.products.extend(matmul_types(by_id, fusions, weights))
        key = object()
        for name, item_id in _numbered_first(by_id, fusions):
            names.number_of(name, (key, item_id))
        outlined = find_outlined(by_id, self._calls, self._fingerprints)
        layouts = Layouts(by_id, given, names.allocated, {**keys, **weights}, key)
        allocate(layouts)
        return ComputationContext(by_id, fusions, _representatives(by_id), key, outlined, layouts)

    def computation(self, instruction: Any, context: ComputationContext, owner: str) -> Computation | None:
        """Returns an instruction's computation; None for views, parts of others and free instructions."""
        by_id = context.by_id
        if (built := user_op_calls.computation_of(instruction)) is not None:
            return built
        fusion = _fusion_of(instruction, context, owner)
        if fusion is None:
            return None
        if instruction.metadata.op_type in DRAWN:
            return self._random(instruction, fusion, owner)
        operands = [by_id[operand_id] for operand_id in instruction.operand_ids]
        kind, sizes = kind_and_sizes(instruction, operands, by_id)
        if not kind and not fusion.name:
            return None
        below = _name_below(instruction, operands)
        below, kind, sizes = self._library_name(instruction, below, kind, sizes, fusion)
        size = element_bytes(instruction.shape)
        planning = self._planning(instruction) if kind == "product" else MatmulOptions()
        owner = self._activations.get(owner, owner) if fusion.name == "relu" else owner
        named = fusion.op or owner
        together: Hashable = fusion.group or fusion.call or instruction.id
        same: Hashable
        if (library := self._library_names.get(instruction.metadata.op_name)) is not None:
            named, below = library.names(owner, below)
            same, together = (library, below) if library.layer else None, (named, library.name.partition("/")[0])
        elif _is_shared(instruction, kind, fusion):
            same = (instruction.opcode, below, sizes, size, planning, _shapes_that_count(instruction, operands, by_id))
        else:
            same = self._function_of(instruction, context, below)
        computation_name = self._names.name(named, below, _function_key(self._ipu, same), (context.key, together))
        layouts = operand_layouts(instruction, context.layouts)
        product = self._matmul_operand(instruction, kind, context)
        return Computation(kind, computation_name, sizes, size, planning, product, layouts)

    def name_of_instruction(self, instruction: Any, context: ComputationContext, owner: str) -> str:
        """Returns an instruction's name on the IPU, without a number; empty for a part of another."""
        fusion = _fusion_of(instruction, context, owner)
        if fusion is None or fusion.group not in (0, instruction.id):
            return ""
        operands = [context.by_id[operand_id] for operand_id in instruction.operand_ids]
        below, *_ = self._library_name(
            instruction,
            _name_below(instruction, operands),
            *kind_and_sizes(instruction, operands, context.by_id),
            fusion,
        )
        return below.partition("/")[0]

    def _function_of(self, instruction: Any, context: ComputationContext, below: str) -> Hashable:
        """Returns a key that instructions compiled to the same function share."""
        if instruction.id in context.outlined:
            place = context.outlined[instruction.id]
            return (place.fingerprint, place.position, below)
        return self._fingerprints.locate(instruction)

    def _matmul_operand(self, instruction: Any, kind: str, context: ComputationContext) -> Computation | None:
        """Returns the matmul whose result a reduction consumes, if only in-place ops lie between."""
        by_id = context.by_id
        source: Any = by_id[instruction.operand_ids[0]] if kind == "reduce" else None
        for _ in range(PATH_LIMIT):
            if source is None:
                break
            if source.opcode in ("dot", "convolution"):
                operands = [by_id[operand_id] for operand_id in source.operand_ids]
                kind, sizes = kind_and_sizes(source, operands, by_id)
                layouts = operand_layouts(source, context.layouts)
                size = element_bytes(source.shape)
                return Computation(kind, "", sizes, size, self._planning(source), None, layouts)
            source = mapped_like(source, by_id)
        return None

    def _planning(self, product: Any) -> MatmulOptions:
        return self._plannings.of(product.opcode, self._marks.get(product.metadata.op_name, {}))

    def _library_name(
        self, instruction: Any, below: str, kind: str, sizes: Sizes, fusion: Fusion
    ) -> tuple[str, str, Sizes]:
        """Returns PopLibs' name if it has a function for the computation, and the sizes with its options."""
        if fusion.sizes is not None:
            return fusion.name, "elementwise", fusion.sizes
        own = _LIBRARY_NAMES_BY_OP.get(self._ops.get(instruction.metadata.op_name, ""))
        if own is not None and isinstance(sizes, ElementwiseSizes):
            dtype = dtype_of(instruction.shape)
            return f"{own[0]}/{own[1]}", kind, sizes._replace(operation=own[2], dtype=dtype)
        if isinstance(sizes, SolveSizes):
            return below, kind, sizes._replace(block=self._plannings.solve_block)
        if not fusion.name:
            return below, kind, sizes
        below = f"{fusion.name}/{fusion.library or below.partition('/')[2]}"
        return below, *_fused_sizes(instruction, kind, sizes, fusion)

    def _random(self, instruction: Any, fusion: Fusion, owner: str) -> Computation:
        name, library = _RANDOM_NAMES[instruction.metadata.op_type]
        computation_name = self._names.name(owner, f"{fusion.name or name}/{library}")
        dtype = dtype_of(instruction.shape)
        distribution = "truncated_normal" if library == "truncatedNormal" else library
        sizes = RandomSizes(elements_of(instruction.shape), distribution, dtype if "int" in dtype else "")
        return Computation("random", computation_name, sizes, element_bytes(instruction.shape))


def _function_key(ipu: int, same: Hashable) -> Hashable:
    """Returns a key that distinguishes functions, also between IPUs."""
    return None if same is None else (ipu, same)


def _numbered_first(by_id: Mapping[int, Any], fusions: Mapping[int, Fusion | None]) -> Iterator[tuple[str, int]]:
    """Yields the instructions that Poplar numbers before all others of their computation.

    In a training program these are the gradients of convolutions. Gradients of inputs keep their order; kernels in an
    update begin with the last layer.
    """
    convolutions = [instruction for instruction in by_id.values() if instruction.opcode == "convolution"]
    for convolution in convolutions:
        if convolution.metadata.op_type in GRADIENTS_OF_INPUT and fusions.get(convolution.id, _NOT_FUSED) == _NOT_FUSED:
            yield "convolution", convolution.id
    updates = [
        convolution.id
        for convolution in convolutions
        if (fusions.get(convolution.id) or _NOT_FUSED).call == convolution.id
    ]
    yield from (("fusion", instruction_id) for instruction_id in reversed(updates))


def _activations(functions: Sequence[function_pb2.FunctionDef]) -> dict[str, str]:
    """Returns the script's names of activations that grappler fused into the preceding norm.

    An op that passes on the norm's result has that name.
    """
    found: dict[str, str] = {}
    for function in functions:
        norms = {node.name for node in function.node_def if node.op == "_FusedBatchNormEx"}
        for node in function.node_def if norms else ():
            source_name = producer_name(node.input[0]) if node.op == "Identity" else ""
            if source_name in norms:
                found[source_name] = node.name
    return found


_NOT_FUSED = Fusion()


def _fusion_of(instruction: Any, context: ComputationContext, owner: str) -> Fusion | None:
    """Returns the library call that contains an instruction; None if it has no separate compute set."""
    if _derives_seed(owner) or _is_norm_cast(instruction):
        return None
    fusion = context.fusions.get(instruction.id, _NOT_FUSED)
    if fusion is PART:
        return None
    if instruction.metadata.op_type not in ONE_CALL:
        return fusion
    if instruction.id not in context.of_calls:
        return None
    return fusion or _NOT_FUSED


_FUSED_OPERATIONS = {
    "AddTo": "scaled_add",
    "GeluErf": "gelu_erf",
    "Multiply": "multiply",
    "Negate": "negate",
    "Nonlinearity": "relu",
}
"""PopLibs' operation of a fusion, by the last part of its compute set's name."""


def _fused_sizes(instruction: Any, kind: str, sizes: Sizes, fusion: Fusion) -> tuple[str, Sizes]:
    if not kind:  # a view that is rearranged
        return "copy", ElementCount(elements_of(instruction.shape))
    if isinstance(sizes, ElementwiseSizes):
        operation = _FUSED_OPERATIONS.get(fusion.library.rpartition("/")[2], sizes.operation)
        return kind, sizes._replace(operands=fusion.operands or sizes.operands, operation=operation)
    return kind, sizes


def _derives_seed(op: str) -> bool:
    """Returns whether an op derives seeds from others, as lowering does for per-tile seeds."""
    return f"/{vocabulary.SEED_NAME}" in op or f"/{vocabulary.SPLIT_SEED_NAME}" in op


def _is_norm_cast(instruction: Any) -> bool:
    """Returns whether a cast only exists because XLA's CPU norms need float32; an IPU needs none."""
    op = instruction.metadata
    is_of_norm = op.op_type.startswith(("FusedBatchNorm", "_FusedBatchNorm")) or activation.HALF_NORM_CAST in op.op_name
    return instruction.opcode == "convert" and is_of_norm


def _is_shared(instruction: Any, kind: str, fusion: Fusion) -> bool:
    """Returns whether all identical instructions are calls of one function."""
    is_named_by_another = bool(fusion.op) and not fusion.group
    is_alone = kind != "product" and not fusion.shared and not _SHARED & {fusion.name, instruction.opcode}
    return is_named_by_another or not is_alone


def _representatives(by_id: Mapping[int, Any]) -> set[int]:
    """Returns the instruction that represents each single-call op: a pool's window, else the op's result.

    A computation that consists of nothing but one such op is a part of it.
    """
    instructions = [i for i in by_id.values() if i.metadata.op_type in ONE_CALL and i.opcode not in _FORWARDING]
    last = {i.metadata.op_name: i.id for i in instructions}
    last.update((i.metadata.op_name, i.id) for i in instructions if i.opcode == "reduce-window")
    if len(last) == 1 and all(
        i.metadata.op_type in ONE_CALL or i.opcode in ("parameter", "tuple") for i in by_id.values()
    ):
        return set()
    return set(last.values())


def _shapes_that_count(instruction: Any, operands: Sequence[Any], by_id: Mapping[int, Any]) -> tuple[Any, ...]:
    """Returns what distinguishes functions of one size: a convolution's shapes, a norm's input shape and type."""
    if instruction.opcode == "convolution":
        return _shapes(operands)
    if instruction.opcode not in NORMS:
        return ()
    given = by_id[operands[0].operand_ids[0]] if operands[0].opcode == "convert" else operands[0]
    return (*_shapes(operands[:1]), given.shape.element_type)


def _shapes(instructions: Sequence[Any]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(instruction.shape.dimensions) for instruction in instructions)


def _name_below(instruction: Any, operands: Sequence[Any]) -> str:
    """Returns an instruction's name in XLA and PopLibs, below the op's name."""
    opcode, op = instruction.opcode, instruction.metadata.op_type
    if opcode in _NAMES:
        return _NAMES[opcode]
    if opcode == "convolution":
        return _convolution(instruction, operands)
    if opcode in ("reduce-window", "select-and-scatter"):
        sizes = "x".join(str(dimension.size) for dimension in instruction.window.dimensions if dimension.size > 1)
        kind = "avg" if op.startswith("Avg") else "max"
        return f"{kind}-pool{'-grad' if op.endswith('Grad') else ''}/{kind}Pool{sizes}/{kind.title()}Pooling"
    if opcode in RANDOM:
        return "rng/uniform"
    if opcode == "compare":
        return f"compare/Op/{_DIRECTIONS.get(instruction.comparison_direction, 'Compare')}"
    if opcode in ELEMENTWISE:
        return f"{opcode}/Op/{_OPERATIONS.get(opcode) or opcode.title().replace('-', '')}"
    return str(opcode)


def _convolution(instruction: Any, operands: Sequence[Any]) -> str:
    dnums = instruction.convolution_dimension_numbers
    kernel = operands[1].shape.dimensions
    sizes = "x".join(str(kernel[axis]) for axis in dnums.kernel_spatial_dimensions)
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
