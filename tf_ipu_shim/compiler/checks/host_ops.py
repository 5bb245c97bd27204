"""Checks and rewrites host ops (iterators, feeds) that run on the IPU's TensorFlow device.

Infeeds, outfeeds and seeds are the host's part of a program. All memory is the host's here, so their kernels can run on
the IPU's device. A loop whose ops are on one device is not partitioned, and needs no rendezvous in each iteration.
"""

from __future__ import annotations

from collections.abc import Iterator

from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.compiler.checks.diagnostics import Diagnostics
from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.function_graph import Node
from tf_ipu_shim.compiler.ir.functions import Functions
from tf_ipu_shim.machine.ids import Chip, Device
from tf_ipu_shim.tf_private.protos import node_def_pb2

ON_DEVICE_MARK = b"on device"  # for other ops of the host, as a value of `vocabulary.OUTSIDE_COMPILATION_ATTRIBUTE`


def runs_on_device(node: Node) -> bool:
    """Returns whether a host op runs on the IPU's TensorFlow device."""
    if node.op in vocabulary.ON_DEVICE_OPS:
        return True
    return _is_marked(node) and node.proto.attr[vocabulary.OUTSIDE_COMPILATION_ATTRIBUTE].s == ON_DEVICE_MARK


def check_outfeeds(diagnostics: Diagnostics, functions: Functions, ordinal: Device) -> None:
    """Refuses programs that wait for their own outfeed or that enqueue nothing."""
    for graph in map(functions.__getitem__, functions.reached()):
        if graph.ops.isdisjoint((vocabulary.OUTFEED_ENQUEUE, vocabulary.OUTFEED_DEQUEUE)):
            continue
        for node in graph.nodes:
            if node.op == vocabulary.OUTFEED_ENQUEUE:
                _refuse_empty(node, diagnostics.describe(graph.name, node))
            elif node.op == vocabulary.OUTFEED_DEQUEUE:
                _refuse_waiting(node, ordinal, diagnostics.describe(graph.name, node))


def _refuse_waiting(node: Node, ordinal: Device, described: str) -> None:
    attributes = node.proto.attr
    if attributes["wait_for_completion"].b and attributes["device_ordinal"].i == ordinal:
        raise errors_impl.InvalidArgumentError(
            None,
            None,
            f"{described}: dequeue(wait_for_completion=True) is called in a program on /device:IPU:{ordinal}. "
            "It can only be called outside, because it waits until no program runs there. Move it out of "
            "the compiled function, or leave out wait_for_completion.",
        )


def _refuse_empty(node: Node, described: str) -> None:
    for shape in node.proto.attr["output_shapes"].list.shape:
        if any(dimension.size == 0 for dimension in shape.dim):
            raise errors_impl.InvalidArgumentError(
                None,
                None,
                f"{described}: Detected an input tensor to an outfeed queue with a dimension of size 0: its "
                f"shape is {[dimension.size for dimension in shape.dim]}; expected at least one element. "
                "Do not enqueue it.",
            )


def is_named_iterator(node: Node) -> bool:
    """Returns whether an op returns an iterator handle that only infeeds use, which find the iterator by its name.

    Others may wait for it, as ops with side effects do for each other.
    """
    if node.op != vocabulary.ITERATOR or not node.proto.attr["shared_name"].s:
        return False
    consumers = [user for user in node.users if node in user.producers]
    return bool(consumers) and all(user.op in vocabulary.INFEEDS for user in consumers)


def name_iterator(proto: node_def_pb2.NodeDef, iterator: Node | None) -> bool:
    """Makes an op find its iterator by name instead of by a handle."""
    named = iterator is not None and iterator.op == vocabulary.ITERATOR and bool(iterator.proto.attr["shared_name"].s)
    proto.attr["N"].i = 0 if named else 1
    if named and iterator is not None:
        for attribute in ("container", "shared_name"):
            proto.attr[attribute].CopyFrom(iterator.proto.attr[attribute])
    return named


def to_infeed_dequeue(proto: node_def_pb2.NodeDef, node: Node, chip: Chip) -> bool:
    """Turns an iterator-get-next op into the plugin's infeed dequeue op."""
    proto.op = vocabulary.INFEED_DEQUEUE
    proto.attr["chip"].i = chip
    return name_iterator(proto, node.producers[0])


def iterator_arguments(function: str, graphs: Functions, iterators_of: dict[str, set[str]]) -> set[str]:
    """Returns which arguments of a function are iterators that infeeds dequeue from, also in called functions."""
    if function not in iterators_of:
        iterators_of[function] = iterator_names = set()
        for node in graphs[function].nodes:
            if node.op in vocabulary.INFEEDS:
                iterator_names.add(node.inputs[0])
            for called in op_types.called_functions(node.proto):
                iterators = iterator_arguments(called, graphs, iterators_of)
                iterator_names.update(
                    tensor_name
                    for tensor_name, name in zip(node.function_inputs, graphs[called].arguments)
                    if name in iterators
                )
        iterator_names.intersection_update(graphs[function].arguments)
    return iterators_of[function]


def move_iterators_to_device(
    loop: Node, proto: node_def_pb2.NodeDef, graphs: Functions, device: str
) -> Iterator[node_def_pb2.NodeDef]:
    """Moves a loop's iterator handles to the IPU's device, so that the whole loop runs on that device.

    TensorFlow places ops with a handle as input on the resource's device, which is the host for an iterator. The loop
    would be on two devices that communicate in each iteration. Mode `kernels` (`loop_frames`) would need even less.
    TensorFlow moves each `Enter` to the op that uses its result, in an order that depends on addresses in memory. A
    nested loop has two in a row. If the outer one is moved first, it stays on the host and sends the handle in the
    first iteration only. The IPU waits for it in the second. Checked on 2.15.1 and 2.21.0.
    """
    body = proto.attr["body"].func.name
    iterators = iterator_arguments(body, graphs, {})
    for index, argument in enumerate(graphs[body].arguments):
        if argument in iterators:
            handle = node_def_pb2.NodeDef(name=f"{loop.name}/ipu_iterator_{index}", op=vocabulary.HANDLE, device=device)
            handle.input.append(proto.input[index])
            proto.input[index] = f"{handle.name}:output:0"
            yield handle


def _is_marked(node: Node) -> bool:
    return vocabulary.OUTSIDE_COMPILATION_ATTRIBUTE in node.proto.attr
