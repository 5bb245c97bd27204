"""`ipu_tensorflow_addons.saved_model_tool.converter.autograph.strategies`: assigns nodes to pipeline stages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

Groups = list[list[int]]


class StrategyBase:
    """The base class of strategies.

    Args:
        config: a `RunConfig`.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.autograph.strategies.StrategyBase`.
    """

    def __init__(self, config: Any) -> None:
        self.ipu_config = config


class ManualPipelineStrategy(StrategyBase):
    """Cuts a graph by regular expressions.

    Args:
        config: a `RunConfig`, whose `num_pipeline_stages` is used.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.autograph.strategies.ManualPipelineStrategy`.
    """

    def chop(self, graph: Any, regex_for_stages: Sequence[Sequence[str]]) -> None:
        """Assigns each node to the first stage with an expression that is found in its name; to stage 0 if none
        is found.

        Args:
            graph: a `TFv1Graph`.
            regex_for_stages: the regular expressions of each stage.

        Raises:
            ValueError: there are more lists than stages, or fewer.
        """
        stages = self.ipu_config.num_pipeline_stages
        if len(regex_for_stages) != stages:
            raise ValueError(
                f"The length of `regex_lists` ({len(regex_for_stages)}) should be the number of pipeline stages "
                f"({stages}): give a list of regular expressions for each."
            )
        compiled = [[re.compile(pattern) for pattern in patterns] for patterns in regex_for_stages]
        for name, node in graph.name_mapping4pb_node().items():
            stage = next(
                (index for index, stage_patterns in enumerate(compiled) if any(p.search(name) for p in stage_patterns)),
                0,
            )
            node.add_attr(pipeline_stage=stage)


def variances(former: Sequence[int], latter: Sequence[int], num_group: int) -> float:
    """Returns how unequal the sums of two lists of numbers are, relative to equal groups.

    Args:
        former: one list.
        latter: the other.
        num_group: how many groups share both.

    Returns:
        The mean of the squared differences.
    """
    fair = (sum(former) + sum(latter)) / num_group
    return ((sum(former) - fair) ** 2 + (sum(latter) - fair) ** 2) / 2


def find_opt(arr: Sequence[int], num_group: int) -> list[Groups]:
    """Cuts a list of numbers into groups whose sums are as equal as can be.

    Graphcore's function finds a nearly optimal cut; this one is optimal, by dynamic programming over the possible cuts.
    If several cuts are equally good, numbers are in the earliest group.

    Args:
        arr: the numbers, in their order.
        num_group: how many groups.

    Returns:
        A list of one solution: the groups.

    Raises:
        ValueError: there are fewer numbers than groups.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.autograph.strategies.find_opt`.

    Example:
        >>> find_opt([1, 2, 3, 4, 4, 3, 2, 1], 2)
        [[[1, 2, 3, 4], [4, 3, 2, 1]]]
    """
    if not 0 < num_group <= len(arr):
        raise ValueError(f"{len(arr)} numbers cannot be cut into {num_group} groups. Choose fewer groups.")
    before = [0]
    for value in arr:
        before.append(before[-1] + value)
    # costs[end]: the least sum of squares for the first `end` numbers, in so many groups; cuts: where the last begins.
    costs: list[float] = [0.0, *[float("inf")] * len(arr)]
    cuts: list[list[int]] = []
    for group in range(1, num_group + 1):
        best, starts = [float("inf")] * (len(arr) + 1), [0] * (len(arr) + 1)
        for end in range(group, len(arr) + 1):
            for start in range(end - 1, group - 2, -1):
                cost = costs[start] + (before[end] - before[start]) ** 2
                if cost < best[end]:
                    best[end], starts[end] = cost, start
        costs = best
        cuts.append(starts)
    groups: Groups = []
    end = len(arr)
    for starts in reversed(cuts):
        groups.insert(0, list(arr[starts[end] : end]))
        end = starts[end]
    return [groups]
