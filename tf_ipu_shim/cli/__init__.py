"""Runs `tf-ipu`: parses the command line and calls the module of the subcommand.

Each subcommand is a module with `add_arguments(parser)` and `run(arguments) -> exit status`, and with
`normalize_arguments(words)` if argparse cannot parse the words unchanged. It is imported when the command runs, so that
no command waits for another one's imports.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple

import tf_ipu_shim
from tf_ipu_shim import data_files, spelling
from tf_ipu_shim.cli.parser import SuggestingParser

PROGRAM = "tf-ipu"


class Command(NamedTuple):
    """A subcommand: its module, its purpose, the environment variables it reads, and example command lines."""

    module: str
    help: str
    variables: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()


VARIABLES_OF_SYSTEMS = ("TF_IPU_SHIM_SYSTEM", "TF_IPU_SHIM_LOCK_DIR")
"""Variables of commands that list the simulated IPUs."""
VARIABLES_OF_SCRIPTS = (
    "TF_IPU_SHIM_SDK",
    *VARIABLES_OF_SYSTEMS,
    "TF_IPU_SHIM_EXECUTION_MODE",
    "TF_IPU_SHIM_CHECK_INDICES",
    "TF_IPU_SHIM_CHECK_CODELETS",
    "TF_IPU_SHIM_COMPAT",
    "TF_IPU_SHIM_MEMORY_PLAN",
    "TF_IPU_SHIM_EXACT_BYTES",
    "TF_IPU_SHIM_PROFILE_DIR",
    "TF_IPU_SHIM_TRACEBACK",
    "TF_IPU_SHIM_LOG_LEVEL",
    "TF_IPU_SHIM_DEBUG_DIR",
    "TF_IPU_SHIM_PLUGIN_CACHE_DIR",
    "TF_IPU_SHIM_COLLECTIVE_TIMEOUT",
    "TF_IPU_SHIM_JOB_KEY",
)
"""Variables of commands that run a script."""

_VARIABLES = {
    "scripts": VARIABLES_OF_SCRIPTS,
    "systems": VARIABLES_OF_SYSTEMS,
    "cache": ("TF_IPU_SHIM_PLUGIN_CACHE_DIR",),
    "none": (),
}
COMMANDS = {
    row["command"]: Command(
        f"tf_ipu_shim.{row['module']}", row["help"], _VARIABLES[row["variables"]], tuple(row["examples"].splitlines())
    )
    for row in data_files.rows(__file__, "commands.csv")
}
"""All subcommands by name."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a subcommand."""
    words = list(sys.argv[1:] if argv is None else argv)
    # Only the first word decides, so that the help of one command needs no import of the others.
    chooser = SuggestingParser(
        prog=PROGRAM,
        description="Simulated IPUs for TensorFlow.",
        epilog="commands:\n" + "\n".join(f"  {name:<10} {command.help}" for name, command in COMMANDS.items()),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    chooser.add_argument("--version", action="version", version=f"tf_ipu_shim {tf_ipu_shim.__version__}")
    chooser.add_argument("command", choices=COMMANDS, metavar="COMMAND", help="what to do; COMMAND -h tells more")
    if not words:
        chooser.print_help()
        return 2
    if words[0] not in COMMANDS and not words[0].startswith("-"):
        chooser.error(_unknown_command(words[0]))
    name = chooser.parse_args(words[:1]).command
    command = COMMANDS[name]
    module = importlib.import_module(command.module)
    return execute(module, command.help, f"{PROGRAM} {name}", words[1:], command.variables, command.examples)


def _unknown_command(word: str) -> str:
    """Suggests a command for an unknown one."""
    if word.endswith(".py"):
        return f"{word} is a script; expected a command. Run the script: {PROGRAM} run {word}"
    meant = f" Did you mean {PROGRAM} --{word}?" if word in ("help", "version") else ""
    hint = meant or spelling.did_you_mean(word, COMMANDS, PROGRAM + " {}") or f" {PROGRAM} -h lists the commands."
    return f"there is no command {word!r}; expected one of {', '.join(COMMANDS)}.{hint}"


def execute(
    command: Any,
    help: str,
    program: str,
    words: Sequence[str],
    variables: Sequence[str] = (),
    examples: Sequence[str] = (),
) -> int:
    """Runs one command; `tf_ipu_shim.cli.tools` has those with the names of the SDK's."""
    parser = command_parser(command, help, program, variables, examples)
    try:
        normalize = getattr(command, "normalize_arguments", list)
        status = int(command.run(parser.parse_args(normalize(words))))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader of the output is gone (`tf-ipu info -l | head`); the interpreter must not fail on it again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        message = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        print(f"{program}: {message}", file=sys.stderr)
        return 2
    return status


def command_parser(
    command: Any, help: str, program: str, variables: Sequence[str] = (), examples: Sequence[str] = ()
) -> SuggestingParser:
    """Returns the parser of one command, with its help."""
    parser = SuggestingParser(prog=program, description=as_sentence(help))
    command.add_arguments(parser)
    parser.add_variables(variables)
    parser.add_examples(examples)
    return parser


def as_sentence(text: str) -> str:
    """Returns a line of help as a sentence.

    Example:
        >>> as_sentence("list the simulated IPUs")
        'List the simulated IPUs.'
    """
    return f"{text[:1].upper()}{text[1:]}."
