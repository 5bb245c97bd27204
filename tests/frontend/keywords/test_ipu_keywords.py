"""Keywords that public programs pass to functions of `tensorflow.python.ipu`, against NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from harness import assert_close, configure, run_session
from tf_ipu_shim.ipu import embedding_ops, math_ops, normalization_ops

pytestmark = pytest.mark.one_version
random = np.random.RandomState(0)
A = random.normal(size=[4, 6]).astype(np.float32)
B = random.normal(size=[6, 8]).astype(np.float32)


@pytest.fixture(autouse=True)
def _one_ipu():
    configure()


def computed(call, *fed):
    return run_session(lambda _, *inputs: call(*inputs), fed, on_ipu=True).steps[0]


@pytest.mark.parametrize("second", [False, True])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("dimension", ["a_columns", "a_rows_b_columns", "b_rows"])
def test_keywords_of_a_serialized_matmul(dimension, first, second):
    chosen = {"serialization_factor": 2, "serialization_dimension": dimension}
    (product,) = computed(
        lambda a, b: math_ops.serialized_matmul(a=a, b=b, transpose_a=first, transpose_b=second, **chosen),
        A.T.copy() if first else A,
        B.T.copy() if second else B,
    )
    assert_close(product, A @ B)


def test_keywords_of_a_lookup():
    ids = np.array([3, 0, 1, 0], np.int32)
    (rows,) = computed(lambda table, ids: embedding_ops.embedding_lookup(table, ids=ids, name="words"), A, ids)
    np.testing.assert_array_equal(rows, A[ids])


def test_keywords_of_a_norm():
    """Variables are made where the script asks for it, and are those of the second call with `reuse`."""

    def call(x):
        options = {"groups": 2, "scope": "norm", "trainable": False, "variables_collections": ["own"], "epsilon": 0.1}
        start = {"beta": tf.constant_initializer(2.0), "gamma": tf.constant_initializer(3.0)}
        first = normalization_ops.group_norm(x, param_initializers=start, **options)
        second = normalization_ops.group_norm(x, reuse=True, training=True, **options)
        names = [variable.op.name for variable in tf.compat.v1.get_collection("own")]
        assert sorted(set(names)) == ["norm/beta", "norm/gamma"] and not tf.compat.v1.trainable_variables()
        return first + second

    (found,) = computed(call, A)
    grouped = A.reshape(4, 3, 2)
    spread = np.sqrt(grouped.var(axis=1, keepdims=True) + 0.1)
    expected = 3 * (grouped - grouped.mean(axis=1, keepdims=True)) / spread + 2
    assert_close(found, 2 * expected.reshape(4, 6))
