"""Messages of Graphcore's `threestate_pb2`: an undefined, on or off choice."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.messages import schema as _schema

FILE = "tensorflow/compiler/plugin/poplar/driver/threestate.proto"

globals().update(
    _schema.load(
        FILE,
        "xla.poplarplugin",
        """
        enum ThreeState {
          THREESTATE_OFF = 0;
          THREESTATE_ON = 1;
          THREESTATE_UNDEFINED = 2;
        }
        """,
    )
)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no message, enum or enum value {name!r}.")
