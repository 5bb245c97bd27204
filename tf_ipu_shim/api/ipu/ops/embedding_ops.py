"""`tensorflow.python.ipu.ops.embedding_ops`: embedding tables on the IPU and on the host."""

from tf_ipu_shim.frontend.ops.embeddings.embedding_ops import (
    HostEmbedding,
    HostEmbeddingOptimizerSpec,
    HostEmbeddingSGDGAOptimizerSpec,
    create_host_embedding,
    embedding_lookup,
)

__all__ = [
    "HostEmbedding",
    "HostEmbeddingOptimizerSpec",
    "HostEmbeddingSGDGAOptimizerSpec",
    "create_host_embedding",
    "embedding_lookup",
]
