"""`tf-ipu profile`: converts profiles to HTML pages, traces and text summaries."""

from __future__ import annotations

import argparse
import glob
import json
import os
import pathlib
import sys
import webbrowser
from collections.abc import Iterable, Iterator

from tf_ipu_shim.cli import tensorboard
from tf_ipu_shim.cli.output import formats, sizes, terminal
from tf_ipu_shim.machine.environment import log_level
from tf_ipu_shim.machine.memory.byte_text import format_bytes
from tf_ipu_shim.profiling import page, reader, trace, writer
from tf_ipu_shim.profiling.profile import Profile, parse_facts


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the options."""
    parser.add_argument(
        "profiles",
        metavar="PROFILE",
        nargs="+",
        help="profile.pop files, their folders, directories of folders, or globs",
    )
    formats.add_argument(parser)
    sizes.add_arguments(parser, 10, "longest compute sets")
    parser.add_argument("--html", metavar="FILE", help="write a page to look at in a browser, for each program")
    parser.add_argument(
        "--trace", metavar="FILE", help="write a trace for chrome://tracing or Perfetto, for each program"
    )
    parser.add_argument("--tensorboard", metavar="LOGDIR", help="write the trace where TensorBoard's profiler finds it")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def run(arguments: argparse.Namespace) -> int:
    """Prints each program at a glance, writes the requested outputs, and names the files."""
    sizes.apply(arguments)
    try:
        profiles = {path: reader.read_profile(path) for path in find_profiles(arguments.profiles)}
    except (FileNotFoundError, ValueError) as error:
        print(f"tf-ipu profile: {error}", file=sys.stderr)
        return 2
    for name, (path, profile) in zip(_unique_names(profiles.values()), profiles.items()):
        _write_files(arguments, path, profile, name if len(profiles) > 1 else "")
        if arguments.format == formats.TEXT:
            terminal.show("\n".join(_format_summary(writer.summarize(profile), arguments.top)))
    if arguments.format == formats.JSON:
        print(formats.to_json([writer.summarize(profile) for profile in profiles.values()]))
    return 0


def find_profiles(paths: Iterable[str]) -> list[pathlib.Path]:
    """Returns the profiles of files, folders, directories of folders, and globs, each once.

    Example:
        >>> find_profiles(["missing/profile.pop"])
        [PosixPath('missing/profile.pop')]
    """
    profile_paths: dict[pathlib.Path, None] = {}
    for argument in paths:
        matching = [argument] if os.path.exists(argument) else sorted(glob.glob(argument))
        for path in map(pathlib.Path, matching or [argument]):
            inside = [] if (path / reader.FILE).is_file() else sorted(path.glob(f"*/{reader.FILE}"))
            profile_paths.update(dict.fromkeys([file.parent for file in inside] or [path]))
    return list(profile_paths)


def _unique_names(profiles: Iterable[Profile]) -> Iterator[str]:
    """Yields a name for each program's files; of several with one name the later ones have numbers."""
    seen: dict[str, int] = {}
    for profile in profiles:
        name = str(parse_facts(profile)["program"]).replace("/", "_")
        seen[name] = seen.get(name, 0) + 1
        yield name if seen[name] == 1 else f"{name}_{seen[name]}"


def _write_files(arguments: argparse.Namespace, path: pathlib.Path, profile: Profile, name: str) -> None:
    folder = path if path.is_dir() else path.parent
    html = arguments.html or (str(folder / "profile.html") if arguments.open else None)
    if html:
        file = _named(html, name if arguments.html else "")
        file.write_text(page.render_page(profile, reader.read_runs(path)))
        print(f"Page: {file}", file=sys.stderr)
        if arguments.open:
            webbrowser.open(file.absolute().as_uri())
    if arguments.trace:
        file = _named(arguments.trace, name)
        file.write_text(json.dumps(trace.make_trace(profile)))
        print(f"Trace: {file}", file=sys.stderr)
    if arguments.tensorboard:
        os.environ.setdefault(log_level.TENSORFLOW, "2")  # what it says of the processor while it is imported
        print(f"Trace: {tensorboard.write_log(profile, arguments.tensorboard)}", file=sys.stderr)


def _named(file: str, name: str) -> pathlib.Path:
    """Returns a file for one of several programs: `page.html` becomes `page.train.html`."""
    path = pathlib.Path(file)
    return path.with_name(f"{path.stem}.{name}{path.suffix}") if name else path


def _format_summary(summary: dict[str, object], top: int) -> list[str]:
    facts = json.loads(json.dumps(summary))
    milliseconds = facts["cycles"] / facts["clock_hz"] * 1e3
    lines = [
        f"{facts['program']}: {facts['cycles']:,} cycles a run, about {milliseconds:.3g} ms "
        f"on {facts['ipus']} x {facts['chip_title']}; {'fits' if facts['fits'] else 'does NOT fit'}"
    ]
    for ipu in facts["by_ipu"]:
        used = ipu["always_live_bytes"] + ipu["not_always_live_bytes"]
        lines.append(f"  IPU {ipu['ipu']}: {format_bytes(used)}, busy for {ipu['busy_cycles']:,.0f} cycles")
    lines.append("  longest compute sets:")
    for compute_set in facts["longest_compute_sets"][:top]:
        lines.append(f"  {compute_set['cycles'] * compute_set['runs']:>16,.0f} cycles  {compute_set['name']}")
    return lines
