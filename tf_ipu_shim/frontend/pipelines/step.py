"""Traces one mini-batch of a pipeline: all stages, the loss, its gradients.

Uses `Operation._original_op`, which TensorFlow sets on ops of gradients; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.control_flow import loops
from tf_ipu_shim.frontend.feeds.ipu_infeed_queue import element_arguments
from tf_ipu_shim.frontend.ops import planner_options
from tf_ipu_shim.frontend.pipelines.arguments import PipelineArguments
from tf_ipu_shim.frontend.pipelines.footprint import measure_footprint
from tf_ipu_shim.frontend.pipelines.optimizer_output import OptimizerFunctionOutput
from tf_ipu_shim.frontend.pipelines.options import PipelineStageOptions
from tf_ipu_shim.frontend.pipelines.shared_variables import StageSpan, refuse_shared_variables
from tf_ipu_shim.frontend.sharding import scopes
from tf_ipu_shim.frontend.tracing import autograph, script_functions, tracing
from tf_ipu_shim.frontend.validation.results import to_list
from tf_ipu_shim.legacy.names import activation
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops
from tf_ipu_shim.tf_private.protos import attr_value_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util


class PipelineStep:
    """A traced mini-batch.

    Attributes:
        optimizer: the result of the optimizer function; None for inference.
        gradients: gradients in the traced function, in the order of `variables`.
        footprint: bytes that the stages need and keep.
        outfeed: tensors that are accumulated and then enqueued.
        hyperparameters: tensors that the optimizer holds and that were made while tracing, by holder and name.

    Raises:
        ValueError: a stage uses a tensor from outside or a variable of a stage on another IPU, or the last stage's
            outputs have no destination.
    """

    def __init__(self, arguments: PipelineArguments, name: str) -> None:
        self._arguments = arguments
        self.optimizer: OptimizerFunctionOutput | None = None
        self.gradients: list[Any] = []
        self.variables: list[Any] = []
        self.captured: dict[str, Any] = {}
        self.outfeed: Any = None
        self._operations: list[Any] = []
        self._spans: list[StageSpan] = []
        # Stands for the number of the mini-batch, which the loop around the step knows when it calls it.
        self._counter = array_ops.identity(array_ops.zeros([], "int32"), name="mini_batch")
        with loops.set_counter(self._counter):
            self.graph, _ = tracing.trace_function(name.replace("/", "_"), self._trace, arguments.inputs or [])
        self._refuse_captures()
        if not arguments.shared_variables:
            refuse_shared_variables(self.graph, self._spans)
        self.hyperparameters = self._find_hyperparameters()

    def _trace(self, *inputs: Any) -> None:
        outputs: list[Any] = list(inputs)
        keywords: dict[str, Any] = {}
        if self._arguments.infeed_queue is not None:
            fed, keywords = element_arguments(self._arguments.infeed_queue._dequeue())
            outputs.extend(fed)
        bounds = [self._number_of_ops()]
        plain = [PipelineStageOptions()] * len(self._arguments.functions)
        forward_options = self._arguments.forward_propagation_stages_poplar_options or plain
        backward_options = self._arguments.backward_propagation_stages_poplar_options or plain
        for stage_index, (stage, options, backward) in enumerate(
            zip(self._arguments.functions, forward_options, backward_options)
        ):
            stage_attribute = {vocabulary.STAGE_ATTRIBUTE: attr_value_pb2.AttrValue(i=stage_index)}
            with planner_options.planner_scope(**_matmul_options(options)), tracing.attribute_scope(stage_attribute):
                outputs = self._run_stage(stage_index, stage, outputs, keywords)
            self._check_options(bounds[-1], outputs, options, backward)
            keywords = {}
            bounds.append(self._number_of_ops())
        self._operations = [output for output in outputs if isinstance(output, ops.Operation)]
        tensors = [output for output in outputs if not isinstance(output, ops.Operation)]
        if self._arguments.optimizer_function is not None:
            bounds[-1] = self._train(tensors, self._arguments.functions[-1][-1][1])
            self._plan_gradients(bounds)
        self.footprint = measure_footprint(ops.get_default_graph(), bounds)
        self._feed_out(tensors)

    def _check_options(self, first: int, outputs: list[Any], *options: PipelineStageOptions) -> None:
        operations = ops.get_default_graph().get_operations()[first:]
        tensors = [value for value in outputs if tensor_util.is_tf_type(value)]
        read = options if self._arguments.optimizer_function is not None else options[:1]
        received = [{**_matmul_options(stage), "slice": stage.slice_options} for stage in read]
        planner_options.check_read_options(tensors, operations, *received)

    @staticmethod
    def _number_of_ops() -> int:
        return len(ops.get_default_graph().get_operations())

    def _run_stage(self, stage_index: int, stage: Any, inputs: list[Any], keywords: dict[str, Any]) -> list[Any]:
        outputs: list[Any] = []
        for function, ipu in stage:
            reason = script_functions.explain_call_mismatch(function, len(inputs), keywords)
            if reason is not None:
                source = f"what stage {stage_index - 1} returned" if stage_index else "the pipeline's inputs and infeed"
                raise TypeError(
                    f"Pipeline stage {stage_index} cannot be called: {script_functions.describe_function(function)} is "
                    f"given {source}, arguments: {len(inputs) + len(keywords)}. {reason}. Change the stage's "
                    "arguments, or what the previous stage returns."
                )
            first = self._number_of_ops()
            with scopes.ipu_shard(ipu):
                outputs.extend(to_list(autograph.convert_like_caller(function)(*inputs, **keywords)))
            self._spans.append(StageSpan(stage_index, ipu, first, self._number_of_ops()))
        return outputs

    def _train(self, outputs: list[Any], last_ipu: int) -> int:
        """Adds loss and gradients; returns the number of ops before the gradients."""
        with scopes.ipu_shard(last_ipu):
            self.optimizer = autograph.convert_like_caller(self._arguments.optimizer_function)(*outputs)  # type: ignore[arg-type]
        if not isinstance(self.optimizer, OptimizerFunctionOutput):
            raise TypeError(
                "optimizer_function must return a pipelining_ops.OptimizerFunctionOutput, not "
                f"{type(self.optimizer).__name__}. Return an OptimizerFunctionOutput."
            )
        forward = self._number_of_ops()
        pairs, self.captured = self.optimizer.gradients()  # unmarked: a gradient op follows its forward op
        if not pairs:
            raise ValueError(
                "No gradients provided for any variable: the `loss` is computed without trainable variables, and must "
                "depend on "
                "one. Compute the loss from the outputs of trainable layers."
            )
        self.gradients = [gradient for gradient, _ in pairs]
        self.variables = [variable for _, variable in pairs]
        return forward

    def _plan_gradients(self, bounds: list[int]) -> None:
        """Marks gradient ops by the options of the stage that their forward op is in."""
        options = self._arguments.backward_propagation_stages_poplar_options
        if options is None:
            return
        operations = ops.get_default_graph().get_operations()
        stage_of = {
            operation: stage
            for stage, (first, end) in enumerate(zip(bounds, bounds[1:]))
            for operation in operations[first:end]
        }
        for operation in operations[bounds[-1] :]:
            stage = stage_of.get(tf_graphs.original_op(operation))
            if (
                stage is not None
                and (attribute := planner_options.planner_attribute(**_matmul_options(options[stage]))) is not None
            ):
                tf_graphs.set_attr(operation, vocabulary.PLANNING_ATTRIBUTE, attribute)

    def _feed_out(self, outputs: list[Any]) -> None:
        arguments = self._arguments
        if arguments.accumulate_outfeed_dtype is not None:
            outputs = _rename_outputs(outputs)
        values = self._outfeed_values(outputs)
        if isinstance(values, list) and not values:
            return
        if arguments.outfeed_queue is None:
            raise ValueError(
                f"The last computational stage has tensor outputs: {', '.join(str(tensor) for tensor in outputs)}, but "
                "no outfeed_queue has been provided. Provide one, or mask the outputs with outfeed_mask."
            )
        if arguments.accumulate_outfeed:
            self.outfeed = values
        else:
            self._operations.append(arguments.outfeed_queue.enqueue(values))

    def _outfeed_values(self, outputs: list[Any]) -> Any:
        arguments = self._arguments
        if arguments.outfeed_loss and self.optimizer is not None:
            return self.optimizer.loss
        if arguments.outfeed_mask:
            if len(arguments.outfeed_mask) != len(outputs):
                raise ValueError(
                    f"The last computational stage has {len(outputs)} outputs, but the outfeed_mask has "
                    f"{len(arguments.outfeed_mask)} entries; both numbers must be equal. Pass one entry for "
                    "each output."
                )
            return [output for output, masked in zip(outputs, arguments.outfeed_mask) if not masked]
        if len(outputs) == 1 and not arguments.training and not arguments.accumulate_outfeed:
            # As Graphcore's TensorFlow 2, with version 2 behaviour or without: an inference pipeline's outfeed gives
            # the tensor or the dictionary. That of TensorFlow 1.15 gives a list of the one tensor.
            in_list = activation.is_tensorflow1() and not isinstance(outputs[0], dict)
            return outputs if in_list else outputs[0]
        return outputs

    def _refuse_captures(self) -> None:
        argument_ids = {id(self._counter), *(id(tensor) for tensor in self._arguments.inputs or ())}
        for tensor, inside in self.graph.captures:
            # Values that are known already are constants: TensorFlow has made small ones ops of the stage.
            is_constant = inside.op.type == "Const" or isinstance(tensor, ops.EagerTensor)
            if id(tensor) not in argument_ids and tensor.dtype.name != "resource" and not is_constant:
                raise ValueError(
                    f"Trying to capture the tensor {tensor} which is not a resource. This tensor needs to be passed as "
                    "either part of the `inputs` or the `infeed_queue` of the pipeline. Add it to `inputs`."
                )

    def _find_hyperparameters(self) -> dict[tuple[int, str], tuple[Any, Any]]:
        """Such as a decayed learning rate: made with the loss, used when the gradients are complete."""
        hyperparameters: dict[tuple[int, str], tuple[Any, Any]] = {}
        holders = [self.optimizer.opt] if self.optimizer is not None else []
        for holder in holders:
            for name, value in list(vars(holder).items()):
                if hasattr(value, "apply_gradients"):  # a wrapper of a script's own may call it what it likes
                    if not any(value is hyperparameter_holder for hyperparameter_holder in holders):
                        holders.append(value)
                elif tensor_util.is_tf_type(value) and getattr(value, "graph", None) is self.graph:
                    hyperparameters[id(holder), name] = (holder, value)
        return hyperparameters

    @contextmanager
    def holding(self, values: list[Any]) -> Iterator[None]:
        """Temporarily replaces the optimizer's hyperparameters by these tensors of the outer graph."""
        for (_, name), (holder, _), value in zip(self.hyperparameters, self.hyperparameters.values(), values):
            setattr(holder, name, value)
        try:
            yield
        finally:
            for (_, name), (holder, before) in self.hyperparameters.items():
                setattr(holder, name, before)

    def call(self, counter: Any, *groups: list[Any]) -> list[list[Any]]:
        """Calls the traced mini-batch in the current graph."""
        inputs = [counter if tensor is self._counter else tensor for tensor in self.graph.external_captures]
        tensors = [tensor for group in groups for tensor in group]
        results = iter(tracing.add_nested_call(self.graph, tensors, self._operations, inputs))
        if not any(groups):
            return [list(results)]
        return [[next(results) for _ in group] for group in groups]


def _rename_outputs(outputs: list[Any]) -> list[Any]:
    """Outputs under names as in Graphcore's graph, by which a function from tensor to dtype distinguishes them."""
    named = array_ops.identity_n(nest.flatten(outputs), name="PipelineStage")
    return nest.pack_sequence_as(outputs, named)  # type: ignore[no-any-return]


def _matmul_options(options: PipelineStageOptions) -> dict[str, dict[str, str]]:
    """Returns a stage's matmul and convolution options, one entry for each XLA opcode."""
    return {"dot": options.matmul_options, "convolution": options.convolution_options}
