"""`python -m tf_ipu_shim SCRIPT ARGS...`: runs a script with Graphcore's names in place."""

from __future__ import annotations

import sys

from tf_ipu_shim.cli import runner

if __name__ == "__main__":
    sys.exit(runner.main(sys.argv[1:]))
