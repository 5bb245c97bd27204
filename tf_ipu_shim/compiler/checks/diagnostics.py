"""Finds an op's source line, and holds the rules and advice of refusals (`refuse_uncompilable`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.compiler.ir import op_types, traced_functions, vocabulary
from tf_ipu_shim.compiler.ir.functions import Functions, WrittenFunction
from tf_ipu_shim.compiler.ir.node_defs import is_control, producer_name
from tf_ipu_shim.compiler.placement.placement import forward_name
from tf_ipu_shim.compiler.xla_semantics import kernels_only, xla_workarounds
from tf_ipu_shim.plugin.library import Call, Frame, Library
from tf_ipu_shim.runtime.errors import layer_lines, script_files
from tf_ipu_shim.tf_private.protos import function_pb2, graph_pb2, types_pb2

# Ops whose results have a shape that depends on values. XLA's CPU backend takes some of them and gives garbage for a
# second such result; the IPU has no dynamic shapes.
_DYNAMIC_SHAPES = frozenset(
    {"ListDiff", "Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2", "Where", "DynamicPartition"}
)
# One of them that the gradient of a product has: XLA computes it while it compiles, where it knows the operands.
_COMPUTED_EARLY = "ListDiff"
_KEEPS_KNOWN = vocabulary.IDENTITIES | {
    *("Add", "AddV2", "Cast", "ConcatV2", "FloorMod", "Maximum", "Minimum", "Mul", "Pack", "Range", "Reshape"),
    *("StridedSlice", "Sub"),
}
_MAX_NAMED = 5  # ops of one kind in one message
_TRACED_NAME = re.compile(r"^(?:__(?:inference|forward|backward)_)?(.*?)(?:_ipu_program_\d+)?(?:_\d+)?$")
_HOST_ADVICE = "Run them on the host with ipu.scopes.outside_compilation_scope(), "
_LOOP_ADVICE = (
    "They are in a loop or branch, which runs only on the IPU. Run them in the input pipeline, send their inputs to "
    "the host through an IPUOutfeedQueue, "
)
# Alternatives for ops that scripts often use.
_PRINTING = frozenset({"Print", "PrintV2", "StringFormat"})
_TEXT_ADVICE = "An IPU computes with numbers, but received strings. Convert them to numbers in the input pipeline. "
_PRINT_ADVICE = "print a tensor with ipu.internal_ops.print_tensor, "
_ROWS_ADVICE = (
    " An optimizer adds Unique to the gradient of tf.gather and tf.nn.embedding_lookup, to merge equal rows. Look up "
    "rows of a variable with ipu.ops.embedding_ops.embedding_lookup."
)
_CTC_ADVICE = " tf.nn.ctc_loss adds InplaceAdd. Use ipu.nn_ops.ctc_loss_v2 instead."
_AMSGRAD_ADVICE = (
    " tf.keras.optimizers.Adam adds ResourceApplyAdamWithAmsgrad. Leave amsgrad out, or set "
    "TF_IPU_SHIM_COMPAT=stock-optimizers: Adam of the installed Keras does not need this op."
)
_REPLACEMENTS = {
    "Unique": _ROWS_ADVICE,
    "UniqueV2": _ROWS_ADVICE,
    "InplaceAdd": _CTC_ADVICE,
    "ResourceApplyAdamWithAmsgrad": _AMSGRAD_ADVICE,
    "ResourceGatherNd": " tf.gather_nd of a variable adds ResourceGatherNd. Give it tf.identity(variable).",
}

# Stands for tensor lists that only the other branch makes. XLA cannot represent it.
_FAKE = "FakeParam"
_FAKE_ADVICE = (
    "They replace the lists that a loop in one branch keeps for its gradient, in the branch without that loop. Put "
    "the loop outside of tf.cond and choose between results with tf.where, or define a gradient of the branch with "
    "tf.custom_gradient."
)


class Diagnostics:
    """Finds source lines of ops while a program is lowered."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def user_line(self, function: str, node: str) -> str | None:
        """Returns the user's source line (`file:line`) that made an op, or None."""
        frames = self._frames(function, node)
        if frames is None:
            return None
        user_frames = [index for index, frame in enumerate(frames) if script_files.is_users(frame.file)]
        if not user_frames:
            return layer_lines.line_of(node)  # of a variable; its line is not recorded
        if any(script_files.is_training_loop(frame.file) for frame in frames[user_frames[-1] + 1 :]):
            graph = traced_functions.traced_graph(function) or layer_lines.graph_of(function)
            user_location = self._line_of_forward(function, node) or layer_lines.line_of(node, graph)
            if user_location is not None:
                return user_location
        frame = frames[user_frames[-1]]
        # Autograph's maps have no name for a lambda.
        return f"{frame.file}:{frame.line}, in {frame.function or '<lambda>'}"

    def knows(self, function: str, node: str) -> bool:
        """Returns whether a function has an op of this name whose creation was recorded."""
        return bool(self._frames(function, node))

    def _line_of_forward(self, function: str, node: str) -> str | None:
        """Returns the line of the op whose gradient an op computes, or of the branch or loop that contains it."""
        forward = forward_name(node) or ""
        for name in filter(None, (forward, forward.rpartition("/")[0])):
            if self._frames(function, name):
                return self.user_line(function, name)
        return None

    def _frames(self, function: str, node: str) -> list[Frame] | None:
        """Returns the stack at an op's creation, outermost frame first, or None if it was not recorded."""
        graph = traced_functions.traced_graph(function)
        if graph is None:
            return self._call.stack_of(function, node)
        try:
            traceback = traced_functions.traceback_of(graph, node)
        except (KeyError, ValueError):
            return None
        if traceback is None:  # an op of a GraphDef that was imported
            return None
        return [Frame(frame.filename, frame.lineno, frame.name) for frame in traceback]

    def describe(self, function: str, node: Any) -> str:
        """Returns an op for a message: its name, its type and the user's line."""
        line = self.user_line(function, node.name)
        return f"{node.name} ({node.op})" + (f", made at {line}" if line else "")


