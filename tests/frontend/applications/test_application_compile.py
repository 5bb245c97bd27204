"""What `experimental_application_compile_op` writes, and what it refuses."""

import os
import zipfile

import numpy as np
import pytest
import tensorflow as tf
from applications import compile_op, infeed_of, loop_of
from tf_ipu_shim.ipu.config import DeviceConnectionType, IPUConfig
from tf_ipu_shim.poplar.driver import poplar_executable_pb2

from tf_ipu_shim import ipu
from tf_ipu_shim.api.ipu.ops.embedded_runtime import _find_opaque_blob
from tf_ipu_shim.runtime import application_file, devices

v1 = tf.compat.v1


def signature_of(path):
    blob = _find_opaque_blob(tf.convert_to_tensor(path))
    return poplar_executable_pb2.PoplarExecutableProto.FromString(blob).embedded_runtime_config.signature


def sizes(signature):
    fields = (signature.inputs, signature.streamed_inputs, signature.outputs, signature.streamed_outputs)
    return tuple(map(len, fields))


@pytest.fixture
def compiles_only():
    config = IPUConfig()
    config.auto_select_ipus = 1
    config.device_connection.type = DeviceConnectionType.NEVER
    config.device_connection.version = "ipu2"
    config.configure_ipu_system()


def test_tensors_are_inputs_and_values_are_part_of_it(graph, compiles_only):
    fed = v1.placeholder(tf.float32, [2], name="fed")
    path = compile_op(lambda x, y: x * y, [fed, 42.0], name="compiled")
    assert path.dtype == tf.string and path.shape == [] and path.op.name == "compiled"
    with v1.Session() as session:
        written = session.run(path, {fed: [0.0, 0.0]})
    signature = signature_of(written)
    assert sizes(signature) == (1, 0, 1, 0)
    assert signature.inputs[0].name == "XLA_Args/fed"
    assert (signature.inputs[0].data_type, signature.inputs[0].shape) == (1, tf.TensorShape([2]).as_proto())
    assert written.endswith(b".poplar_exec")
    os.unlink(written)


@pytest.mark.parametrize("freeze", [False, True])
def test_variables_of_a_function_are_inputs_unless_frozen(compiles_only, tmp_path, freeze):
    variable = tf.Variable([2.0, 2.0], name="kept")
    large = tf.constant(np.arange(1000.0, dtype=np.float32))  # captured, not inlined
    path = str(tmp_path / "a.poplar_exec")
    function = tf.function(lambda: variable * variable + tf.reduce_sum(large))
    assert compile_op(function, output_path=path, freeze_variables=freeze).numpy() == path.encode()
    signature = signature_of(path)
    assert sizes(signature) == (0 if freeze else 1, 0, 1, 0)
    assert [tensor.name for tensor in signature.inputs] == ([] if freeze else ["XLA_Args/kept"])


def test_eager_tensors_among_the_inputs_are_inputs(compiles_only):
    assert sizes(signature_of(compile_op(lambda x, y: x * y, [tf.ones([3]), 2.0]))) == (1, 0, 1, 0)


def test_feeds_are_streams_and_written_variables_outputs(compiles_only):
    dataset = tf.data.Dataset.from_tensors((tf.zeros([2]), tf.zeros([3], tf.int32))).repeat()
    infeed, outfeed = ipu.ipu_infeed_queue.IPUInfeedQueue(dataset), ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    total = tf.Variable([0.0, 0.0], name="total")

    def body(last, x, n):
        return total.assign_add(x) + last, outfeed.enqueue(n)

    signature = signature_of(compile_op(lambda last: ipu.loops.repeat(4, body, [last], infeed), [tf.zeros([2])]))
    assert sizes(signature) == (2, 2, 2, 1)
    assert [tensor.name for tensor in signature.outputs] == ["XLA_Retvals/total", "XLA_Retvals/output_0"]
    assert [(s.feed, s.data_type, tf.TensorShape(s.shape)) for s in signature.streamed_inputs] == [
        (0, tf.float32, [2]),
        (0, tf.int32, [3]),
    ]


