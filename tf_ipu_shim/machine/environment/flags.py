"""Parses `TF_POPLAR_FLAGS`: Graphcore's flags as one record; `flags.csv` has the effect of each."""

from __future__ import annotations

import dataclasses
import functools
import os
import sys
import textwrap
from typing import Any

from tf_ipu_shim import data_files
from tf_ipu_shim.errors import UnknownFlagError
from tf_ipu_shim.machine.environment import flag_text
from tf_ipu_shim.machine.environment.effects import RECORDED, OptionEffect

ENVIRONMENT_VARIABLE = "TF_POPLAR_FLAGS"

SYNTHETIC_DATA_CATEGORIES = ("infeed", "outfeed", "seed", "hostembedding", "parameters")
MINIMUM_POLL_MILLISECONDS = 100

RETIRED = ("add_all_reduce_copies", "dump_text_reports_to_stdio", "force_replicated_mode", "save_oom_profiler")
"""Flags of older SDKs that later ones accept and ignore, with a line in the log."""
_REFUSED = ("save_interval_report", "save_vertex_graph")


@dataclasses.dataclass(frozen=True, kw_only=True)
class PoplarFlags:
    """The flags in force. Each field has the name of its flag; `help_text()` describes the effect of each.

    Source: docs/reference/facts.md, section "TF_POPLAR_FLAGS".

    Example:
        >>> parse("--use_ipu_model --ipu_model_tiles=8").ipu_model_tiles
        8
    """

    help: bool = False
    use_synthetic_data: bool = False
    synthetic_data_categories: frozenset[str] = frozenset()
    synthetic_data_initializer: str = ""
    use_ipu_model: bool = False
    log_cycle_count: int = -1
    while_loop_brute_force_max_trip_count: int = 128
    max_compilation_threads: int = -1
    max_infeed_threads: int = -1
    executable_cache_path: str = ""
    dump_schedule_as_dot: bool = False
    tensor_map_file_path: str = ""
    fallback_scheduler: bool = False
    allow_nans: bool = False
    null_data_feed: bool = False
    show_progress_bar: str = "auto"
    use_on_demand: bool = False
    on_demand_device_poll_time: int = 1000
    on_demand_device_timeout: int = 3_600_000
    ipu_model_tiles: int = -1
    sync_replica_start: bool = False
    enable_hlo_verifier: bool = False
    disable_poplar_version_check: bool = False
    without_effect: tuple[str, ...] = ()
    """Retired flags that were given; not a flag itself."""

    def is_synthetic(self, category: str) -> bool:
        """Returns whether data of this kind is synthetic: created on the IPU, so that none is moved.

        Example:
            >>> parse("--synthetic_data_categories=infeed").is_synthetic("outfeed")
            False
        """
        if category not in SYNTHETIC_DATA_CATEGORIES:
            raise ValueError(
                f"There is no synthetic data category {category!r}. Use one of: {', '.join(SYNTHETIC_DATA_CATEGORIES)}."
            )
        return self.use_synthetic_data or category in self.synthetic_data_categories

    @property
    def poll_seconds(self) -> float:
        """Time between two tries to attach on demand, seconds, with the least allowed time applied."""
        return max(self.on_demand_device_poll_time, MINIMUM_POLL_MILLISECONDS) / 1000

    @property
    def timeout_seconds(self) -> float:
        """Time after which attaching on demand fails, seconds."""
        return self.on_demand_device_timeout / 1000

    @property
    def compilation_key(self) -> tuple[tuple[str, Any], ...]:
        """The flags that make a compiled program another one: part of an executable cache's key.

        Source: docs/reference/facts.md, section "TF_POPLAR_FLAGS".
        """
        values = ((name, getattr(self, name)) for name, row in _rows().items() if row["recompiles"])
        return tuple((name, tuple(sorted(value)) if isinstance(value, frozenset) else value) for name, value in values)


@functools.cache
def _rows() -> dict[str, dict[str, str]]:
    """Returns the row of each flag by its name."""
    return {row["flag"]: row for row in data_files.rows(__file__, "flags.csv")}


