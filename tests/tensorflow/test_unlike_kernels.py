"""Ops of which XLA makes something else than TensorFlow's kernels do compute what TensorFlow's documentation says."""

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from tf_ipu_shim.ipu import config

ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture(autouse=True, params=["xla", "kernels"])
def way(request, own_environment, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION", request.param)
    configure()
    yield
    config.reset_ipu_configuration()


def run(function, *arguments):
    with tf.device(IPU):
        return tf.function(function, jit_compile=True)(*[tf.constant(one) for one in arguments])


@pytest.mark.parametrize("kind", ["float32", "int32", "complex64"])
def test_conjugate_transpose(kind):
    values = ROWS.astype(kind) * (1 + 1j if kind == "complex64" else 1)
    made = run(lambda x: tf.transpose(x, [1, 0], conjugate=True) * 2, values)
    np.testing.assert_array_equal(made, 2 * values.conj().T)
    assert made.dtype == kind


def test_conjugate_transpose_of_real_numbers_as_the_op():
    made = run(lambda x: tf.raw_ops.ConjugateTranspose(x=x, perm=[1, 0]), ROWS)
    np.testing.assert_array_equal(made, ROWS.T)


@pytest.mark.parametrize("weights", [np.zeros([0], np.float32), ROWS])
def test_bincount_counts_a_matrix_as_one(weights):
    """By hand: twice 0, three times 1, once 2."""
    numbers = np.array([[0, 1, 1], [2, 0, 1]], np.int32)
    made = run(lambda x, w: tf.raw_ops.Bincount(arr=x, size=4, weights=w), numbers, weights)
    np.testing.assert_array_equal(made, [2, 3, 1, 0] if not weights.size else [0 + 4, 1 + 2 + 5, 3, 0])