def test_scalars_that_are_streamed_need_an_engine(compiles_only):
    infeed, outfeed = infeed_of(), ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    @tf.function
    def function():
        outfeed.enqueue(2.0 * infeed._dequeue())

    assert sizes(signature_of(compile_op(function))) == (0, 1, 0, 1)


@pytest.mark.parametrize("freeze", [False, True])
def test_iterators_of_a_strategy_are_infeeds(compiles_only, freeze):
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    datasets = [tf.data.Dataset.from_tensors(np.zeros(shape, np.float32)).repeat() for shape in ([2], [2, 2])]
    with ipu.ipu_strategy.IPUStrategy().scope():
        first, second = map(iter, datasets)

    @tf.function
    def function():
        for _ in tf.range(10):
            outfeed.enqueue(tf.linalg.matvec(next(second), next(first)))

    signature = signature_of(compile_op(function, freeze_variables=freeze))
    assert sizes(signature) == (0, 2, 0, 1)
    assert {tuple(d.size for d in s.shape.dim): s.feed for s in signature.streamed_inputs}.keys() == {(2,), (2, 2)}
    assert {s.feed for s in signature.streamed_inputs} == {0, 1}


def test_nothing_is_attached_for_it(graph):
    config = IPUConfig()
    config.auto_select_ipus = 1
    config.device_connection.type = DeviceConnectionType.ON_DEMAND
    config.configure_ipu_system()
    path = compile_op(loop_of(lambda x: 2.0 * x, 2))
    with v1.Session() as session:
        session.run(path)
    assert not devices.get(0, attach=False).attached


def test_the_op_runs_on_the_host_and_is_refused_on_an_ipu(graph, ipus):
    ipus(1)
    with tf.device("/device:CPU:0"):
        path = compile_op(loop_of(lambda x: 2.0 * x, 2))
    with v1.Session() as session:
        executable = application_file.read_executable(session.run(path).decode())
    with tf.device("/device:IPU:0"):
        compile_op(loop_of(lambda x: 2.0 * x, 2))
        variable = v1.get_variable("w", initializer=[1.0, 2.0], use_resource=True)
    refusal = "Cannot assign a device for operation application_compile.*must_be_called_outside_ipu_scope"
    with v1.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=refusal):
        session.run(variable.initializer)
    assert executable.embedded_runtime_config.num_ipus == 1


def test_what_cannot_be_compiled_is_refused(compiles_only, tmp_path):
    with pytest.raises(TypeError, match="The application must be a function, not 3"):
        compile_op(3)
    with pytest.raises(tf.errors.PermissionDeniedError, match="Failed to open file for writing: .* it is a directory"):
        compile_op(lambda x: x * x, [tf.ones([2])], str(tmp_path))
    with pytest.raises(tf.errors.NotFoundError, match="Failed to open file for writing"):
        compile_op(lambda x: x * x, [tf.ones([2])], str(tmp_path / "nowhere" / "a"))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(tf.errors.InvalidArgumentError, match="Detected unsupported operations when trying to compile"):
        compile_op(lambda x: x * x, [tf.ones([2], tf.float64)])
    with pytest.raises(tf.errors.InvalidArgumentError, match="Cannot serialize a scalar elementwise graph"):
        compile_op(lambda x: x + x, [tf.ones([])])
    with pytest.raises(TypeError, match="missing 2 required positional arguments"):
        compile_op(tf.function(lambda x, y: x * y), [])
    total = tf.Variable([1.0, 1.0], name="total")
    with pytest.raises(tf.errors.InvalidArgumentError, match="variable total part of the application, which writes to"):
        compile_op(lambda: 2.0 * total.assign_add([1.0, 1.0]), freeze_variables=True)


def test_frozen_variables_need_a_value(graph, compiles_only):
    variable = v1.get_variable("w", initializer=[1.0, 2.0], use_resource=True)
    path = compile_op(lambda: 2.0 * variable, freeze_variables=True)
    with v1.Session() as session, pytest.raises(tf.errors.FailedPreconditionError, match="variable w: it has no value"):
        session.run(path)


