"""Compares two profiles and ranks the changes."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tf_ipu_shim.profiling import reader
from tf_ipu_shim.profiling.allocation_names import stable_name
from tf_ipu_shim.profiling.profile import Profile, parse_facts
from tf_ipu_shim.profiling.timeline_layout import lay_out_timeline
from tf_ipu_shim.profiling.writer import FILE


class Change(NamedTuple):
    """A figure of both profiles.

    Args:
        before: in the first one.
        line: the user's, of an op; empty if it is not known.
    """

    name: str
    before: float
    after: float
    line: str = ""

    @property
    def more(self) -> float:
        """The growth between the two profiles."""
        return self.after - self.before


class Comparison(NamedTuple):
    """A program in two profiles.

    Figures of categories, kinds, ops and lines are sums over all IPUs; bytes are counted at the largest step of each.
    Ops and lines that are the same have no entry; the others are sorted by change, the largest first.

    Args:
        facts: the facts and options that differ, as text: before and after.
        fullest: bytes of the IPU that has the most.
        fits: whether it fits, before and after.
        ipus: bytes of each IPU.
        categories: bytes by category.
        kinds: cycles by kind of work.
        op_cycles: cycles by op.
        op_bytes: bytes by owner.
        line_cycles: cycles by the user's line.
        line_bytes: bytes by the user's line.
    """

    program: str
    facts: dict[str, tuple[str, str]]
    cycles: Change
    fullest: Change
    fits: tuple[bool, bool]
    ipus: list[Change]
    categories: list[Change]
    kinds: list[Change]
    op_cycles: list[Change]
    op_bytes: list[Change]
    line_cycles: list[Change]
    line_bytes: list[Change]


_COMPARED = {
    "chip_title": "chip",
    "ipus": "IPUs",
    "ipus_per_replica": "IPUs of a replica",
    "replicas": "replicas",
    "tiles_per_ipu": "tiles of an IPU",
    "sdk": "SDK",
    "execution_mode": "runs on the host by",
}
"""Facts that are compared, in words."""


def profiles_in(path: str | pathlib.Path) -> dict[str, Profile]:
    """Returns the profiles of a file or folder by program; of several with one name each has its number."""
    folder = pathlib.Path(path)
    inside = sorted(folder_path for folder_path in folder.glob(f"*/{FILE}")) if folder.is_dir() else []
    if (folder / FILE).is_file() or not inside:
        inside = [folder]
    profiles: dict[str, Profile] = {}
    seen: dict[str, int] = {}
    for folder_path in inside:
        profile = reader.read_profile(folder_path)
        name = parse_facts(profile)["program"]
        seen[name] = seen.get(name, 0) + 1
        profiles[name if seen[name] == 1 else f"{name} #{seen[name]}"] = profile
    return profiles


class PairedProfiles(NamedTuple):
    """Programs of two sides.

    Args:
        removed: names that only the first side has.
        new: names that only the second side has.
    """

    programs: list[Comparison]
    removed: list[str]
    new: list[str]


def pair_profiles(before: Mapping[str, Profile], after: Mapping[str, Profile]) -> PairedProfiles:
    """Compares programs of both sides by name; two single ones are a pair in any case."""
    if len(before) == len(after) == 1:
        (name,) = after
        return PairedProfiles([compare_profiles(name, next(iter(before.values())), after[name])], [], [])
    both = [compare_profiles(name, before[name], after[name]) for name in after if name in before]
    return PairedProfiles(
        both, [name for name in before if name not in after], [name for name in after if name not in before]
    )


def compare_profiles(program: str, before: Profile, after: Profile) -> Comparison:
    """Puts two profiles side by side.

    Example:
        >>> none = Profile([], [], [], [], [], [], [], [])
        >>> compare_profiles("train", none, none).cycles.more
        0
    """
    old, new = parse_facts(before), parse_facts(after)
    lines_before, lines_after = _lines(before), _lines(after)
    cycles_before, cycles_after = _cycles_by_op(before), _cycles_by_op(after)
    bytes_before, bytes_after = _bytes_by_owner(before), _bytes_by_owner(after)
    ipus_before, ipus_after = _bytes_by_ipu(before), _bytes_by_ipu(after)
    lines = {**lines_before, **lines_after}
    return Comparison(
        program=program,
        facts=_different_facts(before, after),
        cycles=Change("cycles", old.get("cycles", 0), new.get("cycles", 0)),
        fullest=Change("bytes", max(ipus_before.values(), default=0), max(ipus_after.values(), default=0)),
        fits=(bool(old.get("fits", True)), bool(new.get("fits", True))),
        ipus=_find_changes(ipus_before, ipus_after),
        categories=_sort_by_size(_find_changes(_bytes_by_category(before), _bytes_by_category(after))),
        kinds=_sort_by_size(_find_changes(_cycles_by_kind(before), _cycles_by_kind(after))),
        op_cycles=_drop_unchanged(_find_changes(cycles_before, cycles_after, lines)),
        op_bytes=_drop_unchanged(_find_changes(bytes_before, bytes_after, lines)),
        line_cycles=_drop_unchanged(
            _find_changes(_by_line(cycles_before, lines_before), _by_line(cycles_after, lines_after))
        ),
        line_bytes=_drop_unchanged(
            _find_changes(_by_line(bytes_before, lines_before), _by_line(bytes_after, lines_after))
        ),
    )


def _different_facts(before: Profile, after: Profile) -> dict[str, tuple[str, str]]:
    """Facts and options that are not the same."""
    sides = []
    for profile in (before, after):
        facts = parse_facts(profile)
        sides.append({words: str(facts[name]) for name, words in _COMPARED.items() if name in facts})
        sides[-1].update((row.name, row.value) for row in profile.options if row.name != "autoReport.directory")
    names = dict.fromkeys([*sides[0], *sides[1]])
    return {
        name: (sides[0].get(name, "-"), sides[1].get(name, "-"))
        for name in names
        if sides[0].get(name) != sides[1].get(name)
    }


def _lines(profile: Profile) -> dict[str, str]:
    rows = [(row.op or row.name, row.line) for row in profile.programs]
    rows += [(stable_name(row.kind, row.name), row.line) for row in profile.variables]
    return {name: line for name, line in rows if line}


def _bytes_by_ipu(profile: Profile) -> dict[str, float]:
    return {f"IPU {row.ipu}": row.always_live_bytes + row.not_always_live_bytes for row in profile.ipus}


def _bytes_by_category(profile: Profile) -> dict[str, float]:
    return _sum_by_key(pair for row in profile.ipus for pair in json.loads(row.categories).items() if pair[1])


def _cycles_by_kind(profile: Profile) -> dict[str, float]:
    return _sum_by_key(
        (event.row.kind, event.row.cycles * event.times * _ipu_names(event.row.ipus))
        for event in lay_out_timeline(profile)[0]
    )


def _cycles_by_op(profile: Profile) -> dict[str, float]:
    return _sum_by_key(
        (event.row.op or event.row.name, event.row.cycles * event.times * _ipu_names(event.row.ipus))
        for event in lay_out_timeline(profile)[0]
    )


def _bytes_by_owner(profile: Profile) -> dict[str, float]:
    """Bytes at the largest step of each IPU, by owner."""
    largest: dict[int, tuple[int, int]] = {}
    for row in profile.liveness:
        if row.bytes > largest.get(row.ipu, (-1, 0))[0]:
            largest[row.ipu] = (row.bytes, row.step)
    return _sum_by_key(
        (stable_name(variable.kind, variable.name), variable.bytes)
        for variable in profile.variables
        if variable.always or variable.first <= largest.get(variable.ipu, (0, -1))[1] <= variable.last
    )


def _by_line(figures: Mapping[str, float], lines: Mapping[str, str]) -> dict[str, float]:
    return _sum_by_key((lines[name], figure) for name, figure in figures.items() if name in lines)


def _ipu_names(ipus: str) -> int:
    return len(json.loads(ipus))


def _sum_by_key(pairs: Iterable[tuple[str, float]]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for name, figure in pairs:
        sums[name] = sums.get(name, 0) + figure
    return sums


def _find_changes(
    before: Mapping[str, float], after: Mapping[str, float], lines: Mapping[str, str] | None = None
) -> list[Change]:
    names = dict.fromkeys([*after, *before])
    return [Change(name, before.get(name, 0), after.get(name, 0), (lines or {}).get(name, "")) for name in names]


def _sort_by_size(changes: Iterable[Change]) -> list[Change]:
    return sorted(changes, key=lambda change: (-max(change.before, change.after), change.name))


def _drop_unchanged(changes: Iterable[Change]) -> list[Change]:
    return sorted((change for change in changes if change.more), key=lambda changed: (-abs(changed.more), changed.name))
