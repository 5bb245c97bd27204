"""`tensorflow.python.ipu.keras.optimizers.cross_replica_optimizer`: averages gradients over replicas."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.frontend.optimizers.cross_replica_optimizer import apply_cross_replica_op_single
from tf_ipu_shim.legacy.old_keras.ipu_wrappers import IpuOptimizer


class CrossReplicaOptimizer(IpuOptimizer):
    """Averages gradients over the replicas before it applies them.

    Args:
        opt: a Keras 2 optimizer.
        name: the name of the operations.
        **kwargs: keyword arguments of Keras's base class.

    Raises:
        TypeError: `opt` is not a Keras 2 optimizer.

    Source: `tensorflow.python.ipu.keras.optimizers.cross_replica_optimizer.CrossReplicaOptimizer`.

    Example:
        >>> optimizer = CrossReplicaOptimizer(tf.keras.optimizers.SGD(0.1))
    """

    def __init__(self, opt: Any, name: str = "CrossReplicaOptimizer", **kwargs: Any) -> None:
        super().__init__(opt, name=name, **kwargs)

    def preprocess_gradients(self, grad: Any, var: Any) -> tuple[Any, Any]:
        """Averages a gradient over the replicas."""
        return apply_cross_replica_op_single(grad, var)
