"""Outcomes of ops' runs, and whether an IPU has the outcome of the CPU."""

from __future__ import annotations

import dataclasses
import re

import numpy as np

from soak.modes import Finding
from soak.ops import op_cases, op_recipes

# Allowed difference between XLA and kernels: a few roundings, more for approximated functions.
_TOLERANCE = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 2e-4, "float64": 2e-4, "complex64": 2e-4}
# In mode `kernels` a function's ops are not rewritten. TensorFlow does so on the CPU: it may sum in another order.
_OTHER_ORDER = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-6, "complex64": 1e-6}
# Messages that name an op by its type and the line that made it.
REFUSED = re.compile(r"\(\w+\), made at |unsupported operations when trying to compile")
# XLA's own refusal of the op that is looked at. Shapes that kernels forgive are most of these.
_NOT_COMPILED = re.compile(
    r"tf2xla conversion failed while converting|must be a compile-time constant|Op subject, made at |"
    r"does not yet support pivoting|Cannot compile \w+: XLA compilation requires"
)


@dataclasses.dataclass
class Outcome:
    """The outcome of a run.

    Args:
        values: results, then values of variables, then gradients; None after an error.
        error: what was raised.
    """

    values: list[np.ndarray] | None = None
    error: Exception | None = None


def compared(case: op_cases.Case, mode: str, wanted: Outcome, got: Outcome) -> Finding:
    """Returns whether an IPU has the same outcome as the CPU.

    Ops have more verdicts. `same error` is an error of the same class. `not compiled` is XLA's own refusal. `unchecked`
    is a value that XLA does not check. `more` has no kernel for the CPU.

    Args:
        case: what was run.
        mode: `eager`, `xla` or `kernels`.
        wanted: the CPU's result.
        got: the IPU's result.
    """
    if got.error is not None:
        return _compared_error(mode, wanted, got.error)
    if wanted.error is not None and "No OpKernel was registered" in str(wanted.error):
        return Finding("more", short(wanted.error))
    if wanted.error is not None:
        return Finding("unchecked" if mode == "xla" else "different", f"wanted {_text(wanted)}, got {_text(got)}")
    wrong = _difference(case, mode, wanted.values or [], got.values or [])
    if not wrong:
        return Finding("same")
    return Finding("different", wrong)


def _compared_error(mode: str, wanted: Outcome, error: Exception) -> Finding:
    if mode != "eager" and REFUSED.search(str(error)):
        return Finding("refused", short(error))
    if type(wanted.error) is type(error):
        return Finding("same error")
    if mode != "eager" and _NOT_COMPILED.search(str(error)):
        return Finding("not compiled", short(error))
    return Finding("different", f"wanted {_text(wanted)}, got {short(error)}")


def _difference(case: op_cases.Case, mode: str, wanted: list[np.ndarray], got: list[np.ndarray]) -> str:
    if len(wanted) != len(got):
        return f"wanted {len(wanted)} results, got {len(got)}"
    drawn = any(word in case.op for word in op_recipes.RANDOM)
    for number, (one, other) in enumerate(zip(wanted, got)):
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"result {number}: wanted {one.dtype}{one.shape}, got {other.dtype}{other.shape}"
        if not drawn and not _near(one, other, _ALLOWED[mode].get(one.dtype.name, 0)):
            return f"result {number}: wanted {_few(one)}, got {_few(other)}{_first_place(one, other)}"
    return ""


_ALLOWED: dict[str, dict[str, float]] = {"eager": {}, "xla": _TOLERANCE, "kernels": _OTHER_ORDER}


def _near(one: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    if one.dtype.kind in "OSU":
        return one.tolist() == other.tolist()
    if one.dtype.kind not in "fcV" or not tolerance:
        same = one == other
        return bool(np.all(same | ((one != one) & (other != other))))
    kind = np.complex128 if one.dtype.kind == "c" else np.float64
    return bool(np.allclose(one.astype(kind), other.astype(kind), rtol=tolerance, atol=tolerance, equal_nan=True))


def _first_place(one: np.ndarray, other: np.ndarray) -> str:
    """Returns the first element that differs, where the report shows only others."""
    shown = one.ravel()[:6], other.ravel()[:6]
    if one.dtype.kind in "OSU" or not all(str(a) == str(b) for a, b in zip(*shown)):
        return ""
    for place, pair in enumerate(zip(one.ravel().tolist(), other.ravel().tolist())):
        if str(pair[0]) != str(pair[1]):
            return f"; element {place}: wanted {pair[0]}, got {pair[1]}"
    return ""


def _few(values: np.ndarray) -> str:
    return str(values.ravel()[:6].tolist()) + ("..." if values.size > 6 else "")


def _text(outcome: Outcome) -> str:
    if outcome.error is not None:
        return short(outcome.error)
    return "values " + "; ".join(_few(one) for one in (outcome.values or [])[:2])


def short(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith("  File")]
    telling = [line for line in lines if "defined at" not in line and "Graph execution error" not in line]
    return f"{type(error).__name__}: {' '.join(telling)[:400]}"
