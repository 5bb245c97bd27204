"""`ipu_tensorflow_addons.saved_model_tool.converter.autograph`: splits graphs into pipeline stages.

Its modules load when asked for.
"""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    ["options", "strategies", "tfv1graph", "utils"],
    {
        "Graph": "tfv1graph",
        "Input": "tfv1graph",
        "ManualPipelineStrategy": "strategies",
        "Node": "tfv1graph",
        "Output": "tfv1graph",
        "RunConfig": "options",
        "TFv1Graph": "tfv1graph",
    },
)
