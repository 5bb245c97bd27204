"""Parses `TF_POPLAR_FLAGS`: every flag of Graphcore's TensorFlow as one record."""

from __future__ import annotations

import dataclasses
import os
import sys
import textwrap
from typing import Any

from tf_ipu_shim.errors import UnknownFlagError
from tf_ipu_shim.machine.environment import flag_text
from tf_ipu_shim.machine.environment.effects import DEVICES, MACHINE, OUTPUT, RECORDED, RESULTS, OptionEffect

ENVIRONMENT_VARIABLE = "TF_POPLAR_FLAGS"

SYNTHETIC_DATA_CATEGORIES = ("infeed", "outfeed", "seed", "hostembedding", "parameters")
MINIMUM_POLL_MILLISECONDS = 100

RETIRED = ("add_all_reduce_copies", "dump_text_reports_to_stdio", "force_replicated_mode", "save_oom_profiler")
"""Flags of older SDKs that later ones took and ignored, saying so in the log."""
_REFUSED = ("save_interval_report", "save_vertex_graph")


def _flag(
    default: Any,
    help_text: str,
    *,
    unit: str = "",
    values: str = "",
    recompiles: bool = False,
    effect: str = RECORDED,
    why: str = "",
) -> Any:
    metadata = {
        "help": help_text,
        "unit": unit,
        "values": values,
        "recompiles": recompiles,
        "effect": OptionEffect(name="", effect=effect, meaning=why),
    }
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class PoplarFlags:
    """The flags in force. Each field has the name of its flag; `help_text()` describes the effect of each.

    Source: docs/reference/facts.md, section "TF_POPLAR_FLAGS".

    Example:
        >>> parse("--use_ipu_model --ipu_model_tiles=8").ipu_model_tiles
        8
    """

    help: bool = _flag(
        False,
        "Print this text.",
        effect=OUTPUT,
        why="the help, on stderr, when the flags are read",
    )
    use_synthetic_data: bool = _flag(
        False,
        "Use synthetic data on the IPU: nothing is moved from or to the host.",
        recompiles=True,
        effect=RESULTS,
        why="programs read synthetic data instead of feeds, seeds and host embeddings, and send none to outfeeds: "
        "Keras' metrics and predictions are zeros",
    )
    synthetic_data_categories: frozenset[str] = _flag(
        frozenset(),
        "Make up only these kinds of data on the IPU.",
        values="comma-separated: " + ", ".join(SYNTHETIC_DATA_CATEGORIES),
        recompiles=True,
        effect=RESULTS,
        why="the same, for some kinds of data; parameters keep the script's values",
    )
    synthetic_data_initializer: str = _flag(
        "",
        "How synthetic data is initialized. Needs use_synthetic_data or synthetic_data_categories.",
        values="random, uniform, normal or a whole number",
        recompiles=True,
        effect=RESULTS,
        why="what synthetic data are",
    )
    use_ipu_model: bool = _flag(
        False,
        "Run on the IPU Model instead of on IPUs.",
        recompiles=True,
        effect=DEVICES,
        why="no IPUs are attached, and the chip is that of `ipu_model`. Programs compute float16 in float32",
    )
    log_cycle_count: int = _flag(
        -1,
        "Log the cycles that each run of the main program took on this tile.",
        unit="tile",
        recompiles=True,
        why="nothing is logged: modelled cycles are in profiles (`autoReport.all`)",
    )
    while_loop_brute_force_max_trip_count: int = _flag(
        128,
        "How far to follow a while loop when counting its trips at compile time.",
        unit="trips",
        recompiles=True,
        why="loops whose trips are not known run as well",
    )
    max_compilation_threads: int = _flag(
        -1,
        "Threads to compile with; -1 is as many as Poplar likes.",
        unit="threads",
        why="TensorFlow's own threads compile",
    )
    max_infeed_threads: int = _flag(
        -1,
        "Threads that feed infeed queues; -1 means no limit.",
        unit="threads",
        why="an infeed has one thread",
    )
    executable_cache_path: str = _flag(
        "",
        "Directory in which compiled programs are kept.",
        values="a path",
        effect=OUTPUT,
        why="lowered programs and their memory plans are files there, one a program; XLA compiles in each process",
    )
    dump_schedule_as_dot: bool = _flag(
        False,
        "Write the schedule as a graph in the DOT language.",
        effect=OUTPUT,
        why="the memory model's order of steps, of each program that is compiled, on stderr",
    )
    tensor_map_file_path: str = _flag(
        "",
        "Directory for the mapping of tensors to tiles.",
        values="a path",
        effect=OUTPUT,
        why="a JSON file for each program that is compiled: its tensors, by the model's linear mapping",
    )
    fallback_scheduler: bool = _flag(
        False,
        "Schedule with TensorFlow's own scheduler.",
        recompiles=True,
        why="the memory model has one schedule",
    )
    allow_nans: bool = _flag(
        False,
        "Let constant folding go on past NaNs.",
        recompiles=True,
        why="XLA folds constants past NaNs anyway",
    )
    null_data_feed: bool = _flag(
        False,
        "Feed queues with uninitialised memory instead of the dataset's elements.",
        effect=RESULTS,
        why="infeeds give zeros and take nothing from their datasets",
    )
    show_progress_bar: str = _flag(
        "auto",
        "Show how far a compilation is; auto shows it on a terminal.",
        values="true, false or auto",
        effect=OUTPUT,
        why="the bar on stderr",
    )
    use_on_demand: bool = _flag(
        False,
        "Attach to IPUs when they are first used, whatever the configuration says.",
        effect=DEVICES,
        why="when they are attached",
    )
    on_demand_device_poll_time: int = _flag(
        1000,
        f"Time between two tries to attach; at least {MINIMUM_POLL_MILLISECONDS}.",
        unit="milliseconds",
        effect=DEVICES,
        why="when they are attached",
    )
    on_demand_device_timeout: int = _flag(
        3_600_000,
        "Time after which trying to attach fails.",
        unit="milliseconds",
        effect=DEVICES,
        why="how long a program waits for them",
    )
    ipu_model_tiles: int = _flag(
        -1,
        "Tiles of the IPU Model where the configuration names none; -1 is all.",
        unit="tiles",
        recompiles=True,
        effect=MACHINE,
        why="tiles, with --use_ipu_model",
    )
    sync_replica_start: bool = _flag(
        False,
        "Let all replicas begin a run together.",
        recompiles=True,
        why="replicas meet at their collectives; beginning together changes no value",
    )
    enable_hlo_verifier: bool = _flag(
        False,
        "Check the program after every compiler pass.",
        why="none of Graphcore's compiler passes runs here",
    )
    disable_poplar_version_check: bool = _flag(
        False,
        "Load programs from the cache that another Poplar version compiled.",
        recompiles=True,
        why="programs are compiled in the process that runs them",
    )
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
        return tuple(
            (field.name, tuple(sorted(value)) if isinstance(value, frozenset) else value)
            for field in dataclasses.fields(self)
            if field.metadata.get("recompiles")
            for value in [getattr(self, field.name)]
        )


