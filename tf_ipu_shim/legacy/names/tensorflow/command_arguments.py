"""Restores the parser and the commands of TensorFlow 1.15 to 2.6 in `tensorflow.python.tools.saved_model_cli`.

There a parsed command line holds every option, programs may add their options, and each command receives the parsed
options. Since TensorFlow 2.13 options are flags of absl and commands have no arguments. Checked on TensorFlow 2.15.1
and 2.21.0.
"""

from __future__ import annotations

import argparse
import functools
import types
from collections.abc import Callable, Sequence
from typing import Any

from absl import flags
from absl.flags import argparse_flags
from absl.testing import flagsaver

from tf_ipu_shim import patches
from tf_ipu_shim.imports import post_import_hooks

_NAME = "tensorflow.python.tools.saved_model_cli"
_COMMANDS = ("aot_compile_cpu", "convert_with_tensorrt", "freeze_model", "run", "scan", "show")
_WHY = "tools that add options to those of saved_model_cli and call its commands with what was parsed"


def install() -> None:
    """Restores the module's old parser and commands, now or when it is loaded."""
    post_import_hooks.call_once_loaded(_NAME, _loaded, _WHY)


class _OptionParser(argparse_flags.ArgumentParser):  # type: ignore[misc]
    """A parser whose result has the tool's flags, and whose own options replace flags of the same name."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "conflict_handler": "resolve"})

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Works like argparse's: values set by an earlier command line do not persist."""
        options = _options()
        for flag in options.values():
            flag.unparse()
        parsed = super().parse_args(args, namespace)
        for name, flag in options.items():
            if not hasattr(parsed, name):
                setattr(parsed, name, flag.value)
        return parsed


def _options() -> dict[str, Any]:
    """Returns the flags that the tool defines, by name."""
    return {flag.name: flag for flag in flags.FLAGS.flags_by_module_dict()[_NAME]}


def _with_arguments(stock: Callable[[], None]) -> Callable[..., None]:
    @functools.wraps(stock)
    def command(args: argparse.Namespace | None = None) -> None:
        values = {name: value for name, value in vars(args or argparse.Namespace()).items() if name in _options()}
        with flagsaver.flagsaver(**values):
            flags.FLAGS.mark_as_parsed()
            stock()

    return command


def _parsers(stock: types.ModuleType) -> types.SimpleNamespace:
    del stock
    return types.SimpleNamespace(ArgumentParser=_OptionParser)


def _loaded(module: types.ModuleType) -> None:
    if not hasattr(module, "argparse_flags"):
        return  # a TensorFlow whose commands take what was parsed
    patches.replace(module, "argparse_flags", _parsers, why=_WHY)
    for name in _COMMANDS:
        patches.replace(module, name, _with_arguments, why=_WHY)
