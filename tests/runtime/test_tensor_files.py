"""Files of exported tensors: what went in comes out, also through stock TensorFlow; damaged ones are refused."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.util import deprecation
from tf_ipu_shim.ipu import dataset_extractor, utils
from tf_ipu_shim.ipu.ipu_infeed_queue import IPUInfeedQueue

from tf_ipu_shim import TensorFile

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1


def numbers(elements=10):
    def element(i):
        return {"a": tf.fill([2, 3], tf.cast(i, tf.float16)), "b": (i, tf.strings.as_string(i))}

    return tf.data.Dataset.range(elements).map(element)


def check(filename, elements, feed):
    exported = TensorFile(filename)
    assert (exported.kind, exported.feed) == ("dataset", feed)
    assert [tuple(tensor) for tensor in exported.tensors] == [
        ("a", "float16", (2, 3)),
        ("b.0", "int64", ()),
        ("b.1", "string", ()),
    ]
    found = list(exported)
    assert [int(element["b.0"]) for element in found] == list(range(elements))
    assert [element["b.1"].item() for element in found] == [b"%d" % i for i in range(elements)]
    for i, element in enumerate(found):
        assert element["a"].dtype == np.float16
        np.testing.assert_array_equal(element["a"], np.full([2, 3], i))


def test_datasets(tmp_path):
    utils.export_dataset_to_file(numbers(), str(tmp_path / "file"), 7, "feed", apply_options=False)
    check(tmp_path / "file", 7, "feed")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_infeeds_in_a_graph(tmp_path):
    filename = str(tmp_path / "file")
    with tf.Graph().as_default(), v1.Session() as session:
        dataset = numbers().map(lambda element: tf.cast(element["b"][0], tf.int32))
        queue = IPUInfeedQueue(dataset, feed_name="mine")
        session.run(queue.initializer)
        utils.export_dataset_to_file(queue, filename, 4)
        utils.export_dataset_to_file(queue, filename, 3)
    exported = TensorFile(filename)
    assert "mine" in exported.feed
    assert [int(element["0"]) if "0" in element else int(element[""]) for element in exported] == [0, 1, 2]


def test_an_op_writes_whenever_it_runs(tmp_path, capsys):
    with tf.Graph().as_default(), v1.Session() as session:
        op = dataset_extractor.dataset_extractor(numbers(), 3, str(tmp_path / "file"), "feed")
        assert not list(tmp_path.iterdir())
        for _ in range(2):
            assert session.run(op) == 3
            check(tmp_path / "file", 3, "feed")
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_stock_tensorflow_reads_it(tmp_path):
    filename = str(tmp_path / "file")
    utils.export_dataset_to_file(tf.data.Dataset.range(5), filename, 5)
    header, *records = [record.numpy() for record in tf.data.TFRecordDataset(filename)]
    assert json.loads(header)["tensors"][0]["dtype"] == "int64"
    assert [int(tf.io.parse_tensor(record, tf.int64)) for record in records] == [0, 1, 2, 3, 4]


def test_a_dataset_that_ends_too_early_leaves_nothing(tmp_path):
    with pytest.raises(tf.errors.OutOfRangeError, match="ended after 3 elements; expected 4"):
        utils.export_dataset_to_file(numbers(3), str(tmp_path / "file"), 4)
    assert not list(tmp_path.iterdir())


def test_what_cannot_be_exported(tmp_path):
    filename = str(tmp_path / "file")
    with pytest.raises(AssertionError, match="takes a tf.data.Dataset or an IPUInfeedQueue, not a list"):
        utils.export_dataset_to_file([1, 2], filename, 1)
    with pytest.raises(TypeError, match="Expected `dataset` to be tf.data.Dataset"):
        dataset_extractor.dataset_extractor([1, 2], 1, filename, "feed")
    with pytest.raises(TypeError, match="num_elements must be an integer, not '1'"):
        utils.export_dataset_to_file(numbers(), filename, "1")
    with pytest.raises(TypeError, match="must be given by its path, not as 3"):
        utils.export_dataset_to_file(numbers(), 3, 1)
    nowhere = str(tmp_path / "nowhere" / "file")
    with pytest.raises(tf.errors.NotFoundError, match="there is no directory .*nowhere. Make it first"):
        utils.export_dataset_to_file(numbers(), nowhere, 1)
    with pytest.raises(tf.errors.NotFoundError, match="there is no directory"):
        dataset_extractor.export_variables([tf.Variable(1.0)], filename=nowhere)
    with pytest.raises(TypeError, match="inputs must be a list of the program's placeholders, not 3"):
        utils.export_inputs_to_file(3, filename, {})
    with pytest.raises(ValueError, match="num_elements must be at least 1. It is 0"):
        utils.export_dataset_to_file(numbers(), filename, 0)
    with pytest.raises(ValueError, match="fully defined"):
        utils.export_dataset_to_file(numbers().batch(2), filename, 1)
    ragged = tf.data.Dataset.from_tensors(tf.ragged.constant([[1], [2, 3]]))
    with pytest.raises(TypeError, match="Only tensors can be exported"):
        utils.export_dataset_to_file(ragged, filename, 1)
    assert not list(tmp_path.iterdir())


def test_inputs(tmp_path):
    with tf.Graph().as_default():
        x, y = v1.placeholder(tf.float32, [2], name="scope/x"), v1.placeholder(tf.int32, [None], name="y")
        utils.export_inputs_to_file([x, y], str(tmp_path / "file"), {x: [1, 2], y: [3]})
        with pytest.raises(ValueError, match="no value for the input y"):
            utils.export_inputs_to_file([x, y], str(tmp_path / "other"), {x: [1, 2]})
        with pytest.raises(ValueError, match="has the shape"):
            utils.export_inputs_to_file([x], str(tmp_path / "other"), {x: [1, 2, 3]})
    (element,) = TensorFile(tmp_path / "file")
    assert element["scope/x"].dtype == np.float32 and element["y"].dtype == np.int32
    np.testing.assert_array_equal(element["scope/x"], [1, 2])
    np.testing.assert_array_equal(element["y"], [3])


def test_variables_in_a_session(tmp_path, capsys):
    filename = str(tmp_path / "file")
    with tf.Graph().as_default(), v1.Session() as session:
        variables = [v1.get_variable(name, initializer=float(i), use_resource=True) for i, name in enumerate("ab")]
        assert session.run(dataset_extractor.get_variable_handles(variables)) == [[b"a"], [b"b"]]
        session.run(v1.global_variables_initializer())
        assert session.run(dataset_extractor.export_variables(variables, filename)) == 2
        session.run([variable.assign(7.0) for variable in variables])
        session.run(dataset_extractor.import_variables(variables[1:], [filename]))
        assert session.run(variables) == [7.0, 1.0]
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_variables_run_eagerly(tmp_path):
    filename = str(tmp_path / "file")
    variable = tf.Variable([1.0, 2.0], name="weights")
    dataset_extractor.export_variables([variable], None, filename, print_stats=False)
    variable.assign([0.0, 0.0])
    dataset_extractor.import_variables([variable], filename, print_stats=False)
    np.testing.assert_array_equal(variable, [1, 2])
    other = tf.Variable(1.0, name="other")
    with pytest.raises(ValueError, match="a value for each variable; missing"):
        dataset_extractor.import_variables([other], filename)
    dataset_extractor.import_variables([other], filename, strict=False, print_stats=False)
    assert float(other) == 1.0
    with pytest.raises(ValueError, match="1 variables and 2 names"):
        dataset_extractor.export_variables([variable], ["a", "b"], filename)
    with pytest.raises(ValueError, match="needs a filename"):
        dataset_extractor.export_variables([variable])
    with pytest.raises(ValueError, match="no metadata"):
        dataset_extractor.export_variables([variable], ["a"], filename, metadata="{}")


def test_tensors_of_one_name_are_refused(tmp_path):
    filename = str(tmp_path / "file")
    unnamed = [tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])]  # both are called "Variable"
    with pytest.raises(ValueError, match=r"the names \['Variable'\] in the file; names must be unique. Give export_"):
        dataset_extractor.export_variables(unnamed, filename=filename)
    with pytest.raises(ValueError, match=r"the names \['a'\] in the file"):
        dataset_extractor.export_variables(unnamed, ["a", "a"], filename)
    with pytest.raises(ValueError, match=r"the names \['a.0'\] in the file"):
        utils.export_dataset_to_file(tf.data.Dataset.from_tensors({"a.0": 1, "a": (2, 3)}), filename, 1)
    with tf.Graph().as_default():
        fed = v1.placeholder(tf.float32, [], name="fed")
        with pytest.raises(ValueError, match=r"the names \['fed'\] in the file"):
            utils.export_inputs_to_file([fed, fed], filename, {fed: 1.0})
    assert list(tmp_path.iterdir()) == []
    dataset_extractor.export_variables(unnamed, ["a", "b"], filename, print_stats=False)
    (element,) = TensorFile(filename)
    assert {name: value.tolist() for name, value in element.items()} == {"a": [1.0, 2.0], "b": [3.0, 4.0]}


def test_values_are_imported_into_variables_of_their_dtype(tmp_path):
    filename = str(tmp_path / "file")
    halves = tf.Variable(tf.constant([1.5, 2.5], tf.float16), name="halves")
    dataset_extractor.export_variables([halves], filename=filename, print_stats=False)
    for dtype in (tf.int32, tf.bfloat16, tf.float32):
        other = tf.Variable(tf.constant([7, 8], dtype), name="halves")
        with pytest.raises(ValueError, match=f"halves is {dtype.name}, and its value float16; both .* Import it into"):
            dataset_extractor.import_variables([other], filename)
        assert other.numpy().tolist() == [7, 8]
    halves.assign([0.0, 0.0])
    dataset_extractor.import_variables([halves], filename, print_stats=False)
    assert halves.numpy().tolist() == [1.5, 2.5]


@pytest.mark.parametrize("content", [b"", b"no record", b"\0" * 100])
def test_other_files(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ValueError, match="not a file of exported tensors"):
        TensorFile(tmp_path / "file")
    with pytest.raises(FileNotFoundError):
        TensorFile(tmp_path / "none")


def test_a_file_cut_short(tmp_path):
    filename = str(tmp_path / "file")
    utils.export_dataset_to_file(numbers(), filename, 3)
    content = (tmp_path / "file").read_bytes()
    (tmp_path / "file").write_bytes(content[:-5])
    with pytest.raises(ValueError, match="damaged|middle of an element"):
        list(TensorFile(filename))


def test_reading_logs_nothing(tmp_path, monkeypatch):
    """TensorFlow logs each deprecated call once: what it has logged before counts for nothing here."""
    logged = []
    monkeypatch.setattr(deprecation, "_PRINTED_WARNING", {})
    monkeypatch.setattr(deprecation.logging, "warning", lambda *message: logged.append(message))
    utils.export_dataset_to_file(numbers(), str(tmp_path / "file"), 2)
    check(str(tmp_path / "file"), 2, "")
    assert not logged
