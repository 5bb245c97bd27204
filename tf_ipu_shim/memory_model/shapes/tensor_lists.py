"""Infers length and element shape of TensorLists outside XLA programs.

TensorFlow's own shape inference does not follow a list's elements, through loops and calls, to the ops that read them.
This module follows them, op by op, and passes their shapes to the inference, which then infers more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.node_defs import data_inputs
from tf_ipu_shim.compiler.ir.tensor_lists import ListContents
from tf_ipu_shim.memory_model.shapes import shape_inference
from tf_ipu_shim.memory_model.shapes.shape_inference import TensorSpec
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2, types_pb2

_ROUNDS = 6  # of inference; and of a loop's body, which may learn of a list from the iteration before
_WRITTEN_OPERAND = {"TensorListPushBack": 1, "TensorListSetItem": 2}
_FORWARDING = vocabulary.IDENTITIES | {"AddN", "TensorListResize", "ZerosLike"}


def infer(
    nodes: Iterable[node_def_pb2.NodeDef],
    arguments: Mapping[str, TensorSpec],
    library: Mapping[str, function_pb2.FunctionDef],
) -> dict[str, TensorSpec]:
    """Extends `shape_inference.infer` by implications of lists and the functions they pass through."""
    remaining = list(nodes)
    found = shape_inference.infer(remaining, arguments, library)
    inferred: dict[str, TensorSpec] = {}
    for _ in range(_ROUNDS if _has_lists(arguments.values()) or _has_lists(found.values()) else 0):
        before, inferred = inferred, _infer_from_lists(remaining, {**arguments, **found}, library)
        if inferred == before:
            break
        found = {**shape_inference.infer(remaining, {**arguments, **inferred}, library), **inferred}
    return found


def forwarded_inputs(node: node_def_pb2.NodeDef, library: Mapping[str, function_pb2.FunctionDef]) -> dict[int, int]:
    """Returns which results of a call, loop or identity are unchanged inputs."""
    if node.op in vocabulary.IDENTITIES:
        return {index: index for index in range(len(data_inputs(node)))}
    if node.op in vocabulary.CALLS and (name := op_types.called_functions(node)[0]) in library:
        return _returned(library[name], library)
    if node.op in vocabulary.LOOPS and (name := node.attr["body"].func.name) in library:
        body = _returned(library[name], library)
        return {result: argument for result, argument in body.items() if result == argument}
    return {}


def _returned(function: function_pb2.FunctionDef, library: Mapping[str, function_pb2.FunctionDef]) -> dict[int, int]:
    source: dict[str, str] = {}
    for node in function.node_def:
        back = forwarded_inputs(node, library)
        if back:
            names, operands = op_types.output_names(node), data_inputs(node)
            source.update(
                (names[result], source.get(operands[index], operands[index])) for result, index in back.items()
            )
    arguments = {argument.name: index for index, argument in enumerate(function.signature.input_arg)}
    tensor_names = [function.ret[output.name] for output in function.signature.output_arg]
    ends = [arguments.get(source.get(tensor_name, tensor_name)) for tensor_name in tensor_names]
    return {index: argument for index, argument in enumerate(ends) if argument is not None}


def _has_lists(some: Iterable[TensorSpec]) -> bool:
    return any(known.type == types_pb2.DT_VARIANT for known in some)


def _infer_from_lists(
    nodes: Iterable[node_def_pb2.NodeDef],
    known: Mapping[str, TensorSpec],
    library: Mapping[str, function_pb2.FunctionDef],
) -> dict[str, TensorSpec]:
    """Returns implications of lists for themselves, their elements and functions with lists."""
    everything, list_specs = dict(known), dict[str, TensorSpec]()
    for node in nodes:
        operands = [everything[tensor_name] for tensor_name in data_inputs(node)]
        names = op_types.output_names(node)
        inferred = [everything[name] for name in names]
        results = _result_specs(node, operands, inferred, library)
        results = [
            spec if spec.shape is not None else spec._replace(shape=two.shape) for spec, two in zip(results, inferred)
        ]
        list_specs.update(zip(names, results))
        everything.update(zip(names, results))
    return list_specs


def _result_specs(
    node: node_def_pb2.NodeDef,
    operands: Sequence[TensorSpec],
    results: Sequence[TensorSpec],
    library: Mapping[str, function_pb2.FunctionDef],
) -> Sequence[TensorSpec]:
    """Returns a node's result specs if lists determine them, else nothing."""
    called = op_types.called_functions(node)
    if not called:
        return _list_op_specs(node.op, operands)
    if not (_has_lists(operands) or _has_lists(results)) or not all(name in library for name in called):
        return ()
    if node.op in vocabulary.LOOPS:
        return _specs_after_loop(library[node.attr["body"].func.name], operands, library)
    if node.op in vocabulary.CALLS:
        return _results(library[called[0]], operands, library)
    return _results(library[called[0]], operands[1:], library) if node.op in vocabulary.BRANCHES else ()


