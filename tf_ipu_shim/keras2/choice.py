"""Makes `tf.keras` Keras 2 on TensorFlow 2.16 and later, which default to Keras 3.

TensorFlow reads `TF_USE_LEGACY_KERAS` while it is imported, so the variable is set just before that, in every process
of an environment with this package. A value that the user has given stays, and so does Keras 3 under
`TF_IPU_SHIM_COMPAT=stock`. Checked on TensorFlow 2.15.1, which has Keras 2 itself, and 2.21.0 with tf_keras 2.21.0.
"""

from __future__ import annotations

import os

from tf_ipu_shim import keras2

ENVIRONMENT_VARIABLE = "TF_USE_LEGACY_KERAS"
CHOSEN = ("1", "true", "True")  # its values that choose Keras 2


def use_keras2() -> None:
    """Asks TensorFlow for Keras 2, if it is installed and neither Keras was chosen."""
    if ENVIRONMENT_VARIABLE not in os.environ and is_separate_package():
        os.environ[ENVIRONMENT_VARIABLE] = "1"


def is_separate_package() -> bool:
    """Returns whether Keras 2 is installed, and not as `keras`.

    Example:
        >>> is_separate_package() == (keras2.root() == "tf_keras.src")
        True
    """
    return not keras2.has_engine("keras.src") and keras2.has_engine("tf_keras.src")
