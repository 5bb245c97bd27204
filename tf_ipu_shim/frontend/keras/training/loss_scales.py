"""Warns about loss scales that can only grow, because the configuration clips float16 overflows."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.runtime import devices
from tf_ipu_shim.runtime.float_checks import FloatCheck
from tf_ipu_shim.tf_private import keras_members
from tf_ipu_shim.tf_private.graphs import device as device_lib
from tf_ipu_shim.tf_private.utilities import tf_logging


def warn_if_they_only_grow(model: Any, device: str) -> None:
    """Warns if a model's optimizer looks for overflows of float16, and its device clips them."""
    optimizer = model.optimizer
    if not getattr(optimizer, "dynamic", False) or not hasattr(optimizer, "dynamic_growth_steps"):
        return
    if not any(getattr(layer, "compute_dtype", None) == "float16" for layer in keras_members.flatten_layers(model)):
        return
    ordinal = device_lib.DeviceSpec.from_string(device).device_index or 0
    ipus = devices.get(ordinal)
    if ipus.on_model or ipus.float_checks & FloatCheck.NAN_ON_OVERFLOW:  # the IPU Model clips nothing
        return
    tf_logging.warn(
        f"The dynamic loss scale of {model.name}'s {type(optimizer).__name__} only grows: it is "
        f"{float(optimizer.loss_scale):g}, and doubles every {optimizer.dynamic_growth_steps} steps. It expects "
        "overflows to be infinite, but IPUs clip them to 65504. Set IPUConfig.floating_point_behaviour.nanoo = "
        "True, or give the "
        "optimizer dynamic=False and an initial_scale."
    )
