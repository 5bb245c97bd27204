"""`tensorflow.python.ipu.ops.cross_replica_ops_grad`: gradients of `cross_replica_ops`, registered with the ops."""

from tf_ipu_shim.frontend.ops.collectives import cross_replica_ops

__all__ = ["cross_replica_ops"]
