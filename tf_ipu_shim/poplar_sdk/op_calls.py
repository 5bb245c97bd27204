"""Encodes the request to build a user's Poplar op, which the C++ library `csrc/bridge` parses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class OpCall(NamedTuple):
    """An op that a user's library is to build.

    Args:
        target: words: IPU or IPU_MODEL, the chip's version, its tiles that compute, the program, and `target_suffix`.
            It is empty for a GC200.
        gradient_size: how many of the inputs are gradients of outputs; 0 for an op that is no gradient.
        partial_derivative: the index of its input, for a gradient that is built separately for each input.
        name: the name of the op, which its functions get as their debug prefix.
        inputs: described by `describe_tensor`.
    """

    library_path: str
    library_digest: str
    gp_path: str
    op_name: str
    target: str
    gradient_size: int
    partial_derivative: int
    separate_gradients: bool
    attributes: str
    name: str
    inputs: Sequence[str]
    outputs: Sequence[str]

    def encode(self) -> bytes:
        """Returns the call's bytes: each field behind its length."""
        *fields, inputs, outputs = self
        texts = [str(int(field) if isinstance(field, bool) else field) for field in fields]
        return _encode([*texts, ",".join(inputs), ",".join(outputs)])


def name_of(call: bytes) -> str:
    """Returns the name of the op in an encoded call.

    Example:
        >>> name_of(OpCall("a.so", "", "", "Build", "", 0, 0, False, "", "UserOp", ["1:2"], ["1:2"]).encode())
        'UserOp'
    """
    field, rest = b"", call
    for _ in OpCall._fields[: OpCall._fields.index("name") + 1]:
        size, _, rest = rest.partition(b":")
        field, rest = rest[: int(size)], rest[int(size) :]
    return field.decode()


def target_suffix(ipus: int, order: int = -1, origins: Sequence[str] = ()) -> str:
    """Returns the last word of a target.

    Args:
        order: the op's place in its program, by which `origins` of other ops name it; -1 if none does.
        origins: for each input `a` if it is an argument, a variable or a constant. Computed values are `c`, or `c1`
            if IPU 1 computes them. An output of a user's op is `ORDER.OUTPUT`.

    Example:
        >>> target_suffix(2, 5, ["a", "3.0"])
        '2:5:a,3.0'
    """
    return f"{ipus}:{order}:{','.join(origins)}" if order >= 0 or set(origins) - {"a"} else str(ipus)


def describe_tensor(kind: int, sizes: Iterable[int]) -> str:
    """Describes a tensor by its `DataType` and dimensions.

    Example:
        >>> describe_tensor(1, [2, 3])
        '1:2x3'
    """
    return f"{kind}:{'x'.join(map(str, sizes))}"


def _encode(fields: Iterable[str]) -> bytes:
    return b"".join(b"%d:%b" % (len(field), field) for field in map(str.encode, fields))
