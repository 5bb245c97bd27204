"""Pages of the documentation site that are not in `docs`: those beside it, all errors, a reference of each module.

MkDocs calls these functions (`hooks` in mkdocs.yml). Nothing of the package is imported: the reference is read from
its sources, so that the site is built without TensorFlow.
"""

from __future__ import annotations

import ast
import importlib.util
import pathlib
import re
import sys
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Graphcore's name of a package -> ours.
PACKAGES = {
    "tensorflow.python.ipu": "tf_ipu_shim/api/ipu",
    "keras.ipu": "tf_ipu_shim/api/keras",
    "ipu_tensorflow_addons": "tf_ipu_shim/api/addons",
}
# What this package has beside Graphcore's names.
OWN = {"tf_ipu_shim": "tf_ipu_shim/__init__.py"}
BESIDE = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
# A page as the text names it.
_NAMED = re.compile(r"`docs/([a-z_0-9]+\.md)`")
_LINK = re.compile(r"\]\((?!https?:)(?:docs/)([^)]+)\)")


def on_config(config: Any) -> Any:
    """Adds the reference to the navigation."""
    pages = sorted(_reference().items())
    reference = []
    for package in (*OWN, *PACKAGES):
        own = [(name, page) for name, page in pages if f"{name}.".startswith(f"{package}.")]
        reference.append({package: [{name.removeprefix(f"{package}."): page} for name, page in own]})
    config["nav"].append({"Reference": reference})
    return config


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages."""
    for page, source in {"index.md": "README.md", **{name: name for name in BESIDE}}.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_LINK.sub(r"](\1)", text)))
    for path in sorted((ROOT / "tutorials").iterdir()):
        if path.suffix in (".md", ".py", ".svg", ".ipynb"):
            files.append(File.generated(config, f"tutorials/{path.name}", abs_src_path=str(path)))
    files.append(File.generated(config, "all_errors.md", content=_errors()))
    for name, page in _reference().items():
        content = "".join(f"::: {own}\n\n" for own in _own_names()[name])
        files.append(File.generated(config, page, content=f"# {name}\n\n{content}"))
    return files


def _errors() -> str:
    return str(_load("tools/error_messages.py").page())


def _load(path: str) -> Any:
    """A module by its path: MkDocs runs this file by its own, so that its neighbours are no modules."""
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, ROOT / path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # which named tuples look themselves up in
    spec.loader.exec_module(module)
    return module


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Pages that a page names are linked."""
    up = "../" * page.file.src_uri.count("/")
    return _NAMED.sub(rf"[\g<0>]({up}\1)", markdown)


def _own_names() -> dict[str, list[str]]:
    """By Graphcore's name of a module what its page documents: our module, or the names that it re-exports."""
    found = {}
    for module, (_, sources) in _load("tf_ipu_shim/names/reexports.py").table().items():
        for theirs, directory in PACKAGES.items():
            if (below := module.removeprefix(directory.replace("/", "."))) != module and sources:
                found[theirs + below] = [
                    f"{source}.{name}" for source, names in sources.items() for name in names.values()
                ]
    for theirs, directory in {**PACKAGES, **OWN}.items():
        root = ROOT / directory
        for path in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
            below = path.relative_to(root if root.is_dir() else root.parent).with_suffix("")
            parts = [part for part in below.parts if part != "__init__"]
            if _has_names(path) and not any(part.startswith("_") for part in parts):
                own = path.relative_to(ROOT).with_suffix("").parts
                module = ".".join(own[:-1] if own[-1] == "__init__" else own)
                found[".".join([theirs, *parts])] = [module]
    return found


def _has_names(path: pathlib.Path) -> bool:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            return True
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return bool(getattr(node.value, "elts", True))
    return False


def _reference() -> dict[str, str]:
    return {name: f"reference/{name}.md" for name in _own_names()}
