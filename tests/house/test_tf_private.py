"""One boundary to TensorFlow's and Keras' insides: `tf_private` alone touches them, and all that it has is there.

The second half runs on whichever TensorFlow is installed; `make test-next` runs it on the newest pre-release.
"""

import ast
import collections
import functools
import importlib
import inspect
import pathlib

import pytest
import syntax_trees
import tensorflow.compat.v1 as v1
import tensorflow.compat.v2 as tf
from written import written

import tf_ipu_shim
from tf_ipu_shim import keras2

PACKAGE = pathlib.Path(tf_ipu_shim.__file__).parent
BOUNDARY = PACKAGE / "tf_private"
INTERNAL = (
    *(f"tensorflow.{name}" for name in ("python", "core", "compiler", "lite", "tsl", "dtensor", "_api")),
    *("keras.src", "tf_keras.src", "tensorflow_estimator"),
)
# Graphcore's names, below TensorFlow's.
OURS = ("tensorflow.python.ipu", "tensorflow.compiler.plugin")
# Of Python's own classes and of ctypes; and set by us on objects that are not ours.
NOT_FOREIGN = {"_replace", "_asdict", "_fields", "_make", "_field_defaults", "_getframe", "_exit", "_current_frames"}
NOT_FOREIGN |= {
    "_actions",
    "_profiling",
    "_verified_transfers",
    "_CXString",
}  # of argparse; of configurations, whose tree names them; of libclang's ctypes
# Modules that a script asks for by these names, which is told of in the same breath: (file, module).
FOR_SCRIPTS = {("legacy/names/tensorflow/stock_aliases.py", "tensorflow.python.keras")}
# Underscore members of the classes that ours derive from, by `self.` or `super().`: a subclass cannot do without. The
# numbers may only fall.
INHERITED = {
    "api/addons/keras/optimizers/adam_optimizer.py": 1,
    "api/addons/keras/optimizers/ipu_optimizer_base.py": 5,
    "api/addons/keras/optimizers/lamb_optimizer.py": 10,
    "api/addons/keras/optimizers/sgd_optimizer.py": 1,
    "frontend/feeds/ipu_iterators.py": 2,
    "frontend/keras/optimizers/optimizer_v2_wrapper.py": 1,
    "frontend/strategies/cluster_strategy.py": 14,
    "frontend/strategies/strategy_extended.py": 5,
    "legacy/contrib/contrib_adam.py": 11,
    "legacy/contrib/contrib_lars.py": 1,
    "legacy/estimators/base.py": 7,
    "legacy/names/tensorflow/collective_keys.py": 1,
    "plugin/live_context.py": 2,
}


def is_internal(name):
    def below(roots):
        return any(f"{name}.".startswith(f"{root}.") for root in roots)

    return below(INTERNAL) and not below(OURS)


def imported(tree):
    """Each internal module that a file imports by a name that is written there: (line, name)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and written(node.func) in ("importlib.import_module", "__import__"):
            names = [argument.value for argument in node.args[:1] if isinstance(argument, ast.Constant)]
        else:
            continue
        yield from ((node.lineno, name) for name in names if is_internal(name))


def is_private(name):
    return name.startswith("_") and not name.startswith(("__", "_ipu")) and name not in NOT_FOREIGN


def members(tree):
    """Each underscore member that a file names: (line, what of, member)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.lineno, written(node.value), node.attr
        elif isinstance(node, ast.Call) and written(node.func) in ("getattr", "hasattr", "setattr", "delattr"):
            name = node.args[1].value if len(node.args) > 1 and isinstance(node.args[1], ast.Constant) else ""
            if isinstance(name, str) and is_private(name):
                yield node.lineno, written(node.args[0]), name


