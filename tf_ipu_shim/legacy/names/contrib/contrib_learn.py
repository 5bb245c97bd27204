"""Builds prediction signatures as `build_standardized_signature_def` of `tensorflow.contrib.learn` did."""

from __future__ import annotations

import importlib
from typing import Any

from tf_ipu_shim import errors


class ProblemType:
    """The purpose of a model: one of these numbers."""

    UNSPECIFIED = 0
    CLASSIFICATION = 1
    LINEAR_REGRESSION = 2
    LOGISTIC_REGRESSION = 3


def build_standardized_signature_def(input_tensors: Any, output_tensors: Any, problem_type: int) -> Any:
    """Returns the signature of a model that predicts.

    Args:
        input_tensors: the input tensors by name.
        output_tensors: the output tensors by name.
        problem_type: `ProblemType.UNSPECIFIED`.

    Returns:
        A `SignatureDef`.

    Raises:
        UnsupportedError: the problem is of another type.

    Example:
        >>> with tf.Graph().as_default():
        ...     x = tf.compat.v1.placeholder(tf.float32, [2])
        ...     build_standardized_signature_def({"x": x}, {"y": x + 1.0}, ProblemType.UNSPECIFIED).method_name
        'tensorflow/serving/predict'
    """
    if problem_type != ProblemType.UNSPECIFIED:
        raise errors.UnsupportedError(
            f"build_standardized_signature_def(problem_type={problem_type!r}) is not supported: "
            "TensorFlow no longer has tensorflow.contrib.learn, and only signatures of "
            "ProblemType.UNSPECIFIED can be made. Use "
            "tf.compat.v1.saved_model.classification_signature_def or regression_signature_def."
        )
    saved_model = importlib.import_module("tensorflow.compat.v1").saved_model
    return saved_model.predict_signature_def(input_tensors, output_tensors)
