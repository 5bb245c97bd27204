"""Variables that ops of this package keep stay in the script's order, whatever the names of the ops are."""

import ast
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python import ipu

import tf_ipu_shim
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.gradients import accumulators, loss_scaling
from tf_ipu_shim.frontend.ops import program_state
from tf_ipu_shim.frontend.tracing import internal_variables

v1 = tf.compat.v1
# By descending names XLA would take the later one first.
SCOPES = ("a", "z")


def ran(program, fetch, runs=1):
    """What a session gives for ops beside a compiled program, after so many runs."""
    with tf.Graph().as_default(), v1.Session() as session:
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            results = ipu.ipu_compiler.compile(program, [])
        wanted = fetch()
        session.run(v1.global_variables_initializer())
        values = [session.run(results) for _ in range(runs)]
        return values, session.run(wanted)


@pytest.mark.parametrize("scopes", [SCOPES, SCOPES[::-1]])
def test_gradients_that_a_host_embedding_accumulates(ipus, execution_mode, scopes, monkeypatch):
    """Two gradients make an update: both rows of ones are subtracted at a rate of 1."""
    ipus(1)
    marked, keeps_script_order = [], internal_variables.keeps_script_order
    monkeypatch.setattr(
        internal_variables, "keeps_script_order", lambda op: marked.append(keeps_script_order(op)) or marked[-1]
    )
    spec = ipu.embedding_ops.HostEmbeddingSGDGAOptimizerSpec(1.0, accumulation_factor=2)
    tables = []

    def program():
        losses = []
        for scope in scopes:
            with v1.name_scope(scope):
                losses.append(tf.reduce_sum(tables[0].lookup(tf.constant([1, 3]))))
        gradients = []
        for scope, loss in zip(scopes, losses):
            with v1.name_scope(f"{scope}_gradient"):
                gradients += v1.gradients(loss, v1.trainable_variables())
        return gradients

    with tf.Graph().as_default(), v1.Session() as session:
        tables.append(
            ipu.embedding_ops.create_host_embedding("t", [4, 2], tf.float32, optimizer_spec=spec, initializer=None)
        )
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            results = ipu.ipu_compiler.compile(program, [])
        (table,) = (one for one in v1.global_variables() if one.op.name == "t")
        session.run(v1.global_variables_initializer())
        before = session.run(table)
        with tables[0].register(session):
            session.run(results)
        moved = before - session.run(table)
    np.testing.assert_allclose(moved, [[0, 0], [2, 2], [0, 0], [2, 2]], rtol=1e-5, atol=1e-6)
    assert len(marked) >= 3  # the table, what is accumulated, and its count
    assert all(marked)


@pytest.mark.parametrize("scopes", [SCOPES, SCOPES[::-1]])
def test_elements_of_an_iterator(ipus, execution_mode, scopes):
    ipus(1)
    with tf.Graph().as_default(), v1.Session() as session:
        dataset = tf.data.Dataset.range(1, 9).map(lambda x: tf.cast(x, tf.float32))
        iterator = v1.data.make_initializable_iterator(dataset)

        def program():
            taken = []
            for scope in scopes:
                with v1.name_scope(scope):
                    taken.append(iterator.get_next() * 1.0)
            return taken

        with ipu.scopes.ipu_scope("/device:IPU:0"):
            results = ipu.ipu_compiler.compile(program, [])
        session.run(iterator.initializer)
        assert [session.run(results) for _ in range(2)] == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("scopes", [SCOPES, SCOPES[::-1]])
def test_a_state_that_two_ops_share(ipus, execution_mode, scopes):
    """By hand: each op adds what it has read to its input, and keeps it."""
    ipus(1)

    def program():
        state, results = program_state.program_state([], tf.float32, "kept"), []
        for scope in scopes:
            with v1.name_scope(scope):
                before = state.read_value()
                state.assign(before + 1.0)
                results.append(before * 1.0)
        return results

    values, _ = ran(program, v1.no_op, runs=2)
    assert values == [[0.0, 1.0], [2.0, 3.0]]


def is_marked(handle):
    return vocabulary.INTERNAL_ATTRIBUTE in handle.op.node_def.attr


@pytest.mark.parametrize(
    "made",
    [
        lambda: program_state.program_state([2], tf.float32, "kept").handle,
        lambda: loss_scaling.LossScaleState._variable(1.0, "factor", tf.float32).handle,
        lambda: accumulators._AccumulatorVariable([2], tf.float32, "", False, b"")._handle,
        lambda: accumulators._AccumulatorVariable([2], tf.float32, "", True, b"")._handle,
    ],
)
def test_handles_are_marked(made):
    with tf.Graph().as_default():
        assert is_marked(made())
        assert not is_marked(v1.get_variable("own", [2], use_resource=True).handle)


# What scripts see as variables of their own: weights, tables, copies for serving, metrics.
SEEN = {"f8_dense.py", "host_embedding.py", "eager_export.py", "metrics.py", "engine.py"}


def hidden_variables():
    """Files that make variables which do not train, or handles of variables."""
    root = pathlib.Path(tf_ipu_shim.__file__).parent
    for path in sorted([*root.glob("frontend/**/*.py"), *root.glob("api/**/*.py"), *root.glob("legacy/**/*.py")]):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        makes = any(
            getattr(call.func, "attr", "") == "var_handle_op"
            or any(word.arg == "trainable" and getattr(word.value, "value", None) is False for word in call.keywords)
            for call in calls
        )
        if makes:
            names = [getattr(call.func, "id", getattr(call.func, "attr", "")) for call in calls]
            yield path.name, "internal" in names


def test_every_hidden_variable_is_marked():
    found = dict(hidden_variables())
    assert {"accumulators.py", "loss_scaling.py", "program_state.py", "deferred_tables.py"} < set(found)
    assert [name for name, marks in found.items() if not marks and name not in SEEN] == []
