"""Cells, optimizers, embeddings and tables of `tensorflow.contrib`; values are NumPy's by the published definitions."""

import importlib.util

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python import ipu

from tensorflow.contrib import layers, lookup, opt, rnn  # isort: skip

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
IPU = "/device:IPU:0"
BEGIN = np.float32([[3.0, -4.0], [0.5, 2.0], [-1.0, 1.5], [2.0, 2.0]])
ROWS = ([0, 1], [1, 1, 3], [3], [0, 2])


def lazy(w, m, v, g, there, rate):
    m, v = np.where(there, 0.9 * m + 0.1 * g, m), np.where(there, 0.999 * v + 0.001 * g * g, v)
    return w - np.where(there, rate * m / (np.sqrt(v) + 1e-8), 0), m, v


def nadam(w, m, v, g, there, rate):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return w - np.where(there, rate * (0.9 * m + 0.1 * g) / (np.sqrt(v) + 1e-8), 0), m, v


def expected(step, rows):
    """Weights and moments after each of the steps; the loss is half the sum of squares of what is looked up."""
    w, m, v = BEGIN.astype(np.float64), np.zeros_like(BEGIN), np.zeros_like(BEGIN)
    for t, ids in enumerate(rows, 1):
        count = np.bincount(ids, minlength=4)[:, None]
        w, m, v = step(w, m, v, count * w, count > 0, 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t))
        yield w, m, v


OPTIMIZERS = pytest.mark.parametrize(
    ("optimizer", "step"), [(opt.LazyAdamOptimizer, lazy), (opt.NadamOptimizer, nadam)], ids=["lazy", "nadam"]
)


