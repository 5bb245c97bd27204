"""Messages of Graphcore's `poplar_executable_pb2`: a compiled application.

`docs/how_to/deploy/embedded_runtime.md` describes the fields and their encoding in a file. The messages contain some of
TensorFlow's, so they are created at first use.
"""

from __future__ import annotations

from tf_ipu_shim.messages import schema as _schema

__getattr__ = _schema.getter(__name__)
