"""`tensorflow.python.ipu.ops.statistics_ops`: histograms over given levels."""

from tf_ipu_shim.frontend.ops.statistics_ops import fixed_width_bins, histogram, histogram_normalize, histogram_update

__all__ = [
    "fixed_width_bins",
    "histogram",
    "histogram_normalize",
    "histogram_update",
]
