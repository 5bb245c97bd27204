"""What a pipeline does with one mini-batch: all stages, the loss, its gradients. Traced once."""

from __future__ import annotations

from typing import Any

from tensorflow.python.framework import ops, tensor_util

from tf_ipu_shim.ipu import autograph, scopes
from tf_ipu_shim.ipu.ipu_infeed_queue import element_arguments
from tf_ipu_shim.ipu.ops.pipelining_ops.arguments import PipelineArguments
from tf_ipu_shim.ipu.ops.pipelining_ops.optimizer_output import OptimizerFunctionOutput
from tf_ipu_shim.lowering import tracing


class PipelineStep:
    """A traced mini-batch.

    Args:
        arguments: of the pipeline.
        name: of the pipeline.

    Attributes:
        optimizer: what the optimizer function returned; None for inference.
        gradients: gradients in the traced function, in the order of `variables`.
        variables: what is trained.
        outfeed: tensors that are accumulated and then enqueued.
        hyperparameters: tensors that the optimizer holds and that were made while tracing, by holder and name.

    Raises:
        ValueError: a stage uses a tensor from outside, or the last stage's outputs have nowhere to go.
    """

    def __init__(self, arguments: PipelineArguments, name: str) -> None:
        self._arguments = arguments
        self.optimizer: OptimizerFunctionOutput | None = None
        self.gradients: list[Any] = []
        self.variables: list[Any] = []
        self.outfeed: Any = None
        self._operations: list[Any] = []
        self.graph, _ = tracing.trace(name, self._trace, arguments.inputs)
        self._refuse_captures()
        self.hyperparameters = self._find_hyperparameters()

    def _trace(self, *inputs: Any) -> None:
        outputs: list[Any] = list(inputs)
        keywords: dict[str, Any] = {}
        if self._arguments.infeed_queue is not None:
            fed, keywords = element_arguments(self._arguments.infeed_queue._dequeue())
            outputs.extend(fed)
        mapping = self._arguments.device_mapping or ()
        for stage, ipu in zip(self._arguments.stages, mapping):
            with scopes.ipu_shard(ipu):
                outputs = _as_list(autograph.converted(stage)(*outputs, **keywords))
            keywords = {}
        self._operations = [output for output in outputs if isinstance(output, ops.Operation)]
        tensors = [output for output in outputs if not isinstance(output, ops.Operation)]
        if self._arguments.optimizer_function is not None:
            self._train(tensors, mapping[-1])
        self._feed_out(tensors)

    def _train(self, outputs: list[Any], last_ipu: int) -> None:
        with scopes.ipu_shard(last_ipu):
            self.optimizer = autograph.converted(self._arguments.optimizer_function)(*outputs)  # type: ignore[arg-type]
        if not isinstance(self.optimizer, OptimizerFunctionOutput):
            raise TypeError(
                "optimizer_function must return a pipelining_ops.OptimizerFunctionOutput, not "
                f"{type(self.optimizer).__name__}."
            )
        pairs = self.optimizer.gradients()  # unmarked: a gradient op follows its forward op
        if not pairs:
            raise ValueError("No gradients provided for any variable: the loss depends on none that can be trained.")
        self.gradients = [gradient for gradient, _ in pairs]
        self.variables = [variable for _, variable in pairs]

    def _feed_out(self, outputs: list[Any]) -> None:
        arguments = self._arguments
        sent: Any = outputs
        if arguments.outfeed_loss and self.optimizer is not None:
            sent = self.optimizer.loss
        elif arguments.outfeed_mask:
            if len(arguments.outfeed_mask) != len(outputs):
                raise ValueError(
                    f"The last computational stage has {len(outputs)} outputs, but the outfeed_mask has "
                    f"{len(arguments.outfeed_mask)} entries. Give one for each output."
                )
            sent = [output for output, masked in zip(outputs, arguments.outfeed_mask) if not masked]
        if isinstance(sent, list) and not sent:
            return
        if arguments.outfeed_queue is None:
            raise ValueError(
                f"The last computational stage has tensor outputs: {', '.join(str(tensor) for tensor in outputs)}, but "
                "no outfeed_queue has been provided. Provide one, or mask the outputs with outfeed_mask."
            )
        if arguments.accumulate_outfeed:
            self.outfeed = sent
        else:
            self._operations.append(arguments.outfeed_queue.enqueue(sent))

    def _refuse_captures(self) -> None:
        given = {id(tensor) for tensor in self._arguments.inputs}
        for tensor in self.graph.external_captures:
            if id(tensor) not in given and tensor.dtype.name != "resource":
                raise ValueError(
                    f"Trying to capture the tensor {tensor} which is not a resource. This tensor needs to be passed as "
                    "either part of the `inputs` or the `infeed_queue` of the pipeline."
                )

    def _find_hyperparameters(self) -> dict[tuple[int, str], tuple[Any, Any]]:
        """Such as a decayed learning rate: made with the loss, used when the gradients are complete."""
        found: dict[tuple[int, str], tuple[Any, Any]] = {}
        holders = [self.optimizer.opt] if self.optimizer is not None else []
        for holder in holders:
            for name, value in list(vars(holder).items()):
                if name in ("_opt", "_optimizer") and hasattr(value, "apply_gradients"):
                    holders.append(value)
                elif tensor_util.is_tf_type(value) and getattr(value, "graph", None) is self.graph:
                    found[id(holder), name] = (holder, value)
        return found

    def call(self, outfeed: list[Any]) -> tuple[list[Any], list[Any], list[Any]]:
        """Calls the traced mini-batch in the current graph.

        Args:
            outfeed: the flat tensors of `self.outfeed`.

        Returns:
            Gradients, what is accumulated for the outfeed, hyperparameters.
        """
        outputs = [*self.gradients, *outfeed, *(value for _, value in self.hyperparameters.values())]
        results = tracing.call_inside(self.graph, outputs, self._operations)
        if not outputs:
            return [], [], results
        first, second = len(self.gradients), len(self.gradients) + len(outfeed)
        return results[:first], results[first:second], results[second:]


def _as_list(returned: Any) -> list[Any]:
    if returned is None:
        return []
    return list(returned) if isinstance(returned, (list, tuple)) else [returned]
