"""Writes the stubs with which type checkers and editors know Graphcore's module names.

python -S tools/generate_stubs.py DIRECTORY   writes them in the layout of site-packages

An import hook serves these names at run time, so no checker finds a file of them. Each stub re-exports names from this
package, whose functions and classes have their types inline. Only `IPUConfig`, which is built from a table at run time,
gets written out option by option. The build backend runs this with the standard library only.

A name inside TensorFlow is written twice, because two checkers look in different places. Pyright reads them in
TensorFlow's folder. mypy ignores that folder, as it has no `py.typed`. It reads a stub package in a further folder of
`sys.path`; in site-packages the stub package would hide the rest of TensorFlow.
"""

from __future__ import annotations

import ast
import functools
import pathlib
import sys
import types
import typing
from collections.abc import Iterable, Iterator, Mapping

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tf_ipu_shim.api import lazy_modules  # noqa: E402
from tf_ipu_shim.configuration import table  # noqa: E402
from tf_ipu_shim.names import finder, graphcore_names, reexports  # noqa: E402

FOLDER = "tf_ipu_shim_types"
"""The further folder of `sys.path`."""
# `tensorflow.keras` would hide Keras from mypy; horovod may be installed. Messages are built at run time.
LEFT_OUT = ("tensorflow.keras.ipu", "horovod")
MESSAGES = "tf_ipu_shim.messages"
_TYPED = "py.typed"
# Pyright's own stubs of TensorFlow have this package, without `ipu`.
_PYTHON = "from tensorflow.python import ipu as ipu\n"
_ANYTHING = "from typing import Any\n\ndef __getattr__(name: str) -> Any: ...\n"


def stubs() -> dict[str, str]:
    """Returns the text of each stub by its path below site-packages."""
    files = {}
    for theirs, ours in finder.ALIASES.items():
        if theirs.startswith(LEFT_OUT):
            continue
        for module in sorted(_modules(ours)):
            name = theirs + module.removeprefix(ours)
            for path in _paths(name, module):
                files[path] = _stub(name, module)
        if theirs.startswith("keras"):
            files[f"{theirs.replace('.', '/')}/{_TYPED}"] = ""
    for theirs, ours in finder.OLDER_NAMES.items():
        for path in _paths(theirs, ours):
            files[path] = _stub(theirs, ours)
    for module in reexports.table():
        files[f"{module.replace('.', '/')}.pyi"] = _reexported(module)
    return {**files, **_configuration(), "tensorflow/python/__init__.pyi": _PYTHON + _ANYTHING}


def _paths(name: str, module: str) -> Iterator[str]:
    """Yields the places of the stub of a module: one, or two inside TensorFlow."""
    package, *rest = name.split(".")
    file = "/__init__.pyi" if _is_package(module) else ".pyi"
    if package in ("tensorflow", "keras", "tf_ipu_shim"):
        yield "/".join([package, *rest]) + file
    if package == "tensorflow":
        yield "/".join([FOLDER, f"{package}-stubs", *rest]) + file
    if package not in ("tensorflow", "keras", "tf_ipu_shim"):
        yield "/".join([f"{package}-stubs", *rest]) + ("/__init__.pyi" if not rest else file)


def _source(module: str) -> pathlib.Path | None:
    path = ROOT.joinpath(*module.split("."))
    for candidate in (path / "__init__.py", path.with_suffix(".py")):
        if candidate.exists():
            return candidate
    return None


def _is_package(module: str) -> bool:
    source = _source(module)
    return source is not None and source.name == "__init__.py"


