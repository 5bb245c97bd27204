"""Writes docs/reference/names/coverage*.md: which of Graphcore's public names this checkout emulates, in four pages.

python tools/generate_coverage.py          writes the pages
python tools/generate_coverage.py --check  ends with status 1 if a page is out of date
"""

from __future__ import annotations

import dataclasses
import functools
import pathlib
import sys
from collections.abc import Iterable

import generated_page

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs" / "reference" / "names"
HEADER = """# What is emulated

The public names of Graphcore's TensorFlow in SDK 1.2 to 3.4, and whether this package has them. This page has the sums.
[tensorflow.python.ipu](coverage_ipu.md), [Keras, addons and the driver](coverage_keras.md) and [names of older
releases](coverage_older.md) have the rows.

A name counts if a call of it can succeed. A missing name raises an error with the SDK releases that have it.

A function or class that refuses every call is counted as refused. An emulated name may still
refuse some options; it says so when they are used.

"""


@dataclasses.dataclass(frozen=True)
class Row:
    """One of Graphcore's modules: the releases that have it, and its public names by state."""

    module: str
    releases: str
    emulated: list[str]
    refused: dict[str, str]
    missing: list[str]

    @property
    def known(self) -> int:
        """All names."""
        return len(self.emulated) + len(self.refused) + len(self.missing)


def row(name: str, releases: str) -> Row:
    """Looks up all names of a module."""
    from tf_ipu_shim.names import emulated, graphcore_names

    found = Row(name, releases, [], {}, [])
    for attribute in sorted(graphcore_names.attributes(name)):
        verdict = emulated.get_status(name, attribute)
        if verdict.state == emulated.EMULATED:
            found.emulated.append(attribute)
        elif verdict.state == emulated.REFUSED:
            found.refused[attribute] = verdict.reason.removeprefix(f"{attribute} ")
        else:
            found.missing.append(attribute)
    return found


PARTS = {
    "coverage_ipu.md": (
        "Coverage of tensorflow.python.ipu",
        "This page lists for each module of `tensorflow.python.ipu` how many names are emulated, and which are not.",
        lambda name: _is_ipu(name),
    ),
    "coverage_keras.md": (
        "Coverage of Keras, addons and the driver",
        "This page lists for each module of Keras, addons and the driver how many names are emulated, and which are "
        "not.",
        lambda name: not _is_ipu(name),
    ),
}
"""Page -> its title, its first sentence, and whether it lists a module."""


def _is_ipu(name: str) -> bool:
    return name.startswith("tensorflow.python.ipu") and not name.startswith("tensorflow.python.ipu.keras")


@functools.cache
def all_rows() -> list[Row]:
    """Returns the rows of all modules."""
    from tf_ipu_shim.names import graphcore_names

    return [row(name, releases) for name, releases in graphcore_names.modules().items()]


def overview() -> str:
    """Returns the page with the sums, what is refused, and modules without any name."""
    lines = ["| page | emulated | refused when called | names |", "|---|---|---|---|"]
    for page, (title, _, lists) in PARTS.items():
        rows = [one for one in all_rows() if lists(one.module)]
        counts = (
            sum(len(one.emulated) for one in rows),
            sum(len(one.refused) for one in rows),
            sum(r.known for r in rows),
        )
        lines.append(f"| [{title}]({page}) | {counts[0]} | {counts[1]} | {counts[2]} |")
    lines.append("\n## Refused when called\n")
    for one in all_rows():
        lines += [f"- `{one.module}.{name}` {reason}" for name, reason in one.refused.items()]
    absent = [f"`{one.module}` ({one.releases})" for one in all_rows() if one.missing and len(one.missing) == one.known]
    lines += ["\n## Modules with nothing emulated yet\n", *(f"- {module}" for module in absent)]
    return HEADER + "\n".join(lines) + "\n"


def part(page: str) -> str:
    """Returns a page with the rows of some modules."""
    title, summary, lists = PARTS[page]
    lines = [f"# {title}\n", f"{summary} [Coverage](coverage.md) says how names are counted.\n"]
    lines += ["| module | SDK | names | not emulated |", "|---|---|---|---|"]
    for one in all_rows():
        if lists(one.module) and (one.emulated or one.refused):
            lists_of = (("refused", one.refused), ("missing", one.missing))
            rest = "; ".join(f"{word}: {', '.join(f'`{name}`' for name in names)}" for word, names in lists_of if names)
            cells = (f"`{one.module}`", one.releases, f"{len(one.emulated)} of {one.known}", rest)
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def older() -> str:
    """Returns the page of names that TensorFlow, Keras and Python had in older releases."""
    return "\n".join(era()) + "\n"


