"""`horovod`: the functions of Horovod that IPU scripts call, over the processes of a job.

It is used only if Horovod itself is not installed. Its functions are the same as in `ipu.distributed`.
"""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(__name__, "tensorflow")
