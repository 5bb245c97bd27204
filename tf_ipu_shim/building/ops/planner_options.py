"""Options of ops for Poplar's planner: there is none here, but what it would refuse is refused, and when it would be.

Poplar reads an op's options when it compiles the program, so that a wrong one fails the run and not the call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import errors_impl
from tensorflow.python.util import nest

from tf_ipu_shim.lowering import vocabulary

_PROPORTION = "availableMemoryProportion"


def check(results: Any, *options: Mapping[str, Any] | str | None) -> Any:
    """Has the program fail that an op with wrong options is in.

    Args:
        results: the op's tensors.
        *options: its options: dictionaries, or their JSON.

    Returns:
        The results.

    Raises:
        InternalError: one is wrong, and the op runs eagerly; in a program, when that runs.
    """
    wrong = next((message for one in options if (message := _wrong(one)) is not None), None)
    if wrong is None:
        return results
    if context.executing_eagerly():
        raise errors_impl.InternalError(None, None, wrong)
    for tensor in nest.flatten(results):
        tensor.op._set_attr(vocabulary.REFUSED_ATTRIBUTE, attr_value_pb2.AttrValue(s=wrong.encode()))
    return results


def _wrong(options: Mapping[str, Any] | str | None) -> str | None:
    given = (json.loads(options) if isinstance(options, str) else options) or {}  # "null" is no options, too
    value = given.get(_PROPORTION)
    try:
        number = None if value is None else float(value)
    except (TypeError, ValueError):
        return f"[Poplar] {_PROPORTION} is {value!r}, which is no number. Use a proportion such as 0.6."
    if number is None or number >= 0:
        return None
    return f"[Poplar] {_PROPORTION} is {value!r}. Value must be greater than or equal to 0, such as 0.6."
