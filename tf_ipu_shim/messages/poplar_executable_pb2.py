"""Messages of Graphcore's `poplar_executable_pb2`: a compiled application.

`docs/how_to/deploy/embedded_runtime.md` describes the fields and their encoding in a file. The messages hold some of
TensorFlow's own, so that they are made when one is first asked for.
"""

from __future__ import annotations

from tf_ipu_shim.messages import schema as _schema

__getattr__ = _schema.getter(__name__)
