"""`ipu_tensorflow_addons.saved_model_tool.converter.autograph`: splits graphs into pipeline stages.

Its modules load when asked for.
"""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    "utils",
    {
        "options": "RunConfig",
        "strategies": "ManualPipelineStrategy",
        "tfv1graph": "Graph Input Node Output TFv1Graph",
    },
)
