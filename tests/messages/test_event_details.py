"""What the event of a compilation tells of a program: tiles of its arguments, what its products belong to."""

import collections
import json
import re
import unittest

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import config, ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, scopes, test_utils
from tf_ipu_shim.ipu.ops import pipelining_ops

from tf_ipu_shim.memory_model.computations.matmul_passes import BACKWARD, FORWARD, INFERENCE, UPDATE
from tf_ipu_shim.messages import trace_pb2

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
IPU = "/device:IPU:0"
X = np.ones([4, 8, 8, 2], np.float32)


@pytest.fixture
def configured(own_environment, tmp_path):
    """Configures with events, and with profiles where they are asked for; gives a session."""

    def configure(ipus=1, profiles=False):
        made = config.IPUConfig()
        made.auto_select_ipus = ipus
        if profiles:
            made.compilation_poplar_options = {"autoReport.all": "true", "autoReport.directory": str(tmp_path)}
        test_utils.enable_ipu_events(made)
        made.configure_ipu_system()

    with tf.Graph().as_default(), v1.Session() as session:
        yield configure, session


def compiled(session, fetched, fed, of=trace_pb2.IpuTraceEvent.COMPILE_END):
    """What the last compilation of a run tells: its tensor map and its products by type."""
    report = test_utils.ReportJSON(None, session)
    report.reset()
    session.run(fetched, fed)
    (event,) = (event for event in report.get_ipu_events() if event.type == of)
    ended = event.compile_end
    counts = collections.Counter(json.loads(ended.instruction_info)["ml_types"].values())
    return json.loads(ended.tensor_map)["mappings"], counts


def convolutions(x):
    for number in range(3):
        kernel = v1.get_variable(f"k{number}", [3, 3, 2, 2], initializer=v1.ones_initializer(), use_resource=True)
        x = tf.nn.relu(tf.nn.conv2d(x, kernel, 1, "SAME"))
    return tf.reduce_sum(x)


def test_a_program_that_infers(configured):
    configure, session = configured
    configure()
    x = v1.placeholder(tf.float32, X.shape)
    with scopes.ipu_scope(IPU):
        built = ipu_compiler.compile(convolutions, [x])
    session.run(v1.global_variables_initializer())
    assert compiled(session, built, {x: X})[1] == {INFERENCE: 3}


def test_a_program_that_trains(configured):
    def train(x):
        loss = convolutions(x)
        return loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss)

    configure, session = configured
    configure()
    x = v1.placeholder(tf.float32, X.shape)
    with scopes.ipu_scope(IPU):
        built = ipu_compiler.compile(train, [x])
    session.run(v1.global_variables_initializer())
    # Two kernels are turned round, and two convolutions take them; the first one's input needs no gradient.
    assert compiled(session, built, {x: X})[1] == {FORWARD: 3 + 2 * 2, UPDATE: 3}


def test_products_of_matrices(configured):
    def train(x):
        for number in range(3):
            weights = v1.get_variable(f"w{number}", [8, 8], initializer=v1.ones_initializer(), use_resource=True)
            bias = v1.get_variable(f"b{number}", [8], initializer=v1.ones_initializer(), use_resource=True)
            x = tf.nn.relu(tf.matmul(x, weights) + bias)
        loss = tf.reduce_sum(x)
        return loss, v1.train.GradientDescentOptimizer(0.1).minimize(loss)

    configure, session = configured
    configure()
    x = v1.placeholder(tf.float32, [4, 8])
    with scopes.ipu_scope(IPU):
        built = ipu_compiler.compile(train, [x])
    session.run(v1.global_variables_initializer())
    assert compiled(session, built, {x: np.ones([4, 8])})[1] == {FORWARD: 3, BACKWARD: 2, UPDATE: 3}


def test_arguments_are_on_the_tiles_of_their_ipu(configured):
    def model(a):
        with scopes.ipu_shard(1):
            bias = v1.get_variable("bias", [64], initializer=v1.ones_initializer(), use_resource=True)
            return a + bias

    configure, session = configured
    configure(ipus=2)
    a = v1.placeholder(tf.float32, [64])
    with scopes.ipu_scope(IPU):
        built = ipu_compiler.compile(model, [a])
    session.run(v1.global_variables_initializer())
    mappings, _ = compiled(session, built, {a: np.ones(64)})
    (rows,) = mappings.values()
    assert [row[0].split(".")[0] for row in rows] == ["arg0", "arg1", "add"] and rows[1][8] == "XLA_Args/bias"
    for row in rows:  # 64 numbers of 4 bytes, at least 128 bytes on a tile, from the second on; IPU 1 begins at 1472
        assert row[2:7] == [[64], "FLOAT32", 0, 0, 64] and row[7] == [[1473, 32], [1474, 32]]


