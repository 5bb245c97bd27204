"""Maps Graphcore's module names to this package's modules; both names give the same module object."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from collections.abc import Sequence
from importlib.abc import InspectLoader, Loader
from importlib.machinery import ModuleSpec, PathFinder

from tf_ipu_shim import errors, patches
from tf_ipu_shim.names import (
    after_loading,
    contrib,
    contrib_ipu,
    era,
    keras_paths,
    missing,
    removed_names,
    scripts_for_ipus,
    stock_aliases,
    stock_moves,
    variables_of_the_time,
)

# Graphcore's name -> ours. A name below the left-hand side maps to the same name below the right-hand side.
ALIASES = {
    "tensorflow.python.ipu": "tf_ipu_shim.api.ipu",
    "tensorflow.compiler.plugin.poplar.driver": "tf_ipu_shim.messages",
    "tensorflow.compiler.plugin.poplar": "tf_ipu_shim.api.poplar",
    "keras.ipu": "tf_ipu_shim.api.keras",
    "tensorflow.keras.ipu": "tf_ipu_shim.api.keras",
    "ipu_tensorflow_addons": "tf_ipu_shim.api.addons",
    # Of the SDK, outside TensorFlow.
    "popdist": "tf_ipu_shim.api.popdist",
    "popef": "tf_ipu_shim.api.popef",
    "gcprofile": "tf_ipu_shim.api.gcprofile",
    "libpvti": "tf_ipu_shim.api.libpvti",
    "gcipuinfo": "tf_ipu_shim.api.gcipuinfo",
    "pva": "tf_ipu_shim.api.pva",
    "horovod": "tf_ipu_shim.api.horovod",
    # What this package's own users write.
    "tf_ipu_shim.ipu": "tf_ipu_shim.api.ipu",
    "tf_ipu_shim.poplar.driver": "tf_ipu_shim.messages",
    "tf_ipu_shim.poplar": "tf_ipu_shim.api.poplar",
    "tf_ipu_shim.keras": "tf_ipu_shim.api.keras",
    "tf_ipu_shim.addons": "tf_ipu_shim.api.addons",
}
# Modules that Graphcore has under an older name too.
OLDER_NAMES = {
    f"tensorflow.python.ipu.{name}": f"tf_ipu_shim.api.ipu.optimizers.{name}"
    for name in (
        "cross_replica_optimizer gradient_accumulation_optimizer ipu_optimizer map_gradient_optimizer sharded_optimizer"
    ).split()
}
# Names of others: a stock script that looks whether they are installed must not find ours.
_OF_OTHERS = ("horovod",)
# A script that imports this package of Keras 2.6 means its optimizers by `tf.keras.optimizers`, as with `ipu`.
_OPTIMIZERS = "optimizer_v2"
_IMPORTING = ("importlib.", "_frozen_importlib", "tf_ipu_shim.")
# Packages that stock TensorFlow lacks and that hold nothing but names served here.
EMPTY_PACKAGES = ("tensorflow.compiler.plugin", *stock_moves.EMPTY_PACKAGES)


def own_name(fullname: str) -> str | None:
    """Our name of the module that Graphcore calls `fullname`, or None.

    Example:
        >>> own_name("tensorflow.python.ipu.utils")
        'tf_ipu_shim.api.ipu.utils'
    """
    if fullname in OLDER_NAMES:
        return OLDER_NAMES[fullname]
    for theirs, ours in ALIASES.items():
        if fullname == theirs or fullname.startswith(theirs + "."):
            return ours + fullname[len(theirs) :]
    return None


def graphcore_name(fullname: str) -> str | None:
    """Graphcore's name of our module `fullname`, or None; the reverse of `own_name`."""
    for theirs, ours in ALIASES.items():
        if fullname == ours or fullname.startswith(ours + "."):
            return theirs + fullname[len(ours) :]
    return None


