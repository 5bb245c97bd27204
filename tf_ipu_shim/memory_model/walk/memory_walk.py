"""A walk through what a program runs as, in running order, that writes down what each IPU keeps in memory."""

from __future__ import annotations

from collections.abc import Sequence

from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.machine.memory import Step
from tf_ipu_shim.memory_model.shapes.batch_axes import Axis
from tf_ipu_shim.memory_model.shapes.shape_inference import Known
from tf_ipu_shim.memory_model.walk.analysis_context import Accounts
from tf_ipu_shim.memory_model.walk.block_writer import Held
from tf_ipu_shim.memory_model.walk.function_walk import FunctionWalk

_FROM_HOST, _TO_HOST = "copies from the host", "copies to the host"


class Walk(Accounts):
    """The walk through a whole program."""

    def run(self) -> None:
        """Walks through the program."""
        arguments = [self._argument(index) for index in range(len(self._request.arg_types))]
        self.place_variables()
        names = [argument.name for argument in self.library[self._request.function].signature.input_arg]
        node, walk = self._program.node, FunctionWalk(self, self.blocks)
        if self._program.replicas > 1:  # the others are the same
            results: Sequence[Held] = walk.function(self._program.first_replica, arguments)
        else:
            order = self._program.inputs
            results = walk.node(node, [arguments[i] for i in order], [names[i] for i in order])
        self._program.result_shapes = [result.known.shape for result in results]
        self._return(walk, results)
        for ipu, block in self.blocks.items():
            # What a run is fed is copied to the IPUs before the program starts.
            fed = tuple(held.at[ipu] for held in arguments if held.is_fed and ipu in held.at)
            if fed:
                size = sum(block.values[number].bytes for number in fed)
                block.steps.insert(0, Step(_FROM_HOST, (), fed, work=walk.moved("host", _FROM_HOST, size)))
                block.segments = [1, *(border + 1 for border in block.segments)]
            if self.post_order:
                block.keep_order()

    def _return(self, walk: FunctionWalk, results: Sequence[Held]) -> None:
        """Keeps results until the end; where cycles are wanted, they are copied to the host then."""
        returned: dict[int, list[Held]] = {}
        for result in results:
            for ipu, number in result.at.items():
                self.blocks[ipu].results.append(number)
                returned.setdefault(ipu, []).append(result)
        for ipu, held in returned.items() if self.names is not None else ():
            work = walk.moved("host", _TO_HOST, -sum(self.sizes.of(one.known) for one in held))
            walk.block(ipu).run(_TO_HOST, [one.at[ipu] for one in held], (), work=work)

    def variables_only(self, reason: str) -> None:
        """Stands in for `run` where that fails."""
        self.coarse[self._request.function] = reason
        self.place_variables()

    def _argument(self, index: int) -> Held:
        request = self._request
        if request.arg_types[index] == op_types.RESOURCE:
            return Held(Known(request.variable_types[index], request.variable_shapes[index], True), index)
        shape = request.arg_shapes[index]
        axis = Axis(0) if self.sizes.cuts_batch and shape and shape[0] == self.fed_samples else None
        known = Known(request.arg_types[index], shape, axis=axis)
        return Held(known, is_fed=True, name=self.library[request.function].signature.input_arg[index].name)
