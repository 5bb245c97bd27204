"""Launches XLA for single ops in execution mode `kernels`: random ops, and ops that TensorFlow has no kernel for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from tf_ipu_shim.compiler.ir import op_types, vocabulary
from tf_ipu_shim.compiler.ir.node_defs import control_inputs, data_inputs
from tf_ipu_shim.compiler.ir.program import Cluster, LoweredProgram
from tf_ipu_shim.plugin.library import Call
from tf_ipu_shim.tf_private.protos import function_pb2, node_def_pb2

_OF_THE_LAUNCH = (vocabulary.CHIP_ATTRIBUTE, vocabulary.DESCRIPTION_ATTRIBUTE)


class OpLaunches:
    """Turns ops into launches of one op each; equal ops of an IPU share an XLA program.

    Args:
        call: answers which inputs of an op XLA must know.
        fresh: makes an unused function name.
    """

    def __init__(self, call: Call, fresh: Callable[[str], str]) -> None:
        self._call, self._fresh = call, fresh
        self._programs: dict[tuple[object, ...], Cluster] = {}
        self.functions: list[function_pb2.FunctionDef] = []
        self.clusters: list[Cluster] = []

    def replace(self, function: function_pb2.FunctionDef, names: Collection[str], scope: str) -> None:
        """Makes XLA run these ops of a function that was traced as `scope`."""
        renamed: dict[str, str] = {}
        for node in function.node_def if names else ():
            if node.name in names:
                renamed.update(
                    (output, f"{node.name}:results:{index}") for index, output in enumerate(op_types.output_names(node))
                )
                self._make_launch(node, scope)
        for node in function.node_def if renamed else ():
            node.input[:] = [renamed.get(tensor_name, tensor_name) for tensor_name in node.input]
        for result, tensor_name in list(function.ret.items()):
            function.ret[result] = renamed.get(tensor_name, tensor_name)

    def _make_launch(self, node: node_def_pb2.NodeDef, scope: str) -> None:
        program = self._program(node, scope)
        order = [int(name) for name in program.inputs]
        types = program.input_types
        resources = list(types).count(op_types.RESOURCE)
        launch = node_def_pb2.NodeDef(name=node.name, op=vocabulary.LAUNCH, device=node.device)
        operands = data_inputs(node)
        launch.input.extend([*(operands[index] for index in order), *control_inputs(node)])
        for attribute in _OF_THE_LAUNCH:
            if attribute in node.attr:
                launch.attr[attribute].CopyFrom(node.attr[attribute])
        launch.attr["Tconstants"].list.type.extend(types[: program.constants])
        launch.attr["Targs"].list.type.extend(types[program.constants : len(types) - resources])
        launch.attr["Nresources"].i = resources
        launch.attr["Tresults"].list.type.extend(_result_types(node))
        launch.attr["function"].func.name = program.function
        node.CopyFrom(launch)

    def _program(self, node: node_def_pb2.NodeDef, scope: str) -> Cluster:
        """Returns the XLA program of an op; its inputs are named by their place among the op's."""
        chip = node.attr[vocabulary.CHIP_ATTRIBUTE].i
        attributes = sorted(set(node.attr) - {vocabulary.DESCRIPTION_ATTRIBUTE})
        content = (node.op, chip, *((key, node.attr[key].SerializeToString()) for key in attributes))
        if content not in self._programs:
            types = op_types.input_types(node)
            constants = self._constant_inputs(node)
            order = sorted(
                range(len(types)), key=lambda index: (index not in constants, types[index] == op_types.RESOURCE)
            )
            name = self._fresh(f"{node.op}_on_ipu{chip}")
            self.functions.append(function := _one_op(node, name, order))
            ordered, outputs = [types[index] for index in order], list(function.ret.values())
            cluster = Cluster(chip, 0, name, [*map(str, order)], ordered, outputs, len(constants), scope)
            self._programs[content] = cluster
            if node.op not in vocabulary.LAUNCHED:
                self.clusters.append(cluster)
        return self._programs[content]

    def _constant_inputs(self, node: node_def_pb2.NodeDef) -> Sequence[int]:
        """Returns which inputs of an op XLA must know."""
        if node.op in vocabulary.LAUNCHED:
            return vocabulary.LAUNCHED[node.op]
        count = len(op_types.input_types(node))
        definition = _one_op(node, self._fresh(f"inputs_of_{node.op}"), range(count))
        library = function_pb2.FunctionDefLibrary(function=[definition]).SerializeToString()
        flags = self._call.constant_arguments(library, definition.signature.name, count)
        return [index for index, flag in enumerate(flags) if flag]


def ops_without_kernel(program: LoweredProgram) -> list[str]:
    """Returns the types of the ops that a program in mode `kernels` launches because they have no kernel."""
    programs = set(program.programs)
    functions = (function for function in program.functions if function.signature.name in programs)
    return list(dict.fromkeys(node.op for function in functions for node in function.node_def))


def _one_op(node: node_def_pb2.NodeDef, name: str, order: Iterable[int]) -> function_pb2.FunctionDef:
    """Returns a function of one op, which takes the op's inputs in this order."""
    function, types = function_pb2.FunctionDef(), op_types.input_types(node)
    function.signature.name = name
    for index in order:
        function.signature.input_arg.add(name=f"input_{index}", type=types[index])
    only = function.node_def.add(name="only", op=node.op, input=[f"input_{index}" for index in range(len(types))])
    for attribute, value in node.attr.items():
        if attribute not in _OF_THE_LAUNCH:
            only.attr[attribute].CopyFrom(value)
    for index, (output, kind) in enumerate(zip(op_types.output_names(only), _result_types(node))):
        function.signature.output_arg.add(name=f"output_{index}", type=kind)
        function.ret[f"output_{index}"] = output
    if op_types.is_stateful(node.op):
        function.signature.is_stateful = True
        function.signature.control_output.append(only.name)
        function.control_ret[only.name] = only.name
    return function


def _result_types(node: node_def_pb2.NodeDef) -> list[int]:
    return [kind for types in op_types.output_types(node).values() for kind in types]
