"""Unpickles plain values from other processes without calling code."""

from __future__ import annotations

import io
import pickle
from typing import Any, NoReturn

from tf_ipu_shim import errors


def loads(data: bytes) -> Any:
    """Like `pickle.loads`, for numbers, strings, bytes, None and collections of them only.

    Example:
        >>> loads(pickle.dumps({"epoch": 3}))
        {'epoch': 3}
    """
    return _SafeUnpickler(io.BytesIO(data)).load()


class _SafeUnpickler(pickle.Unpickler):
    """Unpickles values without classes or functions."""

    def find_class(self, module: str, name: str) -> NoReturn:
        raise errors.UnsupportedError(
            f"An object of {module}.{name} between processes is not emulated: only numbers, strings, bytes, lists, "
            "tuples, sets and dictionaries are. Send tensors and arrays with broadcast or allgather."
        )
