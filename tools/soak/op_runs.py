"""Runs ops on the CPU, eagerly on an IPU and in programs of an IPU, and says where what comes out differs.

`python -m soak.op_runs REPORT CASES WRONG OP...` is one lot, in a process of its own, which an op may
crash or hang: it appends a line of JSON to the report before and after each run.

Calls TensorFlow's internals by an op's definition, in eager mode and in graphs: checked on 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import os
import re
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import op_def_library, ops

from soak import op_cases, op_recipes
from soak.feed_programs import running
from tf_ipu_shim import ipu

WAYS = ("eager", "xla", "kernels")
ENDED_BY = "SOAK_ENDED_BY"
"""Environment variable: an op whose first run on an IPU ends the process, for the test of what becomes of that."""
CPU, IPU = "/device:CPU:0", "/device:IPU:0"
# What differs between arithmetic of XLA and that of kernels: a few roundings, some of functions that approximate.
_TOLERANCE = {"float16": 1e-2, "bfloat16": 5e-2, "float32": 2e-4, "float64": 2e-4, "complex64": 2e-4}
# By kernels a function's ops are not rewritten, which TensorFlow does on the CPU: it may sum in another order.
_OTHER_ORDER = {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-6, "complex64": 1e-6}
_MOST_MEMORY = 24 << 30  # bytes of addresses: what a wrong size asks for fails, and does not take the machine down
# Messages that name an op by its type and the line that made it.
_REFUSED = re.compile(r"\(\w+\), made at |unsupported operations when trying to compile")
# XLA's own refusal: it says which op, not which type and line. Shapes that kernels forgive are most of these.
_NOT_COMPILED = re.compile(r"tf2xla conversion failed while converting|must be a compile-time constant")
_INTEGERS = {"qint8": "int8", "quint8": "uint8", "qint16": "int16", "quint16": "uint16", "qint32": "int32"}


@dataclasses.dataclass
class Outcome:
    """What came of a run.

    Args:
        values: results, then what variables hold, then gradients; None after an error.
        error: what was raised.
    """

    values: list[np.ndarray] | None = None
    error: Exception | None = None


@dataclasses.dataclass(frozen=True)
class Finding:
    """What comparing said.

    Args:
        status: `same`, `same error`, `refused`, `not compiled` (XLA said so), `unchecked` (XLA looks at no values),
            `NaN` (of which XLA makes something else), `more` (the CPU has no kernel for these types), or `different`.
        detail: what was wanted and what came.
    """

    status: str
    detail: str = ""


def _tensor(argument: Any) -> Any:
    if isinstance(argument, list):
        return [_tensor(one) for one in argument]
    if isinstance(argument, op_cases.Variable):
        return tf.Variable(argument.value)
    if isinstance(argument, op_cases.Typed):
        with tf.device(CPU):
            return tf.bitcast(tf.constant(argument.value, _INTEGERS[argument.dtype.name]), argument.dtype)
    if not argument.size:  # a result, as TensorFlow makes them; an array of NumPy's has an address even so
        nothing = np.zeros((), argument.dtype) if argument.dtype != object else b""
        return tf.raw_ops.Fill(dims=argument.shape, value=nothing)
    return tf.constant(argument)


def _attributes(case: op_cases.Case) -> dict[str, Any]:
    """All attributes, those left out as their default is."""
    return {
        attribute.name: case.attributes.get(attribute.name, _plain(attribute.type, attribute.default_value))
        for attribute in op_cases.definition(case.op).attr
    }


def _plain(kind: str, value: Any) -> Any:
    if kind.startswith("list("):
        return list(getattr(value.list, _FIELDS[kind[5:-1]]))
    found = getattr(value, _FIELDS[kind])
    return (None if found.unknown_rank else [size.size for size in found.dim]) if kind == "shape" else found


_FIELDS = {"int": "i", "float": "f", "bool": "b", "string": "s", "type": "type", "shape": "shape", "tensor": "tensor"}


def _handles(arguments: Sequence[Any]) -> list[Any]:
    return [argument.handle if isinstance(argument, tf.Variable) else argument for argument in arguments]


def _eagerly(case: op_cases.Case, arguments: Sequence[Any]) -> list[Any]:
    """Runs the op at once, with TensorFlow's own tape looking on."""
    attributes, found = _attributes(case), op_cases.definition(case.op)
    inputs: list[Any] = []
    for argument in _handles(arguments):
        inputs += argument if isinstance(argument, list) else [argument]
    outputs = 0
    for output in found.output_arg:
        listed = len(attributes[output.type_list_attr]) if output.type_list_attr else 1
        outputs += attributes[output.number_attr] if output.number_attr else listed
    flat = tuple(itertools.chain.from_iterable(attributes.items()))
    results = execute.execute(case.op.encode(), outputs, inputs=inputs, attrs=flat, ctx=context.context())
    if execute.must_record_gradient():
        execute.record_gradient(case.op, inputs, flat, results)
    return list(results or [])


