"""Collects the files to check: a script with the local modules it imports, or a folder's Python files."""

from __future__ import annotations

import ast
import dataclasses
import os
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
        sources[path] = source = _parse(path)
        waiting += [file for name in _imported_files(source.tree, path, folder) for file in _module_files(folder, name)]
    return list(sources.values())


def collect_folder(folder: pathlib.Path) -> tuple[list[SourceFile], dict[pathlib.Path, SyntaxError]]:
    """Returns the files of Python in a folder and below, and the errors of those that are not Python 3.

    Hidden folders, environments and installed packages are left out.
    """
    sources, unreadable = [], {}
    for directory, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if not _is_left_out(pathlib.Path(directory, name)))
        for path in (pathlib.Path(directory, name) for name in sorted(files) if name.endswith(".py")):
            try:
                sources.append(_parse(path))
            except SyntaxError as error:
                unreadable[path] = error
    return sources, unreadable


def _is_left_out(folder: pathlib.Path) -> bool:
    return folder.name.startswith(".") or folder.name == "site-packages" or (folder / "pyvenv.cfg").exists()


def _parse(path: pathlib.Path) -> SourceFile:
    try:
        with tokenize.open(path) as file:
            return SourceFile(path, ast.parse(file.read(), str(path)))
    except SyntaxError as error:
        error.filename, error.lineno = error.filename or str(path), error.lineno or 1  # a wrong encoding has none
        raise
    except ValueError as error:  # bytes that its encoding does not have, or zeros
        raise SyntaxError(f"it cannot be read: {error}", (str(path), 1, None, None)) from error


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
