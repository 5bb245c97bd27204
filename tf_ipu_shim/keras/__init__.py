"""`keras.ipu`: the IPU's part of Keras. Its modules are loaded when asked for."""

from __future__ import annotations

import importlib
from typing import Any

from tf_ipu_shim import errors

_MODULES = ("extensions", "layers", "losses", "optimizers")
_EXTENSIONS = (
    "FunctionalLayerPipelineStageAssignment",
    "FunctionalNestedModelPipelineStageAssignment",
    "ModelLayerPipelineStageAssignment",
    "NestedModelPipelineStageAssignment",
    "PipelineStage",
    "ReplicatedMetricReductionMethod",
    "SequentialLayerPipelineStageAssignment",
    "SequentialNestedModelPipelineStageAssignment",
)
_OPTIMIZERS = ("ALSOptimizer", "ALSOptimizerGradientAccumulationWrapper")
_PLACES = {
    **{name: "extensions" for name in _EXTENSIONS},
    **{name: "optimizers" for name in _OPTIMIZERS},
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES and name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        found = importlib.import_module(f"{__name__}.{_PLACES.get(name, name)}")
    except errors.MissingModuleError as error:  # refused by `names.missing`, under the name asked for
        raise AttributeError(str(error)) from error
    if name in _PLACES:
        found = getattr(found, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, *_PLACES})
