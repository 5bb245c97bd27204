"""Runs ops on the CPU, eagerly on an IPU and in programs of an IPU, and reports different results.

`python -m soak.ops.op_runs REPORT CASES INPUTS OP...` is one lot in its own process, which an op may crash or hang. It
appends a line of JSON to the report before and after each run.

Calls TensorFlow's internals by an op's definition, in eager mode and in graphs: checked on 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

import numpy as np
import tensorflow as tf
from tensorflow.python.eager import context, execute
from tensorflow.python.framework import op_def_library, ops

from soak.modes import Finding
from soak.ops import hostile, op_cases, op_recipes
from soak.ops.op_outcomes import REFUSED, Outcome, compared, short
from soak.programs.feed_programs import running
from tf_ipu_shim import ipu

MODES = ("eager", "xla", "kernels")
ENDED_BY = "SOAK_ENDED_BY"
"""Environment variable: an op whose first run on an IPU ends the process, to test how that is reported."""
CPU, IPU = "/device:CPU:0", "/device:IPU:0"
_MOST_MEMORY = 24 << 30  # bytes of addresses: what a wrong size asks for fails, and does not take the machine down
_INTEGERS = {"qint8": "int8", "quint8": "uint8", "qint16": "int16", "quint16": "uint16", "qint32": "int32"}


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
    """Returns all attributes, with defaults for those left out."""
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
    """Runs the op eagerly, under TensorFlow's own tape."""
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
    return list(results or [])[: op_recipes.RESULTS.get(case.op)]


def _in_graph(case: op_cases.Case, arguments: Sequence[Any]) -> list[Any]:
    found = op_cases.definition(case.op)
    inferred = {name for one in found.input_arg for name in (one.type_attr, one.number_attr, one.type_list_attr)}
    given = {name: value for name, value in _attributes(case).items() if name not in inferred}
    inputs = {argument.name: value for argument, value in zip(found.input_arg, _handles(arguments))}
    made = op_def_library.apply_op(case.op, name="subject", **inputs, **given)
    results = [] if isinstance(made, tf.Operation) or made is None else tf.nest.flatten(made)
    return results[: op_recipes.RESULTS.get(case.op)]


def _differentiable(tensors: Sequence[Any]) -> list[Any]:
    flat = tf.nest.flatten(list(tensors))
    return [one for one in flat if not isinstance(one, tf.Variable) and (one.dtype.is_floating or one.dtype.is_complex)]


def _complete(results: list[Any], arguments: Sequence[Any]) -> list[Any]:
    """Results, and the values of variables afterwards."""
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
    return function_of(case, device, gradients)(case)


def function_of(case: op_cases.Case, device: str, gradients: bool = False) -> Callable[[op_cases.Case], Outcome]:
    """Makes a function, as `traced` runs it, for a case and others that differ only in elements of its tensors.

    Args:
        case: one of them.
        device: where.
        gradients: whether gradients are results too.
    """
    variables: dict[int, tf.Variable] = {}

    def body(*tensors: Any) -> list[Any]:
        some = iter(tensors)
        own = [variables[n] if n in variables else _own(case, n, one, some) for n, one in enumerate(case.arguments)]
        results = _in_graph(case, own)
        sources, targets = _differentiable(own), _differentiable(results)
        more = tf.gradients(targets, sources) if gradients and targets and sources else []
        complete = _complete(results, own) + [tf.convert_to_tensor(one) for one in more if one is not None]
        return complete or [tf.constant(0.0)]

    @tf.function(autograph=False, reduce_retracing=False)
    def program(*tensors: Any) -> Any:
        if device == CPU:
            with tf.device(CPU):
                return body(*tensors)
        with ipu.scopes.ipu_scope(device):
            return ipu.ipu_compiler.compile(body, list(tensors))

    def run(one: op_cases.Case) -> list[Any]:
        handed = []
        with tf.device(device):
            for number, argument in enumerate(one.arguments):
                if isinstance(argument, op_cases.Variable):
                    variables.setdefault(number, tf.Variable(argument.value)).assign(argument.value)
                elif not _is_constant(case, number):
                    handed.append(_tensor(argument))
        return list(program(*tf.nest.flatten(handed)))

    return lambda one: _outcome(lambda: run(one))


def _is_constant(case: op_cases.Case, number: int) -> bool:
    """Whether a script writes an input as a constant, such as axes. Programs with shapes as arguments run in XLA in
    every mode."""
    name, argument = op_cases.definition(case.op).input_arg[number].name, case.arguments[number]
    return isinstance(argument, np.ndarray) and name in op_recipes.VALUES and name not in op_recipes.DATA


def _own(case: op_cases.Case, number: int, argument: Any, tensors: Iterator[Any]) -> Any:
    """Returns an argument as the function sees it."""
    if _is_constant(case, number):
        return tf.constant(case.arguments[number])
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


def valid_cases(op: str, most: int) -> list[op_cases.Case]:
    """Cases that the CPU can run: the first that is found, and the same with other types."""
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
    """Returns whether TensorFlow knows the gradient of an op."""
    try:
        return ops.gradient_registry.lookup(op) is not None
    except LookupError:
        return False


def look_at(op: str, say: Callable[..., None], most: int, inputs: str = "wrong") -> None:
    """Runs all cases of one op.

    Args:
        op: its type.
        say: accepts the values of a line of the report, as keywords.
        most: valid cases; others are made of these.
        inputs: `valid`, `wrong` for wrong ones as well, `edges` for those at the edges of their types. `float16`: the
        two execution modes are compared with each other.
    """
    say(looking_for_input=True)
    cases = valid_cases(op, most)
    if not cases:
        say(not_run="no valid input was found")
        return
    if inputs in ("edges", "float16") and _refused(cases[0], say):
        return
    if inputs == "float16":
        _both_modes(cases, say)
        return
    chosen = _at_edges(cases) if inputs == "edges" else _ordinary(cases, inputs == "wrong")
    functions = _Functions()
    for case, gradients in chosen:
        if not gradients or has_gradient(op):
            _each_mode(case, gradients, say, functions)


