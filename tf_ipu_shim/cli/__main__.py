"""`python -m tf_ipu_shim.cli COMMAND`: `tf-ipu` where it is not installed as a command."""

from __future__ import annotations

import sys

from tf_ipu_shim.cli import main

if __name__ == "__main__":
    sys.exit(main())
