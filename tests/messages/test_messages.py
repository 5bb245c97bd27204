"""The messages between Python and the plugin: both sides declare the same, and what makes no sense is an error."""

import ctypes
import re

import numpy as np
import pytest
import tensorflow as tf
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from tensorflow.core.framework import function_pb2, node_def_pb2, types_pb2
from tf_ipu_shim.ipu import scopes

from tf_ipu_shim import errors, ipu, plugin
from tf_ipu_shim.driver import entry, program_requests, registration
from tf_ipu_shim.messages import driver_pb2, program_pb2, trace_pb2
from tf_ipu_shim.plugin import message_headers
from tf_ipu_shim.runtime import devices, op_requests

v1 = tf.compat.v1
IPU = "/device:IPU:0"
ECHOED = [program_pb2.ProgramRequest, program_pb2.ProgramAnswer]


def structs(text):
    """The structs of a generated header: {struct: {field: (number, type)}}."""
    found = {}
    for name, body in re.findall(r"struct (\w+) \{\n  static constexpr char kName(.*?)\n\};", text, re.S):
        types = {field: kind for kind, field in re.findall(r"^  ([\w:<>]+) (\w+)(?: = .*)?;$", body, re.M)}
        numbers = re.findall(r'visit\((\d+), "(\w+)", self\.(\w+)\);', body)
        assert [field for _, field, _ in numbers] == [member for _, _, member in numbers] == list(types)
        found[name] = {field: (int(number), types[field]) for number, field, _ in numbers}
    return found


def test_headers_declare_every_field_of_the_schemas():
    for file, module in {"program_messages.h": program_pb2, "driver_messages.h": driver_pb2}.items():
        text = message_headers.headers()[file]
        declared = {name.removesuffix("Message"): fields for name, fields in structs(text).items()}
        for message in module.DESCRIPTOR.message_types_by_name.values():
            fields = {field.name: field.number for field in message.fields}
            assert {name: number for name, (number, _) in declared[message.name].items()} == fields


def test_headers_give_each_kind_of_field_its_type():
    declared = structs(message_headers.headers()["program_messages.h"])
    assert declared["ArgumentMessage"] == {
        "type": (1, "tensorflow::DataType"),
        "shape": (2, "tensorflow::TensorShapeProto"),
        "variable": (3, "std::optional<VariableMessage>"),
    }
    assert declared["FrameMessage"] == {
        "file": (1, "ByteString"),
        "line": (2, "int32_t"),
        "function": (3, "ByteString"),
    }
    assert declared["StackMessage"] == {"frames": (1, "std::vector<FrameMessage>")}
    assert declared["TraceEventTime"] == {
        "timestamp": (1, "double"),
        "compile_end": (5, "std::optional<CompileEndTime>"),
    }
    assert declared["CompileEndTime"] == {"duration": (3, "int64_t")}
    assert declared["ReplicaVariable"] == {"argument": (1, "int32_t"), "chip": (2, "int32_t")}


def test_headers_declare_every_call_of_the_driver():
    text = message_headers.headers()["driver_messages.h"]
    pattern = r'struct \w+Call : DriverCall<(\w+), (\w+)> \{\n  static constexpr char kHandler\[\] = "(\w+)";'
    calls = {name: (request, answer) for request, answer, name in re.findall(pattern, text)}
    handlers = op_requests.HANDLERS.items()
    assert calls == {name: (one.request.DESCRIPTOR.name, one.answer.DESCRIPTOR.name) for name, one in handlers}


def test_a_struct_comes_after_those_that_it_contains():
    text = message_headers.headers()["program_messages.h"]
    assert (
        text.index("struct VariableMessage")
        < text.index("struct ArgumentMessage")
        < text.index("struct ProgramRequest")
    )


def echo(kind, given):
    """What the plugin writes after it has read `given`."""
    function = plugin.load()._c.ipu_echo_message
    function.restype = ctypes.c_void_p
    function.argtypes = [ctypes.c_int32, ctypes.c_char_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)]
    length = ctypes.c_int64()
    answer = function(kind is program_pb2.ProgramAnswer, given, len(given), length)
    if length.value < 0:
        raise ValueError(ctypes.string_at(answer).decode())
    return kind.FromString(ctypes.string_at(answer, length.value))


