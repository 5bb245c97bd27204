"""Runs a model function as a loop body on the IPU and collects its results and outfeed data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.frontend.control_flow import loops as ipu_loops
from tf_ipu_shim.frontend.sharding import scopes
from tf_ipu_shim.frontend.tracing import ipu_compiler
from tf_ipu_shim.legacy.estimators import graphs, shards, workers
from tf_ipu_shim.legacy.estimators.feeds import Feeds
from tf_ipu_shim.legacy.estimators.run_config import IPURunConfig
from tf_ipu_shim.legacy.estimators.specs import refuse_scaffold_inside
from tf_ipu_shim.tf_private.control_flow import control_flow_ops
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import math_ops

# Takes features and labels (None where a dataset has none), returns a spec.
Model = Callable[[Any, Any], Any]
# Takes a spec, returns what to send to the host and what to run.
Step = Callable[[Any], "tuple[Any, list[Any]]"]


class ModelLoop:
    """The loop over steps of a model, as one program.

    Args:
        name: the name of the program.
        model: the model function.
        step: a function of its spec for each iteration.
        feeds: the source of elements, and the destination of results.
        config: how many iterations, on which device.

    Attributes:
        spec: the result of the model function.
        program: the operation that runs the loop.
        reduces_over_replicas: whether replicas exchange anything in it.
        loss_is_divided: whether its optimizer has divided the loss by the number of workers.
    """

    def __init__(self, name: str, model: Model, step: Step, feeds: Feeds, config: IPURunConfig) -> None:
        self.spec: Any = None
        self._feeds, self._config = feeds, config

        bodies: list[Any] = []

        def body(*positional: Any, **named: Any) -> list[Any]:
            graph = ops.get_default_graph()
            bodies.append(graph)
            before = len(graph.get_operations())
            self.spec = model(*_features_and_labels(positional, named))
            refuse_scaffold_inside(self.spec, graph)
            graphs.refuse_global_step_writes(graph.get_operations()[before:])
            sent, operations = step(self.spec)
            shards.refuse_others(graph, config.num_shards)
            return [control_flow_ops.group(*operations, feeds.outfeed.enqueue(sent))]

        def program() -> Any:
            shards.show(config.num_shards)
            return ipu_loops.repeat(config.iterations_per_loop, body, [], feeds.infeed)

        with scopes.ipu_scope(f"/device:IPU:{config.ordinal}"):
            self.program = ipu_compiler.compile_named(name, program)
        self.reduces_over_replicas = graphs.has_collectives(bodies[-1])
        self.loss_is_divided = workers.divides_loss(bodies[-1])

    def results(self) -> Any:
        """Returns the outfeed results of a run: leading axes iterations, then replicas if there are several."""
        with ops.control_dependencies([self.program]):
            return self._feeds.outfeed.results(self._config.iterations_per_loop, self._config.num_replicas)


def _features_and_labels(positional: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any]:
    if named:
        return named, None
    return (positional[0], positional[1]) if len(positional) == 2 else (positional[0], None)


def reported_loss(loss: Any) -> Any:
    """Returns the reported loss of a step: one number, in float32."""
    return math_ops.reduce_mean(math_ops.cast(loss, dtypes.float32))
