"""Requests of the plugin's ops to Python's driver, and their answers (see `runtime.op_requests`).

The plugin's C++ structs are generated from this schema when it is built (`plugin.message_headers`).
"""

from __future__ import annotations

from tf_ipu_shim.messages import schema as _schema

CALLS = {
    "attach": ("UseQuestion", "DeviceUse"),
    "configure": ("ConfigureOrder", "Nothing"),
    "reset_devices": ("Nothing", "Nothing"),
    "reset_seed": ("SeedOrder", "Nothing"),
    "gather_instances": ("ReplicaValues", "AllReplicaValues"),
    "model_used": ("Nothing", "YesOrNo"),
    "configuration": ("Nothing", "Configurations"),
    "num_ipus": ("DeviceQuestion", "DeviceSize"),
    "start_application": ("ApplicationStart", "ApplicationStarted"),
    "explain_compile_error": ("CompileError", "CompileErrorText"),
    "synthetic_data": ("SyntheticQuestion", "YesOrNo"),
}
"""Request and answer of each call, by the name of its handler."""

globals().update(_schema.contents(__name__))
__getattr__ = _schema.getter(__name__)