numbers = st.integers(-(2**31), 2**31 - 1)
types = st.sampled_from([types_pb2.DT_INVALID, types_pb2.DT_FLOAT, types_pb2.DT_RESOURCE, types_pb2.DT_FLOAT8_E5M2])
shapes = st.lists(st.integers(-1, 2**40), max_size=3).map(
    lambda sizes: tf.TensorShape([None if size < 0 else size for size in sizes]).as_proto()
)
nodes = st.builds(node_def_pb2.NodeDef, name=st.text(), op=st.text(), input=st.lists(st.text(), max_size=3))
functions = st.builds(function_pb2.FunctionDef, node_def=st.lists(nodes, max_size=2))
traces = st.builds(trace_pb2.IpuTraceEvent, ordinal=numbers, timestamp=st.floats(allow_nan=False))
variables = st.builds(program_pb2.Variable, name=st.text(), type=types, shape=shapes)
requests = st.builds(
    program_pb2.ProgramRequest,
    name=st.text(),
    function=st.text(),
    ordinal=numbers,
    arguments=st.lists(
        st.builds(program_pb2.Argument, type=types, shape=shapes, variable=st.none() | variables), max_size=3
    ),
    library=st.builds(function_pb2.FunctionDefLibrary, function=st.lists(functions, max_size=2)),
)
transfers = st.builds(program_pb2.TransferEvents, load_engine=traces, host_to_device=traces, device_to_host=traces)
events = st.builds(
    program_pb2.ProgramEvents,
    compile_begin=traces,
    compile_end=traces,
    execute=traces,
    transfers=st.none() | transfers,
    variables=st.lists(numbers, max_size=5),
    written=st.lists(numbers, max_size=5),
)
answers = st.builds(
    program_pb2.ProgramAnswer,
    node=nodes,
    functions=st.lists(functions, max_size=2),
    variable_chips=st.lists(numbers, max_size=5),
    inputs=st.lists(numbers, max_size=5),
    replica_variables=st.lists(st.builds(program_pb2.ReplicaVariable, argument=numbers, chip=numbers), max_size=3),
    run_group=st.text(),
    compilation=st.none()
    | st.builds(
        program_pb2.Compilation,
        module=st.text(),
        launches=st.lists(st.text(), max_size=3),
        progress_bar=st.booleans(),
        events=st.none() | events,
    ),
    sent=st.lists(
        st.builds(program_pb2.SentElements, feed_id=st.text(), rows=st.integers(0, 2**40), replicas=numbers), max_size=3
    ),
    result_shapes=st.lists(shapes, max_size=3),
)


@settings(deadline=None, max_examples=100)
@given(st.one_of(requests, answers))
def test_the_plugin_reads_and_writes_what_python_does(message):
    assert echo(type(message), message.SerializeToString()) == message


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(ECHOED), st.binary(max_size=40))
def test_bytes_that_are_no_message_are_an_error(kind, given):
    try:
        echo(kind, given)
    except ValueError as error:
        assert f"no readable {kind.DESCRIPTOR.full_name}: " in str(error)


@settings(deadline=None, max_examples=100)
@given(answers, st.data())
def test_a_truncated_or_changed_message_is_read_or_refused(message, data):
    given = bytearray(message.SerializeToString())
    for place in data.draw(st.lists(st.integers(0, max(0, len(given) - 1)), max_size=3)):
        if given:
            given[place] = data.draw(st.integers(0, 255))
    cut = bytes(given[: data.draw(st.integers(0, len(given)))])
    try:
        echo(program_pb2.ProgramAnswer, cut)
    except DecodeError:
        pass  # events are handed on as they came: this is whoever reads them
    except ValueError as error:
        assert "no readable tf_ipu_shim.ProgramAnswer: " in str(error)


