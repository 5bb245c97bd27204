"""Distributes an estimator over workers, each with a separate graph, input, session and IPUs.

Uses the same members as TensorFlow's own estimator: `Strategy._scale_loss_for_estimator_enabled`,
`StrategyExtended._reduce_to`, `Graph._variable_creator_stack`, and `Graph._is_loss_scaled_by_optimizer`, which
optimizers of TensorFlow 1 set. Checked on TensorFlow 2.15.1.
"""

from __future__ import annotations

import contextlib
import copy
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
from tensorflow.compat.v2 import distribute as distribute_lib

from tf_ipu_shim.frontend.strategies import host_collectives, strategy_processes
from tf_ipu_shim.runtime.jobs import collectives
from tf_ipu_shim.tf_private import distribute as tf_distribute
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.distribute import reduce_util, values
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.training import basic_session_run_hooks

_STEPS_BETWEEN_CHECKPOINTS = 1000
"""The seconds between saves if all workers save together, as with TensorFlow's strategies."""


@contextlib.contextmanager
def graph_of(strategy: Any) -> Iterator[Any]:
    """Returns a new graph in a strategy's scope, in which TensorFlow 1 optimizers divide the loss by the number of
    workers.
    """
    with ops.Graph().as_default() as graph, strategy.scope(), tf_distribute.loss_scaled_for_estimator(strategy):
        yield graph


def number_of(strategy: Any) -> int:
    """Returns the number of workers: servers of a cluster, or processes of a job."""
    current_job = _job(strategy)
    return strategy.num_replicas_in_sync if current_job is None else current_job.size


def input_context(strategy: Any) -> Any:
    """Returns the part of the data for an input function with the argument `input_context`."""
    current_job = _job(strategy)
    this = tf_distribute.worker_of(strategy.extended) if current_job is None else current_job.rank
    return distribute_lib.InputContext(number_of(strategy), this, strategy.num_replicas_in_sync)


def _job(strategy: Any) -> Any:
    """Returns the job whose processes are the workers; None for a cluster and for one worker."""
    extended = strategy.extended
    return extended._job if isinstance(extended, strategy_processes.ProcessExtended) else None


@contextlib.contextmanager
def own_variables(strategy: Any) -> Iterator[None]:
    """Makes variables local to each worker, on its host."""
    with tf_graphs.no_variable_creators(ops.get_default_graph()), ops.device(strategy.extended.worker_devices[0]):
        yield


def divides_loss(graph: Any) -> bool:
    """Returns whether an optimizer of TensorFlow 1 in a program's body has divided the loss by the workers."""
    return bool(tf_graphs.is_loss_scaled_by_optimizer(graph))


def reported_loss(strategy: Any, loss: Any, mean: bool) -> Any:
    """Returns the mean or sum of all workers' losses."""
    if _job(strategy) is not None:
        return host_collectives.all_reduce([loss], mean)[0]
    return strategy.reduce(reduce_util.ReduceOp.MEAN if mean else reduce_util.ReduceOp.SUM, loss, axis=None)


def begin(strategy: Any) -> None:
    """Waits for the other processes of a job: a checkpoint that one has yet to write would be missed."""
    if _job(strategy) is not None:
        collectives.run("sum", "an estimator begins to train", [np.zeros(1)])


def is_silent(strategy: Any) -> bool:
    """Returns whether this process leaves checkpoints and summaries to the first one of its job."""
    current_job = _job(strategy)
    return current_job is not None and current_job.rank > 0


def silent(config: Any) -> Any:
    """Returns the configuration of such a process."""
    return _changed(
        config,
        save_checkpoints_steps=None,
        save_checkpoints_secs=None,
        save_summary_steps=None,
        log_step_count_steps=None,
    )


def _changed(config: Any, **values: Any) -> Any:
    """Returns a configuration with other values and the same strategies, which `RunConfig.replace` would copy."""
    changed = copy.copy(config)
    for name, value in values.items():
        setattr(changed, f"_{name}", value)
    return changed


def save_on_all_processes(strategy: Any) -> bool:
    """Returns whether a checkpoint needs all workers: it holds the mean or sum of their variables."""
    variables = ops.get_collection(ops.GraphKeys.GLOBAL_VARIABLES)
    return _job(strategy) is None and any(isinstance(variable, values.SyncOnReadVariable) for variable in variables)


def saving_by_steps(config: Any) -> Any:
    """Returns a configuration that writes checkpoints after equal steps on all workers."""
    if not config.save_checkpoints_secs:
        return config
    return _changed(config, save_checkpoints_steps=_STEPS_BETWEEN_CHECKPOINTS, save_checkpoints_secs=None)


def saving_hooks(config: Any, scaffold: Any) -> list[Any]:
    """Returns a hook by which workers other than the first participate in checkpoints."""
    if config.is_chief or not config.save_checkpoints_steps:
        return []
    return [SavesAlong(config.save_checkpoints_steps, scaffold)]


class SavesAlong(basic_session_run_hooks.CheckpointSaverHook):
    """Joins the first worker's checkpoints on another worker, which saves none.

    Args:
        save_steps: steps between two, as on the first.
        scaffold: the scaffold of the session.
    """

    def __init__(self, save_steps: int, scaffold: Any) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="tf_ipu_shim_checkpoints_")
        super().__init__(self._folder.name, save_steps=save_steps, scaffold=scaffold, save_graph_def=False)

    def end(self, session: Any) -> None:
        """Participates in the last checkpoint, and removes its file."""
        super().end(session)
        self._folder.cleanup()
