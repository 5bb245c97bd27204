"""Analyses the memory of one XLA program on its IPU.

HLO of the program is read (see `hlo`). If XLA cannot provide it without running the program, its TensorFlow ops are
analysed one by one: every result in new memory, nothing in place. That figure is coarser, usually higher, and the plan
names the program and the reason.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Container, Mapping, Sequence
from typing import Any

from tensorflow.compat.v2 import dtypes, errors

from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.compiler.ir.node_defs import constant, copy_function, data_inputs, producer_name
from tf_ipu_shim.compiler.xla_semantics.user_ops import with_custom_calls
from tf_ipu_shim.machine.memory import Mode, Value
from tf_ipu_shim.memory_model.computations.computations import ComputationClassifier
from tf_ipu_shim.memory_model.computations.outlined_calls import OutlinedInstruction
from tf_ipu_shim.memory_model.hlo import compiler_ir
from tf_ipu_shim.memory_model.hlo.function_copies import rename
from tf_ipu_shim.memory_model.hlo.instructions import is_gradient
from tf_ipu_shim.memory_model.hlo.outlined_ops import inline, outline
from tf_ipu_shim.memory_model.hlo.surrogate_ops import remove_extra_conversions, substitute_surrogates
from tf_ipu_shim.memory_model.shapes.batch_axes import Axis
from tf_ipu_shim.memory_model.shapes.shape_inference import TensorSpec, reached_functions
from tf_ipu_shim.memory_model.shapes.tensor_lists import infer
from tf_ipu_shim.memory_model.variables.mapped_tensors import stage_computation
from tf_ipu_shim.memory_model.variables.pipeline_memory import find_pipelines, stages_of
from tf_ipu_shim.memory_model.walk.analysis_context import AnalysisContext
from tf_ipu_shim.memory_model.walk.block_writer import VIEWS, BlockWriter, TensorState
from tf_ipu_shim.memory_model.walk.hlo_walk import HloAnalyzer, HloEnvironment, Mapped
from tf_ipu_shim.memory_model.walk.load_sinking import Load
from tf_ipu_shim.memory_model.walk.program_results import ProgramResult
from tf_ipu_shim.memory_model.walk.recomputation import stage_ops
from tf_ipu_shim.tf_private.protos import function_pb2, hlo_pb2, tensor_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util

_REASON_LENGTH = 200


def launch(analyzer: BlockWriter, function: str, ipu: int, inputs: Sequence[TensorState]) -> list[TensorState]:
    """Adds an XLA program; returns the states of its results."""
    unknown = [state.name for state in inputs if state.spec.shape is None]
    if unknown:
        return _analyze_op_by_op(
            analyzer, function, ipu, inputs, f"the shape of {unknown[0]} is known only when it runs"
        )
    definition, fed = _with_known_inputs(analyzer, function, inputs)
    arguments = [compiler_ir.Argument(state.spec.type, state.spec.shape or (), state.spec.variable) for state in fed]
    called = reached_functions(definition.node_def, analyzer.context.library)
    written = [with_custom_calls(each) for each in (definition, *called)]
    library = [substitute_surrogates(each, is_profiled=analyzer.context.names is not None) for each in written]
    try:
        try:
            module = _module(analyzer, definition, library, arguments)
        except compiler_ir.ConversionError:  # the values of surrogates differ, and a shape may be computed of them
            library = written
            module = _module(analyzer, definition, library, arguments)
    except compiler_ir.ConversionError as error:
        if error.text:
            analyzer.context.unconverted[function] = error.text
        return _analyze_op_by_op(analyzer, function, ipu, inputs, str(error)[:_REASON_LENGTH])
    analyzer.context.work.launch(function, module, library)
    return _analyze_hlo(analyzer, ipu, module, definition, (analyzer.context.library[function], *called), fed)


def _module(
    analyzer: BlockWriter,
    definition: function_pb2.FunctionDef,
    library: Sequence[function_pb2.FunctionDef],
    arguments: Sequence[compiler_ir.Argument],
) -> hlo_pb2.HloModuleProto:
    """Returns a program's HLO, reused from an earlier analysis if shared."""
    name, known = definition.signature.name, analyzer.context.options.modules
    if known is None:
        return _hlo_as_written(name, library, arguments)
    key = (name, definition.SerializeToString(deterministic=True), tuple(arguments))
    if key not in known:
        known[key] = _hlo_as_written(name, library, arguments)
    return known[key]


