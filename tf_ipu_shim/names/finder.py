"""Maps Graphcore's module names to this package's modules; both names refer to the same module object."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder

from tf_ipu_shim import errors, patches
from tf_ipu_shim.imports import aliases, import_callers, post_import_hooks
from tf_ipu_shim.legacy.names import activation
from tf_ipu_shim.names import ipu_script_detection, reexports, suggestions, unsupported_names

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
    # The name that users of this package write.
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
# A package that stock TensorFlow lacks, and that holds nothing but names served here.
_EMPTY_PACKAGE = "tensorflow.compiler.plugin"
IPU = "tensorflow.python.ipu"
# Importing either of them switches dead names on.
_IPU = (IPU, "tf_ipu_shim.ipu")


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


def find_spec_first(fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """Returns the spec of one of our modules under either name, or None to let Python's own finders answer.

    A Graphcore wheel that really has the module wins: if Python finds a file for it, this finder does nothing.
    """
    if fullname.partition(".")[0] in _OF_OTHERS and not is_ipu_process():
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
        return activation.find_below_alias(fullname, is_ipu_process)
    return None


def find_spec_last(fullname: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """Returns the spec of a module that no other package has: moved in stock TensorFlow, or refused by name."""
    if fullname == _EMPTY_PACKAGE or activation.is_empty_package(fullname):
        return ModuleSpec(fullname, aliases.EmptyPackageLoader(), is_package=True)
    if unsupported_names.is_known_module(fullname):
        return ModuleSpec(fullname, unsupported_names.RefusingLoader(fullname))
    if fullname == suggestions.MISNAMED and import_callers.is_module_imported():
        # With its own name, `from tensorflow import ipu` would drop the message.
        raise errors.MissingModuleError(f"No module named {fullname!r}. {suggestions.MISNAMED_HINT}", name=IPU)
    spec = activation.find(fullname, is_ipu_process)
    if spec is None and (fullname.startswith(_OF_OTHERS) or activation.is_contrib(fullname)):
        _raise_unsupported(fullname)
    return spec


def _raise_unsupported(fullname: str) -> None:
    """Raises an error that says how to get a module that only a process with `ipu` has."""
    if is_ipu_process() or not activation.is_requested() or not import_callers.is_module_imported():
        return
    raise ModuleNotFoundError(
        f"No module named {fullname!r}. tf_ipu_shim only has it in scripts that use IPUs. Import "
        "tensorflow.python.ipu before it, or run the script with `tf-ipu run`.",
        name=fullname,
    )


def is_ipu_process() -> bool:
    """Returns whether names of others are served: in a process that uses `ipu`, and to a script that is about to."""
    return activation.is_active() or (
        not activation.is_stock() and ipu_script_detection.is_importing_ipu(is_graphcore_name)
    )


def is_graphcore_name(fullname: str) -> bool:
    """Returns whether a module is one of Graphcore's, so that a script that imports it uses IPUs.

    Example:
        >>> is_graphcore_name("tensorflow.python.ipu.loops"), is_graphcore_name("horovod.tensorflow")
        (True, False)
    """
    return fullname.partition(".")[0] not in _OF_OTHERS and own_name(fullname) is not None


def _find_under_own_name(fullname: str, theirs: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """Returns the ordinary spec of one of our modules, its loader extended by the refusal of missing names."""
    spec = PathFinder.find_spec(fullname, path) or reexports.find_spec(fullname, theirs)
    if spec is None:
        return (
            ModuleSpec(fullname, unsupported_names.RefusingLoader(theirs))
            if unsupported_names.is_known_module(theirs)
            else None
        )
    if spec.loader is not None:
        unsupported_names.extend_loader(spec.loader, theirs)
    return spec


def _find_alias(fullname: str, ours: str, path: Sequence[str] | None) -> ModuleSpec | None:
    parent = fullname.rpartition(".")[0]
    if fullname in ALIASES:
        if _is_installed(fullname, path):
            return None
    elif sys.modules.get(parent) is not sys.modules.get(own_name(parent) or "", parent):
        return None  # The parent is Graphcore's own package, and so are the modules in it.
    target = aliases.find_alias_spec(ours)
    if target is None:
        return None
    if isinstance(target.loader, unsupported_names.RefusingLoader):
        return ModuleSpec(fullname, target.loader)
    spec = aliases.make_alias_spec(fullname, target)
    if fullname in _IPU:
        post_import_hooks.call_after_loading(spec.loader, functools.partial(_ipu_loaded, fullname))
    return spec


def _ipu_loaded(fullname: str, module: types.ModuleType) -> None:
    del module
    activation.ipu_loaded(fullname)


def _is_installed(fullname: str, path: Sequence[str] | None) -> bool:
    spec = PathFinder.find_spec(fullname, path)
    # A folder without files of Python, such as one that an older version left its caches in, is nothing installed.
    return spec is not None and spec.loader is not None and spec.origin is not None


def _remove_finders() -> None:
    sys.meta_path[:] = [entry for entry in sys.meta_path if type(entry).__module__ != __package__]
    aliases.remove_aliases()


patches.change(
    "sys.meta_path",
    lambda: None,  # the finders are there before this module, which they load
    _remove_finders,
    why="Graphcore's module names, and names that stock TensorFlow has moved, can be imported",
    undone="the finders are removed, and so are the modules' further names",
)
