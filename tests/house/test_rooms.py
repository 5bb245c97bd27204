"""Imports run down: `docs/architecture.md` lists the rooms, and no statement of any file goes against that order."""

import ast
import collections
import functools
import re

import pytest
from checkout import ROOT
from syntax_trees import trees

from tf_ipu_shim.names import finder, graphcore_names, reexports

pytestmark = pytest.mark.without_tensorflow

PACKAGE = ROOT / "tf_ipu_shim"
SOURCES = (".py", ".cc", ".cpp", ".h", ".hpp")
TOP = "."  # the package's own __init__ and __main__


def modules():
    """All modules of the package by name."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()
NAMES = (*MODULES, *reexports.table())


@functools.cache
def statements(path):
    """All that the import statements of a file name: (line, name, whether it is imported with the file)."""
    found = []
    tree = trees()[path]
    tops = {node.lineno for node in tree.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name, node.lineno in tops) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name their module in full"
            found += [(node.lineno, f"{node.module}.{alias.name}", node.lineno in tops) for alias in node.names]
    return found


def module_of(name):
    """The module that a dotted name is, or is in; None for another package's."""
    while name and name not in MODULES and name not in reexports.table():
        name = name.rpartition(".")[0]
    return name or None


def room_of(module):
    """The room with the longest name that a module's path begins with."""
    path = "/".join(module.split(".")[1:])
    return max((room for room in rooms() if f"{path}/".startswith(f"{room}/")), key=len, default=TOP)


def imports():
    """Every import of one of our modules by another: (importing module, line, imported module)."""
    for module, path in MODULES.items():
        for line, name, _ in statements(path):
            target = module_of(name)
            if target is not None and target not in (module, "tf_ipu_shim"):
                yield module, line, target
    for module, (_, sources) in reexports.table().items():
        for source, names in sources.items():
            for target in {module_of(f"{source}.{name}") for name in names.values()}:
                yield module, 0, target


@functools.cache
def rooms():
    """The table of `docs/architecture.md`: each room with what it says of TensorFlow, from the top down."""
    table = (ROOT / "docs" / "architecture.md").read_text()
    return dict(re.findall(r"^\| `([\w/]+?)(?:/|\.py)` \|.*\| (never|lazily|yes) \|$", table, re.M))


def test_the_table_names_every_room():
    assert set(rooms()) | {TOP} == {room_of(module) for module in MODULES}
    assert [module for module in MODULES if room_of(module) == TOP] == ["tf_ipu_shim", "tf_ipu_shim.__main__"]


def test_imports_run_down():
    order = [TOP, *rooms()]
    against = [
        f"{module}:{line} imports {target}"
        for module, line, target in imports()
        if order.index(room_of(target)) < order.index(room_of(module))
    ]
    assert against == []


def test_no_files_import_each_other():
    """Strongly connected components by two passes of depth-first search (Kosaraju)."""
    forward, backward = collections.defaultdict(set), collections.defaultdict(set)
    for module, _, target in imports():
        forward[module].add(target)
        backward[target].add(module)
    assert [group for group in components(forward, backward) if len(group) > 1] == []


def components(forward, backward, nodes=NAMES):
    order, seen = [], set()

    def visit(start, edges, leave):
        stack = [(start, iter(sorted(edges[start])))]
        seen.add(start)
        while stack:
            node, rest = stack[-1]
            following = next((other for other in rest if other not in seen), None)
            if following is None:
                stack.pop()
                leave(node)
            else:
                seen.add(following)
                stack.append((following, iter(sorted(edges[following]))))

    for module in sorted(nodes):
        if module not in seen:
            visit(module, forward, order.append)
    seen.clear()
    for module in reversed(order):
        if module not in seen:
            group = []
            visit(module, backward, group.append)
            yield sorted(group)


@pytest.mark.parametrize(
    ("edges", "expected"),
    [
        ([("errors", "sdk"), ("sdk", "errors")], [["tf_ipu_shim.errors", "tf_ipu_shim.sdk"]]),
        ([("errors", "sdk"), ("errors", "names")], []),
    ],
)
def test_components_finds_cycles(edges, expected):
    forward, backward = collections.defaultdict(set), collections.defaultdict(set)
    for one, other in edges:
        forward[f"tf_ipu_shim.{one}"].add(f"tf_ipu_shim.{other}")
        backward[f"tf_ipu_shim.{other}"].add(f"tf_ipu_shim.{one}")
    assert [group for group in components(forward, backward) if len(group) > 1] == expected


