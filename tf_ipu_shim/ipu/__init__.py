"""The drop-in `tensorflow.python.ipu`. Importing it loads the plugin, so that TensorFlow has its IPU device."""

from __future__ import annotations

from tf_ipu_shim import plugin
from tf_ipu_shim.ipu import (
    config,
    gradient_accumulation,
    ipu_compiler,
    ipu_infeed_queue,
    ipu_outfeed_queue,
    loops,
    scopes,
    sharding,
    utils,
)
from tf_ipu_shim.ipu.ops import pipelining_ops
from tf_ipu_shim.lowering import installation
from tf_ipu_shim.runtime import devices, driver

installation.install(plugin.load(), devices.get)
driver.install(plugin.load())
sharding.enable_sharded_gradient_tape()

__all__ = [
    "config",
    "gradient_accumulation",
    "ipu_compiler",
    "ipu_infeed_queue",
    "ipu_outfeed_queue",
    "loops",
    "pipelining_ops",
    "scopes",
    "sharding",
    "utils",
]
