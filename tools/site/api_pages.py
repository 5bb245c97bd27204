"""The pages of the API: a page for each module with public names, read from the sources."""

from __future__ import annotations

import ast
import importlib.util
import pathlib
import posixpath
import sys
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = {
    "tensorflow.python.ipu": "tf_ipu_shim/api/ipu",
    "keras.ipu": "tf_ipu_shim/api/keras",
    "ipu_tensorflow_addons": "tf_ipu_shim/api/addons",
    "popdist": "tf_ipu_shim/api/popdist",
    "horovod": "tf_ipu_shim/api/horovod",
    "gcipuinfo": "tf_ipu_shim/api/gcipuinfo.py",
}
"""Graphcore's name of a package -> ours."""
OWN = {
    "Memory report": (
        "own/memory_report.md",
        "Reads the memory of each IPU in a script: `tf_ipu_shim.memory_report()`.",
        "from tf_ipu_shim import memory_report\n\nprint(memory_report())",
        ("memory_reports.report.memory_report", "memory_reports.report.MemoryReport")
        + ("memory_reports.records.DeviceReport", "memory_reports.records.IpuReport"),
    ),
    "Assertions": (
        "own/testing.md",
        "Checks the memory of a script's programs in any test: `tf_ipu_shim.testing`.",
        "from tf_ipu_shim import testing\n\ntesting.assert_fits(headroom=0.2)",
        tuple(f"testing.memory.{name}" for name in ("assert_fits", "assert_peak_below", "assert_no_growth")),
    ),
    "Fixtures for pytest": (
        "own/fixtures.md",
        "Gives each test its own simulated IPUs: the pytest plugin, which pip installs.",
        "def test_step_fits(ipus, ipu_memory):\n    ipus(2)\n    train_step()\n    assert ipu_memory.peak(0) < 500_000",
        tuple(f"pytest_plugin.{name}" for name in ("ipus", "ipu_strategy", "ipu_memory", "IpuMemory", "ipu_baseline"))
        + ("pytest_plugin.ipu_clean",),
    ),
    "TensorFile": (
        "own/tensor_file.md",
        "Reads the datasets that `export_dataset_to_file` writes: `tf_ipu_shim.TensorFile`.",
        'from tf_ipu_shim import TensorFile\n\nfor element in TensorFile("dataset.tfrecord"):\n    print(element)',
        ("frontend.utilities.tensor_files.TensorFile",),
    ),
    "Emulated custom ops": (
        "own/register_emulation.md",
        "Puts a TensorFlow function in the place of a codelet: `ipu.custom_ops.register_emulation`.",
        'ipu.custom_ops.register_emulation("libproduct.so", lambda a, b: a * b)',
        ("frontend.ops.user_ops.codelet_emulations.register_emulation",),
    ),
    "Profiles (pva)": (
        "own/pva.md",
        "Reads a profile in Python under libpva's names: `import pva`.",
        'import pva\n\nreport = pva.openReport("profile.pop")\nprint(report.execution.totalCycles.total)',
        ("api.pva.openReport", "profiling.pva.report.Report", "profiling.pva.compilation.Compilation")
        + tuple(f"profiling.pva.memory.{name}" for name in ("Tile", "TileMemory", "IpuMemory", "Variable"))
        + tuple(f"profiling.pva.memory.{name}" for name in ("LiveMemory", "LivenessStep"))
        + ("profiling.pva.program.Program", "profiling.pva.program.ComputeSet", "profiling.pva.program.ProgramVisitor")
        + ("profiling.pva.execution.Step", "profiling.pva.execution.IpuStep", "profiling.pva.target.Target"),
    ),
    "Exceptions": (
        "own/errors.md",
        "Lists the package's own exceptions and warnings: `tf_ipu_shim.errors`.",
        "from tf_ipu_shim import errors\n\ntry:\n    train()\nexcept errors.UnsupportedError:\n    ...",
        tuple(f"errors.{name}" for name in ("ShimError", "UnsupportedError", "MissingModuleError"))
        + tuple(f"errors.{name}" for name in ("MissingAttributeError", "PluginError", "UnknownFlagError"))
        + ("errors.AccountingFaultWarning",),
    ),
}
"""Title of a page of the package's own names -> its path, what it is for, an example, and the objects on it."""
_FOLDER = "reference/api"
_WITH_HEADING = "    options: {show_root_heading: true, show_root_toc_entry: true, show_root_full_path: false}\n"


def navigation() -> list[dict[str, list[dict[str, str]]]]:
    """Returns the entries of the API in the site's navigation."""
    parts = [{"tf_ipu_shim": [{title: f"{_FOLDER}/{page}"} for title, (page, *_) in OWN.items()]}]
    modules = sorted(_modules())
    for package in PACKAGES:
        own = [name for name in modules if f"{name}.".startswith(f"{package}.")]
        shown = [{name.removeprefix(f"{package}."): f"{_FOLDER}/{name}.md"} for name in own]
        parts.append({package: shown})
    return parts


