"""Options of ops for Poplar's planner: there is none here, but what it would refuse is refused, and when it would be.

Poplar reads an op's options when it compiles the program, so that a wrong one fails the run and not the call.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.eager import context
from tensorflow.python.framework import errors_impl, ops
from tensorflow.python.ops import array_ops
from tensorflow.python.util import nest

from tf_ipu_shim.building import ipu_compiler
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
    if type(ops.get_default_graph()) is not ops.Graph:
        return nest.map_structure(lambda tensor: _marked(tensor, wrong), results)
    # A session runs the op by itself, and Poplar compiles that: a program of its own that can only fail.
    flat = nest.flatten(results)
    with ops.device(flat[0].device):
        failing = ipu_compiler.compile(lambda *given: [_marked(array_ops.identity(one), wrong) for one in given], flat)
    return nest.pack_sequence_as(results, failing)


def _marked(tensor: Any, wrong: str) -> Any:
    tensor.op._set_attr(vocabulary.REFUSED_ATTRIBUTE, attr_value_pb2.AttrValue(s=wrong.encode()))
    return tensor


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
