"""What a script's calls build. Importing it loads the plugin, so that TensorFlow has its IPU device.

scopes, sharding, sharded_tape, host_ops   marks on a script's ops
tracing, autograph, compiled_functions,
ipu_compiler, stock_compile                Python functions become functions of the plugin's programs
loops, functional_loops, feeds             loops that stay on the device, and what they take and send
side_effects                               which ops run although no result needs them
gradients, optimizers                      accumulation, loss scaling, captured gradients; wrappers of optimizers
pipelines                                  a model's stages, and the loops around them
strategies                                 `tf.distribute`, one process or several
keras, old_keras, layers                   Keras models and layers, of SDK 2.2 on and before
serving                                    SavedModels that TensorFlow Serving runs, and IPUs where there are some
ops                                        one implementation of each op
applications                               programs in files, and the engines that run them
utilities                                  devices, trace events, variables
"""

from __future__ import annotations

from tf_ipu_shim import plugin
from tf_ipu_shim.building import autograph, functional_loops, sharding, stock_compile
from tf_ipu_shim.building.applications import engines
from tf_ipu_shim.building.keras import import_hook
from tf_ipu_shim.building.serving import loading
from tf_ipu_shim.driver import registration
from tf_ipu_shim.runtime import datasets_at_exit, devices, driver, forks, interrupts, session_devices
from tf_ipu_shim.runtime.errors import error_display

error_display.install()  # first: that the plugin cannot be built is the first error there is
library = plugin.load()
registration.install(library, devices.get)
driver.install(library)
engines.install()
sharding.enable_sharded_gradient_tape()
autograph.install()
stock_compile.install()
functional_loops.install()
loading.install()
import_hook.install()
interrupts.install(library)
datasets_at_exit.install()
session_devices.install()
forks.install()
