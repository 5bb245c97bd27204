"""Writes the pages of results in docs, from the data files in `validation`.

python tools/generate_results.py          writes the pages
python tools/generate_results.py --check  ends with status 1 if a page is out of date
"""

from __future__ import annotations

import csv
import pathlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

import generated_page

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from benchmarks.calibration import report
from benchmarks.calibration import rows as calibration

_UNITS = {"x": "ratio"}
ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "validation"
Row = dict[str, str]

BENCHMARKS = """# Benchmarks

Times of programs on simulated IPUs, next to the same work on stock TensorFlow. The unit "ratio" divides our time by the
baseline's. A figure in another unit is the time we need in addition. Below the target is good.

```
python -m benchmarks --only one_ipu --json results.json
python -m benchmarks.rows results.json >> validation/benchmarks.csv
make results
```

{measured} of {rows} figures have a target, and {met} of these meet it. Figures are medians with their quartiles in
brackets. Both sides are checked for equal outputs before they are timed, if they have outputs. Machine: {machines}.
Date, command and commit of each figure are in `validation/benchmarks.csv`; the analysis of causes is in
`validation/findings.csv`. [Make programs fast](../how_to/run/performance.md) says what to do.

"""

APPLICATIONS = """# Applications

Graphcore's applications and third-party programs that were run on simulated IPUs, with small sizes and synthetic data.

```
tf-ipu check train.py --steps 1
```

This command checks your own script ([Check a script](../how_to/port/porting_report.md)).
Of {count} programs: {summary}.

- **passes**: trains, infers or exports to its end, unchanged unless the last column says otherwise.
- **partly**: one part, named in the last column, does not run.
- **timed out**: runs until the time limit.
- **refused**: uses something that is not supported.
- **stops**: ends with another error.
- **not run**: a package was not installed.

Commands, versions, dates and complete results are in `validation/programs.csv`.
[Find why a program cannot run](../how_to/port/unsupported_programs.md) explains the causes.

"""

CONFORMANCE = """# Conformance

How many of Graphcore's published tests, examples and tutorials pass unchanged on this package. A harness outside of
this repository runs them.

```
kit run fork --select unit --verdict core --tree tf/r2.6-3.4
```

[Run Graphcore's tests](../contributing/run_conformance.md) has the commands. Tests of kind "core" need no hardware
or profile.
Those of kind "hw" need hardware at Graphcore; here they run on simulated IPUs. "report" tests read a profile. A file
that cannot be imported counts as one failed test, and a timeout as a failure. Skipped tests are left out. Rows with the
same name are runs of different sets of files.

Dates and commands are in `validation/conformance.csv` and `conformance_runs.csv`. Each failure with its cause is in
`conformance_failures.csv`; `conformance_causes.csv` has causes with counts of earlier runs. Tests that read a profile
fail where it has other bytes or names, as Poplar's layouts are not published: `profile_deviations.csv` has the ratios.
Comparisons with the wheels of TensorFlow 1.15 and 2.6 are in `legacy_comparison.csv`. [Find why a program cannot
run](../how_to/port/unsupported_programs.md) explains the causes.

"""

SOAK = """# Soak

Runs for hours with random programs, ops, threads, signals and sanitizers, with the number of wrong results. A result is
wrong if it differs from stock TensorFlow's, or if a process crashes, hangs or leaks memory.

```
make soak SOAK_ARGS="--only slices --compared 24 --table validation/soak.csv"
make results
```

The newest run is the last one of a part on a version of TensorFlow. Programs that are "refused" end with the same
class of error in every execution mode, in words about the script.

Dates, commands and remarks are in `validation/soak.csv` and `validation/soak_runs.csv`. Outcomes of all ops are in
`validation/op_comparison.csv`. [Soak-test a change](../contributing/reliability.md) shows how to run a part.

"""


