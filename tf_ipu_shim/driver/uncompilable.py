"""Explains errors that only XLA's own compile shows, in both execution modes, with the script's line and a fix.

`refuse` raises for most of it before a program runs. In some launches HLO depends on values or on variables that decide
shapes. XLA refuses these when it compiles them, and `explain` writes the message.
"""

from __future__ import annotations

import collections
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim import plugin
from tf_ipu_shim.compiler.checks.diagnostics import Diagnostics, display_name
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.compiler.ir.node_defs import producer_name
from tf_ipu_shim.compiler.ir.program import Cluster, LoweredProgram
from tf_ipu_shim.plugin.library import Call
from tf_ipu_shim.runtime import op_requests
from tf_ipu_shim.runtime.errors import error_texts
from tf_ipu_shim.tf_private.protos import node_def_pb2

_NAMES = re.compile(r"node `([^`]+)`|\{\{node ([^}]+)\}\}|\[\[([^\]{]+)\]\]")
_CONVERTED = re.compile(r"conversion failed while converting ([^\s\[]+)\[")  # the launch's function is the last one
# A variable that has no value before the program runs.
_MAY_COMPILE_LATER = re.compile(r"uninitiali[sz]ed|variable .* (not|no) ", re.IGNORECASE)
_CONSTANT = "must be a compile-time constant"
_LIST = re.compile(r"dynamic slice dimension|tensor list|TensorList|list element|num_elements", re.IGNORECASE)
_DYNAMIC = re.compile(r"dynamic(ally)?[ -](sized|shape)", re.IGNORECASE)
_DYNAMIC_MESSAGE = "an op that needs constant sizes takes a tensor with a size that follows from values"
_CONSTANT_ADVICE = (
    "Arguments that represent shapes or dimensions must be evaluated to concrete values at compile time. Compute "
    "sizes, axes and slice offsets from Python numbers and static shapes, not from values of the program. To write "
    "at a computed index use tf.tensor_scatter_nd_update, or a mask and tf.where."
)
_LIST_ADVICE = (
    "Give the tf.TensorArray its number of elements, size=n, instead of letting it grow. Limit the iterations of a "
    "differentiated loop: tf.while_loop(..., maximum_iterations=n) or a `for` over "
    "tf.range(n)."
)
_ADVICE = "Leave the op out of the compiled function, or run it on the host: ipu.scopes.outside_compilation_scope()."
_GRADIENT = "gradient_tape/"
_MOST_LAUNCHES = 4096  # of which a process remembers where they come from
_MOST_NAMED = 50  # ops by which a launch's line is looked for


class _LaunchOrigin(NamedTuple):
    """The origin of a launch's ops: traced functions and the first ops' names."""

    scope: str
    scopes: tuple[str, ...]
    names: tuple[str, ...]


_launched: collections.OrderedDict[str, _LaunchOrigin] = collections.OrderedDict()
_lock = threading.Lock()


def refuse(diagnostics: Diagnostics, program: LoweredProgram, unconverted: Mapping[str, str]) -> None:
    """Refuses a program with a part that XLA cannot compile for any values."""
    _refuse_random_shapes(diagnostics, program)
    for cluster in [*program.clusters, *program.planned_clusters] if unconverted else ():
        message = unconverted.get(cluster.function)
        if message is None or cluster.constants or _MAY_COMPILE_LATER.search(message) or _has_shapes(program, cluster):
            continue
        raise errors_impl.InvalidArgumentError(
            None, None, _refusal(diagnostics, _origin(program, cluster.function, cluster.scope), message)
        )


def record_origins(program: LoweredProgram) -> None:
    """Records the origin of a program's launches."""
    scopes = {cluster.function: cluster.scope for cluster in [*program.clusters, *program.planned_clusters]}
    launches = [name for node in _launches(program) if (name := node.attr["function"].func.name) in scopes]
    with _lock:
        for name in launches:
            _launched[name] = _origin(program, name, scopes[name])
        while len(_launched) > _MOST_LAUNCHES:
            _launched.popitem(last=False)


def explain(call: int, message: str) -> str:
    """Returns the error text for a launch that XLA could not compile at run time."""
    with _lock:
        origins = (_launched.get(function) for function in reversed(_CONVERTED.findall(message)))
        origin = next(filter(None, origins), _LaunchOrigin("a program", (), ()))
    return _refusal(Diagnostics(Call(plugin.load()._c, call)), origin, message)


op_requests.explain_compile_error = explain


def _launches(program: LoweredProgram) -> Iterator[node_def_pb2.NodeDef]:
    functions = [*program.functions, *program.planned_functions]
    nodes = [program.node, *(node for function in functions for node in function.node_def)]
    return (node for node in nodes if node.op == vocabulary.LAUNCH)


