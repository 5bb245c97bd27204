"""Collects a script's source files: the script and the local modules it imports."""

from __future__ import annotations

import ast
import dataclasses
import pathlib
import tokenize


@dataclasses.dataclass(frozen=True)
class SourceFile:
    """One file of a script."""

    path: pathlib.Path
    tree: ast.Module


def collect_sources(script: pathlib.Path) -> list[SourceFile]:
    """Returns a script and the neighbouring files that it imports, each once."""
    start = script / "__main__.py" if script.is_dir() else script
    folder, sources = start.parent, {}
    waiting = [start]
    while waiting:
        path = waiting.pop(0)
        if path in sources:
            continue
        with tokenize.open(path) as file:
            tree = ast.parse(file.read(), str(path))
        sources[path] = SourceFile(path, tree)
        waiting += [file for name in _imported_files(tree, path, folder) for file in _module_files(folder, name)]
    return list(sources.values())


def _imported_files(tree: ast.Module, path: pathlib.Path, folder: pathlib.Path) -> list[str]:
    """Returns all names in a file's import statements: modules, and names that may be modules."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            package = path.relative_to(folder).parent.parts
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join((*above, *([node.module] if node.module else [])))
            names += [base, *(f"{base}.{alias.name}".lstrip(".") for alias in node.names)]
    return names


def _module_files(folder: pathlib.Path, name: str) -> list[pathlib.Path]:
    """Returns the files next to a script that importing a name would run."""
    parts = [part for part in name.split(".") if part]
    files = []
    for length in range(1, len(parts) + 1):
        module_path = folder.joinpath(*parts[:length])
        files += [file for file in (module_path.with_suffix(".py"), module_path / "__init__.py") if file.is_file()]
    return files
