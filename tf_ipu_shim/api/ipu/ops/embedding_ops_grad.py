"""`tensorflow.python.ipu.ops.embedding_ops_grad`: gradients of `embedding_ops`, registered with the ops."""

from tf_ipu_shim.frontend.ops.embeddings import embedding_ops

__all__ = ["embedding_ops"]
