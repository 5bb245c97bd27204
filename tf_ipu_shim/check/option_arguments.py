"""Finds options without effect, or unknown, in calls of the functions of `ipu.utils` and in library options."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from tf_ipu_shim.check.scan import Use, literal_value
from tf_ipu_shim.configuration import old_functions
from tf_ipu_shim.configuration.table import Option
from tf_ipu_shim.cycle_model import planning
from tf_ipu_shim.machine.environment import engine_options
from tf_ipu_shim.machine.environment.effects import CYCLES, RECORDED
from tf_ipu_shim.poplar_sdk import library_options

_ENGINE = "compilation_poplar_options"
_NO_OTHER_EFFECT = "of a library's options, the cycle model reads {} only"


class Part(NamedTuple):
    """An argument, or a name in a dictionary of options, that has no effect or is unknown."""

    name: str
    why: str
    is_unknown: bool = False


def find_arguments(use: Use) -> Iterator[Part]:
    """Yields the arguments of a configuration function that have no effect, and unknown names in them.

    Example:
        >>> call = ast.parse("create_ipu_config(use_poplar_text_report=True)", mode="eval").body
        >>> [part.name for part in find_arguments(Use(1, "tensorflow.python.ipu.utils.create_ipu_config", call))]
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
            yield from (part._replace(name=f"{argument}=): {part.name}") for part in find_parts(option, value))
        elif option.effect == RECORDED and not _is_default(option, value, inverted):
            yield Part(f"{argument}=", option.meaning)


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


def find_parts(option: Option, value: Mapping[Any, Any]) -> Iterator[Part]:
    """Yields the names in a dictionary of options that are unknown or have no effect.

    Example:
        >>> from tf_ipu_shim.configuration.table import OPTIONS
        >>> option = next(option for option in OPTIONS if option.path == "matmuls.poplar_options")
        >>> [(part.name, part.is_unknown) for part in find_parts(option, {"partialType": "half", "gatherOutput": "1"})]
        [('partialType', True), ('gatherOutput', False)]
    """
    unknown = _unrecognised(option, value)
    yield from (Part(name, why, is_unknown=True) for name, why in unknown.items())
    known = [name for name in value if name not in unknown]
    if option.path == _ENGINE:
        reasons = {entry.name: entry.meaning for entry in engine_options.effects()}
        without_effect = engine_options.without_effect(dict.fromkeys(known, ""))
        yield from (Part(name, reasons.get(name, reasons["any other"])) for name in without_effect)
    elif option.effect == CYCLES:
        why = _NO_OTHER_EFFECT.format(", ".join(f"`{name}`" for name in sorted(planning.READ)))
        yield from (Part(name, why) for name in known if name not in planning.READ)
    elif option.effect == RECORDED:
        yield from (Part(name, option.meaning) for name in known)


def _unrecognised(option: Option, value: Mapping[Any, Any]) -> dict[str, str]:
    """Returns the names that fail a program which reads the options, with the errors."""
    if option.path == _ENGINE:
        return engine_options.unrecognised(value)
    library = library_options.OF_CONFIGURATION.get(option.path)
    return {} if library is None else library_options.unrecognised(library, value)
