"""`ipu_tensorflow_addons.saved_model_tool`: converts TensorFlow 1 SavedModels for IPUs. Loaded when asked for."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    "converter saved_model_cli saved_model_test_utils",
    {
        "ipu_convert": "IpuConversionParams IpuGraphConverter create_inference_graph",
    },
)
