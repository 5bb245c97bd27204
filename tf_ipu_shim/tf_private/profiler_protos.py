"""The profiler's messages, which `import tensorflow` leaves out."""

from __future__ import annotations

from tensorflow.tsl.profiler.protobuf import (
    xplane_pb2,  # traces that TensorBoard shows
)
