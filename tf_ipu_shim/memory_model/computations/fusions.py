"""Groups HLO instructions that Poplar's libraries compute with one call.

The IPU's compiler looks for these groups before it builds a program: a scaled addition, a sum of squares, a broadcast
operand. Then only the instruction that names one of them has a compute set. The names are as in profiles of such
programs.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tf_ipu_shim import sdk
from tf_ipu_shim.cycle_model.sizes import ElementwiseSizes
from tf_ipu_shim.memory_model.computations.expressions import SINCE as EXPRESSIONS_SINCE
from tf_ipu_shim.memory_model.computations.expressions import Expression, find_expressions
from tf_ipu_shim.memory_model.computations.work import elements_of
from tf_ipu_shim.memory_model.hlo.instructions import ELEMENTWISE, dtype_of, is_gradient
from tf_ipu_shim.tf_private.protos import xla_data_pb2

_SCALED_REDUCTIONS_SINCE = (2, 5)  # SDK
_HALF_AND_SINGLE = frozenset({xla_data_pb2.F16, xla_data_pb2.F32})
_SAME_ELEMENTS = frozenset({"bitcast", "reshape"})
DRAWN = frozenset(
    "StatelessRandomNormal StatelessRandomUniform StatelessRandomUniformFullInt StatelessRandomUniformInt "
    "StatelessTruncatedNormal".split()
)
"""Random ops."""
ONE_CALL = DRAWN | frozenset({"AvgPool", "AvgPool3D", "AvgPoolGrad", "Erf", "SigmoidGrad", "TanhGrad"})
"""Ops for which PopLibs has one function, even if XLA uses several instructions."""
_OTHER_REDUCTIONS = frozenset({"All", "Any", "Max", "Min", "Prod"})
_SHIFTED = frozenset({"StatelessRandomNormal", "StatelessRandomUniform"})
_CALLS_OF_POPNN = frozenset({"BiasAdd", "Relu", "Relu6", "Relu6Grad", "ReluGrad", "Sigmoid"})
_KEEPS_KNOWN = ELEMENTWISE | frozenset(
    "bitcast bitcast-convert broadcast concatenate constant copy dynamic-slice dynamic-update-slice gather iota pad "
    "reduce reshape reverse slice transpose".split()
)
_NEUTRAL = {"add": (0, (0, 1)), "divide": (1, (1,)), "multiply": (1, (0, 1)), "subtract": (0, (1,))}
"""Neutral numbers of operations, and the operands that they can be."""
GRADIENTS_OF_INPUT = frozenset({"Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput"})


class Fusion(NamedTuple):
    """How an instruction is part of a library call.

    Args:
        name: XLA's name for it on the IPU, instead of the instruction's; empty if that stays.
        library: PopLibs' name for its compute set; empty if that stays.
        op: the TensorFlow op that it is named by; empty for its own.
        operands: the number of its input tensors; 0 if that stays.
        shared: whether it is part of a group of equal calls that share one function.
        group: the last instruction of its expression; 0 if it is in none.
        call: the instruction whose number it has, as one call does both; 0 for its own.
        sizes: of the expression that is one vertex; None for other work.
    """

    name: str = ""
    library: str = ""
    op: str = ""
    operands: int = 0
    shared: bool = False
    group: int = 0
    call: int = 0
    sizes: ElementwiseSizes | None = None


PART = Fusion("part")
"""An instruction whose work is part of the library call of another one."""


def find_fusions(
    by_id: Mapping[int, Any],
    op_types: Mapping[str, str],
    kernels: Collection[int] = (),
    layer_ops: Collection[str] = (),
) -> dict[int, Fusion | None]:
    """Returns the fusions among the instructions of one computation.

    Args:
        op_types: the types of the script's ops, by name.
        kernels: arguments that other computations use as kernels of convolutions.
        layer_ops: ops of PopLibs' own layers, whose products are not fused with a scaling.
    """
    return _Finder(by_id, op_types, kernels, layer_ops).run()


def find_kernels(by_id: Mapping[int, Any], weights: Mapping[int, str]) -> set[str]:
    """Returns the variables that forward convolutions use as kernels."""
    found = set()
    for instruction in by_id.values():
        if instruction.opcode == "convolution" and not is_gradient(instruction.metadata.op_name):
            kernel = _same_elements(by_id, instruction.operand_ids[1])
            if kernel in weights:
                found.add(weights[kernel])
    return found


def _same_elements(by_id: Mapping[int, Any], instruction_id: int) -> int:
    """Returns the instruction whose elements another one returns in the same order and type."""
    while by_id[instruction_id].opcode in _SAME_ELEMENTS:
        instruction_id = by_id[instruction_id].operand_ids[0]
    return instruction_id


class _Finder:
    """Finds the fusions of one computation."""

    def __init__(
        self,
        by_id: Mapping[int, Any],
        op_types: Mapping[str, str],
        kernels: Collection[int],
        layer_ops: Collection[str],
    ) -> None:
        self._by_id, self._op_types = by_id, op_types
        self._kernels_elsewhere, self._layer_ops = kernels, layer_ops
        self._users: dict[int, list[int]] = {}
        for instruction in by_id.values():
            for operand in instruction.operand_ids:
                self._users.setdefault(operand, []).append(instruction.id)
        self._known: set[int] = set()  # what the compiler computes itself
        self._same: dict[int, int] = {}  # what hands an operand on, to that operand
        self._found: dict[int, Fusion | None] = {}

    def run(self) -> dict[int, Fusion | None]:
        for instruction in self._by_id.values():
            self._simplify(instruction)
        for instruction in self._of({"multiply"}):
            self._fuse_gelu(instruction)
        for instruction in self._of({"add", "subtract"}):
            self._fuse_scaling(instruction)
        for instruction in self._of({"reduce"}):
            self._fuse_reduction(instruction)
        for instruction in self._of({"maximum"}):
            self._fuse_relu(instruction)
        for instruction in self._of({"reverse"}):
            self._reversed_kernel(instruction)
        known = set(self._found)
        for instruction in self._of(ELEMENTWISE):
            self._alone(instruction)
        if sdk.current() >= EXPRESSIONS_SINCE:
            for expression in find_expressions(self._by_id, self._users, lambda each: self._is_plain(each, known)):
                self._fuse_expression(expression)
        return self._found

    @functools.cached_property
    def _instructions_by_op(self) -> dict[str, list[int]]:
        """Returns the instructions of each TensorFlow op."""
        by_op: dict[str, list[int]] = {}
        for instruction in self._by_id.values():
            by_op.setdefault(instruction.metadata.op_name, []).append(instruction.id)
        return by_op

    @functools.cached_property
    def _kernels(self) -> frozenset[int]:
        """Returns the kernels of convolutions."""
        convolutions = (candidate for candidate in self._by_id.values() if candidate.opcode == "convolution")
        kernel_ids = {self._source(self._by_id[candidate.operand_ids[1]]).id for candidate in convolutions}
        return frozenset(kernel_ids.union(self._kernels_elsewhere))

    def _of(self, opcodes: Collection[str]) -> list[Any]:
        return [i for i in self._by_id.values() if i.opcode in opcodes and i.id not in self._found]

    def _operands(self, instruction: Any) -> list[Any]:
        return [self._by_id[operand_id] for operand_id in instruction.operand_ids]

    def _has_one_user(self, instruction: Any) -> bool:
        return len(set(self._users.get(instruction.id, ()))) == 1

    def _simplify(self, instruction: Any) -> None:
        """Removes instructions that the compiler folds or that have no effect."""
        opcode, operands = instruction.opcode, self._operands(instruction)
        if opcode in _KEEPS_KNOWN and self._known.issuperset(instruction.operand_ids):
            self._known.add(instruction.id)
            self._found[instruction.id] = None
            return
        operand = None
        if opcode in _SAME_ELEMENTS or (opcode == "convert" and _has_type_of(instruction, operands[0])):
            operand = operands[0]
        elif opcode == "reduce" and elements_of(instruction.shape) == elements_of(operands[0].shape):
            operand = operands[0]
        elif opcode in _NEUTRAL:
            neutral, orders = _NEUTRAL[opcode]
            operand = next((operands[1 - at] for at in orders if self._is_filled_with(operands[at], neutral)), None)
        elif opcode == "select" and operands[0].id in self._known and _has_type_of(operands[1], operands[2]):
            operand = operands[1]
        if operand is not None:
            self._same[instruction.id] = operand.id
            self._found[instruction.id] = None

    def _source(self, instruction: Any) -> Any:
        """Returns the instruction whose elements another one returns, possibly reshaped."""
        while instruction.id in self._same:
            instruction = self._by_id[self._same[instruction.id]]
        return instruction

    def _filling(self, instruction: Any) -> float:
        """Returns the constant that all elements of a tensor are known to equal; NaN if there is none."""
        instruction = self._source(instruction)
        while instruction.opcode in ("broadcast", "convert", *_SAME_ELEMENTS):
            instruction = self._by_id[instruction.operand_ids[0]]
        elements = distinct_elements(instruction.literal) if instruction.opcode == "constant" else set()
        return elements.pop() if len(elements) == 1 else math.nan

    def _is_filled_with(self, instruction: Any, element: float) -> bool:
        return self._filling(instruction) == element

    def _is_scalar_like(self, instruction: Any) -> bool:
        """Returns whether a tensor is a scalar or a broadcast scalar."""
        instruction = self._source(instruction)
        if instruction.opcode == "broadcast":
            return elements_of(self._by_id[instruction.operand_ids[0]].shape) == 1
        return elements_of(instruction.shape) == 1

    def _is_uniform(self, instruction: Any) -> bool:
        """Returns whether a tensor's elements are known at compile time and equal."""
        source = self._source(instruction)
        while source.opcode in ("broadcast", "convert", "copy", "reduce", "transpose") and source.id in self._known:
            source = self._source(self._by_id[source.operand_ids[0]])
        return source.opcode == "constant" and len(distinct_elements(source.literal)) == 1

    def _scaled_tensor(self, instruction: Any) -> tuple[Any, Any, Any] | None:
        """Returns a tensor scaled by a scalar, with no other consumer: multiplication, tensor, scalar."""
        product = self._source(instruction)
        if product.opcode == "convert" and self._has_one_user(product):
            product = self._source(self._by_id[product.operand_ids[0]])
        if product.opcode != "multiply" or not self._has_one_user(product):
            return None
        if product.metadata.op_name in self._layer_ops:
            return None
        first, second = self._operands(product)
        if self._is_scalar_like(second):
            return product, first, second
        return (product, second, first) if self._is_scalar_like(first) else None

    def _fuse_scaling(self, instruction: Any) -> None:
        """Fuses `a + b * scalar` and `a - b * scalar` into a convolution, bias gradient or update."""
        if instruction.shape.element_type not in _HALF_AND_SINGLE:
            return
        first, second = self._operands(instruction)
        products = [self._scaled_tensor(second)]
        if instruction.opcode == "add" or products[0] is not None:
            products.append(self._scaled_tensor(first))
        known = [product for product in products if product is not None]
        if not known:
            return
        tensor, others = self._source(known[0][1]), [first, second]
        if tensor.metadata.op_type in _SHIFTED and any(map(self._is_scalar_like, others)):
            self._found[known[0][0].id] = self._found[instruction.id] = None
            for candidate in self._instructions_by_op[tensor.metadata.op_name]:
                self._found[candidate] = Fusion("fusion")
            return
        if elements_of(instruction.shape) < 2:
            return
        if len(known) == 1 and (self._is_scalar_like(tensor) or self._is_uniform(tensor)):
            # The compiler multiplies two numbers then, and broadcasts what that gives.
            self._found[known[0][0].id] = Fusion("multiply")
            self._found[instruction.id] = Fusion("fusion")
            return
        for product, _, scale in known:
            self._found[product.id] = None
            self._skip_casts([*others, *self._operands(product), scale])
        self._name_update(instruction, tensor, known[0][2], len(known))

    def _skip_casts(self, instructions: Iterable[Any]) -> None:
        for instruction in instructions:
            source = self._source(instruction)
            if source.opcode == "broadcast":
                source = self._source(self._by_id[source.operand_ids[0]])
            if source.opcode == "convert" and self._has_one_user(source):
                self._found[source.id] = None

    def _name_update(self, instruction: Any, tensor: Any, scale: Any, products: int) -> None:
        alone = products == 1 and self._has_one_user(tensor) and tensor.id not in self._found
        if alone and self._name_update_by_library(instruction, tensor, scale):
            return
        # By a number that is known only when the program runs.
        name = "scaled-inplace" if products > 1 or scale.id in self._known else "scaled-inplace-xb-y"
        self._found[instruction.id] = Fusion(name, "AddTo", operands=2)
        if alone:
            self._share_reduction(tensor)

    def _name_update_by_library(self, instruction: Any, tensor: Any, scale: Any) -> bool:
        """Names an update by the library function that scales or adds the tensor; returns whether."""
        op = tensor.metadata.op_name
        negated = scale.id not in self._known and instruction.opcode == "subtract"
        if tensor.opcode == "convolution":
            self._found[tensor.id] = Fusion("fusion", call=tensor.id)
            self._found[instruction.id] = Fusion("fusion", "AddTo", op, 2, call=tensor.id)
        elif tensor.opcode == "reduce" and self._op_types.get(op) == "BiasAddGrad":
            self._found[tensor.id] = Fusion("fusion", op=instruction.metadata.op_name)
            self._found[instruction.id] = Fusion("fusion", "negate/Op/Negate", operands=1) if negated else None
        elif tensor.opcode == "scatter" and self._is_filled_with(self._operands(tensor)[0], 0):
            self._found[instruction.id] = Fusion("negate", "Op/Negate", operands=1) if negated else None
        else:
            return False
        return True

    def _share_reduction(self, tensor: Any) -> None:
        """Marks a reduction that is scaled into something as shared with identical ones."""
        if tensor.opcode == "reduce":
            self._fuse_reduction(tensor)
            self._found[tensor.id] = (self._found.get(tensor.id) or Fusion())._replace(shared=True)

    def _fuse_gelu(self, product: Any) -> None:
        """Recognises `0.5 * x * (1 + erf(x / sqrt(2)))`, in any order of the factors."""
        factors, products = self._factors(product)
        for half, shifted, tensor in itertools.permutations(factors) if len(factors) == 3 else ():
            members = self._shifted_error_function(shifted) if self._is_filled_with(half, 0.5) else []
            scaled = self._argument(members)
            if scaled is not None and self._is_over_root_of_two(scaled, tensor):
                self._found.update(dict.fromkeys([*products, *members, scaled.id], PART))
                self._found[product.id] = Fusion("gelu-erf", "Op/GeluErf", operands=1)
                return

    def _shifted_error_function(self, instruction: Any) -> list[int]:
        """Returns the instructions of `1 + erf(y)` if an instruction is that, and neither has another consumer."""
        if instruction.opcode != "add" or not self._has_one_user(instruction):
            return []
        for one, result in itertools.permutations(self._operands(instruction)):
            if self._is_filled_with(one, 1) and result.metadata.op_type == "Erf" and self._has_one_user(result):
                return [instruction.id, one.id, *self._instructions_by_op[result.metadata.op_name]]
        return []

    def _factors(self, product: Any) -> tuple[list[Any], list[int]]:
        """Returns the factors of a product of up to three tensors, and the products that only serve it."""
        factors: list[Any] = []
        products: list[int] = []
        for operand in map(self._source, self._operands(product)):
            if operand.opcode == "multiply" and self._has_one_user(operand) and operand.metadata.op_type != "Erf":
                products.append(operand.id)
                factors.extend(map(self._source, self._operands(operand)))
            else:
                factors.append(operand)
        return factors, products

    def _argument(self, members: Collection[int]) -> Any:
        """Returns the only operand of an op's instructions whose elements are not all known."""
        taken = {operand_id for member in members for operand_id in self._by_id[member].operand_ids}
        arguments = taken.difference(members, self._known)
        return self._source(self._by_id[arguments.pop()]) if len(arguments) == 1 else None

    def _is_over_root_of_two(self, scaled: Any, tensor: Any) -> bool:
        """Returns whether an instruction divides a tensor by the square root of two, and only one op uses it."""
        scale = {"multiply": 0.5**0.5, "divide": 2**0.5}.get(scaled.opcode)
        if scale is None or len({self._by_id[user].metadata.op_name for user in self._users[scaled.id]}) > 1:
            return False
        first, second = self._operands(scaled)
        orders = [(first, second), (second, first)] if scaled.opcode == "multiply" else [(first, second)]
        return any(
            self._source(scaled_tensor).id == tensor.id and math.isclose(self._filling(by), scale, rel_tol=1e-3)
            for scaled_tensor, by in orders
        )

    def _fuse_relu(self, instruction: Any) -> None:
        """Recognises `max(x, 0)`."""
        if any(self._is_filled_with(operand, 0) for operand in self._operands(instruction)):
            self._found[instruction.id] = Fusion("relu", "Nonlinearity", operands=1)

    def _fuse_reduction(self, instruction: Any) -> None:
        """Fuses casts, squares and scaling into a reduction."""
        if instruction.metadata.op_type in _OTHER_REDUCTIONS:
            return
        self._skip_float16_casts(instruction)
        operand, fused = self._source(self._by_id[instruction.operand_ids[0]]), False
        if operand.opcode == "convert" and self._has_one_user(operand):
            before = self._source(self._by_id[operand.operand_ids[0]])
            if before.shape.element_type == xla_data_pb2.F16 and operand.shape.element_type == xla_data_pb2.F32:
                self._found[operand.id] = None
                operand = before
        if operand.opcode == "multiply" and self._has_one_user(operand) and len(set(operand.operand_ids)) == 1:
            self._found[operand.id], fused = None, True
        scaled = self._scaled_by(instruction)
        if scaled is not None and scaled.id not in self._found:
            is_one_call = sdk.current() >= _SCALED_REDUCTIONS_SINCE
            self._found[scaled.id], fused = None if is_one_call else Fusion("fusion", "Op/Multiply"), True
        if fused:
            self._found[instruction.id] = Fusion("fusion")

    def _skip_float16_casts(self, instruction: Any) -> None:
        while self._has_one_user(instruction):
            instruction = self._by_id[self._users[instruction.id][0]]
            if instruction.id not in self._same:
                break
        if instruction.opcode == "convert" and instruction.shape.element_type == xla_data_pb2.F16:
            self._found[instruction.id] = None

    def _scaled_by(self, instruction: Any) -> Any:
        """Returns the scaled multiplication that is the only consumer of a reduction."""
        scaled = instruction
        while self._has_one_user(scaled):
            user = self._by_id[self._users[scaled.id][0]]
            is_scalar = user.opcode == "broadcast" and elements_of(user.shape) == elements_of(scaled.shape)
            if not is_scalar and user.id not in self._same:
                return user if self._scales(user, scaled) else None
            scaled = user
        return None

    def _scales(self, user: Any, scaled: Any) -> bool:
        """Returns whether an instruction multiplies another by a scalar or divides it by a constant."""
        operands = self._operands(user)
        if user.opcode == "divide" and operands[0].id == scaled.id and elements_of(user.shape) > 1:
            return operands[1].id in self._known and self._is_scalar_like(operands[1])
        if user.opcode != "multiply" or len(operands) != 2 or operands[0].id == operands[1].id:
            return False
        return self._is_scalar_like(next(operand for operand in operands if operand.id != scaled.id))

    def _reversed_kernel(self, instruction: Any) -> None:
        """Marks the reversed kernel of a convolution's gradient as rearranged once."""
        if instruction.metadata.op_type not in GRADIENTS_OF_INPUT:
            return
        kernel = self._source(self._by_id[instruction.operand_ids[0]])
        users = [self._by_id[user_id] for user_id in self._users.get(instruction.id, ())]
        strided = any(
            axis.base_dilation > 1 for instruction_user in users for axis in instruction_user.window.dimensions
        )
        if not strided and kernel.id in self._kernels:
            self._found[instruction.id] = Fusion(
                "weights-transpose-chans-flip-x-y", "WeightsTransposeChansFlipXY/WeightsTranspose"
            )
            return
        for instruction_user in users:
            if instruction_user.opcode == "convolution":
                self._found[instruction_user.id] = Fusion("conv-with-reverse")

    def _alone(self, instruction: Any) -> None:
        operands = self._operands(instruction)
        if len(operands) < 2 or instruction.metadata.op_type in ONE_CALL:
            return
        divided = instruction.opcode == "divide" and operands[1].id in self._known
        library = "Op/Multiply" if divided else ""  # by a number that the compiler knows
        if any(self._is_broadcast(operand) for operand in operands):
            self._found[instruction.id] = Fusion("fusion", library)
        elif divided:
            self._found[instruction.id] = Fusion("multiply", library)

    def _fuse_expression(self, expression: Expression) -> None:
        """Makes one call of small element-wise ops: of one vertex, or of a compute set each where one is broadcast."""
        last = self._by_id[expression.members[0]]
        name, elements = f"{last.opcode}/expression", elements_of(last.shape)
        operands = [self._by_id[operand_id] for operand_id in expression.operands]
        if not expression.has_types(self._by_id) or (elements > 1 and any(map(self._is_broadcast, operands))):
            for member in expression.members:
                library = (self._found.get(member) or Fusion()).library
                self._found[member] = Fusion(name, library, last.metadata.op_name, group=last.id)
            return
        self._found.update(dict.fromkeys(expression.members, PART))
        loads = len(operands) * len(expression.members)
        dtype = dtype_of((operands or [last])[0].shape)
        sizes = ElementwiseSizes(elements, len(operands), "expression", dtype, form="expression", row=loads)
        self._found[last.id] = Fusion(name, sizes=sizes)

    def _is_plain(self, instruction: Any, fused: Collection[int]) -> bool:
        """Returns whether an element-wise instruction is of `popops`, and in no other call."""
        op = instruction.metadata
        if instruction.id in fused or op.op_name in self._layer_ops or instruction.opcode == "logistic":
            return False
        return op.op_type not in ONE_CALL and op.op_type not in _CALLS_OF_POPNN

    def _is_broadcast(self, instruction: Any) -> bool:
        source = self._source(instruction)
        if source.opcode != "broadcast":
            return False
        before = self._by_id[source.operand_ids[0]].shape
        has_more_axes = 0 < len(before.dimensions) < len(source.shape.dimensions)
        return has_more_axes or elements_of(source.shape) != elements_of(before)


def distinct_elements(literal: Any) -> set[float]:
    """Returns the distinct elements of a constant."""
    elements = {*literal.f32s, *literal.f64s, *literal.s32s, *literal.s64s}
    elements.update(np.frombuffer(literal.f16s, np.float16).tolist())
    return elements


def _has_type_of(instruction: Any, other: Any) -> bool:
    same = instruction.shape.element_type == other.shape.element_type
    return bool(same and elements_of(instruction.shape) == elements_of(other.shape))
