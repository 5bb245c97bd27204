"""Session hooks that stop at, count and restore the global step, which advances by a whole loop at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops
from tf_ipu_shim.tf_private.training import basic_session_run_hooks, session_run_hook, training_util


class StopAtStep(session_run_hook.SessionRunHook):
    """Ends training once enough steps have run.

    TensorFlow's own hook reads the step before the loop, and would run one loop too many. A run returns the step from
    before or after its loop. If the difference matters, a separate run reads it again.

    Args:
        steps: how many more; None if `last` is given.
        last: up to which step.
        loop: how many steps a run adds to the counter.
    """

    def __init__(self, steps: int | None, last: int | None, loop: int) -> None:
        self._steps, self._last, self._loop = steps, last, loop

    def begin(self) -> None:
        """Finds the step."""
        self._step = training_util.get_global_step()

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Counts from the checkpoint's step."""
        if self._last is None:
            self._last = int(session.run(self._step)) + int(self._steps or 0)

    def before_run(self, run_context: Any) -> session_run_hook.SessionRunArgs:
        """Asks for the step."""
        return session_run_hook.SessionRunArgs(self._step)

    def after_run(self, run_context: Any, run_values: Any) -> None:
        """Asks for the end."""
        last = int(self._last or 0)
        if run_values.results + self._loop >= last and run_context.session.run(self._step) >= last:
            run_context.request_stop()


class StepRestorer(session_run_hook.SessionRunHook):
    """Puts the global step back when an evaluation ends: its loops count on, as the model may read the step."""

    def begin(self) -> None:
        """Makes the operations, before the graph is closed."""
        self._step = training_util.get_global_step()
        self._value = array_ops.placeholder(self._step.dtype.base_dtype, [])
        self._restore = self._step.assign(self._value).op
        self._before: Any = None

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Remembers the checkpoint's step."""
        self._before = session.run(self._step)

    def end(self, session: Any) -> None:
        """Puts it back, before the metrics are read."""
        session.run(self._restore, {self._value: self._before})


class RestCounter(session_run_hook.SessionRunHook):
    """Counts the steps of a loop cut short by the dataset's end: only steps that the program completed.

    Before any other hook looks at the step as training ends, the one that writes the last checkpoint above all.

    Args:
        outfeed: the outfeed of the program, to which each step has sent.
        steps: a function from a number of elements in the outfeed to the number of steps.
    """

    def __init__(self, outfeed: Any, steps: Callable[[int], int]) -> None:
        self._outfeed, self._steps = outfeed, steps

    def begin(self) -> None:
        """Makes the operations, before the graph is closed."""
        step = training_util.get_global_step()
        self._left = nest.flatten(self._outfeed.dequeue())[0]
        with ops.device("/device:CPU:0"):
            self._more = array_ops.placeholder(step.dtype.base_dtype, [])
            self._count = step.assign_add(self._more).op

    def end(self, session: Any) -> None:
        """Counts the elements that the last loop left in the outfeed; whole loops have been dequeued before."""
        if more := self._steps(len(session.run(self._left))):
            session.run(self._count, {self._more: more})


def before_others(counter: RestCounter, hooks: list[Any], is_saved: bool, config: Any, scaffold: Any) -> list[Any]:
    """Returns the hooks of a training session: the hook that counts the last steps before the one that writes
    checkpoints.

    TensorFlow's estimator lets the hook that it makes for checkpoints go before all others.
    """
    saver = []
    if not is_saved and config.is_chief and (config.save_checkpoints_secs or config.save_checkpoints_steps):
        saver.append(
            basic_session_run_hooks.CheckpointSaverHook(
                config.model_dir,
                save_secs=config.save_checkpoints_secs,
                save_steps=config.save_checkpoints_steps,
                scaffold=scaffold,
                save_graph_def=config.checkpoint_save_graph_def,
            )
        )
    return [counter, *saver, *hooks]
