"""`tensorflow.python.ipu.ops`. Its modules load when asked for."""

from tf_ipu_shim.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    "all_to_all_op application_compile_op control_flow_ops cross_replica_ops custom_ops embedded_runtime embedding_ops "
    "f8_ops functional_ops grad_util_ops image_ops internal_ops math_ops nn_ops normalization_ops pipelining_ops "
    "rand_ops reduce_scatter_op replication_ops rnn_ops slicing_ops statistics_ops summary_ops "
    "within_replica_ops".split(),
)