UNUSED_FIELD = max(field.number for field in program_pb2.ProgramAnswer.DESCRIPTOR.fields) + 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (b"\x32\x01\xff", "field run_group of tf_ipu_shim.ProgramAnswer cannot be read"),
        (b"\x32\x03\xed\xa0\x80", "field run_group of tf_ipu_shim.ProgramAnswer cannot be read"),
        (b"\x0a", "field node of tf_ipu_shim.ProgramAnswer cannot be read"),
        (b"\x0a\x05abc", "field node of tf_ipu_shim.ProgramAnswer cannot be read"),
        (b"\x0a\x02\xff\xff", "field node of tf_ipu_shim.ProgramAnswer cannot be read"),
        (b"\x08\x01", "field node of tf_ipu_shim.ProgramAnswer cannot be read"),
        (b"\x18" + b"\xff" * 10, "field variable_chips of tf_ipu_shim.ProgramAnswer cannot be read"),
        (b"\x18\x80\x80\x80\x80\x10", "field variable_chips of tf_ipu_shim.ProgramAnswer cannot be read"),
        (b"\x2a\x03\x18\x01\x08", "tf_ipu_shim.ReplicaVariable has no field 3"),
        (b"\x3a\x02\x18\x02", "field progress_bar of tf_ipu_shim.Compilation cannot be read"),
        (bytes([UNUSED_FIELD << 3, 1]), f"tf_ipu_shim.ProgramAnswer has no field {UNUSED_FIELD}"),
        (b"\x80", "tf_ipu_shim.ProgramAnswer ends within a field"),
    ],
)
def test_what_is_wrong_with_a_message_is_said(given, said):
    with pytest.raises(ValueError, match=said):
        echo(program_pb2.ProgramAnswer, given)


@pytest.mark.parametrize(
    ("request_bytes", "said"),
    [
        (b"\xff\xff", "2 bytes, no ProgramRequest"),
        (b"", "asks for function '' of program '', and sent no functions"),
        (program_pb2.ProgramRequest(name="p", function="f").SerializeToString(), "function 'f' of program 'p'"),
        (
            program_pb2.ProgramRequest(
                name="p",
                function="f",
                arguments=[program_pb2.Argument()],
                library={"function": [{"signature": {"name": "f"}}]},
            ).SerializeToString(),
            "1 arguments for 'f' of program 'p', which takes 0",
        ),
    ],
)
def test_a_request_that_makes_no_sense_is_an_error(request_bytes, said):
    with pytest.raises(errors.PluginError, match=said):
        program_requests.parse_call(program_requests.parse_message(request_bytes))


def test_a_question_that_cannot_be_read_is_an_error():
    with pytest.raises(errors.PluginError, match="3 bytes, no SeedOrder"):
        op_requests.HANDLERS["reset_seed"](b"\x08\xff\xff")


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"\x08\x04", "field use of tf_ipu_shim.DeviceUse cannot be read"),
        (b"\x08", "field use of tf_ipu_shim.DeviceUse cannot be read"),
        (b"1", "tf_ipu_shim.DeviceUse has no field 6"),
        (None, "TypeError"),
    ],
)
def test_an_answer_of_the_driver_that_makes_no_sense_is_an_error(ipus, answer, said):
    ipus(1)
    library = plugin.load()
    library.set_handlers({**op_requests.HANDLERS, "attach": lambda request: answer})
    library.new_epoch()
    try:
        with tf.device(IPU), pytest.raises(tf.errors.InternalError, match=said):
            tf.add(tf.constant(1.0), 1.0)
    finally:
        op_requests.install(library)
    with tf.device(IPU):
        assert tf.add(tf.constant(1.0), 1.0).numpy() == 2


@pytest.fixture
def answering(ipus):
    """`answering(change)` has the lowering answer what `change` makes of its answers."""
    ipus(1)
    library = plugin.load()
    lower = entry.lower_bytes

    def install(change):
        def changed(call, request):
            return change(program_pb2.ProgramAnswer.FromString(lower(library, devices.get, call, request)))

        library.set_lowering(changed)
        library.new_epoch()

    yield install
    registration.register_lowering(library, devices.get)
    library.new_epoch()


def program_of_a_variable():
    """A program of a number and of a variable, ready to run."""
    with scopes.ipu_scope(IPU):
        weight = v1.get_variable("weight", [3], initializer=v1.ones_initializer(), use_resource=True)
        fed = v1.placeholder(tf.float32, [3])
        (program,) = ipu.ipu_compiler.compile(lambda x: weight * x + 1, [fed])
    return program, fed


