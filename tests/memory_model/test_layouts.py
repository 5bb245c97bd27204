"""Which operands of a matmul have the layout that it wants, for instructions written down by hand."""

from types import MappingProxyType, SimpleNamespace

import pytest

from tf_ipu_shim.cycle_model.planning import REARRANGED, OperandLayout
from tf_ipu_shim.memory_model.computations.layouts import (
    NO_AXIS,
    Layouts,
    allocate,
    layout_of,
    neighbours_of,
    operand_layouts,
)

OTHER, ARRANGED, ALLOCATED = OperandLayout


def instruction(number, opcode, *operands, shape=(8, 8), **fields):
    fields = {"tuple_index": 0, "metadata": SimpleNamespace(op_type="", op_name=""), **fields}
    return SimpleNamespace(
        id=number,
        opcode=opcode,
        operand_ids=operands,
        shape=SimpleNamespace(dimensions=shape, tuple_shapes=()),
        **fields,
    )


def layouts(*instructions, given=MappingProxyType({})):
    return Layouts({one.id: one for one in instructions}, given, {})


def dot(number, left, right, sums=(1, 0)):
    dnums = SimpleNamespace(lhs_contracting_dimensions=[sums[0]], rhs_contracting_dimensions=[sums[1]])
    return instruction(number, "dot", left, right, dot_dimension_numbers=dnums)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], True),
        ([("tanh", (32, 64))], True),
        ([("reshape", (2, 16, 64)), ("convert", (2, 16, 64))], True),
        ([("reshape", (1, 32, 64, 1)), ("reshape", (32, 64))], True),
        ([("reshape", (32, 4, 16))], True),
        ([("transpose", (32, 64), (0, 1))], True),  # as after each matmul of TensorFlow
        ([("transpose", (64, 32), (1, 0))], False),
        ([("transpose", (64, 32), (1, 0)), ("tanh", (64, 32))], False),
        ([("transpose", (64, 32), (1, 0)), ("transpose", (32, 64), (1, 0))], True),
        ([("reshape", (2, 16, 4, 16)), ("transpose", (2, 4, 16, 16), (0, 2, 1, 3))], True),  # heads
        ([("slice", (16, 64))], True),
        ([("slice", (32, 48), 16)], True),
        ([("slice", (32, 48), 8)], False),
        ([("slice", (32, 40), 16)], False),
        ([("dynamic-slice", (4, 64))], True),
        ([("gather", (32, 64))], False),
    ],
)
@pytest.mark.parametrize("first", ["dot", "parameter"])
def test_neighbours_are_followed_through_views(first, steps, expected):
    given = {0: 1} if first == "parameter" else {}
    chain = [instruction(0, first, shape=(32, 64))]
    for opcode, shape, *more in steps:
        fields = {"dimensions": more[0]} if more else {}
        if opcode == "slice":
            begin = more[0] if more else 0
            parts = [SimpleNamespace(start=begin, limit=begin + extent, stride=1) for extent in shape]
            fields = {"slice_dimensions": parts}
        chain.append(instruction(len(chain), opcode, len(chain) - 1, shape=shape, **fields))
    assert layout_of(chain[-1], len(chain[-1].shape.dimensions) - 1, layouts(*chain, given=given)) is OperandLayout(
        expected
    )


@pytest.mark.parametrize("axis", [0, 1, NO_AXIS])
def test_what_another_program_made_has_its_layout(axis):
    x, weight = instruction(0, "parameter"), instruction(1, "parameter")
    bent, turned = instruction(2, "tanh", 0), instruction(3, "transpose", 0, dimensions=(1, 0))
    found = layouts(x, weight, bent, turned, given={0: axis})
    assert [layout_of(bent, at, found) for at in (0, 1)] == [OperandLayout(axis == 0), OperandLayout(axis == 1)]
    assert neighbours_of(bent, found) == axis
    assert neighbours_of(turned, found) == (axis if axis == NO_AXIS else 1 - axis)
    assert neighbours_of(weight, found) is None  # for the next program to say
    iota = instruction(4, "iota")
    assert neighbours_of(iota, layouts(iota)) == NO_AXIS and not layout_of(iota, 1, layouts(iota))