@pytest.mark.parametrize("use_resource", [False, True])
@OPTIMIZERS
def test_optimizers_of_rows(graph, optimizer, step, use_resource):
    w = v1.get_variable("w", initializer=BEGIN, use_resource=use_resource)
    ids = v1.placeholder(tf.int64, [None])
    made = optimizer(0.1)
    train = made.minimize(tf.reduce_sum(tf.gather(w, ids) ** 2) / 2)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for rows, values in zip(ROWS, expected(step, ROWS)):
            session.run(train, {ids: rows})
            found = session.run([w, made.get_slot(w, "m"), made.get_slot(w, "v")])
            for one, value in zip(found, values):
                np.testing.assert_allclose(one, value, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("use_resource", [False, True])
@OPTIMIZERS
def test_optimizers_of_whole_variables(graph, optimizer, step, use_resource):
    w = v1.get_variable("w", initializer=BEGIN, use_resource=use_resource)
    train = optimizer(0.1).minimize(tf.reduce_sum(w**2) / 2)
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for value, _, _ in expected(step, [range(4)] * 3):
            session.run(train)
            np.testing.assert_allclose(session.run(w), value, rtol=2e-5)


@pytest.mark.parametrize("rows", [True, False])
@OPTIMIZERS
def test_optimizers_on_an_ipu(graph, optimizer, step, rows):
    ipu.config.IPUConfig().configure_ipu_system()

    def model(ids):
        w = v1.get_variable("w", initializer=BEGIN, use_resource=True)
        taken = tf.gather(w, ids) if rows else w
        loss = tf.reduce_sum(taken**2) / 2
        return loss, optimizer(0.1).minimize(loss)

    ids = v1.placeholder(tf.int32, [2])
    with ipu.scopes.ipu_scope(IPU):
        train = ipu.ipu_compiler.compile(model, [ids])
    looked_up = [[0, 1], [1, 1], [3, 2]] if rows else [range(4)] * 3
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        for one in looked_up:
            session.run(train, {ids: list(one)[:2]})
        (w,) = (one for one in v1.global_variables() if one.name == "w:0")
        *_, (value, _, _) = expected(step, looked_up)
        np.testing.assert_allclose(session.run(w), value, rtol=2e-5, atol=1e-6)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(inputs, kernel, gain, shift, forget_bias=1.0):
    """Outputs and the last state of a normalised LSTM: `[batch, time, size]`, as NumPy has it."""

    def norm(x):
        mean = x.mean(-1, keepdims=True)
        return gain * (x - mean) / np.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-12) + shift

    c = h = np.zeros([len(inputs), kernel.shape[1] // 4])
    outputs = []
    for x in inputs.swapaxes(0, 1):
        entered, candidate, forgotten, given = map(norm, np.split(np.concatenate([x, h], 1) @ kernel, 4, 1))
        c = norm(c * sigmoid(forgotten + forget_bias) + sigmoid(entered) * np.tanh(candidate))
        h = np.tanh(c) * sigmoid(given)
        outputs.append(h)
    return np.stack(outputs, 1), c


X = np.sin(np.arange(24, dtype=np.float32).reshape(2, 3, 4))
KERNEL = np.cos(np.arange(180, dtype=np.float32).reshape(9, 20))


@pytest.mark.parametrize("on_ipu", [False, True])
def test_layer_norm_lstm(graph, on_ipu):
    def model(x):
        with v1.variable_scope("root", use_resource=True):
            cell = rnn.LayerNormBasicLSTMCell(5, norm_gain=0.5, norm_shift=0.3)
            return v1.nn.dynamic_rnn(cell, x, dtype=tf.float32)

    x = v1.placeholder(tf.float32, X.shape)
    if on_ipu:
        ipu.config.IPUConfig().configure_ipu_system()
        with ipu.scopes.ipu_scope(IPU):
            results = ipu.ipu_compiler.compile(model, [x])
    else:
        results = model(x)
    below = ["kernel", *(f"{part}/{name}" for part in "input transform forget output state".split() for name in NORM)]
    assert [one.op.name for one in v1.global_variables()] == [
        f"root/rnn/layer_norm_basic_lstm_cell/{name}" for name in below
    ]
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        v1.global_variables()[0].load(KERNEL, session)
        outputs, state = session.run(results, {x: X})
    value, last = lstm(X, KERNEL, 0.5, 0.3)
    np.testing.assert_allclose(outputs, value, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(state.c, last, rtol=1e-4, atol=1e-5)


NORM = ("gamma", "beta")


def test_dropout_of_layer_norm_lstm_is_on_the_candidate(graph):
    x, c = tf.ones([1, 8]), tf.zeros([1, 4000])
    cell = rnn.LayerNormBasicLSTMCell(4000, layer_norm=False, dropout_keep_prob=0.25, dropout_prob_seed=3)
    with v1.variable_scope("root", initializer=v1.constant_initializer(0.1)):
        _, state = cell(x, v1.nn.rnn_cell.LSTMStateTuple(c, c))
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        kept = session.run(state.c)
    gate = 0.8 + 0.1  # eight ones with weights of 0.1, and the bias
    whole = sigmoid(gate) * np.tanh(gate) / 0.25
    np.testing.assert_allclose(np.unique(kept), [0, whole], rtol=1e-5)
    assert 0.2 < np.mean(kept > 0) < 0.3


def test_embed_sequence(graph):
    table = np.float32([[1, 2], [3, 4], [5, 6]])
    found = layers.embed_sequence(
        [[0, 1], [1, 2]], 3, 2, initializer=v1.constant_initializer(table), regularizer=layers.l2_regularizer(0.1)
    )
    again = layers.embed_sequence([[2, 2, 0]], scope="EmbedSequence", reuse=True, unique=True)
    assert [one.op.name for one in v1.global_variables()] == ["EmbedSequence/embeddings"]
    assert v1.get_collection(v1.GraphKeys.MODEL_VARIABLES) == v1.trainable_variables() == v1.global_variables()
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        np.testing.assert_array_equal(session.run(found), table[[[0, 1], [1, 2]]])
        np.testing.assert_array_equal(session.run(again), table[[[2, 2, 0]]])
        (penalty,) = session.run(v1.losses.get_regularization_losses())
    assert penalty == pytest.approx(0.1 * np.sum(table**2) / 2)
    with pytest.raises(ValueError, match="Must specify vocab size and embedding dimension"):
        layers.embed_sequence([[1]], vocab_size=3)


def test_tables(graph, tmp_path):
    words = tmp_path / "words.txt"
    words.write_text("a\nb\nc\n")
    names, numbers = tf.constant(["a", "c", "z"]), tf.constant([0, 2, 9], tf.int64)
    fixed = lookup.HashTable(lookup.KeyValueTensorInitializer(["a", "b"], tf.constant([1, 2], tf.int64)), -7)
    shared = lookup.HashTable(lookup.KeyValueTensorInitializer(["c"], [5]), -7, shared_name="shared")
    of_file = lookup.index_table_from_file(str(words), num_oov_buckets=1)
    results = [
        (fixed.lookup(names), [1, -7, -7]),
        (shared.lookup(names), [-7, 5, -7]),
        (of_file.lookup(names), [0, 2, 3]),
        (lookup.index_table_from_tensor(mapping=["c", "a"], default_value=-2).lookup(names), [1, 0, -2]),
        (lookup.string_to_index_table_from_file(str(words)).lookup(names), [0, 2, -1]),
        (lookup.string_to_index_table_from_tensor(["c", "z"], num_oov_buckets=1).lookup(names), [2, 0, 1]),
        (lookup.string_to_index(names, mapping=["z"]), [-1, -1, 0]),
        (lookup.index_to_string(numbers, mapping=["x", "y", "w"]), [b"x", b"w", b"UNK"]),
        (lookup.index_to_string_table_from_tensor(["x"], default_value="?").lookup(numbers), [b"x", b"?", b"?"]),
        (lookup.index_to_string_table_from_file(str(words)).lookup(numbers), [b"a", b"c", b"UNK"]),
    ]
    mutable = lookup.MutableHashTable(tf.string, tf.int64, -5)
    dense = lookup.MutableDenseHashTable(tf.int64, tf.int64, -1, empty_key=0, deleted_key=-1)
    with v1.Session() as session:
        session.run(fixed.init)
        session.run(v1.tables_initializer())
        for found, values in results:
            assert session.run(found).tolist() == values
        session.run([mutable.insert(["k"], tf.constant([4], tf.int64)), dense.insert(numbers[1:2], numbers[2:])])
        assert session.run([mutable.lookup(["k", "l"]), dense.lookup(numbers[1:])])[0].tolist() == [4, -5]
        assert session.run(dense.lookup(numbers[1:])).tolist() == [9, -1]
    assert shared.resource_handle.op.get_attr("shared_name") == b"shared"


def test_hyperparameters():
    from tensorflow.contrib.training.python.training.hparam import HParams

    made = tf.contrib.training.HParams(rate=0.1, units=8, sizes=[4, 2], name="a", flag=False, free=None)
    assert made.__class__ is HParams and made.rate == 0.1 and "rate" in made and "other" not in made
    made.parse("rate=1,units=16,sizes=[1,2,3],sizes[1]=9,flag=true,name=b c")
    assert made.values() == {"rate": 1.0, "units": 16, "sizes": [1, 9, 3], "name": "b c", "flag": True, "free": None}
    assert isinstance(made.rate, float) and made.get("other", 3) == 3
    assert made.override_from_dict({"rate": 2}).rate == 2.0
    assert HParams(units=1).parse_json('{"units": 5}').to_json() == '{"units": 5}'
    made.free, made.units = "x", 7
    assert made.values()["free"] == "x" and made.values()["units"] == 7
    made.del_hparam("free")
    made.add_hparam("more", 1)
    assert "free" not in made and made.more == 1
    for wrong in ("units=1.5", "units=x", "other=1", "rate", "flag=2", "sizes=3", "units=[1]"):
        with pytest.raises(ValueError):
            made.parse(wrong)
    for name, value in (("units", 1.5), ("units", True), ("flag", 1), ("name", 3), ("rate", "1")):
        with pytest.raises(ValueError, match=f"Could not cast hyperparameter '{name}'"):
            made.set_hparam(name, value)
    with pytest.raises(ValueError, match="is reserved"):
        made.add_hparam("values", 1)
    with pytest.raises(KeyError):
        made.set_hparam("other", 1)


def test_streaming_metrics(graph):
    predictions, labels = tf.constant([1, 1, 0, 1]), tf.constant([1, 0, 0, 0])
    metrics = tf.contrib.metrics
    updates = {
        name: getattr(metrics, f"streaming_{name}")(predictions, labels)[1]
        for name in ("accuracy", "precision", "recall", "false_positives", "true_positives", "false_negatives")
    }
    updates["mean"] = metrics.streaming_mean([1.0, 3.0])[1]
    updates["mean_squared_error"] = metrics.streaming_mean_squared_error([1.0, 3.0], [0.0, 0.0])[1]
    updates["batch"] = metrics.accuracy(predictions, labels)
    updates["weighted"] = metrics.accuracy(predictions, labels, [1.0, 0.0, 0.0, 1.0])
    with v1.Session() as session:
        session.run(v1.local_variables_initializer())
        found = session.run(updates)
    expected = {
        "accuracy": 0.5,
        "precision": 1 / 3,
        "recall": 1,
        "false_positives": 2,
        "true_positives": 1,
        "false_negatives": 0,
        "mean": 2,
        "mean_squared_error": 5,
        "batch": 0.5,
        "weighted": 0.5,
    }
    assert found == pytest.approx(expected)
    with pytest.raises(ValueError, match="predictions are float32 and labels int32; expected one type"):
        metrics.accuracy([1.0], [1])


def test_names_that_stock_tensorflow_has():
    from tensorflow.contrib.rnn.python.ops.core_rnn_cell import LSTMCell

    assert LSTMCell is v1.nn.rnn_cell.LSTMCell
    assert tf.contrib.framework.sort is tf.sort and tf.contrib.framework.argsort is tf.argsort
    assert tf.contrib.framework.create_global_step is v1.train.create_global_step
    np.testing.assert_array_equal(layers.flatten(tf.ones([2, 3, 4])), np.ones([2, 12]))
    np.testing.assert_array_equal(layers.one_hot_encoding([1, 0], 2, 2.0, -1.0), [[-1, 2], [2, -1]])


def test_the_projector_of_tensorboard():
    from tensorflow.contrib.tensorboard.plugins import projector

    if importlib.util.find_spec("tensorboard"):
        assert len(projector.ProjectorConfig().embeddings) == 0
    else:
        with pytest.raises(AttributeError, match="ProjectorConfig: .*pip install tensorboard"):
            projector.ProjectorConfig()


@pytest.mark.parametrize(
    ("name", "instead"),
    [("cudnn_rnn", "PopnnLSTM"), ("image", "tf.image"), ("mixed_precision", "AutomaticLossScalingOptimizer")],
)
def test_parts_without_a_place_name_another(name, instead):
    with pytest.raises(AttributeError, match=f"tensorflow.contrib.{name}: .*is not supported.*{instead}"):
        getattr(tf.contrib, name)
    with pytest.raises(ImportError, match=instead):
        __import__(f"tensorflow.contrib.{name}")
