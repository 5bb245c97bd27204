"""`tensorflow.python.ipu.ops.cross_replica_ops_grad`: the gradients of `cross_replica_ops`, which come with the ops."""

from tf_ipu_shim.frontend.ops.collectives import cross_replica_ops

__all__ = ["cross_replica_ops"]
