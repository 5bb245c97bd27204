"""`python -m tf_ipu_shim SCRIPT ARGS...`: runs a script with Graphcore's names in place.

`python -m tf_ipu_shim COMMAND ...` is `tf-ipu COMMAND ...`, unless there is a file of the command's name.
"""

from __future__ import annotations

import os
import sys

from tf_ipu_shim import cli
from tf_ipu_shim.cli import runner

if __name__ == "__main__":
    words = sys.argv[1:]
    is_command = words[:1] and words[0] in cli.COMMANDS and not os.path.exists(words[0])
    sys.exit(cli.main(words) if is_command else runner.main(words))
