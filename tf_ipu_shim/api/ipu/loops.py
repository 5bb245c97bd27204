"""`tensorflow.python.ipu.loops`: loops that run on the IPU without returning to Python between iterations."""

from tf_ipu_shim.frontend.control_flow.loops import repeat, while_loop

__all__ = [
    "repeat",
    "while_loop",
]