def defined(tree):
    """The underscore names that a file gives to functions, classes, variables and attributes of its own objects."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if written(node.value) in ("self", "cls"):
                yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


@functools.cache
def trees():
    return {path.relative_to(PACKAGE).as_posix(): tree for path, tree in syntax_trees.trees().items()}


def outside():
    return {name: tree for name, tree in trees().items() if not name.startswith("tf_private/")}


@functools.cache
def foreign_members():
    """Underscore members of TensorFlow's and Keras' objects: what no file of this package defines under that name."""
    ours = {name for tree in trees().values() for name in defined(tree)}
    return [
        (name, line, owner, member)
        for name, tree in outside().items()
        for line, owner, member in members(tree)
        if member not in ours
    ]


def is_own(owner):
    return owner in ("self", "cls") or owner.startswith("super(")


def test_internal_modules_are_imported_in_one_place():
    found = {(name, module): line for name, tree in outside().items() for line, module in imported(tree)}
    assert sorted(set(found) - set(FOR_SCRIPTS)) == [], "give them an entry in tf_private, or use a public name"


def test_underscore_members_are_touched_in_one_place():
    found = [f"{name}:{line} {owner}.{member}" for name, line, owner, member in foreign_members() if not is_own(owner)]
    assert found == [], "give them a function in tf_private, or use a public name"


def test_inherited_members_become_fewer():
    counts = collections.Counter(name for name, _, owner, _ in foreign_members() if is_own(owner))
    assert dict(counts) == INHERITED


@pytest.mark.parametrize(
    "line",
    [
        "import tensorflow.python.framework.ops",
        "from tensorflow.python.framework import ops",
        "from tensorflow.python import tf2",
        "from tensorflow.core.framework import graph_pb2",
        "from keras.src.engine import training",
        "importlib.import_module('tf_keras.src.backend')",
        "def late():\n    from tensorflow.python import tf2",
    ],
)
def test_internal_imports_are_recognised(line):
    assert len(list(imported(ast.parse(line)))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "import tensorflow.compat.v2 as tf",
        "from tensorflow.compat.v2 import nest",
        "from tensorflow.python import ipu",
        "from tensorflow.compiler.plugin.poplar.ops import gen_ipu_ops",
        "from tf_ipu_shim.tf_private.graphs import ops",
    ],
)
def test_other_imports_are_not(line):
    assert list(imported(ast.parse(line))) == []


@pytest.mark.parametrize("line", ["op._set_attr(1)", "getattr(op, '_set_attr', None)", "op._set_attr = 1"])
def test_members_are_recognised(line):
    assert [(owner, member) for _, owner, member in members(ast.parse(line))] == [("op", "_set_attr")]


# What is there on the TensorFlow that is installed.

MODULES = sorted(path.stem for path in BOUNDARY.glob("*.py") if path.stem != "__init__")


def module(name):
    """A module of the boundary; skips a test where it is of a package that is not installed."""
    if name == "estimators":
        pytest.importorskip("tensorflow_estimator")
    return importlib.import_module(f"tf_ipu_shim.tf_private.{name}")


def entries(name):
    """The names that a module of the boundary imports: (line, name, whether its line says what for)."""
    path = BOUNDARY / f"{name}.py"
    lines = path.read_text().splitlines()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom) and is_internal(node.module):
            for alias in node.names:
                yield alias.lineno, alias.asname or alias.name, "  # " in lines[alias.lineno - 1]


def tried():
    return [(name, entry) for name in MODULES for _, entry, _ in entries(name)]


@pytest.mark.parametrize(("name", "entry"), tried(), ids=lambda value: value)
def test_entry_is_there(name, entry):
    assert getattr(module(name), entry) is not None


def test_entries_say_what_for():
    assert [f"{name}.py:{line} {entry}" for name in MODULES for line, entry, why in entries(name) if not why] == []


def test_entries_are_used():
    used = set()
    for tree in trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("tf_ipu_shim.tf_private"):
                used.update(alias.name for alias in node.names)
            elif isinstance(node, ast.Attribute):
                used.add(node.attr)
            elif isinstance(node, ast.Name):
                used.add(node.id)
    assert [f"{name}.{entry}" for name, entry in tried() if entry not in used | {"flops_registry"}] == []


def helpers(name):
    """What the functions of a module of the boundary touch: (function, class of the argument, member)."""
    for function in ast.parse((BOUNDARY / f"{name}.py").read_text()).body:
        if isinstance(function, ast.FunctionDef):
            classes = {argument.arg: written(argument.annotation) for argument in function.args.args}
            for _, owner, member in members(function):
                if owner in classes:
                    yield function.name, classes[owner], member


def in_keras(path):
    """A class or module of Keras 2."""
    module_name, _, name = path.partition(":")
    found = keras2.module(module_name)
    return getattr(found, name) if name else found


KERAS = {
    "Layer": lambda: keras2.public_module().layers.Dense(1),
    "Model": lambda: compiled_model(),
    "Functional": lambda: compiled_model(),
    "Optimizer": lambda: in_keras("optimizers.legacy.optimizer_v2:OptimizerV2"),
    "CallbackList": lambda: in_keras("callbacks:CallbackList")(add_history=True),
    "ModelSavedModelSaver": lambda: in_keras("saving.legacy.saved_model.model_serialization:ModelSavedModelSaver"),
    "FixedLossScale": lambda: v1.mixed_precision.FixedLossScale(2.0),
    "FunctionalModule": lambda: in_keras("engine.functional"),
    "DataAdapterModule": lambda: in_keras("engine.data_adapter"),
    "BackendModule": lambda: in_keras("backend"),
}


@functools.cache
def compiled_model():
    layers = keras2.public_module().layers
    given = layers.Input([1])
    model = keras2.public_module().Model(given, layers.Dense(1)(given))
    model.compile(loss="mse")
    return model


def variable_in_graph():
    with tf.Graph().as_default():
        return v1.Variable(1.0, use_resource=False)


@tf.function
def double(value):
    return value * 2


def op_in_graph():
    with tf.Graph().as_default():
        return tf.constant(1.0).op


# Members that only an instance has.
INSTANCES = {
    "ops.Graph": tf.Graph,
    "ops.Operation": op_in_graph,
    "func_graph.FuncGraph": lambda: double.get_concrete_function(tf.constant(1.0)).graph,
    "session.BaseSession": lambda: v1.Session(graph=tf.Graph()),
    "context.Context": lambda: importlib.import_module("tf_ipu_shim.tf_private.eager").context.context(),
    "dataset_ops.DatasetV2": lambda: tf.data.Dataset.range(1),
    "iterator_ops.OwnedIterator": lambda: iter(tf.data.Dataset.range(1)),
    "def_function.Function": lambda: double,
    "resource_variable_ops.BaseResourceVariable": lambda: tf.Variable(1.0),
    "ref_variable.RefVariable": variable_in_graph,
    "dtypes.DType": lambda: tf.float32,
    "variable_scope.VariableScope": v1.get_variable_scope,
    "run_config.RunConfig": lambda: module("estimators").run_config.RunConfig(
        train_distribute=v1.distribute.OneDeviceStrategy("/cpu:0")
    ),
}


def with_member(annotation, name):
    """An object or class of an argument's annotation."""
    if annotation in KERAS:
        return KERAS[annotation]()
    if annotation in INSTANCES:
        return INSTANCES[annotation]()
    return eval(annotation, vars(module(name)))


def is_set_later(kind, member):
    """Whether the file of a class that cannot be made here sets a member of its objects."""
    return isinstance(kind, type) and f".{member} = " in inspect.getsource(inspect.getmodule(kind))


@pytest.mark.parametrize(
    ("name", "function", "annotation", "member"),
    sorted({(name, *helper) for name in MODULES for helper in helpers(name)}),
    ids=lambda value: value,
)
def test_member_is_there(name, function, annotation, member):
    if annotation == "Any":
        pytest.skip("of whatever a script has")
    module(name)
    owner = with_member(annotation, name)
    assert hasattr(owner, member) or is_set_later(owner, member), f"{function}: {owner} has no {member}"


def keras_modules():
    """The internal modules of Keras 2 that the package asks `keras2` for."""
    for tree in trees().values():
        for node in ast.walk(tree):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="keras2"), attr="module"), args=[ast.Constant(value=name), *_]
                ):
                    yield name


def test_keras_modules_are_there():
    names = set(keras_modules())
    assert len(names) > 10
    assert all(keras2.module(name) for name in names)
