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
    "migrate": "migrate",
    "port": "migrate porting_report",
    "OOM": "fix_out_of_memory",
    "out of memory": "fix_out_of_memory",
    "multiple machines": "several_machines",
    "cluster": "several_machines",
    "torchrun": "several_machines",
    "slurm": "several_machines",
    "mpirun": "several_machines several_processes horovod",
    "poprun": "several_processes command_line",
    "distributed": "several_machines several_processes collectives",
    "not supported": "unsupported_programs porting_report errors",
    "speed": "performance fit",
    "slow": "performance executable_cache",
    "GPU": "porting_away",
    "notebook": "faq tutorials/will_it_fit",
    "profile": "profiles profile_format tutorials/reading_a_profile",
    "PopVision": "profiles faq",
    "popart": "faq unsupported_programs",
    "docker": "installation",
    "CI": "ci tutorials/memory_in_ci",
    "github actions": "ci",
    "pytest": "testing",
    "windows": "installation compatibility",
    "mac": "installation compatibility",
    "install": "installation",
    "uninstall": "installation",
    "wheel": "installation",
    "offline": "installation pre_compilation",
    "keras": "tutorials/keras_training keras_old_line features",
    "estimator": "features collectives compatibility",
    "tf1": "migrate run_a_script compatibility",
    "tf2": "migrate compatibility",
    "checkpoint": "files features collectives",
    "dataset": "tutorials/feeds_and_loops errors files",
    "infeed": "tutorials/feeds_and_loops",
    "float16": "numerics saved_model_tool",
    "mixed precision": "numerics features",
    "nan": "debug_numerics numerics",
    "replicas": "tutorials/replicas",
    "pipeline": "tutorials/pipelining",
    "sharding": "tutorials/sharding_and_memory",
    "IPU Model": "choose_system_and_sdk",
    "hang": "interrupt",
    "deadlock": "interrupt collectives",
    "traceback": "logs_and_tracebacks",
    "log": "logs_and_tracebacks",
    "error": "errors all_errors",
    "environment variables": "environment_variables",
    "command line": "command_line run_a_script",
    "version": "compatibility choose_system_and_sdk versioning",
    "example": "first_script tutorials/index",
    "serving": "serving",
    "custom op": "custom_ops",
    "memory_report": "reference/own/memory_report read_memory_report",
    "horovod": "horovod",
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
