"""When a compiled program is lowered: configurations, sessions, threads, shapes and meta graphs."""

import threading

import numpy as np
import pytest
import tensorflow as tf
from compiling import compile_, placeholder, run
from harness import configure
from tf_ipu_shim.ipu import config, scopes

from tf_ipu_shim import plugin

v1 = tf.compat.v1
pytestmark = pytest.mark.usefixtures("graph")


def test_configured_after_the_graph_is_built_and_finalised(graph):
    def model(x):
        with scopes.ipu_shard(0):
            x = x + 1.0
        with scopes.ipu_shard(1):
            return x * 2.0

    result = compile_(model, tf.constant(1.0))
    graph.finalize()
    configure(2)
    assert run_session_of(graph, result) == [4.0]


def run_session_of(graph, result):
    with v1.Session(graph=graph) as session:
        return session.run(result)


def test_one_graph_under_two_configurations(graph):
    def model(x):
        with scopes.ipu_shard(1):
            return x * 2.0

    result = compile_(model, tf.constant([1.0, 2.0]))
    configure(1)
    expected = r"Trying to compile a graph .* placed on shard 1 at .*, in model, but the device has 1 IPU \(shards"
    with pytest.raises(tf.errors.InternalError, match=expected):
        run_session_of(graph, result)
    config.reset_ipu_configuration()
    configure(4)
    assert run_session_of(graph, result)[0].tolist() == [2.0, 4.0]
    config.reset_ipu_configuration()
    configure(2)
    assert run_session_of(graph, result)[0].tolist() == [2.0, 4.0]


def test_a_session_outlives_a_configuration():
    result = compile_(lambda x: x * 2.0, tf.constant([1.0]))
    configure(1)
    library = plugin.load()
    with v1.Session() as session:
        session.run(result)
        lowered = library.programs_lowered(0)
        session.run(result)
        assert library.programs_lowered(0) == lowered
        config.reset_ipu_configuration()
        configure(2)
        assert session.run(result)[0].tolist() == [2.0]
        assert library.programs_lowered(0) == lowered + 1


def test_each_shape_is_compiled_once():
    configure(1)
    fed = v1.placeholder(tf.float32, [None])
    result = compile_(lambda x: x * 2.0, fed)
    library = plugin.load()
    before = library.programs_lowered(0)
    with v1.Session() as session:
        for size in (2, 3, 2, 3):
            assert session.run(result, {fed: np.ones(size)})[0].tolist() == [2.0] * size
    assert library.programs_lowered(0) - before == 2


def test_several_sessions_and_threads_run_one_program(graph):
    configure(2)
    fed = placeholder(8, 8)

    def model(x):
        with scopes.ipu_shard(0):
            x = tf.matmul(x, x)
        with scopes.ipu_shard(1):
            return tf.reduce_sum(x)

    (result,) = compile_(model, fed)
    graph.finalize()
    found = {}

    def work(session, number):
        for _ in range(10):
            found[number] = session.run(result, {fed: np.full([8, 8], number, np.float32)})

    sessions = [v1.Session(graph=graph) for _ in range(2)]
    threads = [threading.Thread(target=work, args=(sessions[number % 2], number)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for session in sessions:
        session.close()
    assert found == {number: 8.0**3 * number**2 for number in range(6)}


def test_sessions_do_not_share_variables(graph):
    def model(x):
        counter = v1.get_variable("counter", initializer=0.0)
        with tf.control_dependencies([counter.assign_add(x).op]):
            return counter.read_value()

    (result,) = compile_(model, tf.constant(1.0))
    start = v1.global_variables_initializer()
    with v1.Session() as first, v1.Session() as second:
        first.run(start)
        second.run(start)
        assert [first.run(result) for _ in range(3)] == [1.0, 2.0, 3.0]
        assert second.run(result) == 1.0


def test_a_meta_graph_keeps_programs(graph):
    configure(2)

    def model(x):
        with scopes.ipu_shard(1):
            weight = v1.get_variable("w", initializer=[2.0, 3.0])
            return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * weight), (0, x), maximum_iterations=2)[1]

    fed = v1.placeholder(tf.float32, [2], name="fed")
    (result,) = compile_(model, fed)
    tf.identity(result, name="result")
    exported = v1.train.export_meta_graph(graph=graph)
    exported = type(exported).FromString(exported.SerializeToString())
    with tf.Graph().as_default():
        v1.train.import_meta_graph(exported)
        assert run("result:0", {"fed:0": [1.0, 1.0]}).tolist() == [4.0, 9.0]
