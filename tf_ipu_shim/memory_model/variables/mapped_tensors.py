"""Lists the tensors that a program creates when it runs, for the tensor map of trace events."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.memory_model.computations.outlined_calls import OutlinedInstruction
from tf_ipu_shim.tf_private.protos import xla_data_pb2

_KINDS = {"F": "FLOAT", "BF": "BFLOAT", "S": "INT", "U": "UINT", "C": "COMPLEX", "PRED": "BOOL"}


def stage_computation(pipeline: str, stage: int) -> str:
    """Returns the name of a stage's forward computation.

    Example:
        >>> stage_computation("pipeline", 1)
        'pipeline_stage_1_forward'
    """
    return f"{pipeline}_stage_{stage}_forward"


class MappedTensor(NamedTuple):
    """A tensor.

    Args:
        computation: the function that it is made in; empty for the program itself.
        instruction: the instruction that makes it, such as `add.3`.
        kind: its type, such as `FLOAT32`.
        is_feed: whether it is an element of an infeed, or is sent to an outfeed.
    """

    computation: str
    instruction: str
    shape: tuple[int, ...]
    kind: str
    element_bytes: int
    ipu: int
    name: str
    is_feed: bool = False

    @property
    def bytes(self) -> int:
        """Total bytes."""
        return math.prod(self.shape) * self.element_bytes


class MappedTensors:
    """The tensors of one program, in creation order.

    Equal matmuls share one computation and are in the map once. So are outlined functions with several calls.
    """

    def __init__(self) -> None:
        self._rows: list[MappedTensor] = []
        self._products: set[tuple[int, str]] = set()
        self._calls: dict[tuple[int, str], dict[str, str]] = {}  # of outlined functions, and what these are in

    @property
    def rows(self) -> list[MappedTensor]:
        """All tensors."""
        single = {}
        for calls in self._calls.values():
            if len(calls) == 1:
                single.update(calls)
        return [row._replace(computation=single.get(row.computation, row.computation)) for row in self._rows]

    def instruction(
        self,
        hlo_instruction: Any,
        below: str,
        owner: str,
        ipu: int,
        computation: str,
        product: str = "",
        outlined: OutlinedInstruction | None = None,
    ) -> None:
        """Adds the result of an HLO instruction."""
        if product:
            if (ipu, product) in self._products:
                return
            self._products.add((ipu, product))
        elif outlined is not None:
            calls = self._calls.setdefault((ipu, outlined.fingerprint), {})
            calls.setdefault(outlined.call, computation)
            if outlined.call != next(iter(calls)):
                return
            computation = outlined.call
        kind = xla_data_pb2.PrimitiveType.Name(hlo_instruction.shape.element_type)
        letters, bits = re.fullmatch(r"([A-Z]+?)(\d*)(?:[A-Z]\w*)?", kind).groups()  # type: ignore[union-attr]
        size = max(1, int(bits or 8) // 8)
        shape = tuple(hlo_instruction.shape.dimensions)
        self._add(product or computation, below, shape, f"{_KINDS.get(letters, letters)}{bits}", size, ipu, owner)

    def tensor(
        self, below: str, owner: str, kind: int, shape: Sequence[int] | None, ipu: int, is_feed: bool, computation: str
    ) -> None:
        """Adds a tensor of an op outside XLA programs."""
        if shape is not None and kind:
            dtype = dtypes.as_dtype(kind)
            self._add(computation, below, tuple(shape), dtype.name.upper(), max(1, dtype.size), ipu, owner, is_feed)

    def _add(self, computation: str, below: str, *rest: Any) -> None:
        self._rows.append(MappedTensor(computation, f"{below}.{len(self._rows) + 1}", *rest))
