"""The plugin's request to lower a program, and Python's answer with the program to run.

The plugin's C++ structs are generated from this schema when it is built (`plugin.message_headers`).
A field that one side does not know is an error.

The messages contain some of TensorFlow's, so they are created at first use.
"""

from __future__ import annotations

from tf_ipu_shim.messages import schema as _schema

__getattr__ = _schema.getter(__name__)