def test_who_imports_tensorflow():
    """Rooms that say `never` name it nowhere, those that say `lazily` not while they are imported."""
    table = rooms()
    named = []
    for module, path in MODULES.items():
        says = table.get(room_of(module))
        for line, name, top in statements(path):
            if name.split(".")[0] in ("tensorflow", "keras", "tf_keras") or room_of(name) == "tf_private":
                if says == "never" or (says == "lazily" and top):
                    named.append(f"{module}:{line}")
    assert named == []


def test_api_has_graphcore_names_only():
    """Every module of `api`, but for what makes packages lazy, is a module of Graphcore's or a package of such."""
    known = set(graphcore_names.modules())
    packages = {name[:end] for name in known for end in range(len(name)) if name[end] == "."}
    machinery = {"tf_ipu_shim.api", "tf_ipu_shim.api.lazy_modules", "tf_ipu_shim.api.op_modules"}
    machinery.add("tf_ipu_shim.api.popef")  # the SDK's, outside TensorFlow
    machinery.add("tf_ipu_shim.api.ipu.test_utils.hardware_test_utils")  # Graphcore's tests import it, no page lists it
    machinery |= {"tf_ipu_shim.api.popdist", "tf_ipu_shim.api.popdist.tensorflow"}  # beside Graphcore's TensorFlow
    machinery |= {"tf_ipu_shim.api.gcprofile", "tf_ipu_shim.api.libpvti"}  # the SDK's, outside TensorFlow
    machinery |= {"tf_ipu_shim.api.gcipuinfo", "tf_ipu_shim.api.horovod", "tf_ipu_shim.api.horovod.tensorflow"}
    machinery |= {f"tf_ipu_shim.api.horovod.tensorflow.{module}" for module in ("functions", "keras")}  # Horovod's
    machinery.add("tf_ipu_shim.api.pva")  # the SDK's, outside TensorFlow
    # `python -m`, and what Graphcore's tests of its tool import.
    tool = "tf_ipu_shim.api.addons.saved_model_tool"
    machinery |= {f"{tool}.__main__", f"{tool}.saved_model_test_utils"}
    machinery.add(f"{tool}.converter.pipelines")  # what its three converters to pipelines share
    façade = {module for module in MODULES if room_of(module) == "api"} - machinery | set(reexports.table())
    assert sorted(module for module in façade if finder.graphcore_name(module) not in known | packages) == []


def test_within_api_only_ipu_imports_others():
    against = [
        f"{module}:{line} imports {target}"
        for module, line, target in imports()
        if room_of(module) == room_of(target) == "api"
        and module.split(".")[2] in ("keras", "addons", "poplar")
        and target.split(".")[2] in {"ipu", "keras", "addons", "poplar"} - {module.split(".")[2]}
    ]
    assert against == []


def test_the_past_is_switched_on_in_one_place():
    """Nothing outside `legacy` imports it except through `activation`; façade modules of dead names give theirs out."""
    doors = ("tf_ipu_shim.legacy.names.activation",)
    past = [
        f"{module}:{line} imports {target}"
        for module, line, target in imports()
        if target.startswith("tf_ipu_shim.legacy.")
        and not target.startswith(doors)
        and not module.startswith("tf_ipu_shim.legacy.")
        and room_of(module) != "api"
    ]
    assert past == []


def folder_of(module):
    """The package that a module is, or is in."""
    return module if module in MODULES and MODULES[module].name == "__init__.py" else module.rpartition(".")[0]


def test_folders_within_a_room_do_not_import_each_other():
    """A folder may share modules with those inside it; two beside each other may not import each other."""
    forward, backward = collections.defaultdict(set), collections.defaultdict(set)
    for module, _, target in imports():
        taker, giver = folder_of(module), folder_of(target)
        is_around = f"{taker}.".startswith(f"{giver}.") or f"{giver}.".startswith(f"{taker}.")
        if not is_around and room_of(module) == room_of(target):
            forward[taker].add(giver)
            backward[giver].add(taker)
    folders = {folder_of(module) for module in MODULES}
    assert [group for group in components(forward, backward, folders) if len(group) > 1] == []


def test_folders_are_small():
    """At most 20 source files or pages each."""
    places = [PACKAGE, ROOT / "tests", ROOT / "tools", ROOT / "benchmarks", ROOT / "docs"]
    files = [path for place in places for path in place.rglob("*") if path.suffix in (".py", ".cc", ".h", ".md")]
    counts = collections.Counter(str(path.parent.relative_to(ROOT)) for path in files)
    assert {folder: count for folder, count in counts.items() if count > 20} == {}


def test_files_are_short():
    files = [path for path in ROOT.glob("t*/**/*") if path.suffix in SOURCES and "build" not in path.parts]
    assert [str(path.relative_to(ROOT)) for path in files if len(path.read_text().splitlines()) > 500] == []
