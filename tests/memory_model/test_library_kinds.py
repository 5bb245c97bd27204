"""Which work instructions of XLA are that PopLibs has a function for."""

import pytest
import tensorflow as tf

from tf_ipu_shim.cycle_model.sizes import FactorSizes, SolveSizes, SortSizes
from tf_ipu_shim.memory_model.computations.kinds import kind_and_sizes
from tf_ipu_shim.memory_model.hlo import compiler_ir


def sizes_of(function, *shapes):
    """Returns the sizes of all instructions of a function."""
    concrete = tf.function(function).get_concrete_function(*(tf.TensorSpec(shape) for shape in shapes))
    arguments = [compiler_ir.Argument(tf.float32.as_datatype_enum, shape) for shape in shapes]
    library = [concrete.function_def, *concrete.graph.as_graph_def().library.function]
    module = compiler_ir.shared().hlo(concrete.function_def.signature.name, library, arguments)
    found = []
    for computation in module.computations:
        by_id = {each.id: each for each in computation.instructions}
        for each in computation.instructions:
            found.append(kind_and_sizes(each, [by_id[number] for number in each.operand_ids], by_id)[1])
    return found


ROWS, SQUARE = (3, 4, 50), (5, 6, 6)


@pytest.mark.parametrize(
    ("function", "shapes", "sizes"),
    [
        (lambda x: tf.math.top_k(x, 8), [ROWS], SortSizes(600, 50, "float32", True, 8)),
        (lambda x: tf.math.top_k(x, 50), [ROWS], SortSizes(600, 50, "float32", True, 50)),
        (lambda x: tf.math.top_k(x, 8).indices, [ROWS], SortSizes(600, 50, "float32", True, 8)),
        (tf.linalg.triangular_solve, [SQUARE, (5, 6, 3)], SolveSizes(5, 6, 3)),
        (
            lambda a, b: tf.linalg.triangular_solve(a, b, lower=False, adjoint=True),
            [SQUARE, SQUARE],
            SolveSizes(5, 6, 6),
        ),
        (tf.linalg.cholesky, [SQUARE], FactorSizes(5, 6)),
    ],
)
def test_functions_of_poplibs(function, shapes, sizes):
    assert [found for found in sizes_of(function, *shapes) if isinstance(found, type(sizes))] == [sizes]
