"""Datasets in whole buffers, their speed, and the helpers of Graphcore's tests."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import dataset_benchmark, ipu_infeed_queue, test_utils
from tf_ipu_shim.ipu.data.ops.dataset_ops import BufferDataset

from tf_ipu_shim import ipu

v1 = tf.compat.v1


@pytest.mark.parametrize(("elements", "size", "left"), [(10, 4, 8), (8, 4, 8), (3, 4, 0), (5, 1, 5)])
def test_buffers_are_whole(elements, size, left):
    plain = BufferDataset(tf.data.Dataset.range(elements), size)
    assert [int(value) for value in plain] == list(range(left))
    pairs = tf.data.Dataset.range(elements).map(lambda i: {"a": i, "b": (tf.fill([2], i), i)})
    buffered = BufferDataset(pairs, size)
    assert buffered.element_spec == pairs.element_spec
    assert [element["b"][0].numpy().tolist() for element in buffered] == [[i, i] for i in range(left)]


def test_buffers_need_a_size():
    with pytest.raises(ValueError, match="buffer_size must be at least 1"):
        BufferDataset(tf.data.Dataset.range(3), 0)


def dataset(size=None):
    return tf.data.Dataset.range(100).map(lambda i: (tf.zeros([4, 3]), tf.cast(i, tf.int16))).take(size or 100)


def check(text, epochs, elements):
    found = json.loads(text[0])["epochs"]
    assert len(found) == epochs
    for epoch in found:
        assert epoch["elements_processed"] == elements
        assert epoch["total_bytes_processed"] == elements * (4 * 3 * 4 + 2)
        assert epoch["time_elapsed"] > 0
        assert epoch["elements_per_second"] == pytest.approx(elements / epoch["time_elapsed"])
        assert epoch["bandwidth"] == pytest.approx(epoch["total_bytes_processed"] / epoch["time_elapsed"] / 1e9)


@pytest.mark.parametrize("copied", [True, False])
def test_benchmark(copied, capsys):
    check(dataset_benchmark.dataset_benchmark(dataset(), 3, 20, True, do_memcpy=copied).numpy(), 3, 20)
    assert len(capsys.readouterr().out.splitlines()) == 3
    check(
        dataset_benchmark.dataset_benchmark(dataset(), 1, 100, print_stats=False, apply_options=False).numpy(), 1, 100
    )
    assert capsys.readouterr().out == ""


def test_benchmark_in_a_session():
    with tf.Graph().as_default(), v1.Session() as session:
        check(session.run(dataset_benchmark.dataset_benchmark(dataset(), 2, 5)), 2, 5)
        queue = ipu_infeed_queue.IPUInfeedQueue(dataset())
        check(session.run(dataset_benchmark.infeed_benchmark(queue, 2, 5)), 2, 5)


def test_benchmark_checks():
    measure = dataset_benchmark.dataset_benchmark
    with pytest.raises(TypeError, match="elements_per_epochs must be an integer, not 1.5"):
        measure(dataset(), 1, 1.5)
    with pytest.raises(TypeError, match="Expected `dataset` to be tf.data.Dataset"):
        measure([1, 2], 1, 1)
    with pytest.raises(TypeError, match="Expected `infeed_queue`"):
        dataset_benchmark.infeed_benchmark(dataset(), 1, 1)
    for epochs, elements in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="must be at least 1"):
            measure(dataset(), epochs, elements)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="Detected a tensor in the dataset with a dimension of size 0"
    ):
        measure(tf.data.Dataset.from_tensors(tf.zeros([2, 0])), 1, 1)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        refused = measure(tf.data.Dataset.from_tensors(tf.zeros([2, 0])), 1, 1)
        with pytest.raises(tf.errors.InvalidArgumentError, match="tensor in the dataset with a dimension of size 0"):
            session.run(refused)
    with pytest.raises(tf.errors.InvalidArgumentError, match="ended after"):
        measure(dataset(7), 2, 5)


def test_increasing_datasets():
    single = test_utils.create_single_increasing_dataset(3, [2], np.int32, repeat=False)
    assert [value.numpy().tolist() for (value,) in single] == [[0, 0], [1, 1], [2, 2]]
    dual = test_utils.create_dual_increasing_dataset(3, [2, 2], [1]).skip(4)
    data, label = next(iter(dual))
    np.testing.assert_array_equal(data, np.ones([2, 2], "f"))
    np.testing.assert_array_equal(label, np.ones([1], "f"))
    specification = test_utils.create_multi_increasing_dataset(2, dtypes=[np.float16, np.int32]).element_spec
    assert [part.dtype for part in specification] == [tf.float16, tf.int32]


def test_sessions_of_tests():
    with tf.Graph().as_default():
        with test_utils.ipu_session(["constant_folding"]) as session:
            assert session.run(tf.constant(3) + 4) == 7
        with pytest.raises(ValueError, match="no Grappler optimizer"), test_utils.ipu_session(["folding"]):
            pass


def test_events_of_tests():
    from tensorflow.compiler.plugin.poplar.ops import gen_ipu_ops

    def types(enabled):
        ipu.config.reset_ipu_configuration()
        config = ipu.config.IPUConfig()
        config.auto_select_ipus = 1
        if enabled:
            test_utils.enable_ipu_events(config)
        config.configure_ipu_system()
        with tf.Graph().as_default(), v1.Session() as session:
            with tf.device("/device:CPU:0"):
                events = gen_ipu_ops.ipu_event_trace()
                x = v1.placeholder(tf.float32, [4, 4])
            with ipu.scopes.ipu_scope("/device:IPU:0"):
                y = ipu.ipu_compiler.compile(lambda x: tf.matmul(x, x), [x])
            session.run(events)
            session.run(y, {x: np.ones([4, 4])})
            return test_utils.extract_all_types_from_event_trace(session.run(events))

    assert types(False) == []
    assert len(types(True)) >= 4  # compiled, loaded, executed
    ipu.config.reset_ipu_configuration()


def test_names_that_no_pattern_stands_for():
    assert test_utils.missing_whitelist_entries_in_names(["Copy_1", "add.2/Op"], ["Copy_", "a*/Op", "host"]) == ["host"]
