"""`ipu_tensorflow_addons.saved_model_tool.converter.auto_pipeline`: converts to a pipeline with automatic stages."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.api.addons.saved_model_tool.converter import pipelines
from tf_ipu_shim.api.addons.saved_model_tool.converter.autograph.strategies import find_opt
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.conversion import stage_costs

_FILE = "auto.pipeconfig"
_PRIORITIES = ("cycle", "memory")
# A cut between any two of more pieces than this would hardly be better, and takes the square of their number to find.
_PIECES = 400


class AutoPipelineImpl:
    """Finds the best stage for each node of a graph, and writes the stages to a file.

    Graphcore's profiles runs of the model. Here the cost of nodes is estimated from their shapes. The stages of a
    pipeline are as equal as possible. They use the fewest IPUs that can hold the constants and the largest value of
    each stage.

    Args:
        batch_size: see `IpuConversionParams` for all that are not named here.
        matmul_amp: the available memory proportion of matrix multiplications; no effect.
        matmul_partial_type: the partials type of matrix multiplications; no effect.
        conv_amp: the available memory proportion of convolutions; no effect.
        conv_partial_type: the partials type of convolutions; no effect.
        fine_tune_iter: how often Graphcore's converter tries again; no effect.
        ipu_model: the `ipu_model` setting of Graphcore's profiles; no effect.
        max_ipu_quantity: the most IPUs that are tried.
        min_ipu_quantity: the fewest.
        priority: `"cycle"` for stages of equal arithmetic, `"memory"` for stages of equal memory.
        profiling_root_dir: the root directory of Graphcore's profiles; no effect.
        solution_dir: the directory of the written file.
        logger: gets a line for each number of IPUs.

    Raises:
        ValueError: the priority is unknown, or the numbers of IPUs are not a range.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.auto_pipeline.AutoPipelineImpl`.
    """

    def __init__(
        self,
        batch_size: int,
        matmul_amp: float,
        matmul_partial_type: str,
        conv_amp: float,
        conv_partial_type: str,
        fine_tune_iter: int,
        ipu_model: bool,
        max_ipu_quantity: int,
        min_ipu_quantity: int,
        priority: str,
        profiling_root_dir: str,
        solution_dir: str,
        logger: Any = None,
    ) -> None:
        note_arguments(
            "pipeline_cfg", fine_tune_iter=fine_tune_iter, ipu_model=ipu_model, profiling_root_dir=profiling_root_dir
        )
        note_arguments(
            "AutoPipelineImpl",
            matmul_amp=matmul_amp,
            matmul_partial_type=matmul_partial_type,
            conv_amp=conv_amp,
            conv_partial_type=conv_partial_type,
        )
        if priority not in _PRIORITIES:
            raise ValueError(
                f"`priority` in `pipeline_cfg` is {priority!r}: it can be {' or '.join(_PRIORITIES)}. Pass one of "
                "these."
            )
        if not 2 <= min_ipu_quantity <= max_ipu_quantity:
            raise ValueError(
                f"`pipeline_cfg` asks for {min_ipu_quantity} to {max_ipu_quantity} IPUs: a pipeline needs two or more, "
                "and min_ipu_quantity is no larger than max_ipu_quantity. Change min_ipu_quantity or max_ipu_quantity."
            )
        self._batch_size = batch_size
        self._quantities = [n for n in (1 << power for power in range(1, 31)) if min_ipu_quantity <= n]
        self._most = max_ipu_quantity
        self._priority = priority
        self._directory = solution_dir
        self._logger = logger

    def apply(self, graph_def: Any, signature: Any) -> str:
        """Finds the stages, and writes the file.

        Args:
            graph_def: a `GraphDef` without variables, whose inputs have the batch size.
            signature: its `SignatureDef`.

        Returns:
            The path of `auto.pipeconfig` in the directory for solutions.

        Raises:
            ValueError: no number of IPUs is possible.
        """
        graph = pipelines.stages_of(graph_def, signature)
        fed = {name.split(":")[0] for name in graph.inputs}
        order = [node for node in graph.topology_sort() if node.name not in fed]
        costs = stage_costs.node_costs(graph.graph, [node.name for node in order])
        pieces = _pieces([cost.value(self._priority) for cost in costs])
        for ipus in self._quantities:
            if ipus > min(self._most, len(pieces)):
                break
            stages = self._fitting(costs, pieces, ipus)
            if stages is not None:
                for index, stage in enumerate(stages):
                    order[index].add_attr(pipeline_stage=stage)
                return pipelines.saved(graph, list(range(ipus)), self._directory, _FILE)
        raise ValueError(
            f"(IPU-END) Can not find the optimal solution. With batch_size={self._batch_size}, {len(order)} nodes do "
            f"not make pipelines of {self._quantities[0]} to {self._most} stages that fit on as many IPUs. "
            "Change min_ipu_quantity and max_ipu_quantity in `pipeline_cfg`, or batch_size."
        )

    def _fitting(self, costs: list[Any], pieces: list[tuple[int, int]], ipus: int) -> list[int] | None:
        """Returns the stage of each node on this number of IPUs; None if a stage does not fit."""
        sums = [sum(cost.value(self._priority) for cost in costs[start:end]) for start, end in pieces]
        stages = _stages(sums, pieces, ipus)
        stage_bytes = [stage_costs.stage_bytes([costs[index] for index in stage_nodes]) for stage_nodes in stages]
        fits = max(stage_bytes) <= stage_costs.chip_bytes()
        if self._logger is not None:
            self._logger.info("%d IPUs: stages of %s bytes%s", ipus, stage_bytes, "" if fits else ", too many")
        return [stage for stage, stage_nodes in enumerate(stages) for _ in stage_nodes] if fits else None


class AutoPipeline(pipelines.PipelineConverter):
    """Makes a pipeline and finds its stages, if `pipeline_cfg` has the converter `"auto"`.

    `pipeline_cfg` has the entries `min_ipu_quantity` (2), `max_ipu_quantity` (64), `priority` (`"cycle"` or `"memory"`)
    and `solution_dir` (`"solution"`). Powers of two between the quantities are tried. The directory gets the file of
    stages that the converter `"load"` reads. See `AutoPipelineImpl` for how they are found.

    Args:
        param: see `PipelineConverter`.

    Raises:
        ValueError: see `PipelineConverter`.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.auto_pipeline.AutoPipeline`.
    """

    behavior = "auto"
    keys = (
        "fine_tune_iter",
        "ipu_model",
        "max_ipu_quantity",
        "min_ipu_quantity",
        "priority",
        "profiling_root_dir",
        "solution_dir",
    )

    def configuration_file(self, graph_def: Any, signature_def: Any) -> str:
        """Finds the stages and writes them."""
        param = self.param
        return AutoPipelineImpl(
            param.batch_size,
            param.matmul_amp,
            param.matmul_partial_type,
            param.conv_amp,
            param.conv_partial_type,
            self.cfg.get("fine_tune_iter", 5),
            self.cfg.get("ipu_model", True),
            self.cfg.get("max_ipu_quantity", 64),
            self.cfg.get("min_ipu_quantity", 2),
            self.cfg.get("priority", "cycle"),
            self.cfg.get("profiling_root_dir", "profiling"),
            self.cfg.get("solution_dir", "solution"),
        ).apply(graph_def, signature_def)


def _pieces(costs: list[int]) -> list[tuple[int, int]]:
    """Groups neighbouring nodes to limit the number of possible cuts; expensive ones stay separate."""
    share = sum(costs) / _PIECES
    pieces: list[tuple[int, int]] = []
    start, total = 0, 0
    for index, cost in enumerate(costs):
        if len(costs) <= _PIECES or (index > start and total + cost > share):
            if index > start:
                pieces.append((start, index))
            start, total = index, 0
        total += cost
    return [*pieces, (start, len(costs))] if costs else []


def _stages(costs: list[int], pieces: list[tuple[int, int]], count: int) -> list[list[int]]:
    """Returns the indices of the nodes of each stage."""
    (groups,) = find_opt(costs, count)
    stages, piece = [], 0
    for group in groups:
        inside = pieces[piece : piece + len(group)]
        piece += len(group)
        stages.append(list(range(inside[0][0], inside[-1][1])))
    return stages