def _in_graph(case: op_cases.Case, arguments: Sequence[Any]) -> list[Any]:
    found = op_cases.definition(case.op)
    inferred = {name for one in found.input_arg for name in (one.type_attr, one.number_attr, one.type_list_attr)}
    given = {name: value for name, value in _attributes(case).items() if name not in inferred}
    inputs = {argument.name: value for argument, value in zip(found.input_arg, _handles(arguments))}
    made = op_def_library.apply_op(case.op, name="subject", **inputs, **given)
    return [] if isinstance(made, tf.Operation) or made is None else tf.nest.flatten(made)


def _differentiable(tensors: Sequence[Any]) -> list[Any]:
    flat = tf.nest.flatten(list(tensors))
    return [one for one in flat if not isinstance(one, tf.Variable) and (one.dtype.is_floating or one.dtype.is_complex)]


def _complete(results: list[Any], arguments: Sequence[Any]) -> list[Any]:
    """Results, and what variables hold after it."""
    return results + [one.read_value() for one in arguments if isinstance(one, tf.Variable)]


def eager(case: op_cases.Case, device: str, gradients: bool = False) -> Outcome:
    """Runs a case op by op.

    Args:
        case: the case.
        device: where.
        gradients: whether gradients are results too.
    """

    def run() -> list[Any]:
        with tf.device(device):
            arguments = [_tensor(argument) for argument in case.arguments]
            sources = _differentiable(arguments)
            with tf.GradientTape() as tape:
                tape.watch(sources)
                results = _eagerly(case, arguments)
                targets = _differentiable(results)
            more = tape.gradient(targets, sources) if gradients and targets and sources else []
            return _complete(results, arguments) + [tf.convert_to_tensor(one) for one in more if one is not None]

    return _outcome(run)


def traced(case: op_cases.Case, device: str, gradients: bool = False) -> Outcome:
    """Runs a case in a function: on the CPU as TensorFlow runs it, on an IPU as a program.

    Args:
        case: the case.
        device: where.
        gradients: whether gradients are results too.
    """

    def run() -> list[Any]:
        with tf.device(device):
            arguments = [_tensor(argument) for argument in case.arguments]

        def body(*tensors: Any) -> list[Any]:
            some = iter(tensors)
            own = [_own(case, number, one, some) for number, one in enumerate(arguments)]
            results = _in_graph(case, own)
            sources, targets = _differentiable(own), _differentiable(results)
            more = tf.gradients(targets, sources) if gradients and targets and sources else []
            complete = _complete(results, own) + [tf.convert_to_tensor(one) for one in more if one is not None]
            return complete or [tf.constant(0.0)]

        @tf.function(autograph=False)
        def program(*tensors: Any) -> Any:
            if device == CPU:
                with tf.device(CPU):
                    return body(*tensors)
            with ipu.scopes.ipu_scope(device):
                return ipu.ipu_compiler.compile(body, list(tensors))

        handed = [one for number, one in enumerate(arguments) if not _is_constant(case, number)]
        return list(program(*[one for one in tf.nest.flatten(handed) if not isinstance(one, tf.Variable)]))

    return _outcome(run)


def _is_constant(case: op_cases.Case, number: int) -> bool:
    """Whether a script writes an input down, as axes. Programs whose shapes are arguments run by XLA in any way."""
    name, argument = op_cases.definition(case.op).input_arg[number].name, case.arguments[number]
    return isinstance(argument, np.ndarray) and name in op_recipes.VALUES and name not in op_recipes.DATA


def _own(case: op_cases.Case, number: int, argument: Any, tensors: Iterator[Any]) -> Any:
    """An argument as it is within the function."""
    if _is_constant(case, number):
        return tf.constant(case.arguments[number])
    if isinstance(argument, tf.Variable):
        return argument
    return [next(tensors) for _ in argument] if isinstance(argument, list) else next(tensors)


def _outcome(run: Callable[[], list[Any]]) -> Outcome:
    try:
        return Outcome(values=[_as_numpy(one) for one in run()])
    except Exception as error:  # all that a script would see is what is compared
        return Outcome(error=error)


def _as_numpy(tensor: Any) -> np.ndarray:
    with tf.device(CPU):
        tensor = tf.identity(tensor)
        if tensor.dtype.is_quantized:
            tensor = tf.bitcast(tensor, _INTEGERS[tensor.dtype.name])
        return np.asarray(tensor.numpy())


def compared(case: op_cases.Case, way: str, wanted: Outcome, got: Outcome) -> Finding:
    """Whether an IPU's outcome is the CPU's.

    Args:
        case: what was run.
        way: how: `eager`, `xla` or `kernels`.
        wanted: what the CPU gave.
        got: what the IPU gave.
    """
    if got.error is not None:
        return _compared_error(way, wanted, got.error)
    if wanted.error is not None and "No OpKernel was registered" in str(wanted.error):
        return Finding("more", _short(wanted.error))
    if wanted.error is not None:
        return Finding("unchecked" if way == "xla" else "different", f"wanted {_text(wanted)}, got {_text(got)}")
    wrong = _difference(case, way, wanted.values or [], got.values or [])
    if not wrong:
        return Finding("same")
    return Finding("NaN" if way == "xla" and case.what == "NaN" else "different", wrong)