def test_channels_are_neighbours_after_norms_and_pooling():
    x, kernel = (instruction(number, "parameter", shape=(8, 4, 4, 16)) for number in range(2))
    dnums = SimpleNamespace(input_feature_dimension=3, kernel_input_feature_dimension=2, output_feature_dimension=3)
    first = instruction(2, "convolution", 0, 1, shape=(8, 4, 4, 16), convolution_dimension_numbers=dnums)
    norm = instruction(3, "batch-norm-training", 2)
    normalised = instruction(4, "get-tuple-element", 3, shape=(8, 4, 4, 16))
    pooled = instruction(5, "reduce-window", 4, shape=(8, 2, 2, 16))
    second = instruction(6, "convolution", 5, 1, shape=(8, 2, 2, 16), convolution_dimension_numbers=dnums)
    assert operand_layouts(second, layouts(x, kernel, first, norm, normalised, pooled, second)) == (ARRANGED, ALLOCATED)


def test_the_result_of_a_matmul_suits_the_next_one():
    x, weight, second = (instruction(number, "parameter") for number in range(3))
    first, bent = dot(3, 0, 1), instruction(4, "tanh", 3)
    after = dot(5, 4, 2)
    found = layouts(x, weight, second, first, bent, after)
    assert operand_layouts(first, found) == (ALLOCATED, ALLOCATED)
    assert operand_layouts(after, found) == (ARRANGED, ALLOCATED)
    # A sum over the rows, as for the gradient of a weight, wants neighbours that are not there.
    assert operand_layouts(dot(6, 0, 4, sums=(0, 0)), found) == (OTHER, OTHER)
    # A gradient of the input wants neighbours along the columns of the weight, which has another layout already.
    assert operand_layouts(dot(7, 4, 1, sums=(1, 1)), found) == (ARRANGED, OTHER)


def test_variables_are_allocated_for_their_first_matmul():
    weight, x = instruction(0, "parameter"), instruction(1, "parameter")
    known = Layouts({0: weight, 1: x}, {}, {}, {0: "kernel"}, "forward")
    assert layout_of(weight, 0, known) is layout_of(x, 0, known) is ALLOCATED
    later = Layouts({0: weight, 1: x}, {}, known.allocated, {0: "kernel"}, "backward")
    assert layout_of(weight, 1, later) is OTHER and layout_of(x, 1, later) is ALLOCATED


def test_variables_are_allocated_for_the_forward_pass():
    weight, x = instruction(0, "parameter"), instruction(1, "parameter")
    gradient, forward = dot(2, 1, 0, sums=(1, 1)), dot(3, 1, 0)
    gradient.metadata = SimpleNamespace(op_type="MatMul", op_name="gradients/MatMul_grad/MatMul")
    found = layouts(weight, x, gradient, forward)
    allocate(found)
    assert operand_layouts(forward, found) == (ALLOCATED, ALLOCATED)
    assert operand_layouts(gradient, found) == (ALLOCATED, OTHER)


@pytest.mark.parametrize(("axis", "expected"), [(3, ARRANGED), (1, OTHER), (0, OTHER)])
def test_a_kernels_gradient_sums_over_the_batch(axis, expected):
    image, kernel = (instruction(number, "parameter", shape=(8, 8, 8, 8)) for number in range(2))
    forward = SimpleNamespace(input_feature_dimension=3, kernel_input_feature_dimension=2, output_feature_dimension=3)
    first = instruction(2, "convolution", 0, 1, shape=(8, 8, 8, 8), convolution_dimension_numbers=forward)
    dnums = SimpleNamespace(**{**vars(forward), "input_feature_dimension": axis})
    convolution = instruction(3, "convolution", 2, 1, convolution_dimension_numbers=dnums)
    found = layouts(image, kernel, first, convolution)
    assert operand_layouts(first, found) == (ALLOCATED, ALLOCATED)
    assert operand_layouts(convolution, found) == (expected, ALLOCATED)


def test_other_instructions_have_no_operands_to_arrange():
    assert operand_layouts(instruction(0, "add", 1, 2), layouts()) == REARRANGED
