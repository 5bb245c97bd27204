"""Maps arguments of the functions of `ipu.utils` before `IPUConfig` to the options that they set.

These functions (SDK 1.2 to 2.3) came before `IPUConfig`. The log, the memory report and `tf-ipu check` name the
argument that the script wrote, not the path of the option.
"""

from __future__ import annotations

from tf_ipu_shim import data_files
from tf_ipu_shim.configuration import table
from tf_ipu_shim.configuration.table import Option

_INVERTED = "!"


def _arguments() -> dict[str, dict[str, str]]:
    options: dict[str, dict[str, str]] = {}
    for row in data_files.rows(__file__, "old_functions.csv"):
        options.setdefault(row["function"], {})[row["argument"]] = row["option"]
    return options


ARGUMENTS = _arguments()
"""By function and argument: the path of the option; a leading `!` marks an argument of the opposite sense."""

POSITIONAL = frozenset(ARGUMENTS) - {"create_ipu_config", "set_report_options"}
"""Functions whose first entry comes right after the `IpuOptions` in every SDK."""


def argument_of(path: str) -> tuple[str, bool] | None:
    """Returns the argument that sets an option, and whether it has the opposite sense; None if no function sets it.

    Example:
        >>> argument_of("optimizations.enable_graph_outlining")
        ('create_ipu_config(disable_graph_outlining)', True)
    """
    for function, rows in ARGUMENTS.items():
        for argument, row in rows.items():
            if row.removeprefix(_INVERTED) == path:
                return f"{function}({argument})", row.startswith(_INVERTED)
    return None


def option_of(function: str, argument: str) -> tuple[Option, bool] | None:
    """Returns the option that an argument sets, and whether it has the opposite sense; None for any other argument.

    Example:
        >>> option_of("set_norm_options", "use_stable_statistics")[0].path
        'norms.use_stable_statistics'
    """
    path = ARGUMENTS.get(function, {}).get(argument)
    if path is None:
        return None
    name = path.removeprefix(_INVERTED)
    return next(option for option in table.OPTIONS if option.path == name), path != name
