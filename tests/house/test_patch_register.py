"""The register of patches, and that nothing is patched past it."""

import ast
import pathlib
import threading
import types

import pytest
from syntax_trees import trees
from written import written

from tf_ipu_shim import patches

pytestmark = pytest.mark.without_tensorflow

PACKAGE = pathlib.Path(patches.__file__).parent
FOREIGN = ("tensorflow", "keras", "tf_keras")
BOUNDARY = "tf_ipu_shim.tf_private"  # gives their modules out
REGISTRATIONS = {"replace", "change"}
# What looks like a patch and is none: (file, what is assigned to).
OURS = {
    ("pytest_plugin/__init__.py", "sys.meta_path"): "finds the modules of this package",
    ("names/unsupported_names.py", "module.__dict__"): "modules of this package",
    ("names/unsupported_names.py", "loader.exec_module"): "their loaders",
    ("names/reexports.py", "module.__doc__"): "modules of this package",
    ("names/reexports.py", "module.__dict__"): "modules of this package",
    ("names/keras_ops.py", "module.__dict__"): "modules of this package",
    ("names/keras_ops.py", "op.__dict__"): "a function made there",
    ("names/keras_ops.py", "in_layer.__dict__"): "a function made there",
    ("imports/aliases.py", "module.__spec__"): "theirs",
    ("cli/runner.py", "sys.modules"): "a script on standard input is `__main__`",
    ("cli/runner.py", "module.__file__"): "as Python sets it for a script on standard input",
    ("imports/aliases.py", "sys.modules"): "undoes what `names.finder` registers",
    ("legacy/names/keras/keras_modules.py", "module.__spec__"): "the module's own comes back",
    ("legacy/contrib/contrib_metrics.py", "metric.__doc__"): "a function made there",
    ("frontend/layers/ipu_layer.py", "layer.__init__"): "a layer of this package, by its decorator",
    ("frontend/serving/eager_export.py", "request.__signature__"): "a function made there",
    **{
        ("frontend/ops/op_specs.py", f"call.{name}"): "a function made there"
        for name in ("__name__", "__qualname__", "__doc__", "__signature__")
    },
    ("frontend/strategies/delegation.py", "function.__wrapped__"): "a function made there",
    ("frontend/strategies/delegation.py", "function.__signature__"): "a function made there",
    (
        "frontend/strategies/delegation.py",
        "instance.__class__",
    ): "a layer of a script's, by the registered `Layer.__new__`",
    (
        "frontend/keras/models/construction.py",
        "model.__class__",
    ): "a model of a script's, by the registered `Model.__new__`",
    ("imports/post_import_hooks.py", "loader.exec_module"): "made for one import, and taken away by it",
    ("legacy/names/tensorflow/tensorflow1.py", "module.__version__"): "while a package is executed",
    ("names/__init__.py", "sys.meta_path"): "run when Python starts; `names.finder` registers it",
    ("plugin/op_functions.py", "function.__code__"): "a function that TensorFlow has made of an op of the plugin",
    ("cli/runner.py", "error.__traceback__"): "an exception's",
    ("frontend/strategies/sized_datasets.py", "distributed.__class__"): "a dataset made for one of our strategies",
    ("frontend/strategies/process_variables.py", "variable.__class__"): "a variable made in one of our strategies",
    ("api/ipu/test_utils/hardware_test_utils.py", "test_uses_ipus.__test__"): "a function of that file",
    ("api/ipu/test_utils/hardware_test_utils.py", "test_may_use_ipus_or_model.__test__"): "a function of that file",
}


@pytest.fixture
def stock(monkeypatch):
    monkeypatch.setattr(patches, "_applied", {})
    module = types.ModuleType("stock")
    module.number = 1
    return module


def test_replace_and_undo(stock):
    patches.replace(stock, "number", lambda before: before + 1, why="one more", checked=("1.0",))
    patches.replace(stock, "number", lambda before: before + 1, why="once is enough")
    patches.replace(stock, "letter", lambda before: [before], why="it has none")
    assert (stock.number, stock.letter) == (2, [None])
    assert patches.applied() == [
        patches.Patch("stock.number", "one more", ("1.0",), "the stock attribute is restored"),
        patches.Patch("stock.letter", "it has none", patches.CHECKED, "the attribute is removed"),
    ]
    patches.undo()
    assert (stock.number, patches.applied()) == (1, []) and not hasattr(stock, "letter")


@pytest.mark.parametrize("kind", [staticmethod, classmethod, property, lambda function: function])
def test_descriptors_of_classes_come_back(stock, kind):
    class Base:
        name = kind(len)

    class Derived(Base):
        pass

    before = vars(Base)["name"]
    for owner in (Base, Derived):
        patches.replace(owner, "name", lambda _: staticmethod(abs), why="another")
        assert owner.name is abs
    assert [patch.target.rpartition(".")[2] for patch in patches.applied()] == ["name", "name"]
    patches.undo()
    assert vars(Base)["name"] is before and "name" not in vars(Derived)


def test_changes_are_undone_in_reverse(stock):
    done = []
    for name in ("first", "second", "first"):
        patches.change(name, lambda name=name: done.append(name), lambda name=name: done.remove(name), "", "")
    assert done == ["first", "second"]
    patches.change("third", lambda: None, lambda: done.append("third"), "", "")
    patches.undo()
    assert done == ["third"]


