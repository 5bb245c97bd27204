"""`tensorflow.python.ipu.optimizers.gradient_accumulation_optimizer`: one update for several mini-batches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.gradients.accumulators import GradientAccumulator
from tf_ipu_shim.frontend.gradients.gradient_accumulation import GradientAccumulationReductionMethod
from tf_ipu_shim.frontend.optimizers.cross_replica_optimizer import CrossReplicaOptimizer
from tf_ipu_shim.frontend.optimizers.ipu_optimizer import IpuOptimizer
from tf_ipu_shim.frontend.validation import booleans


def check_options(num_mini_batches: Any, offload: Any, sharding: Any) -> None:
    """Checks the arguments that all accumulating optimizers share."""
    if isinstance(num_mini_batches, (str, bytes)) or num_mini_batches is None:
        raise TypeError(
            f"num_mini_batches must be a positive number, not {num_mini_batches!r}. Pass a positive number."
        )
    booleans.check_boolean("offload_weight_update_variables", offload)
    booleans.check_boolean("replicated_optimizer_state_sharding", sharding)
    if num_mini_batches < 1 or num_mini_batches != int(num_mini_batches):
        raise ValueError(
            f"num_mini_batches must be a positive number. It is {num_mini_batches}; give an integer of 1 or more."
        )
    if sharding and offload is not None and not offload:
        raise ValueError(
            "To use replicated_optimizer_state_sharding, optimizer state must be offloaded: "
            "offload_weight_update_variables is False. Leave it out, or set it to True."
        )


class GradientAccumulationOptimizerV2(IpuOptimizer):
    """Accumulates the gradients of several mini-batches before it applies them.

    Inside `ipu.loops.repeat` the accumulators live as long as the loop; elsewhere they are variables that
    `tf.compat.v1.global_variables_initializer` initialises.

    Args:
        opt: a `tf.compat.v1.train.Optimizer`.
        num_mini_batches: the number of mini-batches of an update; the loop's number of iterations must be a multiple of
            it.
        offload_weight_update_variables: whether optimizer state is in remote memory. Only the memory model uses it.
        replicated_optimizer_state_sharding: whether replicas each have a part of it, as above.
        dtype: the dtype of the accumulators: a type, or a function from the variable to one; the variable's own by
            default.
        reduction_method: a `GradientAccumulationReductionMethod`, or its name.
        name: the name of the operations.

    Raises:
        ValueError: a number below one, an unknown method, a Keras optimizer, or state that is to be sharded but not
            offloaded.

    Source: `tensorflow.python.ipu.optimizers.gradient_accumulation_optimizer.GradientAccumulationOptimizerV2`.

    Example:
        >>> infeed_queue = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(1.5).repeat())
        >>> def body(x):
        ...     weight = tf.compat.v1.get_variable("w", initializer=2.0)
        ...     adam = tf.compat.v1.train.AdamOptimizer()
        ...     return GradientAccumulationOptimizerV2(adam, num_mini_batches=4).minimize(tf.square(x * weight))
        >>> with tf.Graph().as_default(), ipu.scopes.ipu_scope("/device:IPU:0"):
        ...     train = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(8, body, [], infeed_queue), [])
    """

    @argument_order(3, "name", until=(1, 3))
    @argument_order(5, "name", since=(1, 4), until=(2, 5))
    def __init__(
        self,
        opt: Any,
        num_mini_batches: int,
        offload_weight_update_variables: bool | None = None,
        replicated_optimizer_state_sharding: bool | None = False,
        dtype: Any = None,
        reduction_method: Any = GradientAccumulationReductionMethod.SUM,
        name: str = "GradientAccumulationOptimizerV2",
    ) -> None:
        super().__init__(opt, name=name)
        check_options(num_mini_batches, offload_weight_update_variables, replicated_optimizer_state_sharding)
        self._dtype = dtype
        self._reduction_method = GradientAccumulationReductionMethod.parse(reduction_method)
        self._accumulation = GradientAccumulator(
            num_mini_batches,
            self._reduction_method,
            dtype,
            offload_weight_update_variables,
            replicated_optimizer_state_sharding,
        )

    def apply_gradients(self, grads_and_vars: Iterable[Any], global_step: Any = None, name: str | None = None) -> Any:
        """Accumulates gradients; with the last mini-batch's, applies them and counts `global_step` up."""
        return self._accumulation.update(
            list(grads_and_vars),
            lambda reduced: self._opt.apply_gradients(reduced, global_step, name),
            keeps_dtype=_overrides_apply_gradients(self._opt),
        )


