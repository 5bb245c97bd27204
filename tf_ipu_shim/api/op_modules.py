"""Builds the `tensorflow.compiler.plugin.poplar.ops` modules: looks up the plugin's ops when asked for.

Importing such a module costs nothing: the plugin is built and loaded with the first op that is asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def wrappers(
    module: str, ops: str, **decorators: Callable[[Any], Any]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns the `__getattr__` and `__dir__` of a module of op wrappers.

    A name of Graphcore's that is not among them is refused by name, as in every module (see `names.unsupported_names`).

    Args:
        module: the module's name, for errors.
        ops: the wrappers it has, separated by blanks, such as ``"ipu_event_trace ipu_model_used"``. TensorFlow makes
            them from the plugin's ops: their arguments are the op's inputs, then attributes, then `name`.
        decorators: for some of these, a function that changes the wrapper.

    Returns:
        The two functions.

    Example:
        >>> __getattr__, __dir__ = wrappers(__name__, "ipu_event_trace ipu_model_used")
    """
    names = frozenset(ops.split())

    def __getattr__(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        from tf_ipu_shim import frontend  # connects the plugin to this process's runtime

        wrapper = getattr(frontend.library.ops, name)
        return decorators[name](wrapper) if name in decorators else wrapper

    return __getattr__, lambda: sorted(names)
