"""`tensorflow.python.ipu.ops`: IPU ops, and the scopes it held before SDK 1.0. Its modules load when asked for."""

from tf_ipu_shim.api.lazy_modules import lazy

MODULES = (
    "all_to_all_op all_to_all_op_grad application_compile_op control_flow_ops control_flow_ops_grad "
    "cross_replica_ops cross_replica_ops_grad custom_ops embedded_runtime embedding_ops embedding_ops_grad f8_ops "
    "functional_ops functional_ops_grad grad_util_ops grad_util_ops_grad image_ops internal_ops internal_ops_grad "
    "math_ops nn_ops nn_ops_grad normalization_ops normalization_ops_grad op_util pipelining_ops "
    "pipelining_ops_grad rand_ops rand_ops_grad reduce_scatter_op replication_ops rnn_ops rnn_ops_grad slicing_ops "
    "slicing_ops_grad statistics_ops summary_ops within_replica_ops within_replica_ops_grad"
).split()

__getattr__, __dir__ = lazy(__name__, " ".join(MODULES), {".scopes": "ipu_jit_scope ipu_scope ipu_shard"})
