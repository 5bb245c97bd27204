"""Messages of Graphcore's `option_flag_pb2`: one Poplar or PopLibs option."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.messages import schema as _schema

FILE = "tensorflow/compiler/plugin/poplar/driver/option_flag.proto"

globals().update(
    _schema.load(
        FILE,
        "xla.poplarplugin",
        """
        message PoplarOptionFlag {
          string option = 1;
          string value = 2;
        }
        """,
    )
)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no message, enum or enum value {name!r}.")
