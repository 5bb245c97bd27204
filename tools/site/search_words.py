"""Words that users search for, the pages that answer them, and whether the site's search finds these.

The ranking is that of the site's own search (mkdocs-material): lunr without length normalisation and with a prefix for
each word. A result counts more if it is a page and not a section, and if it has more of the words.
"""

from __future__ import annotations

import html
import json
import pathlib
import re
from collections.abc import Iterator
from typing import Any

from lunr.builder import Builder
from lunr.stop_word_filter import stop_word_filter

FIRST = 5
WORDS: dict[str, str] = {
    "migrate": "start/migrate",
    "port": "start/migrate how_to/port/porting_report",
    "OOM": "how_to/measure/fix_out_of_memory",
    "out of memory": "how_to/measure/fix_out_of_memory",
    "multiple machines": "how_to/distribute/several_machines",
    "cluster": "how_to/distribute/several_machines",
    "torchrun": "how_to/distribute/several_machines",
    "slurm": "how_to/distribute/several_machines",
    "mpirun": "how_to/distribute/several_machines how_to/distribute/several_processes how_to/distribute/horovod",
    "poprun": "how_to/distribute/several_processes reference/command_line",
    "distributed": "how_to/distribute/several_machines how_to/distribute/several_processes reference/collectives",
    "not supported": "how_to/port/unsupported_programs how_to/port/porting_report reference/errors",
    "speed": "how_to/run/performance how_to/measure/fit",
    "slow": "how_to/run/performance how_to/run/executable_cache",
    "GPU": "how_to/port/porting_away",
    "notebook": "start/faq tutorials/will_it_fit",
    "profile": "how_to/measure/profiles reference/profile_format tutorials/reading_a_profile",
    "PopVision": "how_to/measure/profiles start/faq",
    "popart": "start/faq how_to/port/unsupported_programs",
    "docker": "start/installation",
    "CI": "how_to/test/ci tutorials/memory_in_ci",
    "github actions": "how_to/test/ci",
    "pytest": "how_to/test/testing",
    "windows": "start/installation start/compatibility",
    "mac": "start/installation start/compatibility",
    "install": "start/installation",
    "uninstall": "start/installation",
    "wheel": "start/installation",
    "offline": "start/installation how_to/run/pre_compilation",
    "keras": "tutorials/keras_training how_to/port/keras_old_line start/features",
    "estimator": "start/features reference/collectives start/compatibility",
    "tf1": "start/migrate how_to/run/run_a_script start/compatibility",
    "tf2": "start/migrate start/compatibility",
    "checkpoint": "reference/files start/features reference/collectives",
    "dataset": "tutorials/feeds_and_loops reference/errors reference/files",
    "infeed": "tutorials/feeds_and_loops",
    "float16": "reference/numerics how_to/deploy/saved_model_tool",
    "mixed precision": "reference/numerics start/features",
    "nan": "how_to/run/debug_numerics reference/numerics",
    "replicas": "tutorials/replicas",
    "pipeline": "tutorials/pipelining",
    "sharding": "tutorials/sharding_and_memory",
    "IPU Model": "how_to/run/choose_system_and_sdk",
    "hang": "how_to/run/interrupt",
    "deadlock": "how_to/run/interrupt reference/collectives",
    "traceback": "how_to/run/logs_and_tracebacks",
    "log": "how_to/run/logs_and_tracebacks",
    "error": "reference/errors reference/all_errors",
    "environment variables": "reference/environment_variables",
    "command line": "reference/command_line how_to/run/run_a_script",
    "version": "start/compatibility how_to/run/choose_system_and_sdk reference/versioning",
    "example": "start/first_script tutorials/index",
    "serving": "how_to/deploy/serving",
    "custom op": "how_to/deploy/custom_ops",
    "memory_report": "reference/api/own/memory_report how_to/measure/read_memory_report",
    "horovod": "how_to/distribute/horovod",
    "LSTM": "start/features how_to/port/keras_old_line",
    "recomputation": "explanation/memory how_to/measure/fix_out_of_memory",
    "gradient accumulation": "tutorials/keras_training tutorials/pipelining",
    "conda": "start/installation",
    "apple silicon": "start/installation start/compatibility",
    "upgrade": "start/installation reference/versioning",
    "exit code": "reference/command_line how_to/port/porting_report",
    "debugger": "how_to/run/debug_numerics how_to/run/logs_and_tracebacks",
    "print tensor": "how_to/run/debug_numerics",
    "No module named": "start/installation reference/errors",
    "batch size": "how_to/measure/fit how_to/measure/fix_out_of_memory",
    "stochastic rounding": "reference/numerics",
    "kubernetes": "how_to/distribute/several_machines",
    "random seed": "how_to/run/debug_numerics reference/numerics",
    "multi gpu": "how_to/port/porting_away how_to/distribute/several_machines",
    "license": "index",
}
"""Words that a user types -> pages, one of which is among the first five results."""


class Search:
    """The site's search on a built index.

    Args:
        index: the content of `search_index.json`.
    """

    def __init__(self, index: dict[str, Any]) -> None:
        """Builds the index as the site does in a browser."""
        self._separator = re.compile(index["config"]["separator"])
        self._pages = {document["location"] for document in index["docs"] if "#" not in document["location"]}
        builder = Builder()
        builder.b(0)
        builder.ref("location")
        builder.pipeline.add(stop_word_filter)
        for name, field in index["config"]["fields"].items():
            builder.field(name, boost=field["boost"])
        for document in index["docs"]:
            fields = {name: self._tokens(document.get(name, "")) for name in index["config"]["fields"]}
            builder.add({"location": document["location"], **fields}, {"boost": document.get("boost", 1)})
        self._index = builder.build()

    def pages(self, query: str) -> list[str]:
        """Returns the pages that are found, best first, without their ending."""
        words = list(self._words(query))
        asked = [word for word in words if stop_word_filter(word)]
        scores = {}
        for result in self._index.search(" ".join(f"{word}*" for word in words)):
            matched = result["match_data"].metadata
            share = sum(any(term.startswith(word) for term in matched) for word in asked) / len(asked)
            boost = (result["ref"] in self._pages) + share
            scores[result["ref"]] = result["score"] * (1 + boost**2)
        ranked = sorted(scores, key=lambda location: -scores[location])
        return list(dict.fromkeys(location.partition("#")[0].removesuffix(".html") for location in ranked))

    def _tokens(self, value: str | list[str]) -> list[str]:
        text = " ".join(value) if isinstance(value, list) else value
        return list(self._words(html.unescape(re.sub(r"<[^>]*>", " ", text))))

    def _words(self, text: str) -> Iterator[str]:
        return (word.lower() for word in self._separator.split(text) if word)


def missing(index: pathlib.Path) -> list[str]:
    """Returns a line for each entry of `WORDS` that the search does not answer, or whose pages do not exist."""
    search = Search(json.loads(index.read_text(encoding="utf-8")))
    lines = []
    for query, pages in WORDS.items():
        found = search.pages(query)[:FIRST]
        if not set(found) & set(pages.split()):
            lines.append(f"  {query!r}: expected one of {pages}; found {' '.join(found) or 'nothing'}")
    return lines
