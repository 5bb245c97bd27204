"""Ops of which XLA makes something else than TensorFlow's kernels do compute what TensorFlow's documentation says."""

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU

pytestmark = pytest.mark.usefixtures("configured_in_each_mode")

ROWS = np.arange(6, dtype=np.float32).reshape(2, 3)


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


def diagonal_of(x, k):
    return tf.raw_ops.MatrixDiagPartV3(input=x, k=k, padding_value=9.0, align="LEFT_LEFT")


def with_diagonal(x, k):
    return tf.raw_ops.MatrixSetDiagV3(input=x, diagonal=tf.zeros([1]), k=k, align="LEFT_LEFT")


def test_diagonals_that_only_a_run_knows():
    np.testing.assert_array_equal(run(diagonal_of, ROWS, 1), [1, 5])
    np.testing.assert_array_equal(run(diagonal_of, ROWS, [-1, 1]), [[1, 5], [0, 4], [3, 9]])
    np.testing.assert_array_equal(run(with_diagonal, ROWS, 2), [[0, 1, 0], [3, 4, 5]])


@pytest.mark.parametrize(
    "function, k",
    [(diagonal_of, 3), (diagonal_of, -2), (diagonal_of, [1, -1]), (with_diagonal, 3), (with_diagonal, -2)],
)
def test_diagonals_that_there_are_not_are_an_error(function, k):
    """XLA ends the process at them."""
    with pytest.raises(tf.errors.InternalError, match="Matrix(DiagPart|SetDiag)V3.*out of bound"):
        run(function, ROWS, k)
    np.testing.assert_array_equal(run(diagonal_of, ROWS, 0), [0, 4])


@pytest.mark.parametrize(
    "version, boxes, kind",
    [(3, 0, "float32"), (3, 5, "float16"), (4, 0, "float32"), (4, 1, "float16"), (4, 5, "float32")],
)
def test_boxes_fewer_than_may_be_chosen(version, boxes, kind):
    """XLA refuses them, does not compile halves, and ends the process at none. All but the second are the same."""
    corners = np.array([[0, 0, 1, 1], [2, 2, 3, 3], *[[0, 0, 1, 1]] * 3], kind)[:boxes]
    scores = np.array([0.9, 0.8, 0.7, 0.6, 0.5], kind)[:boxes]
    options = {"max_output_size": 4, "iou_threshold": 0.5, "score_threshold": 0.1}

    def function(b, s):
        if version == 3:
            return tf.raw_ops.NonMaxSuppressionV3(boxes=b, scores=s, **options)
        return tf.raw_ops.NonMaxSuppressionV4(boxes=b, scores=s, pad_to_max_output_size=True, **options)

    chosen = [[], [0], None, None, None, [0, 1]][boxes]
    made = run(function, corners, scores)
    if version == 3:
        np.testing.assert_array_equal(made, chosen)
    else:
        np.testing.assert_array_equal(made[0], [*chosen, 0, 0, 0, 0][:4])
        assert made[1] == len(chosen)


def test_eigenvalues_of_complex_matrices_are_refused():
    """XLA gives wrong ones."""
    with pytest.raises(tf.errors.InvalidArgumentError, match="SelfAdjointEigV2"):
        run(tf.linalg.eigh, np.eye(2, dtype=np.complex64))
    np.testing.assert_array_equal(run(tf.linalg.eigvalsh, np.diag([1.0, 2.0])), [1, 2])


@pytest.mark.parametrize("kind", [tf.float16, tf.bfloat16])
def test_gradient_of_resizing_pictures_of_16_bits(kind):
    """Of a picture to its own size, which leaves it as it is: the numbers that come in, which 16 bits can hold."""
    gradient = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3) / 4
    picture = np.zeros([1, 2, 2, 3], np.float32)

    def function(g, x):
        made = tf.raw_ops.ResizeBilinearGrad(grads=g, original_image=tf.cast(x, kind))
        return tf.cast(made, tf.float32)

    np.testing.assert_array_equal(run(function, gradient, picture), gradient)


def test_quantized_ops_of_xla_are_refused():
    def function(x):
        options = {"quantization_min_val": -128, "quantization_max_val": 127}
        made = tf.raw_ops.UniformQuantize(input=x, scales=1.0, zero_points=0, Tout=tf.qint8, **options)
        return tf.raw_ops.UniformDequantize(input=made, scales=1.0, zero_points=0, Tout=tf.float32, **options)

    with pytest.raises(tf.errors.InvalidArgumentError, match="UniformQuantize.*made at"):
        run(function, ROWS)