def test_tensors_computed_around_it_must_be_inputs(graph, compiles_only):
    outside = v1.placeholder(tf.float32, [2], name="outside") + 1.0
    with pytest.raises(ValueError, match="Add it to `inputs`"):
        compile_op(lambda: 2.0 * outside)


def test_code_for_the_host_is_refused(compiles_only):
    def function(x):
        with ipu.scopes.outside_compilation_scope():
            x = tf.py_function(lambda value: value + 1.0, [x], tf.float32)
        return 2.0 * tf.ensure_shape(x, [2])

    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot run EagerPyFunc on the host"):
        compile_op(function, [tf.ones([2])])


@pytest.fixture
def written(ipus, tmp_path):
    ipus()
    variable = tf.Variable(np.arange(6.0, dtype=np.float32), name="w")
    path = tmp_path / "a.poplar_exec"
    compile_op(loop_of(lambda x: x * variable, 6), output_path=str(path), freeze_variables=True)
    return path


def test_the_file_is_an_archive_of_data(written, tmp_path):
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["a.poplar_exec"]
    with zipfile.ZipFile(written) as archive:
        assert archive.namelist() == ["executable.pb", "weights/0"]
        np.testing.assert_array_equal(np.frombuffer(archive.read("weights/0"), np.float32), np.arange(6.0))


def rewritten(path, change):
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    compression = change(members)
    with zipfile.ZipFile(path, "w", compression or zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("damage", "phrase"),
    [
        (lambda path: path.write_bytes(b"\x7fELF of a real IPU"), "not an application that can run here"),
        (lambda path: path.write_bytes(b""), "not an application that can run here"),
        (lambda path: path.write_bytes(path.read_bytes()[:-100]), "not an application that can run here"),
        (lambda path: path.write_bytes(path.read_bytes().replace(b"weights/0", b"weights/1")), "weights"),
        (lambda path: rewritten(path, lambda members: members.pop("weights/0") and None), "no member weights/0"),
        (
            lambda path: rewritten(path, lambda members: members.update({"weights/0": b"12"})),
            "has 2 bytes, and its tensor 24",
        ),
        (
            lambda path: rewritten(path, lambda members: members.update({"executable.pb": b"\xff"})),
            "no PoplarExecutableProto",
        ),
        (lambda path: rewritten(path, lambda members: members.update({"executable.pb": b""})), "has format 0"),
        (lambda path: rewritten(path, lambda members: zipfile.ZIP_DEFLATED), "is compressed"),
        (lambda path: path.unlink(), "no application"),
    ],
)
def test_broken_files_are_refused(written, damage, phrase):
    damage(written)
    with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.NotFoundError), match=phrase):
        application_file.read(str(written))


def test_a_changed_weight_is_noticed(written):
    content = bytearray(written.read_bytes())
    content[content.index(np.arange(6.0, dtype=np.float32).tobytes()) + 2] ^= 1
    written.write_bytes(content)
    with pytest.raises(tf.errors.InvalidArgumentError, match="CRC"):
        application_file.read(str(written))


def test_a_file_with_code_for_the_host_does_not_start(written):
    def change(members):
        executable = poplar_executable_pb2.PoplarExecutableProto.FromString(members["executable.pb"])
        node = executable.program.library.function[0].node_def.add(name="evil", op="ReadFile")
        node.attr["_xla_outside_compilation"].s = b"0"
        members["executable.pb"] = executable.SerializeToString()

    rewritten(written, change)
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot run ReadFile on the host"):
        ipu.embedded_runtime.embedded_runtime_start(str(written), [], "never_started")


def test_infeeds_of_another_graph_are_found(graph, compiles_only):
    with tf.Graph().as_default():
        infeed = infeed_of(2)
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    path = compile_op(lambda: ipu.loops.repeat(2, lambda x: outfeed.enqueue(2.0 * x), [], infeed))
    with v1.Session() as session:
        assert sizes(signature_of(session.run(path))) == (0, 1, 0, 1)