def _overrides_apply_gradients(optimizer: Any) -> bool:
    """Returns whether a script's class applies the gradients itself, in any type of the accumulators.

    TensorFlow's optimizers require gradients of their variables' types.
    """
    while isinstance(optimizer, IpuOptimizer):
        optimizer = optimizer._opt
    module = type(optimizer).apply_gradients.__module__
    return not module.startswith(("tensorflow.", "keras.", "tf_keras.", "tf_ipu_shim."))


class GradientAccumulationOptimizer(GradientAccumulationOptimizerV2):
    """Accumulates gradients and applies their sum; the earlier form of `GradientAccumulationOptimizerV2`.

    Graphcore's optimizer passes zero gradients to the wrapped one in between, so it needs gradient descent or momentum.
    This one passes none, so all optimizers train as they should.

    Args:
        opt: a `tf.compat.v1.train.Optimizer`.
        num_mini_batches: the number of mini-batches of an update.
        verify_usage: no effect: wrong usage is impossible, see above.
        name: the name of the operations.

    Raises:
        ValueError: a number below one, or a Keras optimizer.

    Source: `tensorflow.python.ipu.optimizers.gradient_accumulation_optimizer.GradientAccumulationOptimizer`.

    Example:
        >>> optimizer = GradientAccumulationOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.1), 8)
    """

    def __init__(
        self,
        opt: Any,
        num_mini_batches: int,
        verify_usage: bool = True,
        name: str = "GradientAccumulationOptimizer",
    ) -> None:
        super().__init__(opt, num_mini_batches, name=name)
        note_arguments("GradientAccumulationOptimizer", verify_usage=verify_usage)


class CrossReplicaGradientAccumulationOptimizerV2(GradientAccumulationOptimizerV2):
    """Accumulates gradients on each replica, then averages them over the replicas and applies them.

    Args:
        opt: a `tf.compat.v1.train.Optimizer`.
        num_mini_batches: the number of mini-batches of an update, on each replica.
        offload_weight_update_variables: see `GradientAccumulationOptimizerV2`, also for the arguments below.
        replicated_optimizer_state_sharding: as above.
        dtype: the dtype of the accumulators.
        reduction_method: over mini-batches; over replicas it is always the mean.
        name: the name of the operations.

    Raises:
        ValueError: as `GradientAccumulationOptimizerV2`.

    Source: `tensorflow.python.ipu.optimizers.gradient_accumulation_optimizer`.

    Example:
        >>> adam = tf.compat.v1.train.AdamOptimizer()
        >>> optimizer = CrossReplicaGradientAccumulationOptimizerV2(adam, num_mini_batches=4)
    """

    @argument_order(3, "name", until=(1, 3))
    @argument_order(5, "name", since=(1, 4), until=(2, 5))
    def __init__(
        self,
        opt: Any,
        num_mini_batches: int,
        offload_weight_update_variables: bool | None = None,
        replicated_optimizer_state_sharding: bool | None = False,
        dtype: Any = None,
        reduction_method: Any = GradientAccumulationReductionMethod.SUM,
        name: str = "CrossReplicaGradientAccumulationOptimizerV2",
    ) -> None:
        super().__init__(
            CrossReplicaOptimizer(opt),
            num_mini_batches,
            offload_weight_update_variables=offload_weight_update_variables,
            replicated_optimizer_state_sharding=replicated_optimizer_state_sharding,
            dtype=dtype,
            reduction_method=reduction_method,
            name=name,
        )


class CrossReplicaGradientAccumulationOptimizer(GradientAccumulationOptimizer):
    """The earlier form of `CrossReplicaGradientAccumulationOptimizerV2`.

    Args:
        opt: a `tf.compat.v1.train.Optimizer`.
        num_mini_batches: the number of mini-batches of an update, on each replica.
        verify_usage: see `GradientAccumulationOptimizer`.
        name: the name of the operations.

    Raises:
        ValueError: a number below one, or a Keras optimizer.

    Source: `tensorflow.python.ipu.optimizers.gradient_accumulation_optimizer`.

    Example:
        >>> sgd = tf.compat.v1.train.GradientDescentOptimizer(0.1)
        >>> optimizer = CrossReplicaGradientAccumulationOptimizer(sgd, 8)
    """

    def __init__(
        self,
        opt: Any,
        num_mini_batches: int,
        verify_usage: bool = True,
        name: str = "CrossReplicaGradientAccumulationOptimizer",
    ) -> None:
        super().__init__(CrossReplicaOptimizer(opt), num_mini_batches, verify_usage, name)
