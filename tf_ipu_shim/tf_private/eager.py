"""The eager context, gradients, and what they call."""

from __future__ import annotations

from tensorflow.python import (
    pywrap_tfe,  # TensorFlow's C API for eager execution
    tf2,  # whether TensorFlow behaves as version 2
)
from tensorflow.python.eager import (
    backprop,  # GradientTape and the function that it asks for gradients
    context,  # the context: devices, modes, the handle that the plugin takes
    core,  # the file whose frames tracebacks leave out
    execute,  # execute.execute, which is patched for Ctrl-C
)
from tensorflow.python.ops import (
    custom_gradient,  # custom_gradient with variables found
    gradients_impl,  # gradients in a graph, of TensorFlow 1 too
    gradients_util,  # gradients between given graphs
)
