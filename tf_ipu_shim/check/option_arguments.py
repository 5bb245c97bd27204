"""Finds options without effect in calls of the configuration functions of `ipu.utils` and in library options."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any

from tf_ipu_shim.check.scan import Use, literal_value
from tf_ipu_shim.configuration import old_functions
from tf_ipu_shim.configuration.table import Option
from tf_ipu_shim.cycle_model import planning
from tf_ipu_shim.machine.environment import engine_options
from tf_ipu_shim.machine.environment.effects import CYCLES, RECORDED

_NO_OTHER_EFFECT = "of a library's options, the cycle model reads {} only"


def find_arguments(use: Use) -> Iterator[tuple[str, str]]:
    """Yields the arguments of a configuration function that have no effect, with the reasons.

    Example:
        >>> call = ast.parse("create_ipu_config(use_poplar_text_report=True)", mode="eval").body
        >>> [name for name, _ in find_arguments(Use(1, "tensorflow.python.ipu.utils.create_ipu_config", call))]
        ['use_poplar_text_report=']
    """
    function = use.name.rpartition(".")[2]
    for argument, expression in _call_arguments(function, use.call):
        replacement = old_functions.option_of(function, argument)
        if replacement is None:
            continue
        option, inverted = replacement
        value = literal_value(expression)
        if isinstance(value, Mapping):
            yield from ((f"{argument}=): {name}", why) for name, why in parts_without_effect(option, value))
        elif option.effect == RECORDED and not _is_default(option, value, inverted):
            yield f"{argument}=", option.meaning


def _call_arguments(function: str, call: ast.Call | None) -> Iterator[tuple[str, ast.expr]]:
    """Yields the arguments of a call: those by keyword, and the one after the `IpuOptions`."""
    if call is None or function not in old_functions.ARGUMENTS:
        return
    if function in old_functions.POSITIONAL and len(call.args) > 1:
        yield next(iter(old_functions.ARGUMENTS[function])), call.args[1]
    yield from ((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg)


def _is_default(option: Option, value: Any, inverted: bool) -> bool:
    """Returns whether a literal is the function's default."""
    default = option.in_release((2, 0))[1]
    return value is not None and value == (not default if inverted else default)


def parts_without_effect(option: Option, value: Mapping[Any, Any]) -> Iterator[tuple[str, str]]:
    """Yields the names in a dictionary of options that have no effect, with the reasons."""
    if option.path == "compilation_poplar_options":
        reasons = {entry.name: entry.meaning for entry in engine_options.effects()}
        yield from ((name, reasons.get(name, reasons["any other"])) for name in engine_options.without_effect(value))
    elif option.effect == CYCLES:
        why = _NO_OTHER_EFFECT.format(", ".join(f"`{name}`" for name in sorted(planning.READ)))
        yield from ((name, why) for name in value if name not in planning.READ)
    elif option.effect == RECORDED:
        yield from ((name, option.meaning) for name in value)
