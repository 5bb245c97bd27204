"""Adds pages to the documentation site that are not in `docs`: README and the like, errors, the API, indexes of
sections.

MkDocs calls these functions (`hooks` in mkdocs.yml). The package is not imported: the API is read from its sources, so
the site is built without TensorFlow.
"""

from __future__ import annotations

import importlib.util
import json
import pathlib
import posixpath
import re
import sys
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = pathlib.Path(__file__).resolve().parents[2]
BESIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
SECTIONS = {
    "How-to": ("how_to/index.md", "Each page answers one task, with a command and its output."),
    "Reference": ("reference/index.md", "Commands, variables, options, names, errors and files."),
    "Explanation": ("explanation/index.md", "How simulated IPUs work, and what their figures mean."),
    "Results": ("results/index.md", "Programs, tests and benchmarks that were run, as tables."),
    "Contributing": ("contributing/index.md", "How to change the package."),
}
"""Section of the navigation -> its index page, and what that says first."""
LESS_IN_SEARCH = {
    "reference/api/": 0.1,
    "results/": 0.2,
    "CHANGELOG.md": 0.2,
    "reference/all_errors.md": 0.3,
    "reference/names/": 0.3,
    "contributing/": 0.3,
    "architecture.md": 0.3,
    **{index: 0.2 for index, _ in SECTIONS.values()},
}
"""Page, or folder of pages, that few readers search for -> the factor of its scores."""
_LINK = re.compile(r"(\]\()(?!https?:|#|mailto:)([^)#\s]+)")
LONG_CELL = 60  # characters
_CODE = re.compile(r"<code>([^<\n]{1,26})</code>")
_CELL = re.compile(r"<td( style=[^>]*)?(>(?:(?!</td>).)*</td>)", re.DOTALL)
_TAG = re.compile(r"<[^>]+>")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


def _load(name: str, path: pathlib.Path) -> Any:
    """Returns a file as a module. MkDocs runs this one by its path, so its neighbours cannot be imported."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # named tuples look themselves up in it
    spec.loader.exec_module(module)
    return module


error_messages = _load("error_messages", ROOT / "tools" / "error_messages.py")
api_pages = _load("api_pages", ROOT / "tools" / "site" / "api_pages.py")
console_blocks = _load("console_blocks", ROOT / "tools" / "site" / "console_blocks.py")
search_words = _load("search_words", ROOT / "tools" / "site" / "search_words.py")


def on_config(config: Any) -> Any:
    """Adds the indexes and the API to the navigation."""
    for section in config["nav"]:
        for name, pages in section.items():
            if name in SECTIONS:
                pages.insert(0, SECTIONS[name][0])
            if name == "Reference":
                pages.append({"API": api_pages.navigation()})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages."""
    for page, source in {"index.md": "README.md", **{name: name for name in BESIDE}}.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text(encoding="utf-8")))
    tutorials = ROOT / "tutorials"
    for path in sorted([*tutorials.glob("*"), *tutorials.glob("*/*.cpp"), *tutorials.glob("*/Makefile")]):
        if path.name == "Makefile" or path.suffix in (".md", ".py", ".svg", ".ipynb", ".cpp"):
            files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    notebook = json.loads((ROOT / "tutorials" / "will_it_fit.ipynb").read_text(encoding="utf-8"))
    files.append(File.generated(config, "tutorials/will_it_fit.md", content=_notebook_page(notebook)))
    files.append(File.generated(config, "reference/all_errors.md", content=error_messages.page()))
    for name in ("iframe-worker.js", "site.css"):
        files.append(File.generated(config, f"assets/{name}", abs_src_path=str(ROOT / "tools" / "site" / name)))
    for page, content in api_pages.pages().items():
        files.append(File.generated(config, page, content=content))
    for section in config["nav"]:
        for name, pages in section.items():
            if name in SECTIONS:
                page, purpose = SECTIONS[name]
                content = f"# {name}\n\n{purpose}\n\n{_index(pages[1:], page, files)}"
                files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Links written for the repository are those of the site, where `docs` is the root."""
    path = page.file.src_uri
    boost = min((factor for prefix, factor in LESS_IN_SEARCH.items() if path.startswith(prefix)), default=None)
    if boost is not None:
        page.meta["search"] = {"boost": boost}
    if path.startswith(("reference/api/", *(index for index, _ in SECTIONS.values()))):
        return markdown
    source = path if path in BESIDE or path.startswith("tutorials/") else f"docs/{path}"
    return _LINK.sub(
        lambda link: link[1] + _site_link("README.md" if path == "index.md" else source, path, link[2]), markdown
    )


def on_page_content(html: str, page: Any, config: Any, files: Files) -> str:
    """Marks short code, which is not broken at its hyphens, and table cells with much text, which are not squeezed.

    Prompts and outputs of commands are marked too, so that the button of a block copies only the commands.
    """
    html = _CODE.sub(lambda found: f'<code class="short">{found[1]}</code>', html)
    return _CELL.sub(_marked_cell, console_blocks.marked(html))


def _marked_cell(cell: re.Match[str]) -> str:
    is_long = len(_TAG.sub("", cell[2])) > LONG_CELL
    return f'<td class="long"{cell[1] or ""}{cell[2]}' if is_long else cell[0]


def on_post_build(config: Any) -> None:
    """Ends the build if the search does not find a page by the words of users."""
    missing = search_words.missing(pathlib.Path(config["site_dir"]) / "search" / "search_index.json")
    if missing:
        raise PluginError("The search finds no fitting page among the first five results for:\n" + "\n".join(missing))


def _site_link(source: str, page: str, link: str) -> str:
    """Returns a link of a file in the repository, as the page of the site has it."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link)).removeprefix("docs/")
    target = "index.md" if target == "README.md" else target
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


def _notebook_page(notebook: Any) -> str:
    """Returns a notebook as a page, with the outputs that are in its file."""
    parts = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        for output in cell.get("outputs", ()):
            result = output.get("data", {})
            printed = "".join(output.get("text", ()) or result.get("text/plain", ()))
            drawn = "".join(result.get("text/html", ()))
            # HTML in Markdown ends at an empty line.
            parts.append(f"```text\n{printed}```" if printed else re.sub(r"\n\s*\n", "\n", drawn))
    return "\n\n".join([*parts, "[Download the notebook](will_it_fit.ipynb)\n"]).replace(
        "`docs/explanation/memory.md`", "[Memory model](../docs/explanation/memory.md)"
    )


def _index(pages: list[Any], index: str, files: Files) -> str:
    """Lists the pages of a section, each with its first sentence."""
    lines = []
    for entry in pages:
        ((title, page),) = entry.items() if isinstance(entry, dict) else (("", entry),)
        if title == "API":
            lines.append(f"\n**{title}**\n\n{api_pages.listing(posixpath.dirname(index))}")
        elif isinstance(page, list):
            lines.append(f"\n**{title}**\n\n{_index(page, index, files)}")
        else:
            file = files.get_file_from_path(page)
            text = _FRONT_MATTER.sub("", file.content_string) if file is not None else ""
            heading = _TITLE.search(text)
            shown = title or (heading[1] if heading else page)
            lines.append(f"- [{shown}]({posixpath.relpath(page, posixpath.dirname(index))}): {_first_sentence(text)}")
    return "\n".join(lines) + "\n"


def _first_sentence(text: str) -> str:
    paragraph = next((part for part in text.split("\n\n")[1:] if re.match(r"\w|`|\*\*", part)), "")
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(paragraph.split()))
    return re.split(r"(?<=[.!?:])\s", plain, maxsplit=1)[0].rstrip(":")