def _hlo_as_written(
    name: str, library: Sequence[function_pb2.FunctionDef], arguments: Sequence[compiler_ir.Argument]
) -> hlo_pb2.HloModuleProto:
    """Returns the HLO as if all ops were converted as written."""
    module = _hlo_with_outlining(name, library, arguments)
    remove_extra_conversions(module)
    return module


def _hlo_with_outlining(
    name: str, library: Sequence[function_pb2.FunctionDef], arguments: Sequence[compiler_ir.Argument]
) -> hlo_pb2.HloModuleProto:
    """Returns the HLO with identical ops converted once."""
    calling = outline(library)
    if calling is not None:
        # What XLA refuses, it refuses again, in words that know of no calls.
        with contextlib.suppress(compiler_ir.ConversionError):
            module = compiler_ir.shared().hlo(name, calling.functions, arguments)
            if inline(module, calling.ops):
                return module
    return compiler_ir.shared().hlo(name, library, arguments)


def _with_known_inputs(
    analyzer: BlockWriter, function: str, inputs: Sequence[TensorState]
) -> tuple[function_pb2.FunctionDef, list[TensorState]]:
    """Returns the function with known constants substituted and its remaining inputs."""
    definition = analyzer.context.library[function]
    constants = {
        index: state.spec.literal
        for index, state in enumerate(inputs[: analyzer.context.constants_of(function)])
        if state.spec.literal is not None
    }
    if constants:
        definition = _with_constants(definition, constants)
    return definition, [state for index, state in enumerate(inputs) if index not in constants]


def _analyze_hlo(
    analyzer: BlockWriter,
    ipu: int,
    module: hlo_pb2.HloModuleProto,
    definition: function_pb2.FunctionDef,
    library: Sequence[function_pb2.FunctionDef],
    fed: Sequence[TensorState],
) -> list[TensorState]:
    """Analyses a program's HLO; returns its results."""
    function = definition.signature.name
    kept_before = add_pipeline_fifos(analyzer, ipu, library)
    values, loads = analyzer.parameters(ipu, fed)
    begin = len(analyzer.blocks[ipu].steps)
    # XLA gives no parameter to a variable without a value.
    parameters = [value for value, state in zip(values, fed) if state.spec.type]
    if analyzer.context.storage.recomputes:
        analyzer.stage_ops.update(stage_ops(library))
    states = dict(zip(values, fed))
    environment = HloEnvironment(
        owner_of=functools.partial(_record_scope, analyzer.context.scopes, analyzer.context.scope_of(function)),
        classifier=_classifier(analyzer.context, module, function, library, ipu),
        key_of=analyzer.context.new_key,
        mapped=_mapped(analyzer, ipu, library),
        options=analyzer.context.options,
        mini_batch=analyzer.context.mini_batch_in(analyzer.blocks[ipu]),
        away=loads,
        neighbours={value: state.neighbours for value, state in states.items() if state.neighbours is not None},
    )
    axes = {} if environment.mini_batch is None else environment.mini_batch.axes
    axes.update({value: state.spec.axis for value, state in states.items() if state.spec.axis is not None})
    reader = HloAnalyzer(module, analyzer.blocks[ipu], environment)
    values_after, results = reader.analyze(parameters), reader.results()
    analyzer.load(ipu, begin, _stored(loads, reader.written(parameters), states))
    if kept_before:
        analyzer.block(ipu).run("end of the pipeline", kept_before, ())
    outputs = definition.signature.output_arg
    if not len(values_after) == len(results) == len(outputs):
        raise errors.InternalError(
            None,
            None,
            f"Planning memory failed: XLA's program for {function} returns {len(results)} results; expected "
            f"{len(outputs)}. Report the script that shows this.",
        )
    return [
        _result_state(
            _spec(output.type, result, axes.get(value_id)),
            definition.ret[output.name],
            ipu,
            value_id,
            result.neighbours,
        )
        for output, result, value_id in zip(outputs, results, values_after)
    ]


def _stored(loads: Mapping[int, Load], written: Container[int], states: Mapping[int, TensorState]) -> dict[int, Load]:
    """Returns loads without the stores of variables that do not change; accumulators always do."""
    return {
        value_id: load if value_id in written or states[value_id].variable < 0 else load._replace(store=None)
        for value_id, load in loads.items()
    }


def _record_scope(scopes: dict[str, str], scope: str, name: str) -> str:
    """Records the scope of an op; returns the op's name."""
    scopes.setdefault(name, scope)
    return name