def parse(text: str) -> PoplarFlags:
    """Reads flags in the form of `TF_POPLAR_FLAGS`: `--name=value`, or `--name` for one that is on or off.

    The last of repeated flags counts. Text that does not begin with a dash is the name of a file with the flags, as in
    TensorFlow's flag variables.

    Example:
        >>> parse("--use_synthetic_data=true").use_synthetic_data
        True
    """
    values: dict[str, Any] = {}
    retired: list[str] = []
    for name, value in flag_text.split(text, ENVIRONMENT_VARIABLE):
        if name in RETIRED:
            retired.append(name)
        elif name in _REFUSED:
            raise UnknownFlagError(
                f"{ENVIRONMENT_VARIABLE} holds --{name}, but a simulated IPU has no vertices and no intervals to write "
                "down. Newer SDKs do not have this flag either: leave it out."
            )
        elif name not in _DEFAULTS:
            raise flag_text.unknown(name, list(_DEFAULTS), ENVIRONMENT_VARIABLE)
        else:
            values[name] = (_READERS.get(name) or _READERS[type(_DEFAULTS[name]).__name__])(name, value)
    flags = PoplarFlags(**values, without_effect=tuple(dict.fromkeys(retired)))
    if flags.synthetic_data_initializer and not (flags.use_synthetic_data or flags.synthetic_data_categories):
        raise flag_text.bad_value(
            "synthetic_data_initializer",
            flags.synthetic_data_initializer,
            "use_synthetic_data or synthetic_data_categories, which turn on synthetic data",
        )
    return flags


def current() -> PoplarFlags:
    """Returns the current flags in `TF_POPLAR_FLAGS`; scripts change it while they run.

    Example:
        >>> current().while_loop_brute_force_max_trip_count
        128
    """
    global _last
    setting = os.environ.get(ENVIRONMENT_VARIABLE, "")
    known_text, flags = _last
    if setting != known_text:
        flags = parse(setting)
        # The contents of a file may change without its name, so only flags given in the variable are kept.
        if not flag_text.is_file_name(setting):
            _last = (setting, flags)
        if flags.help:
            print(help_text(), file=sys.stderr, flush=True)
    return flags


_last: tuple[str, PoplarFlags] = ("", PoplarFlags())
_DEFAULTS = {field.name: field.default for field in dataclasses.fields(PoplarFlags) if field.name != "without_effect"}


def help_text() -> str:
    """Returns the text of `--help`: each flag with its values, unit, default and meaning."""
    lines = [f"Flags in {ENVIRONMENT_VARIABLE}, separated by blanks:"]
    for name, row in _rows().items():
        default = "" if isinstance(_DEFAULTS[name], frozenset) else _DEFAULTS[name]
        kind = {"bool": "true or false", "int": "a whole number"}.get(type(_DEFAULTS[name]).__name__, "")
        facts = [row["values"] or kind, row["unit"]]
        shown = str(default).lower() if isinstance(default, bool) else str(default)
        facts.append(f"default {shown}" if shown else "unset by default")
        lines.append(f"  --{name}  ({'; '.join(fact for fact in facts if fact)})")
        lines += textwrap.wrap(row["help"], 110, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines)


def effects() -> tuple[OptionEffect, ...]:
    """Returns the effect of each flag, including retired ones.

    Example:
        >>> next(flag for flag in effects() if flag.name == "ipu_model_tiles").effect
        'changes the chip'
    """
    flag_effects = [
        OptionEffect(name=name, effect=row["effect"], meaning=row["meaning"]) for name, row in _rows().items()
    ]
    old = [OptionEffect(name=name, effect=RECORDED, meaning="newer SDKs accept it and ignore it") for name in RETIRED]
    return (*flag_effects, *old)


def set_flags_without_effect(flags: PoplarFlags) -> dict[str, Any]:
    """Returns the flags that differ from their default and have no effect, with their value."""
    names = [flag.name for flag in effects() if flag.effect == RECORDED and flag.name in _DEFAULTS]
    changed = {name: getattr(flags, name) for name in names if getattr(flags, name) != _DEFAULTS[name]}
    return {**changed, **dict.fromkeys(flags.without_effect, True)}


def _categories(name: str, value: str | None) -> frozenset[str]:
    categories_text = flag_text.string(name, value)
    received = [part.strip() for part in categories_text.split(",") if part.strip()]
    for part in received:
        if part not in SYNTHETIC_DATA_CATEGORIES:
            raise flag_text.bad_value(name, part, "one or more of: " + ", ".join(SYNTHETIC_DATA_CATEGORIES))
    return frozenset(received)


def _initializer(name: str, value: str | None) -> str:
    """Returns the kind of data, or a number's integer part, the only part that counts."""
    initializer = flag_text.string(name, value)
    if initializer in ("", "random", "uniform", "normal"):
        return initializer
    try:
        return str(int(float(initializer)) if "." in initializer else int(initializer))
    except (ValueError, OverflowError):
        raise flag_text.bad_value(name, initializer, "random, uniform, normal or a whole number") from None


def _progress_bar(name: str, value: str | None) -> str:
    if value not in ("true", "false", "auto"):
        raise flag_text.bad_value(name, value, "true, false or auto")
    return value


_READERS: dict[str, Any] = {
    "bool": flag_text.boolean,
    "int": flag_text.integer,
    "str": flag_text.string,
    "synthetic_data_categories": _categories,
    "synthetic_data_initializer": _initializer,
    "show_progress_bar": _progress_bar,
}
