"""Refuses Keras 3 models in the scope of a strategy, because they would train on the host CPU unnoticed.

Checked on keras 3.15, which TensorFlow 2.21.0 installs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import errors, patches

MODULE = "keras.src.models.model"


def patch_module(module: Any) -> None:
    """Patches Keras 3 models to check the strategy of their scope."""
    patches.replace(
        module.Model,
        "__new__",
        _patch_model_new,
        why="a model of Keras 3 in a strategy's scope is refused: it cannot run on IPUs",
    )


def _patch_model_new(stock: Callable[..., Any]) -> Any:
    from tensorflow.compat.v2 import distribute as distribute_lib

    @functools.wraps(stock)
    def new(cls: type, *args: Any, **kwargs: Any) -> Any:
        if getattr(distribute_lib.get_strategy(), "_enable_keras_extensions", None) is not None:
            raise errors.UnsupportedError(
                f"{cls.__name__} is a model of Keras 3, which cannot run on IPUs; expected one of Keras 2. Install "
                "Keras 2 (pip install --no-deps tf_keras, of TensorFlow's version). Unset "
                "TF_USE_LEGACY_KERAS, or set it to 1. Import Keras from TensorFlow: "
                "`from tensorflow import keras`."
            )
        return stock(cls, *args, **kwargs)

    return staticmethod(new)
