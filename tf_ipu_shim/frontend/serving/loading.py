"""Turns the annotated call of a served model into an IPU program when the SavedModel is loaded.

It happens when TensorFlow reads the file of a SavedModel. So it works in `tf.saved_model.load`, Keras and the loader of
TensorFlow 1. Uses `loader_impl.parse_saved_model`, `load.Loader._recreate_variable`, `Graph._variable_creator_scope`
and `UninitializedVariable`; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.serving.served_call import ServedCall
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.graphs import op_def_registry, ops
from tf_ipu_shim.tf_private.protos import attr_value_pb2, function_pb2, graph_pb2
from tf_ipu_shim.tf_private.saved_models import load, loader_impl
from tf_ipu_shim.tf_private.variables import resource_variable_ops

DEVICE, HOST = "/device:IPU:0", "/device:CPU:0"
# Attributes of the saved object that hold its variables, by their place in the loaded object.
ON_IPUS, ON_HOST = "variables_on_ipus", "variables_on_host"
_PAST_STRATEGIES = 200  # a strategy's own creators have the priority 100


def install() -> None:
    """Makes SavedModels exported for IPUs run on them when loaded."""
    patches.replace(
        loader_impl, "parse_saved_model", _patch_parser, why="models that were exported for serving run on the IPUs"
    )
    patches.replace(
        load.Loader, "_recreate_variable", _patch_recreate, why="their variables are on the device that uses them"
    )


def _patch_parser(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def parse_saved_model(*args: Any, **kwargs: Any) -> Any:
        model = stock(*args, **kwargs)
        for meta_graph in model.meta_graphs:
            if create_programs(meta_graph.graph_def):
                _place_variables(meta_graph.object_graph_def)
        return model

    return parse_saved_model


def _place_variables(objects: Any) -> None:
    """Annotates a model's variables with their device: a program only uses variables of its device."""
    for child in objects.nodes[0].children if objects.nodes else ():
        device = {ON_IPUS: DEVICE, ON_HOST: HOST}.get(child.local_name)
        for element in objects.nodes[child.node_id].children if device else ():
            if objects.nodes[element.node_id].HasField("variable"):
                objects.nodes[element.node_id].variable.device = device


def _patch_recreate(stock: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(stock)
    def recreate(self: Any, proto: Any) -> Any:
        if proto.device not in (DEVICE, HOST):
            return stock(self, proto)

        def create(_next_creator: Any, **kwargs: Any) -> Any:
            with ops.device(proto.device):
                return resource_variable_ops.UninitializedVariable(**kwargs)

        with tf_graphs.variable_creator_scope(ops.get_default_graph(), create, priority=_PAST_STRATEGIES):
            return stock(self, proto)

    return recreate


def create_programs(graph_def: graph_pb2.GraphDef) -> bool:
    """Makes programs of the marked calls of a graph; leaves a graph without any as it is."""
    library = {function.signature.name: function for function in graph_def.library.function}
    nodes = [*graph_def.node, *(node for function in library.values() for node in function.node_def)]
    has_program = any([_create_program(node, library) for node in nodes])
    if has_program:
        _place_handles(graph_def.node, library)
    return has_program


def _place_handles(nodes: Iterable[Any], library: Mapping[str, function_pb2.FunctionDef]) -> None:
    """Places the variables of a session's graph on the devices of the programs that use them."""
    needed: set[str] = set()
    nodes = list(nodes)
    for node in nodes:
        for index in _program_inputs(node, library):
            needed.add(node.input[index].partition(":")[0])
    for node in nodes:
        if node.op == "VarHandleOp" and node.name in needed:
            node.device = DEVICE


def _program_inputs(node: Any, library: Mapping[str, function_pb2.FunctionDef]) -> list[int]:
    """Returns the inputs of a node that are used by a program, directly or in called functions."""
    if node.op == vocabulary.PROGRAM:
        return list(range(len(node.attr["Tin"].list.type)))
    if node.op not in vocabulary.CALLS:
        return []
    function = library[node.attr["f"].func.name]
    arguments = {argument.name: index for index, argument in enumerate(function.signature.input_arg)}
    used = set()
    for inside in function.node_def:
        for index in _program_inputs(inside, library):
            if inside.input[index] in arguments:
                used.add(arguments[inside.input[index]])
    return sorted(used)


def _create_program(node: Any, library: Mapping[str, function_pb2.FunctionDef]) -> bool:
    if vocabulary.SERVED_ATTRIBUTE not in node.attr:
        return False
    served_call = ServedCall.from_bytes(node.attr[vocabulary.SERVED_ATTRIBUTE].s)
    function = node.attr["f"].func.name
    needed = function_pb2.FunctionDefLibrary(
        function=[library[name] for name in _reachable_functions(function, library)]
    )
    for inside in needed.function:
        _fill_default_attributes(inside.node_def)
    attributes = {
        name: attr_value_pb2.AttrValue.FromString(node.attr[name].SerializeToString()) for name in ("Tin", "Tout")
    }
    node.attr.clear()
    node.op, node.device = vocabulary.PROGRAM, DEVICE
    for name, value in attributes.items():
        node.attr[name].CopyFrom(value)
    node.attr["function"].s = function.encode()
    node.attr["library"].s = needed.SerializeToString(deterministic=True)
    node.attr["device_ordinal"].i = 0
    for sizes in served_call.shapes:
        shape = node.attr["output_shapes"].list.shape.add(unknown_rank=sizes is None)
        for size in sizes or ():
            shape.dim.add(size=-1 if size is None else size)
    return True


def _fill_default_attributes(nodes: Iterable[Any]) -> None:
    """Adds default attributes that a SavedModel leaves out: a program is read without defaults."""
    for node in nodes:
        definition = op_def_registry.get(node.op)
        for attribute in definition.attr if definition is not None else ():
            if attribute.HasField("default_value") and attribute.name not in node.attr:
                node.attr[attribute.name].CopyFrom(attribute.default_value)


def _reachable_functions(name: str, library: Mapping[str, function_pb2.FunctionDef]) -> list[str]:
    """Returns a function and all that it calls, in order of their names."""
    reachable, pending = {name}, [name]
    while pending:
        for node in library[pending.pop()].node_def:
            for called in _called_functions(node):
                if called in library and called not in reachable:
                    reachable.add(called)
                    pending.append(called)
    return sorted(reachable)


def _called_functions(node: Any) -> list[str]:
    """Returns names of the functions that a node names."""
    return [
        function.name
        for value in node.attr.values()
        for function in ([value.func] if value.HasField("func") else value.list.func)
    ]
