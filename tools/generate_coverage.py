"""Writes docs/coverage.md: which of Graphcore's public names this checkout emulates.

python tools/generate_coverage.py          writes the page
python tools/generate_coverage.py --check  ends with status 1 where the page is out of date
"""

from __future__ import annotations

import dataclasses
import pathlib
import sys
from collections.abc import Iterable

import generated_page

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "coverage.md"
HEADER = """# What is emulated

The public names of Graphcore's TensorFlow in SDK 1.2 to 3.4, and whether this package has them. The page is generated
by `tools/generate_coverage.py`. A name counts if a call of it can succeed. A missing name raises an error with the SDK
releases that have it. A function or class that refuses every call is counted as refused. An emulated name may still
refuse some options; it says so when they are used.

"""


@dataclasses.dataclass(frozen=True)
class Row:
    """One of Graphcore's modules: the releases that have it, and its public names by what becomes of them."""

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


def page() -> str:
    """The whole page as Markdown."""
    from tf_ipu_shim.names import graphcore_names

    table = [row(name, releases) for name, releases in graphcore_names.modules().items()]
    have, refused, known = (
        sum(len(one.emulated) for one in table),
        sum(len(one.refused) for one in table),
        sum(one.known for one in table),
    )
    lines = [f"{have} of {known} names; {refused} more are refused when they are called.\n"]
    lines += ["| module | SDK | names | refused | missing |", "|---|---|---|---|---|"]
    for one in table:
        if one.emulated or one.refused:
            names = (", ".join(f"`{name}`" for name in some) for some in (one.refused, one.missing))
            cells = (f"`{one.module}`", one.releases, f"{len(one.emulated)} of {one.known}", *names)
            lines.append(f"| {' | '.join(cells)} |")
    lines.append("\n## Refused when called\n")
    for one in table:
        lines += [f"- `{one.module}.{name}` {reason}" for name, reason in one.refused.items()]
    absent = [f"`{one.module}` ({one.releases})" for one in table if one.missing and len(one.missing) == one.known]
    lines += ["\n## Modules with nothing emulated yet\n", ", ".join(absent) + "."]
    return HEADER + "\n".join([*lines, *era()]) + "\n"


def era() -> list[str]:
    """The names around a script that TensorFlow, Keras and the SDK of its time had, from the tables that serve them."""
    from tf_ipu_shim.legacy.names.contrib import loader
    from tf_ipu_shim.legacy.names.keras import keras_paths
    from tf_ipu_shim.legacy.names.python import removed_names, removed_numpy
    from tf_ipu_shim.legacy.names.tensorflow import stock_moves

    lines = [
        "\n## The era around a script\n",
        "Served in a process that uses `ipu` and under the runner, or where the installed packages have no such name. "
        "`TF_IPU_SHIM_COMPAT=stock` leaves TensorFlow and Keras as they are installed.\n",
        "| name | of | is today |",
        "|---|---|---|",
        "| `tensorflow.python.keras` | 1.15-2.6 | the Keras 2 of `tf.keras`, not TensorFlow's copy |",
        "| `tf.keras.optimizers` | 2.2-2.6 | the classes of OptimizerV2 (`TF_IPU_SHIM_COMPAT=stock-optimizers`) |",
        "| subclasses of `tf.keras.mixed_precision.LossScaleOptimizer` | 2.4-2.6 | those of the class of OptimizerV2 "
        "(`TF_IPU_SHIM_COMPAT=stock-optimizers`) |",
        "| initial values of Keras' layers after `tf.random.set_seed` | 1.15-2.6 | the numbers that they were |",
        "| `keras.engine.data_adapter.expand_1d` | 2.2-2.6 | as it was |",
        "| `tf.python`, `Dimension` of a whole float | 1.15 | as it was |",
        f"| `numpy`, in scripts: {_names(removed_names.BUILTIN)}, {_names(removed_names.KEPT)}, `NINF`, "
        f"{_names(removed_numpy.FUNCTIONS)}, {_names(removed_names.EXCEPTIONS)} | 1.15-2.6 | "
        "where NumPy has removed them, as they were |",
        "| `numpy.save` of arrays of different lengths, in scripts | 1.15-2.6 | an array of objects, as it was |",
        "| `collections.Mapping` and the like, in scripts | 1.15-2.6 | `collections.abc` |",
        "| `json.load(file, encoding=...)`, `inspect.getargspec`, `ArgSpec`, `time.clock`, `fractions.gcd`, "
        "`os.errno`, `base64.encodestring`, `decodestring`, in scripts | 1.15-2.6 | as they were |",
        "| `yaml.load(file)` without a loader, in scripts | 1.15-2.6 | PyYAML's `FullLoader` |",
        "| `tf.data.experimental.StatsAggregator`, `latency_stats`, `bytes_produced_stats`, "
        "`Options.experimental_stats` | 1.15-2.6 | the ops of the installed TensorFlow |",
        "| `tf.nn.fused_batch_norm` with a scale of half precision | 1.15-2.6 | as on IPUs |",
        "| `trainable` of a layer, of any type | 1.15-2.6 | whether it is true |",
        "| `tf.mixed_precision`, loss scales of `tf.train.experimental` | 2.1-2.6 | those of `tf.compat.v1` |",
        "| `Layer.add_update(updates, inputs)`, `get_updates_for`, `get_losses_for` | 1.15-2.6 | as they were |",
        "| `Sequential.predict_classes`, `predict_proba` | 1.15-2.5 | as they were |",
        "| `libpvti` | SDK 1.2-3.4 | its tracepoints, graphs and heat maps are spans of TensorFlow's profiler |",
        "| `gcprofile` | SDK 1.2-2.1 | writes a report in our format |",
        "| `gcipuinfo` | SDK 1.2-3.4 | the simulated devices and their attributes; nothing is measured |",
        "| `pva` | SDK 2.3-3.4 | opens the profiles that programs write here, not Poplar's ([Profiles](profiles.md)) |",
        "| `horovod.tensorflow` | SDK 1.2-3.4 | collectives, optimizers and hooks over the processes of a job |",
    ]
    lines += [f"| `keras.{old}` | 1.15-2.6 | {_targets(new)} |" for old, new in keras_paths.MOVED.items()]
    lines += [f"| `{old}` | 1.15-2.6 | {_targets(new)} |" for old, new in stock_moves.MODULES.items()]
    lines.append("| `tensorflow.contrib.ipu`, also with `.python` | before SDK 1.0 | `tensorflow.python.ipu` |")
    for module in loader.TABLE:
        names = ", ".join(f"`{name}`" for name in loader.places(module))
        lines.append(f"| `{loader.NAME}.{module}` | 1.15 | {names} |")
    return lines


def _names(table: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in table)


def _targets(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split())


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    sys.exit(generated_page.write_or_check(PAGE, page, __doc__, "coverage"))