def test_a_change_by_somebody_else_is_not_lost(stock):
    patches.replace(stock, "number", lambda _: 2, why="ours")
    patches.replace(stock, "letter", lambda _: "a", why="ours")
    stock.number = 3
    with pytest.raises(RuntimeError, match=r"stock\.number has been changed by other code"):
        patches.undo()
    assert stock.number == 3 and [patch.target for patch in patches.applied()] == ["stock.number"]


def test_threads_patch_once(stock):
    barrier = threading.Barrier(8)

    def patch():
        barrier.wait(30)
        patches.replace(stock, "number", lambda before: before + 1, why="one more")

    threads = [threading.Thread(target=patch) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert stock.number == 2


def test_table():
    rows = patches.table([patches.Patch("b.c", "why", ("1.0", "2.0"), "undone"), patches.Patch("a", "", (), "")])
    assert rows.splitlines()[2:] == ["| `a` |  |  |  |", "| `b.c` | why | 1.0; 2.0 | undone |"]


def foreign_names(tree):
    """The names that a file's imports bind to modules, classes and functions of TensorFlow or Keras."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (a.asname or a.name.split(".")[0] for a in node.names if a.name.split(".")[0] in FOREIGN)
        elif isinstance(node, ast.ImportFrom) and (
            node.module.split(".")[0] in FOREIGN or node.module.startswith(BOUNDARY)
        ):
            yield from (alias.asname or alias.name for alias in node.names)


def targets(tree):
    """Each attribute that a file sets or deletes: its line, the object and the name as they are written."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield node.lineno, node.value, node.attr
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
            if isinstance(node.value, ast.Attribute):  # module.__dict__[...], sys.modules[...]
                yield node.lineno, node.value.value, node.value.attr
            elif isinstance(node.value, ast.Call) and written(node.value.func) == "vars":
                yield node.lineno, node.value.args[0], "__dict__"
        elif isinstance(node, ast.Call):
            called = written(node.func)
            if called.rpartition(".")[2] in ("setattr", "delattr", "__setattr__", "__delattr__") and len(node.args) > 1:
                name = node.args[1]
                yield node.lineno, node.args[0], name.value if isinstance(name, ast.Constant) else written(name)
            elif called.startswith(("sys.meta_path.", "sys.modules.")) and not called.endswith((".get", ".items")):
                yield node.lineno, node.func.value.value, node.func.value.attr
            elif "Register" in called and called.startswith("pywrap"):
                yield node.lineno, node.func.value, node.func.attr


def registered(tree):
    """The lines of calls of the register, and of the functions that it is given."""
    names = {f"patches.{name}" for name in REGISTRATIONS}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and written(node.func) in names]
    given = {argument.id for call in calls for argument in call.args if isinstance(argument, ast.Name)}
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name in given]
    return {line for node in (*calls, *functions) for line in range(node.lineno, node.end_lineno + 1)}


def patching(tree):
    """What of a file's assignments changes, or may change, an object that is not the file's own."""
    foreign, excused = set(foreign_names(tree)), registered(tree)
    for line, owner, name in targets(tree):
        place = written(owner)
        root = place.split(".")[0].split("(")[0]
        special = name.startswith("__") and name.endswith("__") and root not in ("self", "cls")
        imports = place == "sys" and name in ("modules", "meta_path") or name == "exec_module"
        if line not in excused and (root in foreign and not name.startswith("_ipu") or special or imports):
            yield line, f"{place}.{name}"


@pytest.mark.parametrize(
    "line",
    [
        "execute.record_gradient = 1",
        "execute.record_gradient += 1",
        "del execute.record_gradient",
        "setattr(execute, 'record_gradient', 1)",
        "object.__setattr__(layer, '__class__', 1)",
        "layer.__class__ = 1",
        "kind.__new__, other = 1, 2",
        "vars(execute)['record_gradient'] = 1",
        "execute.__dict__['record_gradient'] = 1",
        "sys.modules['tensorflow'] = 1",
        "del sys.modules['tensorflow']",
        "sys.meta_path[:] = []",
        "sys.meta_path.insert(0, 1)",
        "sys.modules.update(tensorflow=1)",
        "pywrap_tfe.TFE_Py_RegisterGradientFunction(1)",
        "loader.exec_module = 1",
    ],
)
def test_patches_are_recognised(line):
    for package in ("tensorflow.python", "tf_ipu_shim.tf_private"):
        text = f"from {package}.eager import execute, pywrap_tfe\n{line}\n"
        assert [number for number, _ in patching(ast.parse(text))] == [2]


@pytest.mark.parametrize(
    "line",
    [
        "self.__dict__['x'] = 1",
        "graph._ipu_traced = 1",
        "node.attr['x'].i = 1",
        "patches.change('x', lambda: sys.meta_path.append(1))",
        "sys.modules.get('x')",
        "sys.modules.items()",
    ],
)
def test_ordinary_assignments_are_not(line):
    assert not list(patching(ast.parse(f"from tensorflow.python.eager import execute\n{line}\n")))


def test_nothing_is_patched_past_the_register():
    found = {}
    for path, tree in trees().items():
        name = path.relative_to(PACKAGE).as_posix()
        for line, target in patching(tree):
            found[name, target] = line
    assert {f"{name}:{found[name, target]} {target}" for name, target in set(found) - set(OURS)} == set()
    assert set(OURS) - set(found) == set(), "no longer there: take them off the list"
