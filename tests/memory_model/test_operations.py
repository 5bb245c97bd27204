"""PopLibs' operation of element-wise instructions, for instructions written down by hand."""

from types import SimpleNamespace

import pytest

from tf_ipu_shim.memory_model.computations.operations import elementwise_sizes, operation_of_op
from tf_ipu_shim.tf_private.protos import xla_data_pb2


def instruction(number, opcode, *operands, shape=(4, 8), dtype="F32", **fields):
    types = SimpleNamespace(dimensions=shape, element_type=getattr(xla_data_pb2, dtype), tuple_shapes=(), layout=None)
    return SimpleNamespace(id=number, opcode=opcode, operand_ids=operands, shape=types, **fields)


@pytest.mark.parametrize(
    ("exponent", "operation"),
    [(2.0, "square"), (3.0, "multiply"), (0.5, "sqrt"), (-0.5, "rsqrt"), (-1.0, "inverse"), (2.5, "power")],
)
def test_powers_with_known_exponents_are_other_operations(exponent, operation):
    x = instruction(0, "parameter")
    known = instruction(1, "constant", shape=(), literal=xla_data_pb2.LiteralProto(f32s=[exponent]))
    spread = instruction(2, "broadcast", 1, dimensions=())
    power = instruction(3, "power", 0, 2)
    sizes = elementwise_sizes(power, [x, spread], {0: x, 1: known, 2: spread, 3: power})
    assert (sizes.operation, sizes.dtype, sizes.form) == (operation, "float32", "scalar")


def test_vectors_meet_tensors_in_rows_or_in_columns():
    x, row, column = instruction(0, "parameter"), instruction(1, "parameter", shape=(8,)), None
    column = instruction(2, "parameter", shape=(4,))
    rows, columns = instruction(3, "broadcast", 1, dimensions=(1,)), instruction(4, "broadcast", 2, dimensions=(0,))
    by_id = {one.id: one for one in (x, row, column, rows, columns)}
    add = instruction(5, "add", 0, 3)
    assert elementwise_sizes(add, [x, rows], by_id)[4:] == (8, "inner", 8)
    assert elementwise_sizes(add, [x, columns], by_id)[4:] == (4, "outer", 8)


def test_truth_values_have_operations_of_their_own():
    a, b = (instruction(number, "parameter", dtype="PRED") for number in range(2))
    found = [elementwise_sizes(instruction(2, opcode, 0, 1), [a, b], {}).operation for opcode in ("and", "or", "xor")]
    assert found == ["logical_and", "logical_or", "not_equal"]
    assert operation_of_op("RealDiv") == "divide"