class _Functions:
    """Functions of one op, each for all cases that differ only in their tensors' elements."""

    def __init__(self) -> None:
        self._made: dict[Any, Callable[[op_cases.Case], Outcome]] = {}

    def run(self, case: op_cases.Case, mode: str, gradients: bool) -> Outcome:
        """Runs a case on the CPU, or by an execution mode."""
        written = [repr(one) for number, one in enumerate(case.arguments) if _is_constant(case, number)]
        signature = [_signature(argument) for argument in case.arguments]
        key = mode, gradients, repr((signature, written, sorted(case.attributes.items())))
        if key not in self._made:
            self._made[key] = function_of(case, CPU if mode == "CPU" else IPU, gradients)
        return self._made[key](case)


def _signature(argument: Any) -> Any:
    if isinstance(argument, list):
        return [_signature(one) for one in argument]
    value = argument if isinstance(argument, np.ndarray) else argument.value
    return type(argument).__name__, value.shape, str(value.dtype)


def _refused(case: op_cases.Case, say: Callable[..., None]) -> bool:
    """Returns whether programs refuse the op for any input."""
    with running("kernels"):
        outcome = traced(case, IPU)
    if outcome.error is None or not REFUSED.search(str(outcome.error)):
        return False
    say(case=case.text(), mode="kernels", status="refused", detail=short(outcome.error))
    return True


def _ordinary(cases: Sequence[op_cases.Case], with_wrong: bool) -> Iterator[tuple[op_cases.Case, bool]]:
    yield from ((case, False) for case in cases)
    yield cases[0], True
    yield from ((case, False) for case in (op_cases.wrong(cases[0]) if with_wrong else ()))


def _at_edges(cases: Sequence[op_cases.Case]) -> Iterator[tuple[op_cases.Case, bool]]:
    """Yields all edges of the first case, with gradients those that mix them, and one of each kind for other types."""
    yield from ((case, False) for case in hostile.cases(cases[0]))
    yield from ((case, True) for case in hostile.mixed(cases[0]))
    yield from ((case, False) for other in cases[1:] for case in hostile.mixed(other))


def _each_mode(case: op_cases.Case, gradients: bool, say: Callable[..., None], functions: _Functions) -> None:
    text = case.text() + (" with gradients" if gradients else "")
    run = functools.partial(say, case=text, what=case.what)
    run(mode="CPU")
    at_once, in_function = eager(case, CPU, gradients), functions.run(case, "CPU", gradients)
    if gradients and at_once.error is not None and in_function.error is not None:
        return
    run(mode="eager")
    if os.environ.get(ENDED_BY) == case.op:
        os.kill(os.getpid(), signal.SIGKILL)
    finding = _finding(case, "eager", gradients, [at_once], eager(case, IPU, gradients))
    run(mode="eager", **dataclasses.asdict(finding))
    found = {}
    for mode in ("xla", "kernels"):
        run(mode=mode)
        with running(mode):
            got = functions.run(case, mode, gradients)
        found[mode] = _finding(case, mode, gradients, [in_function, at_once], got)
        run(mode=mode, **dataclasses.asdict(found[mode]))
    if (found["xla"].status == "refused") != (found["kernels"].status == "refused"):
        run(mode="both", status="different", detail=f"refused in one mode only: {found}")


def _finding(case: op_cases.Case, mode: str, gradients: bool, right: Sequence[Outcome], got: Outcome) -> Finding:
    """Compares with the CPU's result, in functions and outside of them, and with zeros for denormals."""
    first, *others = right
    finding = compared(case, mode, first, got)
    if finding.status == "different" and case.what.startswith("denormals"):
        others.append(eager(hostile.flushed(case), CPU, gradients))
    return Finding("same") if any(compared(case, mode, one, got).status == "same" for one in others) else finding


def _has_halves(case: op_cases.Case) -> bool:
    return any(isinstance(one, np.ndarray) and one.dtype == np.float16 for one in case.arguments)


def _both_modes(cases: Sequence[op_cases.Case], say: Callable[..., None]) -> None:
    """Runs cases of float16, whose overflows are an IPU's and not the CPU's."""
    functions = _Functions()
    for case in (one for valid in cases if _has_halves(valid) for one in hostile.cases(valid)):
        outcomes = {}
        say(case=case.text(), mode="CPU")
        eager(case, CPU)
        for mode in ("kernels", "xla"):
            say(case=case.text(), mode=mode)
            with running(mode):
                outcomes[mode] = functions.run(case, mode, gradients=False)
        finding = compared(case, "xla", *outcomes.values())
        say(case=case.text(), what=case.what, mode="xla", **dataclasses.asdict(finding))


def _say(report: TextIO, op: str, **what: Any) -> None:
    print(json.dumps({"op": op, **what}), file=report, flush=True)


def configure() -> None:
    """One IPU."""
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.configure_ipu_system()


def main(arguments: Sequence[str]) -> None:
    """Runs a lot: a report to append to, the most valid cases of an op, which inputs, then ops."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    configure()
    with open(arguments[0], "a") as report:
        for op in arguments[3:]:
            look_at(op, functools.partial(_say, report, op), int(arguments[1]), arguments[2])
            _say(report, op, done=True)


if __name__ == "__main__":
    main(sys.argv[1:])
