"""Writes the pages of reference that follow from the code: commands, environment variables, compatibility.

python tools/generate_reference.py          writes the pages
python tools/generate_reference.py --check  ends with status 1 if a page is out of date
"""

from __future__ import annotations

import argparse
import configparser
import functools
import importlib
import os
import pathlib
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import generated_page

if TYPE_CHECKING:
    from tf_ipu_shim.configuration import environment

ROOT = pathlib.Path(__file__).resolve().parent.parent

COMMANDS = """---
type: reference
tags: [command line, CLI, tf-ipu, options, arguments, help, poprun, gc-info, gc-monitor]
---

# Command line

All commands with their options. `COMMAND -h` prints the same.

```
$ tf-ipu run --memory train.py
$ tf-ipu -h
```

Options of `tf-ipu run`, `check` and `fit` come before the script's name. Everything after it belongs to the script.
A script's own output goes to stderr if `--format` is not `text`, so that stdout has only the result. On a terminal
verdicts are in colour, unless `NO_COLOR` is set, and rows of tables are cut to its width.

`ipu_saved_model_cli convert` and `run` [convert SavedModels](../how_to/deploy/saved_model_tool.md) and run them on
IPUs. `show` and `scan` are TensorFlow's own. `ipu_saved_model_cli COMMAND -h` prints the options.

"""
VARIABLES = """---
type: reference
tags: [environment variables, settings, TF_IPU_SHIM, TF_POPLAR_FLAGS, configuration]
---

# Environment variables

All variables that the package reads. `tf-ipu env` shows them with their current values, and checks them.

```
$ TF_IPU_SHIM_SYSTEM=pod4 tf-ipu env --set
```

A variable that begins with `TF_IPU_SHIM_` and is not listed is an error with a suggestion. So is an unknown value.
A command-line option overrides its variable.

"""
COMPATIBILITY = """---
type: reference
tags: [compatibility, versions, requirements, Python, TensorFlow, tf1, tf2, windows, mac, arm, keras 3]
---

# Compatibility

Versions of Python, TensorFlow, the Poplar SDK, processors and IPU systems. `tf-ipu doctor` checks an installation:

```
$ tf-ipu doctor
```

"""
KERAS = """\
TensorFlow 2.15 includes Keras 2 and Estimator. Later versions get Keras 2 from `tf_keras` of the same version,
and have no Estimator. If `tf_keras` is installed, `tf.keras` is Keras 2 in every process of the environment. Importing
TensorFlow then sets `TF_USE_LEGACY_KERAS=1`, unless the variable is set or `TF_IPU_SHIM_COMPAT=stock`. Models of
Keras 3 are refused in the scope of an `IPUStrategy`. [Install the package](installation.md#choose-a-tensorflow) shows
how to choose a version.
"""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Returns a table in Markdown."""
    cells = [header, ["---"] * len(header), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return ["| " + " | ".join(row) + " |" for row in cells]


PATCHES = """---
type: reference
tags: [patches, monkey patch, undo, stock]
---

# Patches

What `ipu` changes in TensorFlow, Keras and Python when it is imported, why, and how it is undone. The table is
generated from the register on TensorFlow 2.15.1.

```
python -m tf_ipu_shim.patches           # prints the register of this environment
```

`tf_ipu_shim.patches.undo()` reverts all changes. `TF_IPU_SHIM_COMPAT=stock` leaves out those for old names.

