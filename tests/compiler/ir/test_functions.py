"""The representation that passes change: edges, edits, and the functions that are written of it."""

import numpy as np
import pytest
import tensorflow as tf
from function_builder import Function, program
from harness import IPU, configure
from tensorflow.core.framework import node_def_pb2, types_pb2

from tf_ipu_shim import ipu, memory_report
from tf_ipu_shim.compiler.ir import op_types
from tf_ipu_shim.compiler.ir.function_graph import FunctionGraph
from tf_ipu_shim.compiler.loops import chunks
from tf_ipu_shim.compiler.passes import random_seeds
from tf_ipu_shim.compiler.replicas import replicas
from tf_ipu_shim.driver import planned_program as lowering

v1 = tf.compat.v1


def names(nodes):
    return [node.name for node in nodes]


def op(name, kind, *inputs):
    made = node_def_pb2.NodeDef(name=name, op=kind, input=inputs)
    made.attr["T"].type = types_pb2.DT_FLOAT
    return made


def diamond():
    """x -> a -> b and c -> d; and e, which nothing needs."""
    function = Function("f", "x").op("a", "Neg", "x").op("b", "Tanh", "a").op("c", "Neg", "a")
    return function.op("d", "Mul", "b", "c").op("e", "Neg", "a", shard=3).returns("d")


def test_edges():
    graph = FunctionGraph.parse(diamond().definition)
    assert names(graph.nodes) == ["a", "b", "c", "d"]
    a, b, c, d = graph.nodes
    assert names(a.users) == ["b", "c"] and names(d.producers) == ["b", "c"] and a.producers == [None]
    assert graph.producer("c:y:0") is c and graph.producer("x") is None
    assert graph.ops == {"Neg", "Tanh", "Mul"}
    assert [mark.shard for mark in graph.annotations.values()] == [3], "also of what nothing needs"


@pytest.mark.parametrize("inputs", [["b:y:0"], ["nothing:y:0"], ["nothing"], ["^nothing"]])
def test_what_is_no_function(inputs):
    """A circle, and inputs that name nothing."""
    with pytest.raises(ValueError, match="cycle|expected the name of an op"):
        FunctionGraph("f", {}, [op("a", "Neg", *inputs), op("b", "Neg", "a:y:0")], [], ["b"])


@pytest.mark.parametrize("execution_mode", ["xla", "kernels"])
def test_what_waits_for_an_argument_waits_for_nothing(own_environment, monkeypatch, execution_mode):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", execution_mode)
    configure()

    @tf.function
    def called(x, y):
        with tf.control_dependencies([x]):
            return tf.identity(y) * 2.0

    def body(i, y):
        with tf.control_dependencies([i, y]):
            return tf.identity(i) + 1.0, called(i, y)

    @tf.function(jit_compile=True)
    def program(x):
        with tf.control_dependencies([x]):
            return tf.while_loop(lambda i, y: i < 3.0, body, [0.0, called(x, x) + called(x, 1.0)])

    with tf.device(IPU):
        np.testing.assert_array_equal(program(tf.constant(3.0)), [3.0, 64.0])


def test_an_op_takes_another_ones_place():
    graph = FunctionGraph.parse(diamond().definition)
    a, b, c, d = graph.nodes
    before = c.proto.SerializeToString()

    def rule(node):
        return [op("new", "Tanh", "x"), op("c", "Neg", "new:y:0", "^b")] if node is c else None

    graph.rewrite(rule)
    assert names(graph.nodes) == ["a", "b", "new", "c", "d"] and [node.index for node in graph.nodes] == [*range(5)]
    assert names(a.users) == ["b"] and names(b.users) == ["c", "d"] and names(c.users) == ["d"]
    assert names(c.controls) == ["b"] and names(c.producers) == ["new"]
    assert names(graph.nodes[2].users) == ["c"]
    assert diamond().definition.node_def[2].SerializeToString() == before, "the request's own stays as it is"


def test_a_function_is_written_as_it_was_changed():
    graph = FunctionGraph.parse(diamond().definition)
    graph.rewrite(lambda node: None, before=[op("first", "Neg", "x")], after=[op("last", "Neg", "d:z:0")])
    made = graph.write("g", lambda proto: None)
    assert [node.name for node in made.node_def] == ["first", "a", "b", "c", "d", "last"]
    again = FunctionGraph.parse(made)
    assert again.name == "g" and again.arguments == graph.arguments and again.results == graph.results


def caller(name, called, shard=None):
    function = Function(name, "x").op("call", "PartitionedCall", "x", functions={"f": called}, shard=shard)
    return function.returns("call")


def chain():
    """main -> middle -> leaf, and beside."""
    main = Function("main", "x").op("one", "PartitionedCall", "x", functions={"f": "middle"})
    main.op("other", "PartitionedCall", "one", functions={"f": "beside"}).returns("other")
    leaf = Function("leaf", "x").op("l", "Tanh", "x").returns("l")
    beside = Function("beside", "x").op("s", "Neg", "x").returns("s")
    return program(main, caller("middle", "leaf"), leaf, beside)


def test_functions_that_have_an_op():
    functions = chain()
    assert functions.with_ops(frozenset({"Tanh"})) == {"main", "middle", "leaf"}
    assert functions.with_ops(frozenset({"Neg"})) == {"main", "beside"}
    assert functions.reached() == ["main", "middle", "beside", "leaf"]


