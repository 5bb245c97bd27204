"""Overlaps mini-batches of a pipeline: stage s of one runs in parallel with stage s + 1 of the previous one.

TensorFlow's executor has several iterations of a loop in flight, if none waits for another. In each iteration a loop
waits for all ops with side effects. In a pipeline these are its feeds. Each waits only for itself in the previous
iteration, through a loop variable that it returns at its end. The computation of mini-batches depends only on data, so
results are the same, bit for bit, whatever is in flight.
"""

from __future__ import annotations

from collections.abc import Sequence

from tf_ipu_shim.compiler.checks import host_ops
from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph, Node, Result
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.compiler.ir.node_defs import awaited_nodes, control_inputs, copy_node, data_inputs
from tf_ipu_shim.compiler.ir.written_variables import READS
from tf_ipu_shim.compiler.loops import loop_variables
from tf_ipu_shim.compiler.loops.loop_variables import LoopVariable
from tf_ipu_shim.compiler.loops.pipeline_description import PipelineDescription
from tf_ipu_shim.tf_private.protos import node_def_pb2, tensor_shape_pb2, types_pb2

_INT = types_pb2.DT_INT32
_FEEDS = vocabulary.INFEEDS | {vocabulary.OUTFEED_ENQUEUE}
_WITHOUT_SIDE_EFFECTS = _FEEDS | READS | {vocabulary.ITERATOR, vocabulary.RANDOM_SEED}
_TOKEN = "ipu_turn_{}"


def overlap_mini_batches(functions: Functions) -> None:
    """Makes pipeline loops run several mini-batches at a time, as their schedules allow.

    Not changed: `Sequential` pipelines, and those with other side effects than their feeds, such as moving averages
    that the next mini-batch reads.
    """
    for name in functions.reached():
        graph = functions[name]
        if not graph.ops.isdisjoint(vocabulary.LOOPS):
            for loop in [node for node in graph.nodes if node.op in vocabulary.LOOPS]:
                _overlap_loop(functions, graph, loop)


def _overlap_loop(functions: Functions, graph: FunctionGraph, loop: Node) -> None:
    pipeline = PipelineDescription.of(loop.proto)
    if pipeline is None or pipeline.stages < 2 or pipeline.schedule == "Sequential":
        return
    body = functions[loop.proto.attr["body"].func.name]
    step = _step_of(body)
    if step is None or not all(_has_no_effects(functions, called) for called in functions.reached(body.name)):
        return
    mini_batch = functions[step.proto.attr["f"].func.name]
    token_names = [_TOKEN.format(len(body.arguments) + index) for index in range(len(_feeds_of(mini_batch)))]
    if not token_names or any(not _FEEDS.isdisjoint(functions[called].ops) for called in _below(functions, mini_batch)):
        return
    first = len(step.proto.attr["Tout"].list.type)
    carried = [
        LoopVariable(token_name, _INT, tensor_shape_pb2.TensorShapeProto(), f"{step.name}:output:{first + index}")
        for index, token_name in enumerate(token_names)
    ]
    _add_tokens(mini_batch, token_names)
    loop_variables.declare_variables(functions, loop, carried)
    _pass_tokens(body, step, token_names)
    loop_variables.carry_variables(functions, graph, loop, carried)
    loop.proto.attr["parallel_iterations"].i = pipeline.stages


def _step_of(body: FunctionGraph) -> Node | None:
    """Returns the call that computes a mini-batch."""
    calls = [node for node in body.nodes if node.op in vocabulary.CALLS]
    return calls[0] if len(calls) == 1 else None


def _below(functions: Functions, graph: FunctionGraph) -> list[str]:
    return [name for name in functions.reached(graph.name) if name != graph.name]


def _has_no_effects(functions: Functions, name: str) -> bool:
    return all(
        op in _WITHOUT_SIDE_EFFECTS or op in vocabulary.FUNCTION_ATTRIBUTES or not op_types.is_stateful(op)
        for op in functions[name].ops
    )


def _feeds_of(graph: FunctionGraph) -> list[Node]:
    return [node for node in graph.nodes if node.op in _FEEDS]


def _add_tokens(graph: FunctionGraph, token_names: Sequence[str]) -> None:
    """Orders each feed's accesses between mini-batches by a token."""
    waits, after, token_loops = [], [], {}
    feed_ops = _feeds_of(graph)
    feed_names = {node.name for node in feed_ops}
    returned = {graph.producer(tensor) for tensor in graph.returns}
    graph.arguments.update(dict.fromkeys(token_names, _INT))
    for node, token_name in zip(feed_ops, token_names):
        waits.append(_identity(f"{token_name}/begin", token_name))
        after.append(_identity(f"{token_name}/end", f"{token_name}/begin:output:0", node.name))
        proto = copy_node(node.proto)
        proto.input.append(f"^{token_name}/begin")
        token_loops[node] = proto
    token_loops.update(
        {node: _without_waits(node, feed_names) for node in returned if node is not None and node not in token_loops}
    )
    graph.rewrite(lambda node: [token_loops[node]] if node in token_loops else None, before=waits, after=after)
    graph.results.extend(Result(token_name, _INT, f"{token_name}/end:output:0") for token_name in token_names)
    graph.control_returns = []


def _pass_tokens(body: FunctionGraph, step: Node, token_names: Sequence[str]) -> None:
    """Passes the feed tokens through a loop's body to its mini-batch and on to the next iteration."""
    call = copy_node(step.proto)
    data = data_inputs(call)
    call.input[:] = [*data, *token_names, *control_inputs(call)]
    for types in ("Tin", "Tout"):
        call.attr[types].list.type.extend([_INT] * len(token_names))
    call.attr.pop("_output_shapes", None)
    call.attr["_lower_as_multi_device_function"].b = True  # an iteration is no call, which would begin and end as one
    body.rewrite(lambda node: [call] if node is step else [_without_waits(node, {step.name})])
    body.control_returns = [node for node in body.control_returns if node is not step]


def _identity(name: str, tensor: str, *after: str) -> node_def_pb2.NodeDef:
    node = node_def_pb2.NodeDef(
        name=name, op="Identity", input=[tensor, *(f"^{control_input}" for control_input in after)]
    )
    node.attr["T"].type = _INT
    node.attr[vocabulary.OUTSIDE_COMPILATION_ATTRIBUTE].s = host_ops.ON_DEVICE_MARK
    return node


def _without_waits(node: Node, dropped: set[str]) -> node_def_pb2.NodeDef:
    """Returns an op without control inputs from some others."""
    return copy_node(
        node.proto, [*node.inputs, *(f"^{name}" for name in awaited_nodes(node.proto) if name not in dropped)]
    )
