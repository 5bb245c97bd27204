"""Parses command lines and suggests the nearest option for an unknown one."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from typing import NoReturn

from tf_ipu_shim import spelling

_OPTION = re.compile(r"(?<!\S)--[a-z][a-z0-9-]*")
_CHOICES = re.compile(r"invalid choice: '(.*)' \(choose from (.*)\)")


class SuggestingParser(argparse.ArgumentParser):
    """Works like `argparse.ArgumentParser`; the error of an unknown option or value names what was probably meant.

    Example:
        >>> parser = SuggestingParser(prog="tf-ipu run")
        >>> action = parser.add_argument("--memory", action="store_true")
        >>> parser.parse_args(["--memory"])
        Namespace(memory=True)
    """

    examples: tuple[str, ...] = ()

    def add_variables(self, names: Iterable[str]) -> None:
        """Names the environment variables that the command reads, at the end of its help."""
        named = ", ".join(names)
        if named:
            text = f"Environment variables: {named}. `tf-ipu env` explains them."
            self.epilog = f"{self.epilog} {text}" if self.epilog else text

    def add_examples(self, examples: Sequence[str]) -> None:
        """Shows command lines at the end of the help."""
        self.examples = tuple(examples)

    def format_help(self) -> str:
        """Returns the help, with the examples last."""
        shown = "".join(f"  {example}\n" for example in self.examples)
        return super().format_help() + (f"\nexamples:\n{shown}" if shown else "")

    def error(self, message: str) -> NoReturn:
        """Ends the process with the message and a suggestion."""
        options = set(_OPTION.findall(self.format_help().replace("[", " ")))
        # Where argparse names what is wrong there are options that it does not know, and perhaps what belongs to them.
        unknown = _OPTION.findall(message) if message.startswith("unrecognized") else []
        known = {word: options for word in unknown}
        for word, choices in _CHOICES.findall(message):
            known[word] = set(re.findall(r"[\w-]+", choices))
        near = (self._value_named(word) or spelling.nearest(word, sorted(names)) for word, names in known.items())
        hints = [f"did you mean {meant}?" for meant in near if meant]
        super().error("; ".join([message, *hints]))

    def _value_named(self, word: str) -> str:
        """Returns the option that has an unknown option's name as a value: `--format json` for `--json`."""
        value = word.removeprefix("--")
        having = [action for action in self._actions if value in (action.choices or ()) and action.option_strings]
        return f"{having[0].option_strings[-1]} {value}" if having and word != value else ""