def test_what_is_called_is_written_once_under_another_name():
    functions = chain()
    functions["leaf"].rewrite(lambda node: [op("l", "Neg", "x")])
    middle = functions.external_name("middle")
    assert middle != "middle" and functions.external_name("middle") == middle and len(functions.written) == 2
    (called,) = op_types.called_functions(functions.find_external(middle).definition.node_def[0])
    assert functions.find_external(called).traced == "leaf"
    assert [node.op for node in functions.find_external(called).definition.node_def] == ["Neg"]


def test_a_function_with_marks_is_written_without():
    functions = program(caller("main", "middle"), caller("middle", "middle_0", shard=1), caller("middle_0", "middle"))
    name = functions.external_name("middle")
    assert name not in ("middle", "middle_0", "main")
    assert not functions.find_external(name).definition.node_def[0].attr["_XlaSharding"].s


def test_replicas_differ_in_what_asks_for_their_number():
    functions = chain()

    def index(node):
        made = node_def_pb2.NodeDef(name="i", op="ReplicationIndex")
        return [made, op("l", "Neg", "x", "^i")]

    functions["leaf"].rewrite(index)
    second = replicas.replica_functions(functions, replicas.Replica(1, 2, 1, "group"))
    assert second["beside"] is functions["beside"] and second["leaf"] is not functions["leaf"]
    assert second["leaf"].nodes[0].op == "Const" and functions["leaf"].nodes[0].op == "ReplicationIndex"
    assert second.external_name("beside") == functions.external_name("beside")
    assert second.external_name("middle") != functions.external_name("middle")


def test_a_function_that_is_a_body_and_called_has_two_versions():
    """As a loop's body it hands on a seed, as a function that is called it does not."""
    body = Function("body", "y").op("b", "Neg", "y").returns("b")
    node = body.definition.node_def.add(name="draw", op="RandomUniform", input=["size"])
    node.attr["dtype"].type = types_pb2.DT_FLOAT
    node.attr["T"].type = types_pb2.DT_INT32
    body.definition.signature.input_arg.add(name="size", type=types_pb2.DT_INT32)
    body.definition.signature.control_output.append("draw")
    body.definition.control_ret["draw"] = "draw"
    main = Function("main", "x").op("loop", "While", "x", functions={"cond": "cond", "body": "body"})
    main.op("call", "PartitionedCall", "loop", functions={"f": "body"}).returns("call")
    cond = Function("cond", "y").op("c", "Neg", "y").returns("c")
    functions = program(main, body, cond)
    random_seeds.add_seeds(functions, 0)
    loop, call = (node for node in functions["main"].nodes if node.name in ("loop", "call"))
    as_body, called = loop.proto.attr["body"].func.name, call.proto.attr["f"].func.name
    assert as_body != called
    assert [result.name for result in functions[as_body].results] == ["result_b", "ipu_random_seed"]
    assert [result.name for result in functions[called].results] == ["result_b"]
    assert "ipu_random_seed" in functions["cond"].arguments
    assert functions["main"].nodes[0].op == "IpuRandomSeed"


def test_nothing_random_is_left_alone():
    functions = chain()
    before = {name: [id(node.proto) for node in functions[name].nodes] for name in functions}
    random_seeds.add_seeds(functions, 0)
    replicas.fold_replica_count(functions, replicas.Replica())
    assert {name: [id(node.proto) for node in functions[name].nodes] for name in functions} == before


def plan_of_a_loop():
    def body(total, x):
        weights = v1.get_variable("w", [100, 100], use_resource=True)
        return total + tf.matmul(x[None], weights)[0], outfeed.enqueue(x[:3])

    with tf.Graph().as_default(), v1.Session() as session:
        outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
        dataset = tf.data.Dataset.from_tensor_slices(np.ones([4, 100], "f")).repeat()
        infeed = ipu.ipu_infeed_queue.IPUInfeedQueue(dataset)
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            program = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(40, body, [np.zeros(100, "f")], infeed))
        session.run([v1.global_variables_initializer(), infeed.initializer])
        session.run(program)
    (device,) = memory_report().devices
    return device.programs[-1]


def test_the_plan_of_chunks_is_that_without(ipus, monkeypatch):
    """One lowering gives both what runs, and what is planned."""
    ipus(1)
    with_chunks = plan_of_a_loop()
    monkeypatch.setattr(chunks, "_MAX_ITERATIONS", 1)
    ipu.config.reset_ipu_configuration()
    ipus(1)
    without = plan_of_a_loop()
    assert with_chunks.peak_bytes == without.peak_bytes > 4 * 100 * 100
    assert with_chunks.ipus[0].categories == without.ipus[0].categories


@pytest.mark.parametrize("shard", [0, -1])
def test_a_loop_on_every_ipu_is_one_program(ipus, monkeypatch, shard):
    """As one on the first IPU is: its ops are none of the host's, for which it would be taken apart."""
    ipus(2)
    programs = []
    lower = lowering.lower
    monkeypatch.setattr(
        lowering, "lower", lambda *given, **named: programs.append(lower(*given, **named)) or programs[-1]
    )

    def doubled(number, x):
        with ipu.scopes.ipu_shard(shard):
            return number + 1, x * 2

    def model(x):
        return tf.while_loop(lambda number, x: number < 3, doubled, [0, x])[1]

    with tf.Graph().as_default(), v1.Session() as session:
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            result = ipu.ipu_compiler.compile(model, [tf.ones([2])])
        np.testing.assert_array_equal(session.run(result), [[8, 8]])
    (program,) = programs
    assert program.node.op == "XlaLaunch" and [cluster.chip for cluster in program.clusters] == [0]
