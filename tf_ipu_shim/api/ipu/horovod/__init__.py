"""`tensorflow.python.ipu.horovod`: the name of `tensorflow.python.ipu.distributed` up to SDK 2.6."""

from tf_ipu_shim import sdk
from tf_ipu_shim.api.lazy_modules import lazy
from tf_ipu_shim.tf_private.utilities import tf_logging

__getattr__, __dir__ = lazy(
    __name__,
    "basics ipu_horovod_strategy ipu_multi_replica_strategy popdist_strategy",
    {
        ".distributed": (
            "Adasum Average HorovodBasics Sum allgather=horovod_allgather allreduce broadcast ddl_built gloo_built "
            "gloo_enabled init is_homogeneous local_rank local_size mlsl_built mpi_built mpi_enabled "
            "mpi_threads_supported nccl_built rank shutdown size"
        ),
    },
)

if sdk.current() >= (3, 0):
    tf_logging.warning("tensorflow.python.ipu.horovod is now tensorflow.python.ipu.distributed. Import that instead.")
