"""`tensorflow.python.ipu.ops.image_ops`: normalizes images on the IPU."""

from tf_ipu_shim.frontend.ops.image_ops import normalise_image

__all__ = [
    "normalise_image",
]
