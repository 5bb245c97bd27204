"""The `tf-ipu` command.

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
from tf_ipu_shim import spelling
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

COMMANDS: dict[str, Command] = {
    "build": Command(
        "tf_ipu_shim.cli.build",
        "compile the C++ plugin now instead of at first use",
        ("TF_IPU_SHIM_PLUGIN_CACHE_DIR",),
        ("tf-ipu build", "tf-ipu build --into-package    # in an image, for all its users"),
    ),
    "check": Command(
        "tf_ipu_shim.cli.check",
        "list how each IPU call of a script is handled",
        VARIABLES_OF_SCRIPTS,
        ("tf-ipu check --static train.py", "tf-ipu check train.py --steps 1", "tf-ipu check --format github train.py"),
    ),
    "compare": Command(
        "tf_ipu_shim.cli.compare",
        "compare memory, cycles and ops of two profiles",
        (),
        ("tf-ipu compare before after", "tf-ipu compare before after --html changes.html"),
    ),
    "completion": Command(
        "tf_ipu_shim.cli.completion",
        "print the completion script of a shell",
        (),
        ("source <(tf-ipu completion bash)",),
    ),
    "doctor": Command(
        "tf_ipu_shim.cli.doctor",
        "check this installation, and suggest fixes",
        VARIABLES_OF_SCRIPTS,
        ("tf-ipu doctor", "tf-ipu doctor --format json"),
    ),
    "env": Command(
        "tf_ipu_shim.cli.env",
        "list environment variables, flags and engine options with their values",
        VARIABLES_OF_SCRIPTS,
        ("tf-ipu env", "TF_IPU_SHIM_SYSTEM=pod4 tf-ipu env --set"),
    ),
    "fit": Command(
        "tf_ipu_shim.cli.fit",
        "say on which systems a script's programs fit, and how fast they would be",
        VARIABLES_OF_SCRIPTS,
        (
            "tf-ipu fit train.py",
            "tf-ipu fit --system pod4,bow-pod16 train.py",
            "tf-ipu fit --batch=--batch-size=8,16 train.py",
        ),
    ),
    "info": Command(
        "tf_ipu_shim.cli.info",
        "list the simulated IPUs, and who uses them",
        VARIABLES_OF_SYSTEMS,
        ("tf-ipu info -l",),
    ),
    "poplar": Command(
        "tf_ipu_shim.cli.poplar",
        "build the Poplar libraries, and print flags and search paths for them",
        ("TF_IPU_SHIM_PLUGIN_CACHE_DIR",),
        ('eval "$(tf-ipu poplar --shell)"', "g++ main.cpp $(tf-ipu poplar --cflags --libs)"),
    ),
    "poprun": Command(
        "tf_ipu_shim.cli.poprun",
        "start a job of several processes on one host or several",
        VARIABLES_OF_SCRIPTS,
        ("tf-ipu poprun --num-instances 2 --num-replicas 4 python train.py",),
    ),
    "profile": Command(
        "tf_ipu_shim.cli.profile",
        "show a program's profile, as a page or a trace",
        (),
        ("tf-ipu run --profile profiles train.py", "tf-ipu profile profiles/tf_report__*train --html page.html"),
    ),
    "run": Command(
        "tf_ipu_shim.cli.runner",
        "run a script",
        VARIABLES_OF_SCRIPTS,
        (
            "tf-ipu run --memory train.py",
            "tf-ipu run --tf1 --sdk 1.4 --system pod16 old_script.py --steps 10",
            "tf-ipu run --baseline memory.json --format github train.py",
        ),
    ),
    "schedule": Command(
        "tf_ipu_shim.cli.schedule",
        "draw the schedule of a pipeline",
        (),
        ("tf-ipu schedule --stages 4 --mini-batches 8", "tf-ipu schedule --schedule interleaved --svg schedule.svg"),
    ),
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
    hint = spelling.did_you_mean(word, COMMANDS, PROGRAM + " {}") or f" {PROGRAM} -h lists the commands."
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