def refuse_invalid_options(diagnostics: Diagnostics, functions: Functions) -> None:
    """Raises for ops with options that Poplar would refuse when it compiles the program."""
    for graph in map(functions.__getitem__, functions.reached()):
        for node in graph.nodes:
            if vocabulary.REFUSED_ATTRIBUTE in node.proto.attr:
                reason = node.proto.attr[vocabulary.REFUSED_ATTRIBUTE].s.decode()
                raise errors_impl.InternalError(None, None, f"{reason} Op {diagnostics.describe(graph.name, node)}.")


def refuse_uncompilable(
    plugin: Library,
    diagnostics: Diagnostics,
    functions: Functions,
    programs: Sequence[tuple[str, function_pb2.FunctionDef]],
) -> None:
    """Raises if XLA cannot compile an op of the program."""
    refused: list[tuple[str, Any]] = []
    dynamic: list[tuple[str, Any]] = []
    for function, definition in _reached_functions(functions, programs):
        graph = graph_pb2.GraphDef(node=[node for node in definition.node_def if node.op not in vocabulary.CALLS])
        names = {*plugin.uncompilable(graph.SerializeToString()), *xla_workarounds.find_miscompiled_ops(graph.node)}
        refused.extend(
            (function, node) for node in graph.node if node.name in names and not kernels_only.has_no_conversion(node)
        )
        nodes = {node.name: node for node in graph.node}
        dynamic.extend((function, node) for node in graph.node if _is_dynamic(node, nodes))
    if dynamic:
        raise errors_impl.InvalidArgumentError(
            None,
            None,
            "The dimensions of all tensors must be fully defined at compile time. Those of the following depend on "
            f"values:\n  {_list_ops(diagnostics, dynamic)}\n{_placement_advice(functions, dynamic)}or use a mask of "
            "fixed size instead, such as tf.where with three arguments."
            f"{_replacement_advice(dynamic)}",
        )
    if refused:
        types = list(dict.fromkeys(node.op for _, node in refused))
        more = f"\n  and {len(refused) - _MAX_NAMED} more" if len(refused) > _MAX_NAMED else ""
        raise errors_impl.InvalidArgumentError(
            None,
            None,
            "Detected unsupported operations when trying to compile graph "
            f"{display_name(programs[0][0])} on XLA_IPU_JIT: {', '.join(types)} "
            f"(No registered '{types[0]}' OpKernel for XLA_IPU_JIT devices):\n  "
            f"{_list_ops(diagnostics, refused)}{more}\n{_advice(functions, refused)}"
            f"{_replacement_advice(refused)}",
        )


