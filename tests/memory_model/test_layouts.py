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
        ([("slice", (32, 48))], False),
        ([("gather", (32, 64))], False),
    ],
)
@pytest.mark.parametrize("first", ["dot", "parameter"])
def test_neighbours_are_followed_through_views_and_work_by_element(first, steps, expected):
    chain = [instruction(0, first, shape=(32, 64))]
    for opcode, shape, *order in steps:
        chain.append(instruction(len(chain), opcode, len(chain) - 1, shape=shape, dimensions=order and order[0]))
    assert is_arranged(chain[-1], len(chain[-1].shape.dimensions) - 1, by_id(*chain)) is expected


def test_neither_generated_numbers_nor_what_another_program_gives_have_an_order():
    iota, x = instruction(0, "iota"), instruction(1, "parameter")
    assert not is_arranged(iota, 1, by_id(iota)) and is_arranged(x, 1, by_id(x))
    assert not is_arranged(x, 1, by_id(x), {1})


def test_channels_of_a_convolution_are_neighbours_after_norms_and_pooling():
    x, kernel = (instruction(number, "parameter", shape=(8, 4, 4, 16)) for number in range(2))
    dnums = SimpleNamespace(input_feature_dimension=3, output_feature_dimension=3)
    first = instruction(2, "convolution", 0, 1, shape=(8, 4, 4, 16), convolution_dimension_numbers=dnums)
    norm = instruction(3, "batch-norm-training", 2)
    normalised = instruction(4, "get-tuple-element", 3, shape=(8, 4, 4, 16))
    pooled = instruction(5, "reduce-window", 4, shape=(8, 2, 2, 16))
    second = instruction(6, "convolution", 5, 1, shape=(8, 2, 2, 16), convolution_dimension_numbers=dnums)
    assert arranged_operands(second, by_id(x, kernel, first, norm, normalised, pooled, second)) == (True, False)


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
    dnums = SimpleNamespace(input_feature_dimension=axis, output_feature_dimension=3)
    convolution = instruction(2, "convolution", 0, 1, convolution_dimension_numbers=dnums)
    assert arranged_operands(convolution, by_id(image, kernel, convolution)) == (expected, False)


def test_other_instructions_have_no_operands_to_arrange():
    assert arranged_operands(instruction(0, "add", 1, 2), {}) == (False, False)