ACCURACY = """# Accuracy

How modelled figures compare with published ones. A ratio is the modelled figure divided by the published one.

```
make results
```

For cycles, a ratio below 1 means that the model is too fast. For throughput and speed-up, it means that the model is
too slow. Only rows that judge the model are listed; `validation/published.csv` has all rows, with source and command.

Training programs follow Graphcore's examples, with SGD instead of LAMB and without dropout. The stencil copies edges on
each tile before and after an exchange, which is not modelled. [Cycle model](../explanation/machine_model.md) says what
is modelled.

"""

CALIBRATION = """## Whole programs

`python -m benchmarks.calibration` prints these tables. With `--write` it first runs the rows that are of an older
model, and resumes a run. The data is in `validation/model/`; all rows are of one model. A ratio above 1 means that the
model promises too much, for memory that it counts too much. A bar is the factor that holds for nine of ten rows of a
regime.

Each row has a role. A number of the model is fitted to a row of role `fit`: such a row judges nothing, and its bar
stands apart. Mechanisms were chosen with a row of role `seen` in sight. A row of role `test` was found afterwards. To
leave a publication out, the bar of all others is tried on its rows.

`tf-ipu fit` and reports on memory print a bar with their figures. It is the one of rows without fitted numbers, rounded
up. Programs limited by links, or by plans for short memory, get the bar of compute-bound ones: `tf-ipu fit` does not
tell them apart.

"""


def rows(name: str) -> list[Row]:
    """Returns the rows of a data file."""
    with (DATA / name).open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def table(header: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """Returns a table in Markdown."""
    titles = list(header)
    text = [titles, ["---"] * len(titles), *([cell.replace("|", "\\|") for cell in line] for line in lines)]
    return "\n".join("| " + " | ".join(line) + " |" for line in text) + "\n"


def accuracy() -> str:
    """Returns the page of published figures: a summary by group, then each row that judges the model."""
    judging = [row for row in rows("published.csv") if row["role"].startswith("judges")]
    groups: dict[str, list[float]] = {}
    for row in judging:
        groups.setdefault(row["group"], []).append(float(row["ratio"]))
    summary = [
        (group, str(len(ratios)), f"{min(ratios):.2f}", f"{max(ratios):.2f}") for group, ratios in groups.items()
    ]
    columns = ("group", "figure", "published", "ours", "unit", "ratio")
    return (
        ACCURACY
        + table(["group", "rows that judge", "smallest ratio", "largest ratio"], summary)
        + "\n## All figures\n\n"
        + table(
            ["group", "figure", "published", "modelled", "unit", "ratio"],
            ([row[name] for name in columns] for row in judging),
        )
        + "\n"
        + _calibration()
    )


def _calibration() -> str:
    """Returns the calibration's part of the page: bars by regime, SDK and system, verdicts, and each row."""
    figures, published = calibration.modelled(), calibration.published()
    bars = report.fitted_bars(figures)
    text = CALIBRATION
    for name, key in report.KEYS.items():
        text += table([name, *report.BAR_HEAD], report.bar_lines(published, figures, key)) + "\n"
    lines = [[*report.line_of(row, figures[row.case, row.figure], bars), row.role, row.reason] for row in published]
    numbers = [line for row, line in zip(published, lines) if not row.is_verdict]
    verdicts = [line for row, line in zip(published, lines) if row.is_verdict]
    header = ["program", "figure", "published", "modelled"]
    text += (
        table([*header, "ratio", "bar", "printed bar", "role", "reason of rows outside their bar"], numbers)
        + "\n## Verdicts\n\n"
    )
    return text + table(["program", "published", "modelled", "agrees"], ([line[0], *line[2:5]] for line in verdicts))


def benchmarks() -> str:
    """Returns the page of benchmarks."""
    found = rows("benchmarks.csv")
    verdicts = Counter(row["verdict"] for row in found)
    versions = sorted({row["tensorflow"] for row in found}, key=_as_numbers)
    header = BENCHMARKS.format(
        rows=len(found),
        measured=verdicts["met"] + verdicts["missed"],
        met=verdicts["met"],
        machines="; ".join(dict.fromkeys(row["machine"] for row in found)),
    )
    return header + table(["benchmark", "baseline", "unit", "target", *versions], _benchmark_lines(found, versions))


def _as_numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".") if part.isdigit()]


