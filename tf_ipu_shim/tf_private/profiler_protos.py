"""Imports protobuf messages of TensorFlow's profiler, which `import tensorflow` does not load."""

from __future__ import annotations

from tensorflow.tsl.profiler.protobuf import (
    xplane_pb2,  # traces that TensorBoard shows
)