def pages() -> dict[str, str]:
    """Path -> text of each page."""
    found = {}
    homes = _homes()
    for name, documented in _modules().items():
        shown = "\n".join(_shown(own, homes[own], name) for own in documented)
        found[f"{_FOLDER}/{name}.md"] = f"# {_breakable(name)}\n\n{shown}"
    for title, (page, purpose, example, objects) in OWN.items():
        shown = "\n".join(f"::: tf_ipu_shim.{name}\n{_WITH_HEADING}" for name in objects)
        found[f"{_FOLDER}/{page}"] = f"# {title}\n\n{purpose}\n\n```python\n{example}\n```\n\n{shown}"
    return found


def _shown(own: str, home: str, page: str) -> str:
    """Returns the reference of an object of ours on its home page, and a link to that on other pages."""
    if home != page:
        anchor = f"#{own}" if _is_definition(own) else ""
        return f"[{own.rpartition('.')[2]}]({home}.md{anchor}): see `{home}`.\n"
    return f"::: {own}\n{'' if _is_module(own) else _WITH_HEADING}"


def _homes() -> dict[str, str]:
    """Object or module of ours -> the module of Graphcore's whose page documents it: the first that has it.

    A page that documents a whole module of ours is the home of the module's objects.
    """
    modules = _modules()
    ordered = [name for package in PACKAGES for name in sorted(modules) if f"{name}.".startswith(f"{package}.")]
    homes: dict[str, str] = {}
    for name in ordered:
        for own in modules[name]:
            homes.setdefault(own, name)
    return {own: home if _is_module(own) else homes.get(own.rpartition(".")[0], home) for own, home in homes.items()}


def _is_module(name: str) -> bool:
    path = ROOT.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").exists()


def _is_definition(name: str) -> bool:
    """Returns whether a name is that of a function or class, and not of a value, which has no heading."""
    module, _, own = name.rpartition(".")
    nodes = ast.parse(_file_of(module).read_text(encoding="utf-8")).body
    return any(isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == own for node in nodes)


def _breakable(name: str) -> str:
    """Returns a dotted name that a narrow screen may break after a dot or an underscore."""
    return name.replace("_", "\\_<wbr>").replace(".", ".<wbr>")


def listing(folder: str) -> str:
    """Links to all pages, for the index in a folder."""
    base = posixpath.relpath(_FOLDER, folder)
    lines = [f"- [{title}]({base}/{page}): {purpose}" for title, (page, purpose, *_) in OWN.items()]
    modules = sorted(_modules())
    for package in PACKAGES:
        own = [name for name in modules if f"{name}.".startswith(f"{package}.")]
        links = ", ".join(f"[{name.removeprefix(f'{package}.')}]({base}/{name}.md)" for name in own)
        lines += ["", f"`{package}`: {links}"]
    return "\n".join(lines)


def load(name: str, path: pathlib.Path) -> Any:
    """Returns a file as a module, without importing its package."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # named tuples look themselves up in it
    spec.loader.exec_module(module)
    return module


def _modules() -> dict[str, list[str]]:
    """By Graphcore's name of a module what its page documents: our module, or the names that it re-exports."""
    return {name: own for name, own in {**_reexporting_modules(), **_written_modules()}.items() if own}


def _reexporting_modules() -> dict[str, list[str]]:
    found = {}
    table = load("reexports", ROOT / "tf_ipu_shim" / "names" / "reexports.py").table()
    for module, (_, sources) in table.items():
        names = [_definition(table, source, name) for source, own in sources.items() for name in own.values()]
        names.sort(key=lambda name: name is not None and name.rpartition(".")[2].startswith("_"))  # private ones last
        for theirs, place in PACKAGES.items():
            below = module.removeprefix(place.replace("/", "."))
            if below != module and sources:
                found[theirs + below] = [name for name in names if name is not None]
    return found


def _written_modules() -> dict[str, list[str]]:
    found = {}
    for theirs, place in PACKAGES.items():
        root = ROOT / place
        for path in sorted(root.rglob("*.py")) if root.is_dir() else [root]:
            below = path.relative_to(root).with_suffix("").parts if root.is_dir() else ()
            parts = [part for part in below if part != "__init__"]
            if _has_names(path) and not any(part.startswith("_") for part in parts):
                own = path.relative_to(ROOT).with_suffix("").parts
                found[".".join([theirs, *parts])] = [".".join(own[:-1] if own[-1] == "__init__" else own)]
    return found


def _definition(table: Any, module: str, name: str) -> str | None:
    """The full name of an object, followed through modules that only re-export it; None if no statement defines it."""
    for source, names in table.get(module, ("", {}))[1].items():
        if name in names:
            return _definition(table, source, names[name])
    path = _file_of(module)
    for node in ast.parse(path.read_text(encoding="utf-8")).body if path.exists() else ():
        taken = _imported(node).get(name)
        if taken:
            return _definition(table, *taken)
        if name in _defined(node):
            return f"{module}.{name}"
    return None


def _file_of(module: str) -> pathlib.Path:
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _imported(node: ast.stmt) -> dict[str, tuple[str, str]]:
    """Name in the module -> the module and the name that it was imported from."""
    if not isinstance(node, ast.ImportFrom) or not node.module or node.level:
        return {}
    return {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}


def _defined(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    return [node.target.id] if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) else []


def _has_names(path: pathlib.Path) -> bool:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            return True
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return bool(getattr(node.value, "elts", True))
    return False