def _classifier(
    context: AnalysisContext,
    module: hlo_pb2.HloModuleProto,
    function: str,
    library: Sequence[function_pb2.FunctionDef],
    ipu: int,
) -> ComputationClassifier | None:
    """Returns what describes a program's computations; None without cycle estimates."""
    if context.names is None:
        return None
    classifier = ComputationClassifier(module, library, context.names, context.options.planner_options, ipu)
    classifier.count_by(context.counters_in(function))
    return classifier


def _mapped(analyzer: BlockWriter, ipu: int, library: Sequence[function_pb2.FunctionDef]) -> Mapped | None:
    """Returns what adds a program's tensors to the tensor map; None without one."""
    tensors = analyzer.context.tensors
    if tensors is None:
        return None
    pipelines = [analyzer.pipeline] if analyzer.pipeline else [pipeline.name for pipeline in find_pipelines(library)]
    stages = stages_of(library) if pipelines else {}

    def add(
        instruction: Any, below: str, owner: str, function: str, product: str, outlined: OutlinedInstruction | None
    ) -> None:
        if owner in stages:
            function = stage_computation(pipelines[0], stages[owner])
        tensors.instruction(instruction, below, owner, ipu, function or analyzer.function_name, product, outlined)

    return add


def add_pipeline_fifos(analyzer: BlockWriter, ipu: int, functions: Sequence[function_pb2.FunctionDef]) -> list[int]:
    """Adds FIFOs of a pipeline that is one XLA program: all stages on one IPU, without feeds."""
    found: list[int] = []
    for pipeline in find_pipelines(functions):
        for value_ids in analyzer.begin_pipeline(pipeline, [ipu], {}).values():
            found.extend(value_ids)
    return found


def _spec(kind: int, result: ProgramResult, axis: Axis | None) -> TensorSpec:
    """Returns the known properties of an XLA program's result."""
    literal = None
    if result.literal is not None:
        literal = tensor_util.make_tensor_proto(result.literal, dtypes.as_dtype(kind), result.shape)
    return TensorSpec(kind, result.shape, literal=literal, axis=axis)


def _with_constants(
    function: function_pb2.FunctionDef, constants: Mapping[int, tensor_pb2.TensorProto]
) -> function_pb2.FunctionDef:
    """Returns a function with some arguments replaced by their values."""
    copy = copy_function(function)
    renamed: dict[str, str] = {}
    for index in sorted(constants, reverse=True):
        argument = function.signature.input_arg[index]
        del copy.signature.input_arg[index]
        copy.node_def.append(constant(f"{argument.name}_value", constants[index], argument.type))
        renamed[argument.name] = f"{argument.name}_value:output:0"
    rename(copy, renamed)
    return copy


def _result_state(
    known: TensorSpec, tensor: str, ipu: int, value_id: int, neighbours: int | None = None
) -> TensorState:
    return TensorState(known, name=producer_name(tensor), values={ipu: value_id}, neighbours=neighbours)


def _analyze_op_by_op(
    analyzer: BlockWriter, function: str, ipu: int, inputs: Sequence[TensorState], reason: str
) -> list[TensorState]:
    analyzer.context.coarse[function] = reason
    definition = analyzer.context.library[function]
    names = [argument.name for argument in definition.signature.input_arg]
    known = infer(
        definition.node_def, {name: state.spec for name, state in zip(names, inputs)}, analyzer.context.library
    )
    values = {name: analyzer.value(ipu, state) for name, state in zip(names, inputs)}
    block, scope = analyzer.block(ipu), analyzer.context.scope_of(function)

    for node in definition.node_def:
        analyzer.context.scopes.setdefault(node.name, scope)
        operands = [values[tensor_name] for tensor_name in data_inputs(node)]
        kind = "gradient" if is_gradient(node.name) else "temporary"
        results, shapes = [], []
        for tensor in op_types.output_names(node):
            value = Value(analyzer.context.sizes.of(known[tensor]), node.name, kind)
            if node.op == "Const":
                value = value._replace(kind="constant", mode=Mode.ALWAYS)
            elif node.op in VIEWS:
                value = value._replace(mode=Mode.VIEW, of=tuple(operands[:1]))
            values[tensor] = block.add(value)
            results.append(values[tensor])
            shapes.append(known[tensor])
        if node.op != "Const":
            block.run(node.name, operands, results, work=analyzer.generic(node, shapes))
    tensors = [definition.ret[output.name] for output in definition.signature.output_arg]
    return [
        _result_state(known.get(tensor_name, TensorSpec(0, None)), tensor_name, ipu, values[tensor_name])
        for tensor_name in tensors
    ]