def _compared_error(way: str, wanted: Outcome, error: Exception) -> Finding:
    if way != "eager" and _REFUSED.search(str(error)):
        return Finding("refused", _short(error))
    if type(wanted.error) is type(error):
        return Finding("same error")
    if way != "eager" and _NOT_COMPILED.search(str(error)):
        return Finding("not compiled", _short(error))
    return Finding("different", f"wanted {_text(wanted)}, got {_short(error)}")


def _difference(case: op_cases.Case, way: str, wanted: list[np.ndarray], got: list[np.ndarray]) -> str:
    if len(wanted) != len(got):
        return f"wanted {len(wanted)} results, got {len(got)}"
    drawn = any(word in case.op for word in op_recipes.RANDOM)
    for number, (one, other) in enumerate(zip(wanted, got)):
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"result {number}: wanted {one.dtype}{one.shape}, got {other.dtype}{other.shape}"
        if not drawn and not _near(one, other, _ALLOWED[way].get(one.dtype.name, 0)):
            return f"result {number}: wanted {_few(one)}, got {_few(other)}"
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


def _few(values: np.ndarray) -> str:
    return str(values.ravel()[:6].tolist()) + ("..." if values.size > 6 else "")


def _text(outcome: Outcome) -> str:
    if outcome.error is not None:
        return _short(outcome.error)
    return "values " + "; ".join(_few(one) for one in (outcome.values or [])[:2])


def _short(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip() and not line.startswith("  File")]
    telling = [line for line in lines if "defined at" not in line and "Graph execution error" not in line]
    return f"{type(error).__name__}: {' '.join(telling)[:400]}"


def valid_cases(op: str, most: int) -> list[op_cases.Case]:
    """Cases that the CPU runs: the first that is found, and the same with other types."""
    found = next((case for case in op_cases.candidates(op) if _is_valid(case)), None)
    if found is None:
        return []
    others = (case for case in op_cases.variants(found) if _is_valid(case))
    return [found, *itertools.islice(others, most - 1)]


def _is_valid(case: op_cases.Case) -> bool:
    error = eager(case, CPU).error
    if isinstance(error, (AttributeError, NameError, KeyError)):
        raise error  # a mistake of the soak's own
    return error is None


def has_gradient(op: str) -> bool:
    """Whether TensorFlow knows the gradient of an op."""
    try:
        return ops.gradient_registry.lookup(op) is not None
    except LookupError:
        return False


def look_at(op: str, say: Callable[..., None], most: int, with_wrong: bool = True) -> None:
    """Runs all there is to run of one op.

    Args:
        op: its type.
        say: takes what is written down, as keywords.
        most: valid cases; wrong ones are made of the first.
        with_wrong: whether to run those too.
    """
    say(looking_for_input=True)
    cases = valid_cases(op, most)
    if not cases:
        say(not_run="no valid input was found")
        return
    wrong = op_cases.wrong(cases[0]) if with_wrong else ()
    for case, gradients in [*((case, False) for case in cases), (cases[0], True), *((case, False) for case in wrong)]:
        if gradients and not has_gradient(op):
            continue
        _each_way(case, gradients, say)


def _each_way(case: op_cases.Case, gradients: bool, say: Callable[..., None]) -> None:
    text = case.text() + (" with gradients" if gradients else "")
    run = functools.partial(say, case=text)
    run(way="CPU")
    at_once, in_function = eager(case, CPU, gradients), traced(case, CPU, gradients)
    if gradients and at_once.error is not None and in_function.error is not None:
        return
    run(way="eager")
    if os.environ.get(ENDED_BY) == case.op:
        os.kill(os.getpid(), signal.SIGKILL)
    finding = compared(case, "eager", at_once, eager(case, IPU, gradients))
    run(way="eager", **dataclasses.asdict(finding))
    found = {}
    for way in ("xla", "kernels"):
        run(way=way)
        with running(way):
            found[way] = compared(case, way, in_function, traced(case, IPU, gradients))
        run(way=way, **dataclasses.asdict(found[way]))
    if (found["xla"].status == "refused") != (found["kernels"].status == "refused"):
        run(way="both", status="different", detail=f"refused in one way only: {found}")


def _say(report: TextIO, op: str, **what: Any) -> None:
    print(json.dumps({"op": op, **what}), file=report, flush=True)


def configure() -> None:
    """One IPU."""
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.configure_ipu_system()


def main(arguments: Sequence[str]) -> None:
    """Runs a lot: a report to append to, the most valid cases of an op, whether (1) to run wrong ones, then ops."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    configure()
    with open(arguments[0], "a") as report:
        for op in arguments[3:]:
            look_at(op, functools.partial(_say, report, op), int(arguments[1]), arguments[2] == "1")
            _say(report, op, done=True)


if __name__ == "__main__":
    main(sys.argv[1:])
