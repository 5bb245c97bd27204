"""Analyses a whole lowered program in execution order and records each IPU's memory."""

from __future__ import annotations

from collections.abc import Sequence

from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.cycle_model.sizes import HostSizes
from tf_ipu_shim.machine.memory import Step
from tf_ipu_shim.memory_model.shapes.batch_axes import Axis
from tf_ipu_shim.memory_model.shapes.shape_inference import TensorSpec
from tf_ipu_shim.memory_model.walk.analysis_context import AnalysisContext
from tf_ipu_shim.memory_model.walk.block_writer import TensorState
from tf_ipu_shim.memory_model.walk.function_walk import FunctionAnalyzer

_FROM_HOST, _TO_HOST = "copies from the host", "copies to the host"


class MemoryAnalyzer(AnalysisContext):
    """The memory analysis of a whole program."""

    def run(self) -> None:
        """Runs the analysis."""
        arguments = [self._argument(index) for index in range(len(self._request.arg_types))]
        self.place_variables()
        names = [argument.name for argument in self.library[self._request.function].signature.input_arg]
        node, analyzer = self._program.node, FunctionAnalyzer(self, self.blocks)
        if self._program.replicas > 1:  # all replicas need the same memory
            results: Sequence[TensorState] = analyzer.function(self._program.first_replica, arguments)
        else:
            order = self._program.inputs
            results = analyzer.node(node, [arguments[i] for i in order], [names[i] for i in order])
        self._program.result_shapes = [result.spec.shape for result in results]
        self._return(analyzer, results)
        self._copy_arguments(analyzer, arguments)
        if self.options.post_order:
            for block in self.blocks.values():
                block.keep_order()

    def _copy_arguments(self, analyzer: FunctionAnalyzer, arguments: Sequence[TensorState]) -> None:
        """Adds the copy of a run's arguments to each IPU, before the program's first step."""
        for ipu, block in self.blocks.items():
            fed = tuple(state.values[ipu] for state in arguments if state.is_fed and ipu in state.values)
            if fed:
                size = sum(block.values[value_id].bytes for value_id in fed)
                work = analyzer.copy_work("host", _FROM_HOST, HostSizes(size))
                block.steps.insert(0, Step(_FROM_HOST, (), fed, work=work))
                block.segments = [1, *(border + 1 for border in block.segments)]

    def _return(self, analyzer: FunctionAnalyzer, results: Sequence[TensorState]) -> None:
        """Keeps results until the end, and copies them to the host if cycles are wanted."""
        returned: dict[int, list[TensorState]] = {}
        for result in results:
            for ipu, value_id in result.values.items():
                self.blocks[ipu].results.append(value_id)
                returned.setdefault(ipu, []).append(result)
        for ipu, state in returned.items() if self.names is not None else ():
            work = analyzer.copy_work("host", _TO_HOST, HostSizes(-sum(self.sizes.of(tensor.spec) for tensor in state)))
            analyzer.block(ipu).run(_TO_HOST, [tensor.values[ipu] for tensor in state], (), work=work)

    def variables_only(self, reason: str) -> None:
        """Records only variables, after `run` has failed."""
        self.coarse[self._request.function] = reason
        self.place_variables()

    def _argument(self, index: int) -> TensorState:
        request = self._request
        if request.arg_types[index] == op_types.RESOURCE:
            return TensorState(TensorSpec(request.variable_types[index], request.variable_shapes[index], True), index)
        shape = request.arg_shapes[index]
        axis = Axis(0) if self.sizes.divides_batch and shape and shape[0] == self.fed_samples else None
        known = TensorSpec(request.arg_types[index], shape, axis=axis)
        return TensorState(known, is_fed=True, name=self.library[request.function].signature.input_arg[index].name)
