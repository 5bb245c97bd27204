"""`python -m tf_ipu_shim.cli COMMAND`: the `tf-ipu` command when it is not installed."""

from __future__ import annotations

import sys

from tf_ipu_shim.cli import main

if __name__ == "__main__":
    sys.exit(main())
