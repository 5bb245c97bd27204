"""`tf-ipu poprun`, and `poprun`: starts a job's instances, each with its own IPUs, on one host or several.

This package starts, watches and ends processes. How the processes find and talk to each other is in `runtime/jobs`.
"""

from tf_ipu_shim.cli.poprun.launcher import run
from tf_ipu_shim.cli.poprun.options import add_arguments, normalize_arguments

__all__ = ["add_arguments", "normalize_arguments", "run"]
