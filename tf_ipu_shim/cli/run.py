"""`tf-ipu run`: runs an unchanged script, as `python -m tf_ipu_shim` does."""

from __future__ import annotations

from tf_ipu_shim.cli import runner

add_arguments = runner.add_arguments
run = runner.run