def _benchmark_lines(found: list[Row], versions: list[str]) -> Iterator[list[str]]:
    by_name: dict[tuple[str, str], dict[str, Row]] = {}
    for row in found:  # a later row of the same benchmark replaces an earlier one
        by_name.setdefault((row["benchmark"], row["name"]), {})[row["tensorflow"]] = row
    for (_, name), by_version in by_name.items():
        one = next(iter(by_version.values()))
        figures = [_figure(by_version[version]) if version in by_version else "" for version in versions]
        yield [
            name.partition(", against ")[0],
            one["baseline"],
            _UNITS.get(one["unit"], one["unit"]),
            one["target"],
            *figures,
        ]


def _figure(row: Row) -> str:
    text = row["figure"]
    if row["low"]:
        text += f" ({row['low']} to {row['high']})"
    return f"{text}, missed" if row["verdict"] == "missed" else text


def applications() -> str:
    """Returns the page of applications."""
    found = rows("programs.csv")
    statuses = Counter(row["status"] for row in found)
    summary = ", ".join(f"{status} {count}" for status, count in statuses.most_common())
    lines = ([row["program"], row["source"], row["sdk"], row["status"], row["cause"]] for row in found)
    header = APPLICATIONS.format(count=len(found), summary=summary)
    return header + table(["program", "source", "SDK", "status", "cause or change"], lines)


def conformance() -> str:
    """Returns the page of conformance: the newest runs of whole trees, then runs of groups."""
    trees = [{**row, "group": f"{row['tree']}, {row['verdict']}"} for row in rows("conformance.csv")]
    groups = [row for row in rows("conformance_runs.csv") if row["group"]]
    lines = (
        [row["group"], row["passed"], row["tests"], _share(row), row["tensorflow"]]
        for row in [*reversed(trees), *groups]
    )
    return CONFORMANCE + table(["tests", "pass", "of", "share, %", "TensorFlow"], lines)


def _share(row: Row) -> str:
    return f"{100 * int(row['passed']) / int(row['tests']):.1f}"


def soak() -> str:
    """Returns the page of the soak: its parts, then the newest run of each with totals, then runs of other kinds."""
    with (ROOT / "tools" / "soak" / "parts.csv").open(newline="", encoding="utf-8") as file:
        parts = [[_as_code(row["parts"]), row["runs"], row["wrong"]] for row in csv.DictReader(file)]
    others = ([row[column] for column in ("kind", "wrong", "tensorflow")] for row in rows("soak_runs.csv"))
    return "\n".join(
        [
            SOAK + table(["part", "runs", "counts as wrong"], parts),
            "## Results\n",
            table(
                ["part", "TensorFlow", "newest run", "wrong in it", "all runs", "wrong in all", "refused in all"],
                _soak_results(),
            ),
            "## Other runs\n",
            table(["runs", "wrong", "TensorFlow"], others),
        ]
    )


def _soak_results() -> Iterator[list[str]]:
    """Yields a line for each part and version of TensorFlow, ordered by name."""
    by_part: dict[tuple[str, str], list[Row]] = {}
    for row in rows("soak.csv"):
        by_part.setdefault((row["kind"], row["tensorflow"]), []).append(row)
    for (part, version), found in sorted(by_part.items()):
        newest = found[-1]
        totals = [str(sum(int(row[column] or 0) for row in found)) for column in ("runs", "wrong", "refused")]
        yield [f"`{part}`", version, newest["runs"], newest["wrong"], *totals]


def _as_code(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", "))


PAGES = {
    ROOT / "docs/results/applications.md": applications,
    ROOT / "docs/results/benchmarks.md": benchmarks,
    ROOT / "docs/results/conformance.md": conformance,
    ROOT / "docs/results/soak.md": soak,
    ROOT / "docs/results/accuracy.md": accuracy,
}


if __name__ == "__main__":
    sys.exit(generated_page.write_or_check_all(PAGES, __doc__, "results"))