def _modules(package: str) -> set[str]:
    """Returns the modules of a package of ours that are files, or rows of `reexports.txt`."""
    source = _source(package)
    found = {package}
    if source is not None and source.name == "__init__.py":
        for path in source.parent.rglob("*.py"):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found.add(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return found | {module for module in reexports.table() if module.startswith(f"{package}.")}


def _stub(name: str, module: str) -> str:
    """Returns the stub of one of our modules under a name of Graphcore's."""
    if module.startswith(MESSAGES):
        return _ANYTHING
    if module in reexports.table():
        return _reexported(module)
    package = name if _is_package(module) else name.rpartition(".")[0]
    lazy = {served: line for call in _calls(module, "lazy") for served, line in _lazy(package, *call)}
    tree = _tree(module)
    public = _public_names(tree) | _imported_names(tree, finder.graphcore_name(module) or "")
    lines = [*_imports(module, public - set(lazy)), *lazy.values()]
    if any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body):
        lines += _ANYTHING.splitlines()
    operations = [operation for call in _calls(module, "wrappers") for operation in call[0].split()]
    if operations:
        lines = ["from collections.abc import Callable", "from typing import Any", *lines]
        lines += [f"{operation}: Callable[..., Any]" for operation in operations]
    return "".join(f"{line}\n" for line in lines)


def _imports(source: str, names: Iterable[str]) -> list[str]:
    return [f"from {source} import {name} as {name}" for name in sorted(names)]


def _reexported(module: str) -> str:
    _, sources = reexports.table()[module]
    pairs = ((source, name, own) for source, names in sources.items() for name, own in names.items())
    return "".join(f"from {source} import {own} as {name}\n" for source, name, own in pairs)


@functools.cache
def _tree(module: str) -> ast.Module:
    source = _source(module)
    assert source is not None, module
    return ast.parse(source.read_text(encoding="utf-8"))


def _public_names(tree: ast.Module) -> set[str]:
    """Returns the names of `__all__`, else those that the module defines."""
    names: set[str] = set()
    for statement in tree.body:
        if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
            names.add(statement.name)
        elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id == "__all__" and statement.value is not None:
                    return set(ast.literal_eval(statement.value))
                names |= {node.id for node in ast.walk(target) if isinstance(node, ast.Name)}
    return {name for name in names if not name.startswith("_")}


def _imported_names(tree: ast.Module, theirs: str) -> set[str]:
    """Returns the names that a module imports and Graphcore's has too."""
    imports = (statement for statement in tree.body if isinstance(statement, ast.ImportFrom))
    names = {alias.asname or alias.name for statement in imports for alias in statement.names}
    return names & set(graphcore_names.attributes(theirs))


def _calls(module: str, function: str) -> Iterator[tuple[typing.Any, ...]]:
    """Yields the arguments, except the module's name, of the calls that define a module's lazy names."""
    for statement in _tree(module).body:
        value = getattr(statement, "value", None)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == function:
            yield tuple(_value(argument, _constants(module)) for argument in value.args[1:])


@functools.cache
def _constants(module: str) -> dict[str, typing.Any]:
    """Returns the constants of a module, and as attributes those of the modules it imports, without importing it."""
    found: dict[str, typing.Any] = {}
    for statement in _tree(module).body:
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("tf_ipu_shim.api"):
            for alias in statement.names:
                if _source(f"{statement.module}.{alias.name}"):
                    found[alias.name] = types.SimpleNamespace(**_constants(f"{statement.module}.{alias.name}"))
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            try:
                found[statement.targets[0].id] = _value(statement.value, found)
            except (NameError, AttributeError):
                continue  # it is made of what is not a constant
    return found


def _value(expression: ast.expr, constants: dict[str, typing.Any]) -> typing.Any:
    code = compile(ast.Expression(expression), "<constant>", "eval")
    return eval(code, {**constants})


def _lazy(
    package: str, modules: typing.Any = "", names: Mapping[str, str] = types.MappingProxyType({})
) -> Iterator[tuple[str, str]]:
    """Yields the modules and names that `lazy_modules.lazy` serves, each with its line."""
    for name, path in sorted(lazy_modules.attribute_paths(modules, names).items()):
        *parents, own = path.split(".")
        yield name, f"from {'.'.join([package, *parents])} import {own} as {name}"
    for name, (path, source_name) in sorted(lazy_modules.attribute_sources(names).items()):
        holder = f"{package.rpartition('.')[0]}{path}" if path.startswith(".") else f"{package}.{path}"
        yield name, f"from {holder} import {source_name} as {name}"


