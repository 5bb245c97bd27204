"""Statistics of datasets in the words of TensorFlow 1.15: what they count, against the elements that were made."""

import pytest
import tensorflow as tf

from tf_ipu_shim import ipu, patches

COUNTS = {"latency_stats": None, "bytes_produced_stats": 4 * 8}  # the second: four elements of eight bytes


def summary_of(serialised):
    summary = tf.compat.v1.Summary.FromString(serialised)
    return {value.tag: value.histo for value in summary.value if value.HasField("histo")}


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("data", [tf.data, tf.compat.v1.data], ids=["2", "1"])
def test_elements_are_counted_in_a_session(name, data):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        aggregator = data.experimental.StatsAggregator()
        dataset = data.Dataset.range(4).apply(getattr(data.experimental, name)("collected"))
        options = data.Options()
        options.experimental_stats.aggregator = aggregator
        options.experimental_stats.prefix = "input"
        iterator = tf.compat.v1.data.make_initializable_iterator(dataset.with_options(options))
        element, summary = iterator.get_next(), aggregator.get_summary()
        session.run(iterator.initializer)
        assert [session.run(element) for _ in range(4)] == [0, 1, 2, 3]
        found = next(histogram for tag, histogram in summary_of(session.run(summary)).items() if "collected" in tag)
    assert found.num == 4
    assert COUNTS[name] in (None, found.sum)


def test_without_an_aggregator_nothing_is_added():
    options = tf.data.Options()
    assert options.experimental_stats.aggregator is None
    options.deterministic = True
    dataset = tf.data.Dataset.range(2).with_options(options)
    assert type(dataset).__name__ == "_OptionsDataset" and [int(element) for element in dataset] == [0, 1]
    assert ipu and "tensorflow.python.data.ops.options.Options.experimental_stats" in {
        patch.target for patch in patches.applied()
    }
