"""Builds TensorFlow graphs for Graphcore's API; importing it loads the plugin and patches TensorFlow and Keras."""

from __future__ import annotations

import importlib

from tf_ipu_shim import plugin
from tf_ipu_shim.configuration import environment
from tf_ipu_shim.driver import registration
from tf_ipu_shim.frontend.applications import engines
from tf_ipu_shim.frontend.control_flow import body_order, functional_loops
from tf_ipu_shim.frontend.conversion import imported_ops
from tf_ipu_shim.frontend.feeds import host_datasets
from tf_ipu_shim.frontend.keras import import_hook
from tf_ipu_shim.frontend.serving import loading
from tf_ipu_shim.frontend.sharding import sharding
from tf_ipu_shim.frontend.tracing import autograph, stock_compile
from tf_ipu_shim.runtime import datasets_at_exit, devices, forks, interrupts, op_requests, session_devices
from tf_ipu_shim.runtime.errors import error_display

error_display.install()  # first: that the plugin cannot be built is the first error there is
environment.check()
library = plugin.load()
registration.register_lowering(library, devices.get)
op_requests.install(library)
engines.install()
sharding.enable_sharded_gradient_tape()
autograph.install()
stock_compile.install()
functional_loops.install()
body_order.install()
loading.install()
host_datasets.install()
imported_ops.install()
importlib.import_module("tf_ipu_shim.legacy.activation").install()  # by name: nothing else here knows the past
import_hook.install()
interrupts.install(library)
datasets_at_exit.install(library)
session_devices.install()
forks.install()