def _configuration() -> dict[str, str]:
    """Returns the stubs of `IPUConfig` and its base class, with the options of all SDKs."""
    base = ast.unparse(_signatures(_class("tf_ipu_shim.configuration.base", "_ConfigBase"), "object"))
    tree = _class("tf_ipu_shim.configuration.tree", "IPUConfig")
    enums = sorted(_public_names(_tree("tf_ipu_shim.configuration.enums")))
    lines = [
        "import typing",
        "from typing import Any",
        "from tf_ipu_shim.configuration.base import _ConfigBase",
        "from tf_ipu_shim.configuration.effects import Effect",
        *_imports("tf_ipu_shim.configuration.enums", enums),
    ]
    for path in [*sorted(table.CATEGORIES, key=lambda path: -path.count(".")), ""]:
        lines += [f"class {_class_name(path)}(_ConfigBase):", *(f"    {line}" for line in _members(path))]
    lines += ast.unparse(_signatures(tree, "_ConfigBase")).splitlines()[1:]
    lines.append("def effects(config: IPUConfig | None = ..., changed_only: bool = ...) -> list[Effect]: ...")
    head = "from typing import Any\nfrom tf_ipu_shim.configuration.metadata import AttributeMetadata\n"
    return {
        "tf_ipu_shim/configuration/base.pyi": head + base + "\n",
        "tf_ipu_shim/configuration/tree.pyi": "".join(f"{line}\n" for line in lines),
    }


def _class_name(path: str) -> str:
    return "_" + "".join(part.strip("_").title() for part in path.replace(".", "_").split("_")) if path else "IPUConfig"


def _members(category: str) -> Iterator[str]:
    """Yields the categories and options in a category, with their types and docstrings."""
    if category:
        yield repr(table.CATEGORIES[category])
    for path, doc in table.CATEGORIES.items():
        if path.rpartition(".")[0] == category:
            yield from (f"{path.rpartition('.')[2]}: {_class_name(path)}", repr(doc))
    options: dict[str, tuple[dict[str, None], str]] = {}
    for option in table.OPTIONS:
        parent, _, name = option.path.rpartition(".")
        if parent == category:
            kinds, _ = options.setdefault(name, ({}, option.doc))
            annotations = [option.in_release(option.until)[0], *(older for _, older, _ in option.older)]
            kinds.update((_written(annotation), None) for annotation in annotations)
    for name, (kinds, doc) in options.items():
        yield from (f"{name}: {' | '.join(kinds)}", repr(doc))


def _written(annotation: typing.Any) -> str:
    """Returns a type as a stub writes it."""
    if annotation is Ellipsis:
        return "..."
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is None:
        return "dict[str, Any]" if annotation is dict else str(annotation.__name__)
    if origin is typing.Union:
        return " | ".join(_written(argument) for argument in arguments)
    return f"{origin.__name__}[{', '.join(_written(argument) for argument in arguments)}]"


def _class(module: str, name: str) -> ast.ClassDef:
    found = (node for node in _tree(module).body if isinstance(node, ast.ClassDef) and node.name == name)
    return next(found)


def _signatures(source: ast.ClassDef, base: str) -> ast.ClassDef:
    """Returns a class with its constructor and public methods, without their bodies and without its metaclass."""
    methods: list[ast.stmt] = []
    for node in source.body:
        if isinstance(node, ast.FunctionDef) and (node.name == "__init__" or not node.name.startswith("_")):
            doc = ast.get_docstring(node)
            body: list[ast.stmt] = [ast.Expr(ast.Constant(doc or ...))]
            methods.append(ast.FunctionDef(node.name, node.args, body, [], node.returns, lineno=0))
    return ast.ClassDef(source.name, [ast.Name(base)], [], methods, [])


def main() -> int:
    """Writes the stubs; returns the exit status."""
    (directory,) = sys.argv[1:]
    for path, text in stubs().items():
        file = pathlib.Path(directory, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
