"""Classifies each use of a Graphcore name in a script: emulated, no effect, not supported."""

from __future__ import annotations

import enum
import functools
import pathlib
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tf_ipu_shim.check import option_arguments, pitfalls
from tf_ipu_shim.check.scan import Scan, Setting, Use, assigned_strings, literal_value
from tf_ipu_shim.check.sources import SourceFile
from tf_ipu_shim.configuration import arguments
from tf_ipu_shim.configuration.table import OPTIONS, Option
from tf_ipu_shim.errors import UnknownFlagError
from tf_ipu_shim.machine.environment import engine_options, flags
from tf_ipu_shim.machine.environment.effects import RECORDED
from tf_ipu_shim.names import emulated, emulated_table, graphcore_names, keywords, suggestions


class FindingKind(enum.Enum):
    """How a use is handled."""

    REFUSED = "not supported"
    RECORDED = "no effect"
    TRAP = "look at"
    EMULATED = "emulated"


class Finding(NamedTuple):
    """One use of a name, and how it is handled.

    Args:
        line: the line of the file; 0 for the file as a whole.
        name: the name that the script uses, without the longest of Graphcore's package names.
        why: the reason and a fix; empty if it is emulated.
    """

    kind: FindingKind
    path: pathlib.Path
    line: int
    name: str
    why: str = ""


def find_uses(sources: Iterable[SourceFile]) -> list[Finding]:
    """Finds how every IPU call of some files is handled.

    Does not import TensorFlow, unless an SDK is chosen. Refusals that depend on arguments appear only in a run.

    Example:
        >>> import ast
        >>> tree = ast.parse("from tensorflow.python.ipu.utils import no_such")
        >>> find_uses([SourceFile(pathlib.Path("a.py"), tree)])[0].kind
        <FindingKind.REFUSED: 'not supported'>
    """
    scans = [(source, Scan(source.tree)) for source in sources]
    findings: dict[Finding, None] = {}
    for source, scan in scans:
        for finding in _findings_of_file(source, scan):
            findings.setdefault(finding)
    for path, trap in pitfalls.find_pitfalls(scans):
        findings.setdefault(Finding(FindingKind.TRAP, path, trap.line, trap.name, trap.why))
    order = [source.path for source, _ in scans]
    return sorted(findings, key=lambda use: (order.index(use.path), use.line, use.name))


def _keras_method_names() -> frozenset[str]:
    """Methods that a Keras model has only under a strategy: they identify a model for IPUs."""
    return emulated_table.table().keras_methods if emulated_table.is_used() else keras_method_names()


@functools.cache
def keras_method_names() -> frozenset[str]:
    """Returns the same from the classes, for which TensorFlow is imported."""
    # TensorFlow comes when the runner has said what it may log.
    import tensorflow as tf

    from tf_ipu_shim.frontend.keras.models.pipelined_extension import PipelinedExtension

    return frozenset(name for name in {*dir(PipelinedExtension)} - {*dir(tf.keras.Model)} if not name.startswith("_"))


def _findings_of_file(source: SourceFile, scan: Scan) -> Iterator[Finding]:
    path = source.path
    for line in scan.misnamed_lines:
        yield Finding(FindingKind.REFUSED, path, line, suggestions.MISNAMED, suggestions.MISNAMED_HINT)
    for use in scan.uses:
        if not use.name.startswith("."):
            yield from _findings_of_name(path, use)
        elif use.name[1:] in _keras_method_names():
            yield Finding(FindingKind.EMULATED, path, use.line, f"Model{use.name}")
        for argument, why in ignored_arguments(use):
            yield Finding(FindingKind.RECORDED, path, use.line, f"{short_name(use.name)}({argument}=)", why)
        for part in option_arguments.find_arguments(use):
            closing = "" if ")" in part.name else ")"
            name = f"{short_name(use.name)}({part.name}{closing}"
            yield Finding(_kind_of_part(part), path, use.line, name, part.why)
    for setting in scan.settings:
        option = _option_names().get(setting.path)
        if option is None:
            continue  # a category, or an option no SDK has, which the configuration refuses with the nearest names
        kind = FindingKind.RECORDED if option.effect == RECORDED else FindingKind.EMULATED
        yield Finding(
            kind,
            path,
            setting.line,
            f"IPUConfig.{setting.path}",
            option.meaning if kind is FindingKind.RECORDED else "",
        )
        yield from _parts_of_option(path, setting, option)
    yield from _environment_findings(source)


def _findings_of_name(path: pathlib.Path, use: Use) -> Iterator[Finding]:
    """Yields whether a name of Graphcore's is emulated, and the keywords that its call does not have."""
    module, name = _split_name(use.name)
    if name:
        verdict = emulated.get_status(module, name)
        kind = FindingKind.EMULATED if verdict.state == emulated.EMULATED else FindingKind.REFUSED
        yield Finding(kind, path, use.line, short_name(use.name), verdict.reason)
        if kind is FindingKind.EMULATED:
            yield from _unknown_arguments(path, use, module, name)
    elif graphcore_names.modules().get(module) and (reason := emulated.unsupported_module_reason(module)):
        yield Finding(FindingKind.REFUSED, path, use.line, short_name(use.name), reason)