def era() -> list[str]:
    """Returns the names of older TensorFlow, Keras and SDK releases, from the tables that serve them."""
    from tf_ipu_shim.legacy.names.contrib import loader
    from tf_ipu_shim.legacy.names.keras import keras_paths
    from tf_ipu_shim.legacy.names.python import removed_names, removed_numpy
    from tf_ipu_shim.legacy.names.tensorflow import stock_moves

    lines = [
        "# Names of older releases\n",
        "Served in a process that uses `ipu` and under the runner, or where the installed packages have no such name. "
        "`TF_IPU_SHIM_COMPAT=stock` leaves TensorFlow and Keras as they are installed.\n",
        "| name | of | is today |",
        "|---|---|---|",
        "| `tensorflow.python.keras` | 1.15-2.6 | the Keras 2 of `tf.keras`, not TensorFlow's copy |",
        "| `tf.keras.optimizers` | 2.2-2.6 | the classes of OptimizerV2 (`TF_IPU_SHIM_COMPAT=stock-optimizers`) |",
        "| subclasses of `tf.keras.mixed_precision.LossScaleOptimizer` | 2.4-2.6 | those of the class of OptimizerV2 "
        "(`TF_IPU_SHIM_COMPAT=stock-optimizers`) |",
        "| initial values of Keras' layers after `tf.random.set_seed` | 1.15-2.6 | the values of those releases |",
        "| `keras.engine.data_adapter.expand_1d` | 2.2-2.6 | as it was |",
        "| `tf.python`, `Dimension` of a whole float | 1.15 | as it was |",
        f"| `numpy`, in scripts: {_names(removed_names.BUILTIN)}, {_names(removed_names.KEPT)}, `NINF`, "
        f"{_names(removed_numpy.FUNCTIONS)}, {_names(removed_names.EXCEPTIONS)} | 1.15-2.6 | "
        "as in older NumPy, if the installed one lacks them |",
        "| `numpy.save` of arrays of different lengths, in scripts | 1.15-2.6 | an array of objects, as it was |",
        "| `collections.Mapping` and the like, in scripts | 1.15-2.6 | `collections.abc` |",
        "| `json.load(file, encoding=...)`, `inspect.getargspec`, `ArgSpec`, `time.clock`, `fractions.gcd`, "
        "`os.errno`, `base64.encodestring`, `decodestring`, in scripts | 1.15-2.6 | as they were |",
        "| `yaml.load(file)` without a loader, in scripts | 1.15-2.6 | PyYAML's `FullLoader` |",
        "| `tf.data.experimental.StatsAggregator`, `latency_stats`, `bytes_produced_stats`, "
        "`Options.experimental_stats` | 1.15-2.6 | the ops of the installed TensorFlow |",
        "| `tensorflow.python.tools.saved_model_cli`: options of tools, `run(args)` | 1.15-2.6 | as they were |",
        "| `tf.nn.fused_batch_norm` with a scale of half precision | 1.15-2.6 | as on IPUs |",
        "| `trainable` of a layer, of any type | 1.15-2.6 | converted to bool |",
        "| `tf.mixed_precision`, loss scales of `tf.train.experimental` | 2.1-2.6 | those of `tf.compat.v1` |",
        "| `Layer.add_update(updates, inputs)`, `get_updates_for`, `get_losses_for` | 1.15-2.6 | as they were |",
        "| `Sequential.predict_classes`, `predict_proba` | 1.15-2.5 | as they were |",
        "| `libpvti` | SDK 1.2-3.4 | its tracepoints, graphs and heat maps are spans of TensorFlow's profiler |",
        "| `gcprofile` | SDK 1.2-2.1 | writes a report in our format |",
        "| `gcipuinfo` | SDK 1.2-3.4 | the simulated devices and their attributes; nothing is measured |",
        "| `pva` | SDK 2.3-3.4 | opens the profiles of programs here ([Profiles](../../how_to/measure/profiles.md)) |",
        "| `horovod.tensorflow` | SDK 1.2-3.4 | collectives, optimizers and hooks over the processes of a job |",
    ]
    lines += [f"| `keras.{old}` | 1.15-2.6 | {_targets(new)} |" for old, new in keras_paths.MOVED.items()]
    lines += [f"| `{old}` | 1.15-2.6 | {_targets(new)} |" for old, new in stock_moves.MODULES.items()]
    lines.append("| `tensorflow.contrib.ipu`, also with `.python` | before SDK 1.0 | `tensorflow.python.ipu` |")
    for module in loader.MODULES:
        names = ", ".join(f"`{name}`" for name in loader.places(module))
        lines.append(f"| `{loader.NAME}.{module}` | 1.15 | {names} |")
    return lines


def _names(table: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in table)


def _targets(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split())


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    pages = {DOCS / "coverage.md": overview, DOCS / "coverage_older.md": older}
    pages |= {DOCS / page: functools.partial(part, page) for page in PARTS}
    sys.exit(generated_page.write_or_check_all(pages, __doc__, "coverage"))