def changed(**fields):
    def change(answer):
        for name, value in fields.items():
            if isinstance(value, list):
                del getattr(answer, name)[:]
                getattr(answer, name).extend(value)
            else:
                getattr(answer, name).CopyFrom(value)
        return answer.SerializeToString()

    return change


def with_events(**arguments):
    def change(answer):
        for name, value in arguments.items():
            getattr(answer.compilation.events, name).append(value)
        return answer.SerializeToString()

    return change


def without(attribute):
    def change(answer):
        del answer.node.attr[attribute]
        return answer.SerializeToString()

    return change


def with_node(op, **types):
    node = node_def_pb2.NodeDef(name="other", op=op, device=IPU)
    for name, value in types.items():
        node.attr[name].type = value
    return changed(node=node)


def variable_of(answer):
    """The argument that is the variable; the other one is the number."""
    return list(answer.variable_chips).index(0)


COPY = program_pb2.ReplicaVariable
WRONG = {
    "no bytes": (lambda answer: None, "TypeError"),
    "text": (lambda answer: answer.node.name, "TypeError|ArgumentError"),
    "nothing": (lambda answer: b"", "0 of 2 variable_chips"),
    "noise": (lambda answer: b"\xff" * 20, "no readable tf_ipu_shim.ProgramAnswer"),
    "half": (lambda answer: answer.SerializeToString()[:-3], "no readable tf_ipu_shim.ProgramAnswer"),
    "an unknown field": (lambda answer: answer.SerializeToString() + b"\x78\x01", "has no field 15"),
    "no node": (changed(node=node_def_pb2.NodeDef()), "answered no node to run"),
    "an unknown op": (with_node("NoSuchOp"), "NoSuchOp"),
    "an op without its attributes": (without("Tresults"), "Tresults"),
    "another op": (with_node("Identity", T=types_pb2.DT_FLOAT), "that takes"),
    "too few chips": (changed(variable_chips=[0]), "1 of 2 variable_chips"),
    "a chip too high": (changed(variable_chips=[256, 256]), "IPU 256 of at most 256 in variable_chips"),
    "a chip too low": (changed(variable_chips=[-2, -2]), "IPU -2 of at most 256 in variable_chips"),
    "chips of values": (changed(variable_chips=[0, 0]), "which is no variable but float"),
    "too few inputs": (changed(inputs=[0]), "that takes"),
    "inputs that are not there": (changed(inputs=[0, 2]), "argument 2 of 2 in inputs"),
    "negative inputs": (changed(inputs=[-1, 0]), "argument -1 of 2 in inputs"),
    "inputs in another order": (lambda answer: changed(inputs=answer.inputs[::-1])(answer), "that takes"),
    "copies too many": (changed(replica_variables=[COPY(argument=2)]), "argument 2 of 2 in replica_variables"),
    "copies nowhere": (
        lambda answer: changed(replica_variables=[COPY(argument=list(answer.variable_chips).index(0), chip=256)])(
            answer
        ),
        "IPU 256 of at most 256 in replica_variables",
    ),
    "copies that nobody takes": (
        lambda answer: changed(replica_variables=[COPY(argument=variable_of(answer))])(answer),
        "that takes",
    ),
    "events of other arguments": (with_events(variables=7), "argument 7 of 2 in events"),
    "events of values": (
        lambda answer: with_events(written=1 - variable_of(answer))(answer),
        "in events, which is no variable",
    ),
    "no functions": (changed(functions=[]), "not found|not defined|Not found|could not be found"),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_answer_that_makes_no_sense_is_an_error(answering, name, monkeypatch):
    change, said = WRONG[name]
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "xla")  # some are wrong as launches
    with tf.Graph().as_default():
        program, fed = program_of_a_variable()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            answering(change)
            with pytest.raises(tf.errors.OpError, match=said):
                session.run(program, {fed: np.ones(3)})
            # The next run asks again.
            answering(lambda answer: answer.SerializeToString())
            np.testing.assert_array_equal(session.run(program, {fed: np.ones(3)}), [2, 2, 2])
