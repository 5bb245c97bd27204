"""Imports TensorFlow internals of logging, files, tests and profiling, and its build information."""

from __future__ import annotations

from tensorflow.python.compiler.xla import (
    xla,  # xla.compile of TensorFlow 1
)
from tensorflow.python.framework import (
    test_util,  # TensorFlowTestCase, the base of Graphcore's
)
from tensorflow.python.lib.io import (
    _pywrap_record_io,  # reads them without a dataset
    tf_record,  # writes files of records
)
from tensorflow.python.platform import (
    tf_logging,  # the module itself, whose functions scripts and tests replace; `tf.compat.v1.logging` is another
)
from tensorflow.python.profiler import (
    trace,  # names what runs in TensorFlow's profile
)
from tensorflow.python.util import (
    _pywrap_util_port,  # whether the library has oneDNN
)