def _has_shapes(program: LoweredProgram, cluster: Cluster) -> bool:
    """Returns whether shapes in a part depend on variables."""
    return any(
        vocabulary.SHAPES_ATTRIBUTE in node.attr and node.attr["function"].func.name == cluster.function
        for node in _launches(program)
    )


def _origin(program: LoweredProgram, function: str, scope: str) -> _LaunchOrigin:
    """Returns the origin of a launch's ops."""
    clusters = [*program.clusters, *program.planned_clusters]
    scopes = {**program.traced, **{cluster.function: cluster.scope for cluster in clusters}}
    functions = [*program.functions, *program.planned_functions]
    named = dict.fromkeys(
        scopes.get(function_def.signature.name, function_def.signature.name) for function_def in functions
    )
    nodes = next((function_def.node_def for function_def in functions if function_def.signature.name == function), ())
    return _LaunchOrigin(scope, (scope, *named), tuple(node.name for node in nodes[:_MOST_NAMED]))


def _refusal(diagnostics: Diagnostics, origin: _LaunchOrigin, xla_message: str) -> str:
    message = error_texts.clean(xla_message.strip().split("\n")[0]).rstrip(".")
    advice = _CONSTANT_ADVICE if _CONSTANT in message else _LIST_ADVICE if _LIST.search(xla_message) else _ADVICE
    if advice is _ADVICE and _DYNAMIC.search(message):
        message, advice = _DYNAMIC_MESSAGE, _CONSTANT_ADVICE
    described = _describe_op(diagnostics, origin, xla_message)
    return f"Cannot compile {display_name(origin.scope)}: {message}.{described} {advice}"


def _describe_op(diagnostics: Diagnostics, origin: _LaunchOrigin, message: str) -> str:
    """Returns the op that a message is about and its line."""
    for name in (next(filter(None, match.groups())) for match in _NAMES.finditer(message)):
        located = _first_with_line(diagnostics, origin, _suffixes(name))
        if located is None:
            continue
        op, line = _differentiated_op(diagnostics, origin, name, located[1]) or located
        return f" Op {op}, made at {line}."
    first = _first_line(diagnostics, origin.scope, origin.names)
    return f" It is in what {first} makes." if first else ""


def _first_with_line(
    diagnostics: Diagnostics, origin: _LaunchOrigin, names: Iterable[str], elsewhere: str = ""
) -> tuple[str, str] | None:
    """Returns the first op of these names with a recorded line, other than the given one."""
    for op in names:
        for scope in origin.scopes:
            line = diagnostics.user_line(scope, op) if diagnostics.knows(scope, op) else None
            if line and line != elsewhere:
                return op, line
    return None


def _differentiated_op(
    diagnostics: Diagnostics, origin: _LaunchOrigin, name: str, asked_for: str
) -> tuple[str, str] | None:
    """Returns the op or loop that a gradient belongs to, if it is on another line."""
    if not name.startswith(_GRADIENT):
        return None
    ends = _suffixes(name.removeprefix(_GRADIENT))
    return _first_with_line(diagnostics, origin, (op for end in ends for op in _prefixes(end)), elsewhere=asked_for)


def _prefixes(name: str) -> Iterator[str]:
    while name:
        yield name
        name = name.rpartition("/")[0]


def _suffixes(name: str) -> Iterator[str]:
    """Yields a name and its suffixes without enclosing calls and loops."""
    while name:
        yield name
        name = name.partition("/")[2]


def _first_line(diagnostics: Diagnostics, scope: str, names: Iterable[str]) -> str | None:
    return next(filter(None, (diagnostics.user_line(scope, name) for name in names)), None)


def _refuse_random_shapes(diagnostics: Diagnostics, program: LoweredProgram) -> None:
    """Refuses a part with shapes that depend on random numbers."""
    seeds = {
        node.name for function in program.functions for node in function.node_def if node.op == vocabulary.RANDOM_SEED
    }
    functions = {function.signature.name: function for function in program.functions}
    for cluster in program.clusters:
        constants = cluster.inputs[: cluster.constants]
        if seeds.isdisjoint(producer_name(tensor) for tensor in constants):
            continue
        random = next(filter(_is_random, functions[cluster.function].node_def), None)
        op = f":\n  {diagnostics.describe(cluster.scope, random)}\n" if random is not None else ". "
        raise errors_impl.InvalidArgumentError(
            None,
            None,
            "The dimensions of all tensors must be fully defined at compile time, and some depend on random numbers"
            f"{op}{_CONSTANT_ADVICE}",
        )


def _is_random(node: node_def_pb2.NodeDef) -> bool:
    return node.op.startswith(("StatelessRandom", "StatelessTruncated", "StatelessMultinomial"))
