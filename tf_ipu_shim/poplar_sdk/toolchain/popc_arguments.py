"""Reads the command line of `popc`: its options, and the compiler's, which it forwards."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence

import tf_ipu_shim
from tf_ipu_shim import sdk, spelling
from tf_ipu_shim.machine.environment import checked_codelets
from tf_ipu_shim.poplar_sdk.toolchain import sources

TARGETS = ("cpu", "ipu1", "ipu2", "ipu21")
_SOURCES = (".cpp", ".cc", ".cxx", ".c++", ".C", ".c")
_ASSEMBLY = (".s", ".S")
_PREPROCESSOR = ("-I", "-D", "-U", "-include", "-isystem", "-iquote")
_OLD_STANDARDS = ("98", "03", "0x", "11", "1y", "14")


@dataclasses.dataclass
class Arguments:
    """A command line that was read; `shown` is a text that is printed instead of compiling."""

    sources: list[str] = dataclasses.field(default_factory=list)
    assembly: list[str] = dataclasses.field(default_factory=list)
    preprocessor: list[str] = dataclasses.field(default_factory=list)
    compiler: list[str] = dataclasses.field(default_factory=lambda: ["-O2"])
    language: list[str] = dataclasses.field(default_factory=lambda: ["-std=gnu++17"])
    output: str = ""
    checked: bool = False
    verbose: bool = False
    shown: str | None = None


def parse(words: Sequence[str]) -> Arguments:
    """Reads a command line.

    Raises:
        ValueError: a word is unknown, or a source or the output is missing.

    Example:
        >>> parse(["--version"]).shown.startswith("POPLAR version ")
        True
    """
    arguments = Arguments(checked=checked_codelets.is_on())
    rest = iter(words)
    for word in rest:
        _read(word, rest, arguments)
    if arguments.shown is None:
        if not arguments.sources:
            raise ValueError("no source is named; expected a C++ file. Name it: popc codelet.cpp -o codelet.gp")
        if not arguments.output:
            raise ValueError("no output is named; expected -o FILE. Add -o codelet.gp")
    return arguments


def _read(word: str, rest: Iterator[str], arguments: Arguments) -> None:
    if not word.startswith("-"):
        _read_source(word, arguments)
    elif word in ("-h", "--help"):
        arguments.shown = (sources.TEMPLATE_DIRECTORY / "popc_help.txt").read_text(encoding="utf-8").rstrip()
    elif word == "--version":
        # Scripts read the number behind "version".
        release = f"POPLAR version {sdk.current()}.0 (simulated)"
        arguments.shown = f"{release}, popc of tf_ipu_shim {tf_ipu_shim.__version__}"
    elif word in ("-v", "--verbose"):
        arguments.verbose = True
    elif word in ("--checked", "--no-checked"):
        arguments.checked = word == "--checked"
    elif word.startswith(("-o", "--output")):
        arguments.output = _value(word, "--output" if word.startswith("--") else "-o", rest)
    elif word.lstrip("-").startswith("target"):
        _check_targets(_value(word, word.partition("=")[0], rest))
    else:
        _read_compiler_option(word, rest, arguments)


def _read_compiler_option(word: str, rest: Iterator[str], arguments: Arguments) -> None:
    option = next((option for option in _PREPROCESSOR if word.startswith(option)), None)
    if option:
        arguments.preprocessor += [word, _value(word, option, rest)] if word == option else [word]
    elif word.startswith("-std=") or word.startswith("--std="):
        if not word.endswith(_OLD_STANDARDS):  # Poplar's own headers need C++17
            arguments.language = ["-" + word.lstrip("-")]
    elif word.startswith(("-O", "-g", "-W", "-f", "-m", "-pthread", "-pedantic")):
        arguments.compiler.append(word)
    else:
        options = ("--target", "--checked", "--no-checked", "--verbose", "--version")
        hint = spelling.did_you_mean(word, options, "{}")
        raise ValueError(f"option {word} is not supported.{hint} Use an option of popc --help.")


def _read_source(word: str, arguments: Arguments) -> None:
    ending = os.path.splitext(word)[1]
    if ending in _ASSEMBLY:
        arguments.assembly.append(word)
    elif ending in _SOURCES:
        arguments.sources.append(word)
    else:
        raise ValueError(f"{word} ends in {ending!r}; expected a C++ source: {', '.join(_SOURCES)}. Rename it.")
    if not os.path.isfile(word):
        raise ValueError(f"{word}: there is no such file in {os.getcwd()}; expected a source. Name an existing one.")


def _value(word: str, option: str, rest: Iterator[str]) -> str:
    """Returns the value of an option: in the word itself, or the next one."""
    value = word[len(option) :].removeprefix("=") if word != option else next(rest, None)
    if not value:
        raise ValueError(f"option {option} has no value; expected one. Add it.")
    return value


def _check_targets(text: str) -> None:
    for name in text.split(","):
        if name.strip() not in TARGETS:
            raise ValueError(f"target {name!r} is not known; expected some of {', '.join(TARGETS)}. Change --target.")