"""


def command_line() -> str:
    """Returns the page of commands, read from their parsers."""
    # The help of some options depends on the variables in force.
    for name in [name for name in os.environ if name.startswith("TF_IPU_SHIM_")]:
        del os.environ[name]
    lines = [*table(["command", "use"], [[f"[`{name}`](#{_anchor(name)})", use] for name, use, _ in _commands()]), ""]
    for name, use, parser in _commands():
        usage = " ".join(parser.format_usage().removeprefix("usage: ").split())
        lines += [f"## {name}", "", f"{use[0].upper()}{use[1:]}.", "", "```", usage, "```", ""]
        lines += [*table(["argument", "meaning"], _argument_rows(parser)), ""]
        if examples := getattr(parser, "examples", ()):
            lines += ["```", *examples, "```", ""]
        if parser.epilog:
            lines += [_linked(re.sub(r"(?<![`\w])(TF_IPU_SHIM_\w+)", r"`\1`", parser.epilog)), ""]
    return COMMANDS + "\n".join(lines).rstrip() + "\n"


def _anchor(name: str) -> str:
    return name.replace(" ", "-")


def _commands() -> Iterator[tuple[str, str, argparse.ArgumentParser]]:
    """Yields each command with its purpose and its parser."""
    from tf_ipu_shim import cli
    from tf_ipu_shim.cli import info, inventory, tools

    os.environ["COLUMNS"] = "100"
    for name, command in cli.COMMANDS.items():
        program = f"{cli.PROGRAM} {name}"
        module = importlib.import_module(command.module)
        parser = cli.command_parser(module, command.help, program, command.variables, command.examples)
        yield program, command.help, parser
    sdk_tools: list[tuple[str, Any, str]] = [
        ("gc-info", info, cli.COMMANDS["info"].help),
        ("gc-inventory", inventory.INVENTORY, tools.INVENTORY),
        ("gc-monitor", inventory.MONITOR, tools.MONITOR),
    ]
    for program, module, use in sdk_tools:
        yield program, use, cli.command_parser(module, use, program, cli.VARIABLES_OF_SYSTEMS)


def _argument_rows(parser: argparse.ArgumentParser) -> Iterator[list[str]]:
    for action in parser._actions:
        if action.help is argparse.SUPPRESS or isinstance(action, argparse._HelpAction):
            continue
        shown = action.metavar if isinstance(action.metavar, str) else None
        if action.choices and not shown:
            shown = "|".join(map(str, action.choices))
        value = "" if action.nargs == 0 else f" {shown or action.dest.upper()}"
        names = [f"`{name}{value}`" for name in action.option_strings] or [f"`{value.strip()}`"]
        choices = f": {', '.join(map(str, action.choices))}" if action.choices and action.metavar else ""
        yield [", ".join(names), f"{_linked(action.help or '')}{choices}"]


def _linked(text: str) -> str:
    """Returns the variable of an option, linked to its page."""
    return re.sub(r"\[env: (\w+)\]", r"([`\1`](environment_variables.md))", text)


def environment_variables() -> str:
    """Returns the page of environment variables."""
    from tf_ipu_shim import cli
    from tf_ipu_shim.cli import env
    from tf_ipu_shim.configuration import environment

    lines = ["## For users", "", *_variable_table(environment.SETTINGS, _setters())]
    lines += ["", "## For the processes of a job", "", "`poprun` sets these. Set them by hand for another launcher", ""]
    lines[-2] += " ([Run on several machines](../how_to/distribute/several_machines.md))."
    lines += _variable_table(environment.JOB_VARIABLES, {})
    lines += ["", "## For Graphcore's SDK and TensorFlow", ""]
    others = {
        "TF_POPLAR_FLAGS": "flags of the SDK. After a change configure again ([Options](options/options.md))",
        "POPLAR_ENGINE_OPTIONS": "engine options of Poplar in JSON ([Options](options/options.md))",
        "GCDA_OPTIONS": "simulates a hardware error "
        "([Find why a program cannot run](../how_to/port/unsupported_programs.md))",
        **env.TENSORFLOW,
    }
    lines += table(["variable", "meaning"], [[f"`{name}`", what] for name, what in others.items()])
    lines += ["", "## By command", ""]
    by_variables: dict[tuple[str, ...], list[str]] = {}
    for name, command in cli.COMMANDS.items():
        by_variables.setdefault(tuple(command.variables), []).append(f"`{cli.PROGRAM} {name}`")
    own = {(): "none", tuple(cli.VARIABLES_OF_SCRIPTS): "all in the first table"}
    rows = [
        [", ".join(commands), own.get(variables) or ", ".join(f"`{name}`" for name in variables)]
        for variables, commands in by_variables.items()
    ]
    return VARIABLES + "\n".join([*lines, *table(["commands", "variables"], rows)]) + "\n"


def _setters() -> dict[str, str]:
    """Variable -> the option of `tf-ipu run` that sets it."""
    from tf_ipu_shim.cli import runner
    from tf_ipu_shim.cli.parser import SuggestingParser

    parser = SuggestingParser()
    runner.add_arguments(parser)
    found = {}
    for action in parser._actions:
        match = re.search(r"\[env: (\w+)\]", action.help or "")
        if match:
            found[match[1]] = f"`{action.option_strings[0]}`"
    return found


def _variable_table(variables: Iterable[environment.Variable], setters: dict[str, str]) -> list[str]:
    if not setters:
        return table(
            ["variable", "default", "meaning"], [[f"`{one.name}`", one.default, one.meaning] for one in variables]
        )
    rows = [[f"`{one.name}`", setters.get(one.name, ""), one.default, one.meaning] for one in variables]
    return table(["variable", "option of `tf-ipu run`", "default", "meaning"], rows)


def compatibility() -> str:
    """Returns the page of supported versions."""
    from tf_ipu_shim import sdk
    from tf_ipu_shim.machine import systems

    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    pythons = re.findall(r"Python :: (3\.\d+)", setup["metadata"]["classifiers"])
    makefile = (ROOT / "Makefile").read_text()
    wheels = re.findall(r"\d+\.(\d+)\.\d+", re.search(r"^WHEEL_TENSORFLOWS \?= (.+)$", makefile, re.M)[1])  # type: ignore[index]
    tested = re.findall(r"\$\(TENSORFLOW\)==2\.(\d+)\.", makefile)
    chosen = _selected(setup["options"]["install_requires"], pythons)
    lines = [
        "## Python and TensorFlow",
        "",
        *table(
            ["TensorFlow", "pip selects it on", "in the wheel of `make wheels`", "test suite"],
            [[f"2.{minor}", ", ".join(chosen.get(minor, [])), "yes", _tests(minor, tested)] for minor in wheels],
        ),
        "",
        f"Python {pythons[0]} to {pythons[-1]} are supported. A version with an empty second column works if you "
        "install it yourself.",
        "",
        KERAS,
        "## Operating systems and processors",
        "",
        *table(
            ["platform", "state"],
            [
                ["Linux with glibc, x86-64", "supported; all tests run here"],
                ["Linux with glibc, ARM", "supported; run under QEMU only ([Install](installation.md#on-arm))"],
                ["Linux with musl (Alpine)", "not supported: TensorFlow has no wheels for it"],
                ["macOS", "only in a [container](installation.md#in-a-container)"],
                ["Windows", "only in WSL or a [container](installation.md#in-a-container)"],
            ],
        ),
        "",
        "## Poplar SDK",
        "",
        f"Releases {'.'.join(map(str, sdk.OLDEST))} to {'.'.join(map(str, sdk.NEWEST))} are emulated. The default is "
        f"{'.'.join(map(str, sdk.NEWEST))}. The names of TensorFlow 1.15 and 2.1 to 2.6 in these releases work on the "
        "installed TensorFlow. [Choose a system and an SDK](../how_to/run/choose_system_and_sdk.md) says how.",
        "",
        "## IPU systems",
        "",
        *table(["system", "IPUs", "chip", "what it stands for"], map(_system_row, systems.SYSTEMS.values())),
    ]
    return COMPATIBILITY + "\n".join(lines) + "\n"


def _selected(requirements: str, pythons: Sequence[str]) -> dict[str, list[str]]:
    """Minor version of TensorFlow -> Pythons on which pip chooses it: the newest of the range that setup.cfg names."""
    found: dict[str, list[str]] = {}
    pattern = r"^tensorflow(?:-cpu)?>=2\.\d+[\d.]*,<2\.(\d+); python_version (<|>=) \"3\.12\""
    for end, side in re.findall(pattern, requirements, re.M):
        fitting = [python for python in pythons if (int(python.split(".")[1]) < 12) == (side == "<")]
        found[str(int(end) - 1)] = fitting
    return found


def _tests(minor: str, tested: Sequence[str]) -> str:
    if minor not in tested:
        return "one trial program"
    return "all tests" if minor == tested[0] else "all tests except Estimator's"


def _system_row(system: Any) -> list[str]:
    return [f"`{system.name}`", str(system.num_ipus), system.chip.name, system.title]


def patches() -> str:
    """Returns the page of changes to TensorFlow, Keras and Python, from the register."""
    command = [sys.executable, "-m", "tf_ipu_shim.patches"]
    # A process in the background ignores SIGINT, and the patches for Ctrl-C are not registered there.
    run = functools.partial(subprocess.run, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    printed = run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    cells = [re.split(r"(?<!\\\\) \| ", line.strip("| ")) for line in printed.splitlines() if line.startswith("| `")]
    rows = [[name, purpose, undone] for name, purpose, _, undone in cells]
    return PATCHES + "\n".join(table(["patched", "so that", "undone"], rows)) + "\n"


PAGES = {
    ROOT / "docs/contributing/patches.md": patches,
    ROOT / "docs/reference/command_line.md": command_line,
    ROOT / "docs/reference/environment_variables.md": environment_variables,
    ROOT / "docs/start/compatibility.md": compatibility,
}


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(generated_page.write_or_check_all(PAGES, __doc__, "reference"))
