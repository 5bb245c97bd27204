"""Emulates Graphcore's TensorFlow for IPUs on stock `tensorflow-cpu`.

Importing this package makes Graphcore's module names importable and loads nothing else. TensorFlow, the C++ plugin and
the API are loaded with the first name that needs them. The `.pth` line that pip installs imports it when Python starts,
so keep this file free of imports that cost time.

PYTEST_DONT_REWRITE: it is imported before pytest can, and asserts nothing.

Example:
    >>> from tf_ipu_shim import ipu  # the same module objects as `from tensorflow.python import ipu`
"""

import sys as _sys

if _sys.version_info < (3, 10):  # noqa: UP036  a checkout runs in any Python
    raise ImportError(
        f"tf_ipu_shim needs Python 3.10 or newer, and {_sys.executable} is Python {_sys.version.split()[0]}. Make an "
        "environment with Python 3.11."
    )

from tf_ipu_shim import names as _names

__version__ = "0.1.0"

_names.install()


_ELSEWHERE = {
    "memory_report": "tf_ipu_shim.memory_reports",
    "TensorFile": "tf_ipu_shim.frontend.utilities.tensor_files",
}
TYPE_CHECKING = False  # `typing` would cost every Python process its import
if TYPE_CHECKING:
    from tf_ipu_shim.frontend.utilities.tensor_files import TensorFile as TensorFile
    from tf_ipu_shim.memory_reports import memory_report as memory_report


def __getattr__(name):
    if name in _ELSEWHERE:
        import importlib

        return getattr(importlib.import_module(_ELSEWHERE[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_ELSEWHERE, "ipu"})