def parse(text: str) -> PoplarFlags:
    """Reads flags in the form of `TF_POPLAR_FLAGS`: `--name=value`, or `--name` for one that is on or off.

    The last of repeated flags counts. Text that does not begin with a dash is the name of a file with the flags, as in
    TensorFlow's flag variables.

    Example:
        >>> parse("--use_synthetic_data=true").use_synthetic_data
        True
    """
    fields = _fields()
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
        elif name not in fields:
            raise flag_text.unknown(name, list(fields), ENVIRONMENT_VARIABLE)
        else:
            values[name] = (_READERS.get(name) or _READERS[type(fields[name].default).__name__])(name, value)
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


def _fields() -> dict[str, dataclasses.Field[Any]]:
    return {field.name: field for field in dataclasses.fields(PoplarFlags) if "help" in field.metadata}


def help_text() -> str:
    """Returns the text of `--help`: each flag with its values, unit, default and meaning."""
    lines = [f"Flags in {ENVIRONMENT_VARIABLE}, separated by blanks:"]
    for field in _fields().values():
        default = "" if isinstance(field.default, frozenset) else field.default
        kind = {"bool": "true or false", "int": "a whole number"}.get(type(field.default).__name__, "")
        facts = [field.metadata["values"] or kind, field.metadata["unit"]]
        shown = str(default).lower() if isinstance(default, bool) else str(default)
        facts.append(f"default {shown}" if shown else "unset by default")
        lines.append(f"  --{field.name}  ({'; '.join(fact for fact in facts if fact)})")
        lines += textwrap.wrap(field.metadata["help"], 110, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join(lines)


def effects() -> tuple[OptionEffect, ...]:
    """Returns the effect of each flag, including retired ones.

    Example:
        >>> next(flag for flag in effects() if flag.name == "ipu_model_tiles").effect
        'changes the chip'
    """
    flag_effects = [dataclasses.replace(field.metadata["effect"], name=name) for name, field in _fields().items()]
    old = [OptionEffect(name=name, effect=RECORDED, meaning="newer SDKs take it and ignore it") for name in RETIRED]
    return (*flag_effects, *old)


def set_flags_without_effect(flags: PoplarFlags) -> dict[str, Any]:
    """Returns the flags that have another value than their default and that change nothing here, with that value."""
    names = [flag.name for flag in effects() if flag.effect == RECORDED and flag.name in _fields()]
    changed = {name: getattr(flags, name) for name in names if getattr(flags, name) != _fields()[name].default}
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
