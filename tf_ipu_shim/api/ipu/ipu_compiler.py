"""`tensorflow.python.ipu.ipu_compiler`: compiles a function for the IPU."""

from tf_ipu_shim.frontend.tracing.ipu_compiler import compile

__all__ = ["compile"]
