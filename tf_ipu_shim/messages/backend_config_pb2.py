"""Messages of Graphcore's `backend_config_pb2`: annotations that scopes put on ops.

Contains the names of the attributes that `ipu.scopes` sets. The rest of that file belongs to the compiler.
"""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.messages import schema as _schema

FILE = "tensorflow/compiler/plugin/poplar/driver/backend_config.proto"

globals().update(
    _schema.load(
        FILE,
        "xla.poplarplugin",
        """
        enum FrontendAttributeId {
          STOCHASTIC_ROUNDING = 0;
          PARTIALS_TYPE = 1;
        }
        """,
    )
)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no message, enum or enum value {name!r}.")
