"""`horovod`: the part that IPU scripts use, over the processes of a job.

It is served where Horovod itself is not installed. Its functions are those of `ipu.distributed`.
"""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(__name__, ["tensorflow"])