def _list_ops(diagnostics: Diagnostics, ops: Sequence[tuple[str, Any]]) -> str:
    return "\n  ".join(diagnostics.describe(function, node) for function, node in ops[:_MAX_NAMED])


def _replacement_advice(refused: Iterable[tuple[str, Any]]) -> str:
    """Returns functions of Graphcore's that compute what TensorFlow's do with refused ops."""
    return "".join(dict.fromkeys(_REPLACEMENTS.get(node.op, "") for _, node in refused))


def _placement_advice(functions: Functions, refused: Iterable[tuple[str, Any]]) -> str:
    """Returns other places where these ops may run; loops, branches and the functions they call run on the IPU only."""
    inside = {
        name
        for function in functions.reached()
        for node in functions[function].nodes
        if node.op in vocabulary.LOOPS | vocabulary.BRANCHES
        for called in op_types.called_functions(node.proto)
        for name in functions.reached(called)
    }
    return _HOST_ADVICE if inside.isdisjoint(function for function, _ in refused) else _LOOP_ADVICE


def _advice(functions: Functions, refused: Sequence[tuple[str, Any]]) -> str:
    """Returns advice for ops that cannot be compiled, such as numeric ops that receive strings."""
    if all(node.op == _FAKE for _, node in refused):
        return _FAKE_ADVICE
    of_texts = any(value.type == types_pb2.DT_STRING for _, node in refused for value in node.attr.values())
    printing = any(node.op in _PRINTING for _, node in refused)
    return (
        f"{_TEXT_ADVICE if of_texts else ''}{_placement_advice(functions, refused)}"
        f"{_PRINT_ADVICE if printing else ''}or leave them out of the compiled function."
    )


def display_name(function: str) -> str:
    """Returns a program's name for messages: the script's function, without suffixes of TensorFlow and this package.

    Example:
        >>> display_name("__inference_train_step_774"), display_name("model_ipu_program_3")
        ('train_step', 'model')
    """
    match = _TRACED_NAME.match(function)
    return match[1] if match and match[1] else function


def program_name(function: str, op: str) -> str:
    """Returns a program's name for reports and errors: its function, or the op of an uncompiled program.

    Example:
        >>> program_name("model_ipu_program_3", "cluster_1"), program_name("", "session_ops")
        ('model', 'session_ops')
    """
    return display_name(function) if function else op


def _is_dynamic(node: Any, nodes: Mapping[str, Any]) -> bool:
    """Returns whether the shapes of an op's results depend on values that are known only when the program runs."""
    if node.op != _COMPUTED_EARLY:
        return node.op in _DYNAMIC_SHAPES
    pending, seen = [node], {node.name}
    while pending:
        for tensor_name in pending.pop().input:
            name = producer_name(tensor_name)
            producer = nodes.get(name)
            if is_control(tensor_name) or name in seen:
                continue
            if producer is None:  # an argument
                return True
            seen.add(name)
            if producer.op in _KEEPS_KNOWN:
                pending.append(producer)
            elif producer.op != "Const" and producer.op not in vocabulary.SHAPE_QUERIES:
                return True
    return False


def _reached_functions(
    functions: Functions, programs: Sequence[tuple[str, function_pb2.FunctionDef]]
) -> Iterator[WrittenFunction]:
    """Yields the functions of the XLA programs and those they call, each once."""
    pending = list(
        {definition.signature.name: WrittenFunction(traced, definition) for traced, definition in programs}.values()
    )
    seen: set[str] = set()
    while pending:
        yield (function := pending.pop())
        for node in function.definition.node_def:
            for called in op_types.called_functions(node):
                callee = functions.find_external(called)
                if called not in seen and callee is not None:
                    seen.add(called)
                    pending.append(callee)
