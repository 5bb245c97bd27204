"""Inputs at the edges of their types: NaN, infinities, denormals, close and largest numbers, few or no elements."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from soak.ops import op_recipes
from soak.ops.op_cases import Argument, Case, Typed, Variable, definition

_FEW = 3  # inputs, which are changed one by one, too
Change = Callable[[np.ndarray], np.ndarray]


def cases(case: Case) -> Iterator[Case]:
    """Yields the same op with edges of its types in all inputs at once, and in each input by itself.

    Args:
        case: a valid one.
    """
    data = [number for number in range(len(case.arguments)) if _is_data(case, number)]
    kinds = {kind for number in data for kind in _kinds(case.arguments[number])}
    for name, edges in EDGES.items():
        if edges.kind not in kinds:
            continue
        apart = [[number] for number in data] if 1 < len(data) <= _FEW and edges.apart else []
        for which in [data, *apart]:
            what = name if which == data else f"{name} in input {which[0]}"
            yield from _changed(case, which, edges.put, what, edges.kind)
    yield from _changed(case, data, _one_element, "one element", "any")
    yield from _changed(case, data, lambda values: values[..., :0], "last axis empty", "any")
    yield from _changed(case, data, lambda values: values[:0], "first axis empty", "any")


def mixed(case: Case) -> Iterator[Case]:
    """One case for each type, with a mix of all edges.

    Args:
        case: a valid one.
    """
    data = [number for number in range(len(case.arguments)) if _is_data(case, number)]
    for name in ("not finite", "integer edges"):
        yield from _changed(case, data, EDGES[name].put, name, EDGES[name].kind)


def flushed(case: Case) -> Case:
    """Returns the case with zeros for denormals.

    In stock TensorFlow, an op's thread and a tensor's size decide whether a denormal counts as zero.

    Args:
        case: any.
    """

    def flush(values: np.ndarray) -> np.ndarray:
        if values.dtype.kind not in "fV":
            return values
        return np.where(np.abs(values) < _limits(values.dtype)[1], np.zeros_like(values), values)

    arguments = tuple(_apply(argument, flush, "float") for argument in case.arguments)
    return dataclasses.replace(case, arguments=arguments)


@dataclasses.dataclass(frozen=True)
class Edges:
    """Values that replace elements of a tensor in turn.

    Args:
        kind: `float` or `integer`.
        elements: elements of a NumPy type.
        stride: the distance between the elements that change.
        apart: whether inputs are changed one by one as well.
    """

    kind: str
    elements: Callable[[np.dtype], list[float]]
    stride: int = 1
    apart: bool = False

    def put(self, values: np.ndarray) -> np.ndarray:
        """Returns a tensor with these elements in it."""
        changed = values.copy()
        some = np.array(self.elements(_real(values.dtype)), np.float64 if self.kind == "float" else object)
        with np.errstate(over="ignore"):
            for turn, place in enumerate(range(0, values.size, self.stride)):
                changed.flat[place] = np.asarray(some[turn % len(some)]).astype(values.dtype)
        return changed


def _limits(dtype: np.dtype) -> tuple[float, float, float]:
    """Largest number, least normal one, a denormal one."""
    limits = tf.experimental.numpy.finfo(dtype) if dtype.kind == "f" else None
    if limits is not None:
        return float(limits.max), float(limits.tiny), float(limits.tiny) / 4
    return 3.3895314e38, 1.1754944e-38, 1.1754944e-38 / 4  # bfloat16


def _step(dtype: np.dtype) -> float:
    """Returns the distance from one to the next number, eightfold: less than a type with fewer bits can tell."""
    return 8 * float(tf.experimental.numpy.finfo(dtype).eps) if dtype.kind == "f" else 2**-7


def _real(dtype: np.dtype) -> np.dtype:
    return np.zeros((), dtype).real.dtype if dtype.kind == "c" else dtype


def _integers(dtype: np.dtype) -> list[float]:
    limits = np.iinfo(dtype)
    return [limits.min, limits.max, limits.max, limits.min + 1, 0, limits.max // 2 + 1]


_INF, _NAN = float("inf"), float("nan")
EDGES: dict[str, Edges] = {
    "NaN": Edges("float", lambda _: [_NAN], 4, apart=True),
    "NaN only": Edges("float", lambda _: [_NAN]),
    "infinities": Edges("float", lambda _: [_INF, -_INF], 2, apart=True),
    "-infinity only": Edges("float", lambda _: [-_INF]),
    "not finite": Edges("float", lambda _: [0.5, _NAN, -_INF, -0.0, _INF, -1.5, 7.0]),
    "close": Edges("float", lambda dtype: [1.0 + n * _step(dtype) for n in (3, 1, 4, 0, 2)]),
    "denormals": Edges("float", lambda dtype: [_limits(dtype)[2], -_limits(dtype)[2]]),
    "largest": Edges("float", lambda dtype: [_limits(dtype)[0], -_limits(dtype)[0], _limits(dtype)[1]], apart=True),
    "out of range": Edges("float", lambda dtype: [-2.0, 300.0, -129.0, 3e9, -3e9, 1e19, 2147483648.0], apart=True),
    "negative and zero": Edges("float", lambda _: [-1.0, 0.0, -0.0, -2.5, 2.0]),
    "integer edges": Edges("integer", _integers, apart=True),
    "zeros": Edges("integer", lambda _: [0]),
}


def _is_data(case: Case, number: int) -> bool:
    """Returns whether an input is what an op computes on, and not a shape, an axis or an index."""
    name, argument = definition(case.op).input_arg[number].name, case.arguments[number]
    return bool(_kinds(argument)) and (name not in op_recipes.VALUES or "float" in _kinds(argument))


def _kinds(argument: Argument) -> set[str]:
    if isinstance(argument, list):
        return {kind for one in argument for kind in _kinds(one)}
    if isinstance(argument, (Typed, Variable)):
        return _kinds(argument.value) if isinstance(argument, Variable) else set()
    if argument.dtype.kind in "fc" or argument.dtype == tf.bfloat16.as_numpy_dtype:
        return {"float"}
    return {"integer"} if argument.dtype.kind in "iu" else set()


def _changed(case: Case, which: list[int], change: Change, what: str, kind: str) -> Iterator[Case]:
    chosen = enumerate(case.arguments)
    arguments = tuple(_apply(one, change, kind) if number in which else one for number, one in chosen)
    if any(one is not other for one, other in zip(arguments, case.arguments)):
        yield dataclasses.replace(case, arguments=arguments, what=what)


def _apply(argument: Argument, change: Change, kind: str) -> Argument:
    if isinstance(argument, list):
        return [_apply(one, change, kind) for one in argument]
    if isinstance(argument, Variable):
        return Variable(_applied(argument.value, change, kind))
    return argument if isinstance(argument, Typed) else _applied(argument, change, kind)


def _applied(argument: np.ndarray, change: Change, kind: str) -> np.ndarray:
    if (kind != "any" and kind not in _kinds(argument)) or (kind == "any" and not argument.ndim):
        return argument
    return change(argument)


def _one_element(values: np.ndarray) -> np.ndarray:
    return values[(slice(0, 1),) * values.ndim]
