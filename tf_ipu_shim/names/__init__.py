"""Installs the import hooks for Graphcore's module names, at every start of Python.

`install()` puts two finders on `sys.meta_path`. The first handles this package's modules and their aliases before
Python looks for files. The last is only asked for modules that no other finder has found. Both only compare strings
until one of their names is imported. This file imports nothing: the `.pth` line runs it in every Python process.
"""

FIRST_PREFIXES = (
    "tensorflow.python.ipu",
    "tensorflow.compiler.plugin.",
    "tf_ipu_shim.api.",
    "tf_ipu_shim.messages.",
    "tf_ipu_shim.ipu",
    "tf_ipu_shim.poplar",
    "tf_ipu_shim.keras",
    "tf_ipu_shim.addons",
    "keras.ipu",
    "tensorflow.keras.ipu",
    "tensorflow.contrib.ipu.",
    "ipu_tensorflow_addons",
    "popdist",
    "popef",
    "gcprofile",
    "libpvti",
    "gcipuinfo",
    "pva",
    "horovod",
    # Modules in packages that stock TensorFlow has moved as a whole.
    "tensorflow_core.",
    "tensorflow.python.keras.applications.",
    "tensorflow.python.keras.datasets.",
    "tensorflow.python.keras.preprocessing.",
)
LAST_RESORT_PREFIXES = ("tensorflow.", "tensorflow_core", "keras.", "tf_keras.", "ipu_tensorflow_addons", "horovod")


class NamesFinder:
    """An entry on `sys.meta_path`. It passes names with its prefixes to `names.finder`, which it then imports."""

    def __init__(self, prefixes, function):
        self.prefixes = prefixes
        self.function = function

    def find_spec(self, fullname, path=None, target=None):
        """Answers as `importlib.abc.MetaPathFinder.find_spec` does: a spec for a name of ours, else None."""
        if not fullname.startswith(self.prefixes):
            if fullname == "tensorflow" and self is _first:
                from tf_ipu_shim.names import tensorflow_import_hooks

                return tensorflow_import_hooks.find_tensorflow_spec(path, target)
            if fullname == "keras" and self is _first:
                from tf_ipu_shim.names import keras_alias

                return keras_alias.find_keras_spec()
            return None
        from tf_ipu_shim.names import finder

        return getattr(finder, self.function)(fullname, path)


_first = NamesFinder(FIRST_PREFIXES, "find_spec_first")
_last = NamesFinder(LAST_RESORT_PREFIXES, "find_spec_last")


def install():
    """Serves Graphcore's module names from now on; calling it again changes nothing."""
    import sys

    if _first not in sys.meta_path:
        sys.meta_path.insert(0, _first)
        sys.meta_path.append(_last)


def come_first():
    """Moves the first finder before later ones, which would claim this package's files."""
    import sys

    install()
    sys.meta_path.remove(_first)
    sys.meta_path.insert(0, _first)


def uninstall():
    """Removes the finders from `sys.meta_path`; modules already imported stay."""
    import sys

    sys.meta_path[:] = [entry for entry in sys.meta_path if entry not in (_first, _last)]