def _unknown_arguments(path: pathlib.Path, use: Use, module: str, name: str) -> Iterator[Finding]:
    """Keywords of a call that the function does not have; arguments of methods are not checked."""
    if use.call is None or use.name.rpartition(".")[2] != name:
        return
    argument_names = emulated.argument_names(module, name)
    if argument_names is None:
        return
    for word in use.call.keywords:
        if word.arg and word.arg not in argument_names:
            why = keywords.sentence(name, word.arg, argument_names)
            yield Finding(FindingKind.REFUSED, path, word.value.lineno, f"{short_name(use.name)}({word.arg}=)", why)


def _parts_of_option(path: pathlib.Path, setting: Setting, option: Option) -> Iterator[Finding]:
    """Yields engine and library options without effect, or unknown, in a dictionary that is in the file."""
    value = literal_value(setting.value)
    if not isinstance(value, dict):
        return
    for part in option_arguments.find_parts(option, value):
        if part.is_unknown or option.effect != RECORDED:
            yield Finding(_kind_of_part(part), path, setting.line, f"IPUConfig.{setting.path}: {part.name}", part.why)


def _kind_of_part(part: option_arguments.Part) -> FindingKind:
    return FindingKind.REFUSED if part.is_unknown else FindingKind.RECORDED


def _environment_findings(source: SourceFile) -> Iterator[Finding]:
    """Flags and engine options that a file puts into the environment itself."""
    whys = {entry.name: entry.meaning for entry in (*flags.effects(), *engine_options.effects())}
    readers = (
        (flags.ENVIRONMENT_VARIABLE, lambda setting: flags.set_flags_without_effect(flags.parse(setting))),
        (
            engine_options.ENVIRONMENT_VARIABLE,
            lambda setting: engine_options.without_effect(engine_options.parse(setting)),
        ),
    )
    for variable, read in readers:
        for line, setting in assigned_strings(source.tree, variable):
            try:
                names = read(setting)
            except (UnknownFlagError, NotImplementedError, ValueError) as error:
                yield Finding(FindingKind.REFUSED, source.path, line, variable, str(error))
                continue
            yield Finding(FindingKind.EMULATED, source.path, line, variable)
            for name in names:
                why = whys.get(name, whys["any other"])
                yield Finding(FindingKind.RECORDED, source.path, line, f"{variable}: {name}", why)


def _split_name(name: str) -> tuple[str, str]:
    """The module of a dotted name and the first name in it; further parts are attributes."""
    if name.startswith("."):
        return "", ""
    parts = name.split(".")
    graphcore_modules = graphcore_names.modules()
    for length in range(len(parts), 0, -1):
        module = ".".join(parts[:length])
        if module in graphcore_modules or emulated.is_module(module):
            first = parts[length] if length < len(parts) else ""
            behind = emulated.implementing_module(module, first) if first else ""
            return (behind, ".".join(parts[length + 1 : length + 2])) if behind else (module, first)
    return name, ""


def short_name(name: str) -> str:
    """Returns a dotted name as scripts write it.

    Example:
        >>> short_name("tensorflow.python.ipu.utils.reset_ipu_seed")
        'ipu.utils.reset_ipu_seed'
    """
    return re.sub(r"^(tensorflow\.python|tensorflow\.compiler\.plugin\.poplar)\.", "", name)


@functools.cache
def _option_names() -> dict[str, Option]:
    return {option.path: option for option in OPTIONS}


@functools.cache
def _call_names() -> dict[str, frozenset[str]]:
    """The names of the functions, classes or modules of each entry of the table of arguments."""
    names = {}
    for key, call in arguments.CALLS.items():
        words = [key.rpartition(" ")[2], *re.findall(r"`([\w.]+)`", call.heading)]
        names[key] = frozenset(word.rpartition(".")[2] for word in words)
    return names


def ignored_arguments(use: Use) -> list[tuple[str, str]]:
    """Returns the keyword arguments of a call without effect, with the reasons."""
    if use.call is None:
        return []
    keywords = [word.arg for word in use.call.keywords if word.arg]
    recorded = {}
    for key in _argument_entries(use):
        rows = arguments.CALLS[key].arguments
        recorded.update(
            {name: rows[name].meaning for name in keywords if name in rows and rows[name].effect == RECORDED}
        )
    return list(recorded.items())


def _argument_entries(use: Use) -> Iterator[str]:
    """Yields the entries of the table of arguments that a call may go by."""
    parts = use.name.strip(".").split(".")
    module, name = _split_name(use.name)
    class_names = set(parts[-1:]) if not name or name != parts[-1] else set(emulated.class_lineage(module, name))
    for key, names in _call_names().items():
        # A module such as gen_popnn_ops stands for all its functions; a method that is not a model's has other names.
        if not class_names & names and not any(part in names for part in parts if part.startswith("gen_")):
            continue
        if not use.name.startswith(".") or key.startswith(("Model.", "pipeline")):
            yield key
