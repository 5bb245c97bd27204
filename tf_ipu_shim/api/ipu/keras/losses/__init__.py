"""`tensorflow.python.ipu.keras.losses`: the package of the CTC loss."""

from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    "",
    {
        "ctc": "CTCLoss",
    },
)