def _list_op_specs(op: str, operands: Sequence[TensorSpec]) -> Sequence[TensorSpec]:
    """Returns the result specs of an op on a list."""
    if op == "TensorListFromTensor":
        shape = operands[0].shape
        return [_list_spec(ListContents(shape[0], operands[0].type, shape[1:]) if shape else None)]
    listed = operands[0].listed if operands else None
    if listed is None:
        return ()
    if op in _FORWARDING:
        return [_list_spec(listed)]
    if op in _WRITTEN_OPERAND:
        return [_list_spec(listed._replace(shape=listed.shape or operands[_WRITTEN_OPERAND[op]].shape))]
    if listed.shape is None:
        return ()
    element = TensorSpec(listed.type, listed.shape)
    if op == "TensorListGetItem":
        return [element]
    if op == "TensorListPopBack":
        return [_list_spec(listed), element]
    if op == "TensorListStack" and listed.capacity is not None:
        return [TensorSpec(listed.type, (listed.capacity, *listed.shape))]
    if op == "TensorListGather" and operands[1].shape is not None:
        return [TensorSpec(listed.type, (math.prod(operands[1].shape), *listed.shape))]
    return ()


def _list_spec(listed: ListContents | None) -> TensorSpec:
    return TensorSpec(types_pb2.DT_VARIANT, (), listed=listed)


def _results(
    function: function_pb2.FunctionDef,
    argument_specs: Sequence[TensorSpec],
    library: Mapping[str, function_pb2.FunctionDef],
) -> list[TensorSpec]:
    known = dict(zip((argument.name for argument in function.signature.input_arg), argument_specs))
    known.update(infer(function.node_def, known, library))
    return [known[function.ret[output.name]] for output in function.signature.output_arg]


def iteration_specs(
    body: function_pb2.FunctionDef,
    argument_specs: Sequence[TensorSpec],
    library: Mapping[str, function_pb2.FunctionDef],
) -> list[TensorSpec]:
    """Returns the specs at the start of each iteration of a loop; values it changes are unknown."""
    stays = _returned(body, library)
    return [
        known if stays.get(index) == index else known._replace(literal=None)
        for index, known in enumerate(argument_specs)
    ]


def _specs_after_loop(
    body: function_pb2.FunctionDef,
    argument_specs: Sequence[TensorSpec],
    library: Mapping[str, function_pb2.FunctionDef],
) -> list[TensorSpec]:
    """Returns the specs after a loop, with lists its iterations extend."""
    state = iteration_specs(body, argument_specs, library)
    for _ in range(_ROUNDS):
        after = [_common_spec(before, other) for before, other in zip(state, _results(body, state, library))]
        if after == state:
            break
        state = after
    return state


def _common_spec(before: TensorSpec, after: TensorSpec) -> TensorSpec:
    """Returns the properties of a value that hold in one iteration and the next."""
    if before.listed is None or after.listed is None:
        return before._replace(listed=before.listed or after.listed)
    first, second = before.listed, after.listed
    capacity = first.capacity if first.capacity is not None else second.capacity
    return before._replace(listed=ListContents(capacity, first.type, first.shape or second.shape))
