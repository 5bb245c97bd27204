"""`gen_application_runtime`: starts and calls compiled applications from a graph. Its ops run on the CPU.

`ipu.embedded_runtime` makes them, with checks.
"""

from __future__ import annotations

from tf_ipu_shim.api.op_modules import wrappers

__getattr__, __dir__ = wrappers(__name__, "application_call application_runtime")
