"""Maps modules of `tensorflow.contrib.ipu`, Graphcore's package before SDK 1.0, to `tensorflow.python.ipu`."""

from __future__ import annotations

NAME = "tensorflow.contrib.ipu"
_TODAY = "tensorflow.python.ipu"
_FILES = f"{NAME}.python"  # the modules were in this package, and in the one above it too
_RENAMED = {
    "internal": "ops.internal_ops",
    "popnn_normalization": "ops.normalization_ops",
    "popnn_rnn": "ops.rnn_ops",
    "popops_cross_replica_sum": "ops.cross_replica_ops",
    "poprand": "ops.rand_ops",
}


def find(fullname: str) -> str | None:
    """Returns the present place of a module in Graphcore's package; None for other modules.

    Example:
        >>> find("tensorflow.contrib.ipu.python.ipu_compiler"), find("tensorflow.contrib.ipu.popnn_rnn")
        ('tensorflow.python.ipu.ipu_compiler', 'tensorflow.python.ipu.ops.rnn_ops')
    """
    if fullname in (NAME, _FILES):
        return _TODAY
    package, _, name = fullname.rpartition(".")
    below = fullname.removeprefix(f"{_FILES}.").removeprefix(f"{NAME}.")
    if below == fullname:
        return None
    return f"{_TODAY}.{_RENAMED.get(name, below) if package in (NAME, _FILES) else below}"