def test_variables_come_in_the_order_they_were_made(configured):
    def model(a):
        first, second, third = (v1.get_variable(name, [4], use_resource=True) for name in ("z", "y", "x"))
        return third * a - (second + first)

    configure, session = configured
    configure()
    a = v1.placeholder(tf.float32, [4], name="fed")
    with scopes.ipu_scope(IPU):
        built = ipu_compiler.compile(model, [a])
    session.run(v1.global_variables_initializer())
    mappings, _ = compiled(session, built, {a: np.ones(4)})
    (rows,) = mappings.values()
    assert [row[8] for row in rows[:4]] == ["XLA_Args/fed", "XLA_Args/z", "XLA_Args/y", "XLA_Args/x"]


def test_plain_ops_tell_it_where_they_are_profiled(configured):
    configure, session = configured
    configure(profiles=True)
    with tf.device(IPU):
        x = v1.placeholder(tf.float32, X.shape, name="x")
        y = convolutions(x)
    session.run(v1.global_variables_initializer())
    mappings, products = compiled(session, y, {x: X})
    assert products == {INFERENCE: 3}
    rows = next(iter(mappings.values()))
    assert rows[0][8] == "XLA_Args/x"  # what is fed comes first
    assert {row[8] for row in rows[1:4]} == {"XLA_Args/k0", "XLA_Args/k1", "XLA_Args/k2"}


def test_where_the_stages_of_a_pipeline_are(configured):
    configure, session = configured
    configure(ipus=4)
    infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(np.ones(8, "f")).repeat())
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
    stages, mapping = [lambda x: x + 1.0, lambda x: x * 2.0, tf.reduce_sum], [0, 3, 1]
    with scopes.ipu_scope(IPU):
        built = ipu_compiler.compile(
            lambda: pipelining_ops.pipeline(
                stages, 6, infeed_queue=infeed, outfeed_queue=outfeed, device_mapping=mapping
            ),
            [],
        )
    session.run(infeed.initializer)
    report = test_utils.ReportJSON(unittest.TestCase(), session)
    report.reset()
    session.run(built)
    report.parse_log()
    report.assert_pipeline_stages_on_expected_ipu(mapping, 1472)
    with pytest.raises(AssertionError):
        report.assert_pipeline_stages_on_expected_ipu([0, 1, 3], 1472)


def test_dumps_that_flags_ask_for(configured, monkeypatch, tmp_path, capfd):
    configure, session = configured
    folder = tmp_path / "made" / "maps"
    monkeypatch.setenv("TF_POPLAR_FLAGS", f"--dump_schedule_as_dot --tensor_map_file_path={folder}")
    configure()
    x = v1.placeholder(tf.float32, [4, 6], name="x")
    with scopes.ipu_scope(IPU):
        [product] = ipu_compiler.compile(lambda x: tf.matmul(x, x, transpose_b=True), [x])
    capfd.readouterr()
    for _ in range(2):
        session.run(product, {x: np.ones([4, 6])})
    [file] = folder.glob("*.tensor_map.json")
    module = file.name.removesuffix(".tensor_map.json")
    [[_, _, shape, kind, _, _, elements, tiles, _]] = json.loads(file.read_text())["mappings"][module]
    assert (shape, kind, elements, sum(count for _, count in tiles)) == ([4, 6], "FLOAT32", 24, 24)
    graphs = re.findall(r"(?ms)^digraph (.*?) \{(.*?)^\}", capfd.readouterr().err)
    assert [name for name, _ in graphs] == [f'"{module}"']  # once: the second run compiles nothing
    assert re.search(r'label="\d+ MatMul', graphs[0][1])

    # A directory that cannot be made stops nothing.
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TF_POPLAR_FLAGS", f"--tensor_map_file_path={tmp_path / 'file' / 'maps'}")
    with scopes.ipu_scope(IPU):
        [total] = ipu_compiler.compile(lambda x: tf.matmul(x, x, transpose_a=True), [x])
    assert session.run(total, {x: np.ones([4, 6])}).tolist() == [[4.0] * 6] * 6
