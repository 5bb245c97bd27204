"""Which operands of a matmul have the layout that it wants, for instructions written down by hand."""

from types import SimpleNamespace

import pytest

from tf_ipu_shim.memory_model.computations.layouts import arranged_operands, is_arranged


def instruction(number, opcode, *operands, shape=(8, 8), **fields):
    fields = {"tuple_index": 0, "metadata": SimpleNamespace(op_type=""), **fields}
    return SimpleNamespace(
        id=number,
        opcode=opcode,
        operand_ids=operands,
        shape=SimpleNamespace(dimensions=shape, tuple_shapes=()),
        **fields,
    )


def by_id(*instructions):
    return {one.id: one for one in instructions}


def dot(number, left, right, sums=(1, 0)):
    dnums = SimpleNamespace(lhs_contracting_dimensions=[sums[0]], rhs_contracting_dimensions=[sums[1]])
    return instruction(number, "dot", left, right, dot_dimension_numbers=dnums)


@pytest.mark.parametrize(
    ("opcodes", "expected"),
    [
        (["parameter"], True),
        (["parameter", "tanh"], True),
        (["parameter", "reshape", "convert"], True),
        (["parameter", "transpose"], False),
        (["parameter", "transpose", "tanh"], False),
        (["parameter", "slice"], False),
        (["iota", "add"], False),
    ],
)
def test_layouts_are_kept_by_what_computes_element_by_element(opcodes, expected):
    chain = [instruction(at, opcode, *([at - 1] if at else [])) for at, opcode in enumerate(opcodes)]
    assert is_arranged(chain[-1], by_id(*chain)) is expected


def test_the_result_of_a_matmul_suits_the_next_one():
    x, weight, second = (instruction(number, "parameter") for number in range(3))
    first, bent = dot(3, 0, 1), instruction(4, "tanh", 3)
    after = dot(5, 4, 2)
    assert arranged_operands(after, by_id(x, weight, second, first, bent, after)) == (True, False)
    # A sum over the rows, as for the gradient of a weight, wants neighbours that are not there.
    gradient = dot(6, 0, 4, sums=(0, 0))
    assert arranged_operands(gradient, by_id(x, weight, first, bent, gradient)) == (False, False)
    turned = dot(7, 0, 4, sums=(1, 1))
    assert arranged_operands(turned, by_id(x, weight, first, bent, turned)) == (True, True)


@pytest.mark.parametrize(("axis", "expected"), [(3, True), (1, True), (0, False)])
def test_a_kernels_gradient_sums_over_the_batch(axis, expected):
    image, kernel = (instruction(number, "parameter", shape=(1, 8, 8, 8)) for number in range(2))
    dnums = SimpleNamespace(input_feature_dimension=axis)
    convolution = instruction(2, "convolution", 0, 1, convolution_dimension_numbers=dnums)
    assert arranged_operands(convolution, by_id(image, kernel, convolution)) == (expected, False)


def test_other_instructions_have_no_operands_to_arrange():
    assert arranged_operands(instruction(0, "add", 1, 2), {}) == (False, False)
