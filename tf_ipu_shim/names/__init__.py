"""Graphcore's module names, served by this package: the part that runs when Python starts.

`install()` puts one finder on `sys.meta_path`. Until a name of `PREFIXES` is imported it compares strings and does
nothing else. This file imports nothing: the `.pth` line runs it in every Python process of the environment.
"""

PREFIXES = (
    "tensorflow.python.ipu",
    "tensorflow.compiler.plugin",
    "tf_ipu_shim.ipu",
    "tf_ipu_shim.poplar",
    "keras.ipu",
    "ipu_tensorflow_addons",
)


class NamesFinder:
    """The entry on `sys.meta_path`; hands names of `PREFIXES` to `names.finder`, which is loaded for the first one."""

    def find_spec(self, fullname, path=None, target=None):
        """Answers as `importlib.abc.MetaPathFinder.find_spec` does: a spec for a name of ours, else None."""
        if not fullname.startswith(PREFIXES):
            return None
        from tf_ipu_shim.names import finder

        return finder.find_spec(fullname, path)


_finder = NamesFinder()


def install():
    """Serves Graphcore's module names from now on; calling it again changes nothing."""
    import sys

    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)


def uninstall():
    """Takes the finder off `sys.meta_path`; modules already imported stay."""
    import sys

    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
