"""What one XLA program adds to the memory of its IPU.

XLA's own form of the program is read (see `hlo`). Where XLA cannot give it without running the program, such as for
one whose shapes depend on an argument's value, its TensorFlow ops are taken one by one instead: every result in new
memory, nothing in place. That figure is coarser, usually higher, and the plan names the program and the reason.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from tensorflow.compat.v2 import dtypes, errors

from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.machine.memory import Mode, Value
from tf_ipu_shim.memory_model.computations.computations import InstructionReader
from tf_ipu_shim.memory_model.computations.outlined_calls import Place
from tf_ipu_shim.memory_model.hlo import compiler_ir
from tf_ipu_shim.memory_model.hlo.function_copies import rename
from tf_ipu_shim.memory_model.hlo.instructions import is_gradient
from tf_ipu_shim.memory_model.hlo.outlined_ops import put_in_place, with_calls
from tf_ipu_shim.memory_model.hlo.surrogate_ops import leave_out_conversions, with_stand_ins
from tf_ipu_shim.memory_model.shapes.shape_inference import Known, reached
from tf_ipu_shim.memory_model.shapes.tensor_lists import infer
from tf_ipu_shim.memory_model.variables.mapped_tensors import MappedTensors, stage_computation
from tf_ipu_shim.memory_model.variables.pipeline_memory import pipelines_in, stages_of
from tf_ipu_shim.memory_model.walk.block_writer import VIEWS, BlockWriter, Held
from tf_ipu_shim.memory_model.walk.hlo_walk import HloReader, Mapped
from tf_ipu_shim.memory_model.walk.recomputation import marks_of
from tf_ipu_shim.tf_private.protos import function_pb2, hlo_pb2, tensor_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util

_REASON_LENGTH = 200


def launch(walk: BlockWriter, function: str, ipu: int, inputs: Sequence[Held]) -> list[Held]:
    """Adds an XLA program.

    Args:
        walk: the function it is launched in.
        function: what it runs.
        ipu: where.
        inputs: what it takes, in the order of the function's arguments.

    Returns:
        What it gives.
    """
    unknown = [held.name for held in inputs if held.known.shape is None]
    if unknown:
        return _op_by_op(walk, function, ipu, inputs, f"the shape of {unknown[0]} is known only when it runs")
    definition, fed = _fed(walk, function, inputs)
    arguments = [compiler_ir.Argument(held.known.type, held.known.shape or (), held.known.variable) for held in fed]
    called = reached(definition.node_def, walk.walk.library)
    functions = (definition, *called)
    library = [with_stand_ins(each, is_profiled=walk.walk.names is not None) for each in functions]
    try:
        module = _module(walk, definition, library, arguments)
    except compiler_ir.NoProgramError as error:
        if error.text:
            walk.walk.without_form[function] = error.text
        return _op_by_op(walk, function, ipu, inputs, str(error)[:_REASON_LENGTH])
    walk.walk.work.launch(function, module, library)
    return _read(walk, ipu, module, definition, (walk.walk.library[function], *called), fed)


def _module(
    walk: BlockWriter,
    definition: function_pb2.FunctionDef,
    library: Sequence[function_pb2.FunctionDef],
    arguments: Sequence[compiler_ir.Argument],
) -> hlo_pb2.HloModuleProto:
    """XLA's form of a program; a walk that shares them takes it from the one before."""
    name, known = definition.signature.name, walk.walk.modules
    if known is None:
        return _form(name, library, arguments)
    key = (name, definition.SerializeToString(deterministic=True), tuple(arguments))
    if key not in known:
        known[key] = _form(name, library, arguments)
    return known[key]


def _form(
    name: str, library: Sequence[function_pb2.FunctionDef], arguments: Sequence[compiler_ir.Argument]
) -> hlo_pb2.HloModuleProto:
    """The same, as if all ops were there as they are written."""
    module = _quickly_made(name, library, arguments)
    leave_out_conversions(module)
    return module


def _quickly_made(
    name: str, library: Sequence[function_pb2.FunctionDef], arguments: Sequence[compiler_ir.Argument]
) -> hlo_pb2.HloModuleProto:
    """The same, alike ops made once."""
    calling = with_calls(library)
    if calling is not None:
        # What XLA refuses, it refuses again, in words that know of no calls.
        with contextlib.suppress(compiler_ir.NoProgramError):
            module = compiler_ir.shared().hlo(name, calling.functions, arguments)
            if put_in_place(module, calling.ops):
                return module
    return compiler_ir.shared().hlo(name, library, arguments)


def _fed(walk: BlockWriter, function: str, inputs: Sequence[Held]) -> tuple[function_pb2.FunctionDef, list[Held]]:
    """The function with the constants that are known put in, and the rest of its inputs."""
    definition = walk.walk.library[function]
    constants = {
        index: held.known.literal
        for index, held in enumerate(inputs[: walk.walk.constants_of(function)])
        if held.known.literal is not None
    }
    if constants:
        definition = _with_constants(definition, constants)
    return definition, [held for index, held in enumerate(inputs) if index not in constants]


