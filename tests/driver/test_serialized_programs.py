"""`serialization_output_folder`: the files of programs, whose streams are those that the script made."""

import errno
import json

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, loops, scopes
from tf_ipu_shim.ipu.config import DeviceConnectionType, IPUConfig

from tf_ipu_shim.machine.sharing import private_files
from tf_ipu_shim.messages import cached_program_pb2

v1 = tf.compat.v1
IPU = "/device:IPU:0"


def configure(folder, connection=DeviceConnectionType.ALWAYS):
    config = IPUConfig()
    config.serialization_output_folder = str(folder)
    config.device_connection.version = "ipu2"
    config.device_connection.type = connection
    config.configure_ipu_system()


def shape(kind, *sizes):
    return {"data_type": kind, "shape": list(sizes)}


def train():
    """A loop over a dataset that writes one variable of two, and sends what it has."""
    data = (np.zeros([6, 4], "f"), np.zeros([6], np.int32))
    infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensor_slices(data))
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
    with tf.device("cpu"):
        scale = v1.placeholder(np.float16, [2], name="z/scale")
        rate = v1.placeholder(np.float32, [], name="a/rate")

    def program(scale, rate):
        def step(x, label):
            written = v1.get_variable("written", [4], initializer=v1.zeros_initializer())
            read = v1.get_variable("read", [4], initializer=v1.ones_initializer())
            with tf.control_dependencies([written.assign_add(rate * read * x)]):
                return outfeed.enqueue((tf.reduce_sum(x), label, scale))

        return tf.cast(scale, tf.float32) * rate, loops.repeat(3, step, [], infeed)

    with scopes.ipu_scope(IPU):
        compiled = ipu_compiler.compile(program, [scale, rate])
    return [infeed.initializer, v1.global_variables_initializer()], compiled, {scale: [1, 2], rate: 0.5}


def run():
    with tf.Graph().as_default(), v1.Session() as session:
        start, compiled, feed = train()
        with tf.device("cpu"):
            session.run(start)
        session.run(compiled, feed)


def test_the_files_of_a_program(tmp_path):
    folder = tmp_path / "made" / "here"
    configure(folder)
    run()
    binary, described = sorted(folder.iterdir())
    assert [binary.suffix, described.suffix] == [".ipu_bin", ".json"] and binary.stem == described.stem
    kept = cached_program_pb2.CachedProgram.FromString(binary.read_bytes())
    assert kept.needs_engine and kept.answer.node.op
    streams = json.loads(described.read_text())
    assert streams["program"] == "program"
    assert streams["inputs"] == [
        {"name": "a/rate", "type": "input_data", "handle": "1.0", "shape": shape("F32")},
        {"name": "z/scale", "type": "input_data", "handle": "0.0", "shape": shape("F16", 2)},
        *(
            {"name": name, "type": "parameter", "handle": f"{index}.0", "shape": shape("F32", 4)}
            for index, name in ((2, "written"), (3, "read"))
        ),
    ]
    assert streams["outputs"] == [
        {"name": "XLA_Retvals", "type": "output_data", "handle": "out_0.0", "shape": shape("F32", 2)},
        {"name": "written", "type": "parameter_out", "handle": "out_1.0", "shape": shape("F32", 4)},
    ]
    first = [{"name": "1.0", "shape": shape("F32", 4)}, {"name": "1.1", "shape": shape("S32")}]
    assert streams["infeeds"] == [{"name": "1", "streams": first}]
    sent = [shape("F32"), shape("S32"), shape("F16", 2)]
    assert streams["outfeeds"] == [
        {"name": "2", "streams": [{"name": f"2.{index}", "shape": one} for index, one in enumerate(sent)]}
    ]


def test_the_same_program_has_the_same_files(tmp_path):
    configure(tmp_path)
    run()
    files = sorted(tmp_path.iterdir())
    before = [file.read_bytes() for file in files if file.suffix == ".json"]
    run()
    assert sorted(tmp_path.iterdir()) == files
    assert [file.read_bytes() for file in files if file.suffix == ".json"] == before


@pytest.mark.parametrize("connection", [DeviceConnectionType.PRE_COMPILE, DeviceConnectionType.NEVER])
def test_programs_that_are_only_compiled_are_written(tmp_path, connection):
    configure(tmp_path, connection)
    with tf.Graph().as_default(), v1.Session() as session:
        with tf.device("cpu"):
            x = v1.placeholder(tf.float32, [3, 3])
        with scopes.ipu_scope(IPU):
            compiled = ipu_compiler.compile(lambda x: tf.matmul(x, x), [x])
        if connection == DeviceConnectionType.NEVER:
            with pytest.raises(tf.errors.InvalidArgumentError, match="compilation only"):
                session.run(compiled, {x: np.eye(3)})
        else:
            session.run(compiled, {x: np.eye(3)})
    assert sorted(file.suffix for file in tmp_path.iterdir()) == [".ipu_bin", ".json"]


def test_functions_of_a_strategy(tmp_path):
    from tf_ipu_shim.ipu.ipu_strategy import IPUStrategyV1

    configure(tmp_path)
    strategy = IPUStrategyV1()
    with strategy.scope():
        weight = tf.Variable(tf.ones([2, 2]), name="weight")
    strategy.run(tf.function(lambda x: tf.matmul(x, weight)), args=[tf.ones([3, 2])])
    streams = json.loads(next(tmp_path.glob("*.json")).read_text())
    assert [stream["shape"] for stream in streams["inputs"]] == [shape("F32", 3, 2), shape("F32", 2, 2)]
    assert [stream["shape"] for stream in streams["outputs"]] == [shape("F32", 3, 2)]


def test_a_directory_that_cannot_be_made_is_a_line_in_the_log(tmp_path, monkeypatch, capfd):
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "0")
    (tmp_path / "file").write_text("")
    configure(tmp_path / "file")
    run()
    assert "cannot be written to" in (said := capfd.readouterr().err) and "serialization_output_folder" in said


def test_nothing_is_left_of_a_file_that_cannot_be_written_whole(tmp_path, monkeypatch):
    def cut_short(file, mode):
        with open(file, mode) as opened:
            opened.write(b"cut")
        raise OSError(errno.ENOSPC, "No space left on device")

    configure(tmp_path / "folder")
    monkeypatch.setattr(private_files, "open", cut_short, raising=False)
    run()  # the program runs all the same
    assert list((tmp_path / "folder").iterdir()) == []
