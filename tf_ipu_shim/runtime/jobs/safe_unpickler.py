"""Objects that come from another process: values that are made without calling what it names."""

from __future__ import annotations

import io
import pickle
from typing import Any, NoReturn

from tf_ipu_shim import errors


def loads(data: bytes) -> Any:
    """As `pickle.loads`, of numbers, texts, bytes, None, and lists, tuples, sets and dictionaries of them.

    Args:
        data: of `pickle.dumps`.

    Raises:
        UnsupportedError: it names a class or function.

    Example:
        >>> loads(pickle.dumps({"epoch": 3}))
        {'epoch': 3}
    """
    return _PlainValues(io.BytesIO(data)).load()


class _PlainValues(pickle.Unpickler):
    """Reads values that are made without a class or function."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise errors.UnsupportedError(
            f"An object of {module}.{name} between processes is not emulated: numbers, texts, bytes, lists, tuples, "
            "sets and dictionaries are. Send tensors and arrays with broadcast or allgather."
        )
