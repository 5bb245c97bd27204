"""Where TensorFlow has no `tf.estimator`, the estimators for IPUs say so."""

import importlib.util

import pytest

from tf_ipu_shim import ipu

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("tensorflow_estimator") is not None, reason="this TensorFlow has tf.estimator"
)


def test_the_module_says_what_to_use_instead():
    with pytest.raises(ImportError, match="TensorFlow only has up to 2.15.*IPUStrategy"):
        from tensorflow.python.ipu import ipu_estimator  # noqa: F401


@pytest.mark.parametrize("name", ["ipu_estimator", "ipu_pipeline_estimator", "ipu_run_config"])
def test_the_attribute_says_the_same(name):
    with pytest.raises(AttributeError, match="TensorFlow only has up to 2.15"):
        getattr(ipu, name)