def find_own(fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """The spec of one of our modules under either name, or None to let Python's own finders answer.

    A Graphcore wheel that really has the module wins: where Python finds a file for it, this finder stays away.
    """
    if fullname.partition(".")[0] in _OF_OTHERS and not is_for_ipus():
        return None
    theirs = graphcore_name(fullname)
    if theirs is not None:
        return _find_under_own_name(fullname, theirs, path)
    ours = own_name(fullname)
    if ours is not None:
        return _find_alias(fullname, ours, path)
    parent = fullname.rpartition(".")[0]
    if getattr(sys.modules.get(parent), "__name__", parent) != parent:
        # The parent is an alias. Python would find the file in its directory and execute it a second time.
        return _find_moved(fullname) or _find_in_contrib(fullname)
    return None


def find_last_resort(fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """The spec of a module nobody else has: one that stock TensorFlow has moved, or one to refuse by name."""
    if fullname in EMPTY_PACKAGES:
        return ModuleSpec(fullname, _EmptyPackageLoader(), is_package=True)
    if missing.knows_module(fullname):
        return ModuleSpec(fullname, missing.RefusingLoader(fullname))
    found = _find_moved(fullname) or _find_in_keras(fullname) or _find_in_contrib(fullname)
    if found is None and fullname.startswith((*_OF_OTHERS, contrib.NAME)):
        _explain_absence(fullname)
    return found


def _explain_absence(fullname: str) -> None:
    """Says how to get what only a process that uses `ipu` has.

    Raises:
        ModuleNotFoundError: an import statement asks for it. Who asks whether there is such a module is told no.
    """
    if is_for_ipus() or not era.wanted() or not _is_imported():
        return
    raise ModuleNotFoundError(
        f"No module named {fullname!r}. tf_ipu_shim has it where a script uses IPUs: import tensorflow.python.ipu "
        "before it, or run the script with `tf-ipu run`.",
        name=fullname,
    )


def is_for_ipus() -> bool:
    """Whether names of others are served: in a process that uses `ipu`, and to a script that is about to."""
    return era.active() or (not era.is_stock() and scripts_for_ipus.importing(is_graphcores))


def is_graphcores(fullname: str) -> bool:
    """Whether a module is one of Graphcore's, so that who imports it uses IPUs.

    Example:
        >>> is_graphcores("tensorflow.python.ipu.loops"), is_graphcores("horovod.tensorflow")
        (True, False)
    """
    return fullname.partition(".")[0] not in _OF_OTHERS and own_name(fullname) is not None


def _is_imported() -> bool:
    """Whether it is an import that asks the finders, not `importlib.util.find_spec`; as in Python 3.9 to 3.13."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_name != "_find_spec":
        frame = frame.f_back
    asks = frame.f_back if frame is not None else None
    return asks is not None and asks.f_code.co_name == "_find_and_load_unlocked"


def _find_in_contrib(fullname: str) -> ModuleSpec | None:
    if not fullname.startswith((contrib.NAME + ".", contrib.NAME)) or not is_for_ipus():
        return None
    moved = contrib_ipu.find(fullname) or contrib.moved(fullname)
    if moved is not None:
        target = _find_spec(moved)
        return alias_spec(fullname, target) if target else None
    spec = contrib.spec(fullname)
    if spec is not None:
        _served.append(fullname)
    elif _is_imported():
        raise errors.MissingModuleError(contrib.absence(fullname[len(contrib.NAME) + 1 :]), name=fullname)
    return spec


def _find_in_keras(fullname: str) -> ModuleSpec | None:
    """A module that Keras of TensorFlow 2.6 and before had under this name. Keras 3 has other modules of its own."""
    package, _, path = fullname.partition(".")
    # `from keras import NAME` asks for `tf_keras.NAME` where `keras` is that.
    is_keras = package == "keras" or (package == "tf_keras" and sys.modules.get("keras") is sys.modules.get(package))
    if not is_keras or not path or path.partition(".")[0] in ("src", "api"):
        return None
    from tf_ipu_shim.names import keras_modules  # it imports `tf_ipu_shim.keras2`, for which this file is asked

    if not keras_modules.is_keras_2() and not keras_paths.is_moved(path) and path.partition(".")[0] != "engine":
        return None
    spec = keras_modules.spec(fullname, path)
    if spec is not None:
        _served.append(fullname)
        if path.partition(".")[0] == _OPTIMIZERS and not era.active() and _asked_by_a_script():
            after_loading.call(spec.loader, _use_ipu)
    return spec


def _use_ipu(module: types.ModuleType) -> None:
    del module
    importlib.import_module(ALIASES["tensorflow.python.ipu"])


def _asked_by_a_script() -> bool:
    """Whether it is a script that imports, and no installed package that looks which version it has."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith(_IMPORTING):
        frame = frame.f_back
    return frame is not None and removed_names.is_script(frame.f_code.co_filename)


def _find_moved(fullname: str) -> ModuleSpec | None:
    moved = stock_aliases.find(fullname)
    target = _find_spec(moved) if moved else None
    return alias_spec(fullname, target) if target else None


def _find_under_own_name(fullname: str, theirs: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """The ordinary spec of one of our modules, its loader extended by the refusal of missing names."""
    spec = PathFinder.find_spec(fullname, path)
    if spec is None:
        return ModuleSpec(fullname, missing.RefusingLoader(theirs)) if missing.knows_module(theirs) else None
    if spec.loader is not None:
        missing.extend_loader(spec.loader, theirs)
    return spec


def _find_alias(fullname: str, ours: str, path: Sequence[str] | None) -> ModuleSpec | None:
    parent = fullname.rpartition(".")[0]
    if fullname in ALIASES:
        if _installed(fullname, path):
            return None
    elif sys.modules.get(parent) is not sys.modules.get(own_name(parent) or "", parent):
        return None  # The parent is Graphcore's own package, and so are the modules in it.
    target = _find_spec(ours)
    if target is None:
        return None
    if isinstance(target.loader, missing.RefusingLoader):
        return ModuleSpec(fullname, target.loader)
    return alias_spec(fullname, target)


def _find_spec(fullname: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(fullname)
    except ModuleNotFoundError as error:  # A parent package is missing, such as an optional Keras.
        if error.name and fullname.startswith(error.name):
            return None
        raise


def alias_spec(fullname: str, target: ModuleSpec) -> ModuleSpec:
    """How a module is loaded that is another one.

    Args:
        fullname: under which it is imported.
        target: of the module that it is.
    """
    is_package = target.submodule_search_locations is not None
    return ModuleSpec(fullname, AliasLoader(target.name), origin=target.origin, is_package=is_package)


def _installed(fullname: str, path: Sequence[str] | None) -> bool:
    spec = PathFinder.find_spec(fullname, path)
    # A folder without files of Python, such as one that an older version left its caches in, is nothing installed.
    return spec is not None and spec.loader is not None and spec.origin is not None


class AliasLoader(Loader):
    """Loads a module by giving out the one that exists under another name."""

    def __init__(self, target: str):
        self.target = target

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Imports the target; importlib registers it under `spec.name` too and sets it on the parent package."""
        _served.append(spec.name)
        module = importlib.import_module(self.target)
        self._own_spec = module.__spec__
        if spec.name == "tensorflow.python.ipu":
            stock_aliases.install_attributes()
        if spec.name in ("tensorflow.python.ipu", "tf_ipu_shim.ipu"):
            variables_of_the_time.install()
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """Gives the module its own spec back, which importlib has just replaced by the alias's."""
        module.__spec__ = self._own_spec

    def get_code(self, fullname: str) -> types.CodeType | None:
        """The code of the module, which `python -m` runs."""
        spec = importlib.util.find_spec(self.target)
        loader = spec.loader if spec is not None else None
        return loader.get_code(self.target) if isinstance(loader, InspectLoader) else None


class _EmptyPackageLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> None:
        _served.append(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        return None


# Names of modules that are there only because of the finders.
_served: list[str] = []


def _remove() -> None:
    sys.meta_path[:] = [entry for entry in sys.meta_path if type(entry).__module__ != __package__]
    while _served:
        name = _served.pop()
        module = sys.modules.pop(name, None)
        parent, _, last = name.rpartition(".")
        if module is not None and vars(sys.modules.get(parent, module)).get(last) is module:
            delattr(sys.modules[parent], last)


patches.change(
    "sys.meta_path",
    lambda: None,  # the finders are there before this module, which they load
    _remove,
    why="Graphcore's module names, and names that stock TensorFlow has moved, can be imported",
    undone="the finders are removed, and so are the modules' further names",
)