def _read(
    walk: BlockWriter,
    ipu: int,
    module: hlo_pb2.HloModuleProto,
    definition: function_pb2.FunctionDef,
    library: Sequence[function_pb2.FunctionDef],
    fed: Sequence[Held],
) -> list[Held]:
    """Adds a program in XLA's own form; returns what it gives."""
    function = definition.signature.name
    kept_before = pipelined_before(walk, ipu, library)
    values, loads = walk.parameters(ipu, fed)
    begin = len(walk.blocks[ipu].steps)
    # XLA gives no parameter to a variable without a value.
    parameters = [value for value, held in zip(values, fed) if held.known.type]
    scopes, scope = walk.walk.scopes, walk.walk.scope_of(function)

    def owner_of(name: str) -> str:
        scopes.setdefault(name, scope)
        return name

    if walk.walk.storage.recomputes:
        walk.marks.update(marks_of(library))
    names = walk.walk.names
    instructions = InstructionReader(module, library, names, walk.walk.plannings, ipu) if names is not None else None
    mapped = None if walk.walk.tensors is None else _mapped(walk, walk.walk.tensors, ipu, library)
    block, sizes, mini_batch = walk.blocks[ipu], walk.walk.sizes, walk.walk.mini_batch_in(walk.blocks[ipu])
    axes = {value: held.known.axis for value, held in zip(values, fed) if held.known.axis is not None}
    if mini_batch is not None:
        mini_batch.axes.update(axes)
    reader = HloReader(
        module, block, owner_of, instructions, walk.walk.new_key, mapped, sizes, mini_batch, loads,
        walk.walk.post_order,
    )  # fmt: skip
    results, shapes = reader.read(parameters), reader.result_shapes()
    walk.load(ipu, begin, loads)
    if kept_before:
        walk.block(ipu).run("end of the pipeline", kept_before, ())
    outputs, literals = definition.signature.output_arg, reader.result_literals()
    axes_after = {} if mini_batch is None else mini_batch.axes
    if not len(results) == len(shapes) == len(literals) == len(outputs):
        raise errors.InternalError(
            None, None, f"XLA's program for {function} gives {len(results)} results where {len(outputs)} are taken."
        )
    return [
        _held(
            Known(output.type, shape, literal=_proto(literal, output.type, shape), axis=axes_after.get(number)),
            definition.ret[output.name],
            ipu,
            number,
        )
        for output, shape, literal, number in zip(outputs, shapes, literals, results)
    ]


def _mapped(walk: BlockWriter, tensors: MappedTensors, ipu: int, library: Sequence[function_pb2.FunctionDef]) -> Mapped:
    pipelines = [walk.pipeline] if walk.pipeline else [pipeline.name for pipeline in pipelines_in(library)]
    stages = stages_of(library) if pipelines else {}

    def add(instruction: Any, below: str, owner: str, function: str, product: str, outlined: Place | None) -> None:
        if owner in stages:
            function = stage_computation(pipelines[0], stages[owner])
        tensors.instruction(instruction, below, owner, ipu, function or walk.function_name, product, outlined)

    return add


def pipelined_before(walk: BlockWriter, ipu: int, functions: Sequence[function_pb2.FunctionDef]) -> list[int]:
    """FIFOs of a pipeline that is in one XLA program, all its stages on one IPU and without feeds."""
    found: list[int] = []
    for pipeline in pipelines_in(functions):
        for numbers in walk.begin_pipeline(pipeline, [ipu]).values():
            found.extend(numbers)
    return found


def _proto(literal: list[int] | None, kind: int, shape: tuple[int, ...]) -> tensor_pb2.TensorProto | None:
    if literal is None:
        return None
    return tensor_util.make_tensor_proto(literal, dtypes.as_dtype(kind), shape)


def _with_constants(
    function: function_pb2.FunctionDef, constants: Mapping[int, tensor_pb2.TensorProto]
) -> function_pb2.FunctionDef:
    """The function with some arguments, by number, replaced by their values."""
    copy = function_pb2.FunctionDef()
    copy.CopyFrom(function)
    renamed: dict[str, str] = {}
    for index in sorted(constants, reverse=True):
        argument = function.signature.input_arg[index]
        del copy.signature.input_arg[index]
        node = copy.node_def.add(name=f"{argument.name}_value", op="Const")
        node.attr["dtype"].type = argument.type
        node.attr["value"].tensor.CopyFrom(constants[index])
        renamed[argument.name] = f"{node.name}:output:0"
    rename(copy, renamed)
    return copy


def _held(known: Known, tensor: str, ipu: int, number: int) -> Held:
    return Held(known, name=tensor.split(":", 1)[0], at={ipu: number})


def _op_by_op(walk: BlockWriter, function: str, ipu: int, inputs: Sequence[Held], reason: str) -> list[Held]:
    walk.walk.coarse[function] = reason
    definition = walk.walk.library[function]
    names = [argument.name for argument in definition.signature.input_arg]
    known = infer(definition.node_def, {name: held.known for name, held in zip(names, inputs)}, walk.walk.library)
    values = {name: walk.value(ipu, held) for name, held in zip(names, inputs)}
    block, scope = walk.block(ipu), walk.walk.scope_of(function)

    for node in definition.node_def:
        walk.walk.scopes.setdefault(node.name, scope)
        takes = [values[text] for text in node.input if not text.startswith("^")]
        kind = "gradient" if is_gradient(node.name) else "temporary"
        gives, shapes = [], []
        for tensor in op_types.output_names(node):
            value = Value(walk.walk.sizes.of(known[tensor]), node.name, kind)
            if node.op == "Const":
                value = value._replace(kind="constant", mode=Mode.ALWAYS)
            elif node.op in VIEWS:
                value = value._replace(mode=Mode.VIEW, of=tuple(takes[:1]))
            values[tensor] = block.add(value)
            gives.append(values[tensor])
            shapes.append(known[tensor])
        if node.op != "Const":
            block.run(node.name, takes, gives, work=walk.other(node, shapes))
    tensors = [definition.ret[output.name] for output in definition.signature.output_arg]
    return [_held(known.get(text, Known(0, None)), text, ipu, values[text]) for text in tensors]
