"""Where ops go: the rule of Graphcore's sharding pass on small functions, worked out by hand.

For an unmarked op: the first user that has a shard, else the first operand that has one, else shard 0.
"""

import pytest
import tensorflow as tf
from function_builder import FLOAT, Function, program

from tf_ipu_shim.compiler.emit.emit import Emitter
from tf_ipu_shim.compiler.ir.function_graph import Node
from tf_ipu_shim.compiler.ir.location import HOST, MULTI_SHARD
from tf_ipu_shim.compiler.placement.phases import assign_phases, clone_reads, group_clusters
from tf_ipu_shim.compiler.placement.placement import Placer
from tf_ipu_shim.compiler.replicas.replicas import make_replicas

pytestmark = pytest.mark.one_version


def place(*functions, ipus=4):
    """The first function's graph and placement."""
    graphs = program(*functions)
    first = graphs.entry
    return graphs[first], Placer(graphs, ipus).place(first)


def at(placement):
    """IPUs by name of the op; locations that are none as they are."""
    return {
        node.name: location if location.shard is None else location.shard
        for node, location in placement.locations.items()
    }


def homes(placement):
    return {name: None if home is None else home.shard for name, home in placement.variable_homes.items()}


def locations(*functions, **options):
    _, placement = place(*functions, **options)
    return at(placement)


def test_nothing_marked_is_on_shard_0():
    function = Function("f", "x").op("a", "Neg", "x").op("b", "Tanh", "a").returns("b")
    assert locations(function) == {"a": 0, "b": 0}


def test_marks_stay():
    function = Function("f", "x").op("a", "Neg", "x", shard=2).op("b", "Tanh", "a", shard=1).returns("b")
    assert locations(function) == {"a": 2, "b": 1}


def test_what_computes_nothing_is_where_its_operand_is():
    """As what `tf.gradients` adds: an `Identity` of each gradient of an op, which waits for all of them."""
    function = Function("f", "x").op("a", "Neg", "x", shard=0).op("b", "Tanh", "x", shard=0)
    function.op("all", "NoOp", after=("a", "b"), shard=1).op("copy", "Identity", "a", after=("all",), shard=1)
    function.op("again", "StopGradient", "copy", shard=1).op("c", "Neg", "again", shard=1).returns("c", "copy")
    assert locations(function) == {"a": 0, "b": 0, "all": 0, "copy": 0, "again": 0, "c": 1}


def test_an_identity_of_an_argument_stays_where_it_is_marked():
    function = Function("f", "x").op("copy", "Identity", "x", shard=1).op("a", "Neg", "copy").returns("a")
    assert locations(function) == {"copy": 1, "a": 1}


def test_an_op_goes_to_its_first_user():
    function = (
        Function("f", "x")
        .op("operand", "Neg", "x", shard=3)
        .op("unmarked", "Tanh", "operand")
        .op("first", "Neg", "unmarked", shard=2)
        .op("second", "Neg", "unmarked", shard=1)
        .returns("first", "second")
    )
    assert locations(function)["unmarked"] == 2


def test_without_marked_users_it_goes_to_its_first_operand():
    function = (
        Function("f", "x")
        .op("left", "Neg", "x", shard=3)
        .op("right", "Tanh", "x", shard=1)
        .op("sum", "Add", "left", "right")
        .op("other", "Mul", "right", "left")
        .returns("sum", "other")
    )
    found = locations(function)
    assert (found["sum"], found["other"]) == (3, 1)


def test_shards_travel_along_chains():
    """Forwards from the last mark, backwards from the first."""
    function = Function("f", "x").op("a", "Neg", "x").op("b", "Neg", "a").op("c", "Neg", "b", shard=2)
    function.op("d", "Neg", "c").op("e", "Neg", "d").returns("e")
    assert locations(function) == {"a": 2, "b": 2, "c": 2, "d": 2, "e": 2}


def test_an_island_is_on_shard_0():
    function = Function("f", "x", "y").op("a", "Neg", "x", shard=2).op("b", "Neg", "y").returns("a", "b")
    assert locations(function) == {"a": 2, "b": 0}


def test_a_shape_stays_with_its_tensor():
    function = (
        Function("f", "x", "y")
        .op("a", "Neg", "x", shard=1)
        .op("shape", "Shape", "a")
        .op("b", "Neg", "y", shard=2)
        .op("reshaped", "Reshape", "b", "shape", shard=2)
        .returns("reshaped")
    )
    assert locations(function)["shape"] == 1


def test_marks_for_every_ipu_mean_the_first():
    assert locations(Function("f", "x").op("a", "Neg", "x", shard=-1).returns("a")) == {"a": 0}


@pytest.mark.parametrize(("ipus", "shards"), [(1, "1 IPU .shards 0 to 0"), (4, "4 IPUs .shards 0 to 3")])
def test_a_shard_that_is_not_there(ipus, shards):
    function = Function("f", "x").op("encoder/a", "Neg", "x", shard=4).returns("encoder/a")
    with pytest.raises(tf.errors.InternalError, match=rf"encoder/a \(Neg\) is placed on shard 4.*{shards}"):
        place(function, ipus=ipus)


@pytest.mark.parametrize("name", ["gradients/layer/dense_grad/mul", "train/gradients_1/layer/dense_grad/sub/x"])
@pytest.mark.parametrize("needed", [True, False])
def test_gradients_follow_their_op(name, needed):
    """Also where no result needs the forward op itself."""
    function = (
        Function("f", "x")
        .op("layer/dense", "Tanh", "x", shard=2)
        .op("loss", "Neg", "x", shard=1)
        .op(name, "Mul", "loss", "x")
        .op("end", "Neg", name, shard=3)
        .returns("end", *(["layer/dense"] if needed else []))
    )
    assert locations(function)[name] == 2


def test_constants_are_nowhere():
    function = Function("f", "x").op("c", "Const", shard=3).op("d", "Neg", "c").op("a", "Add", "x", "c", shard=1)
    graph, placement = place(function.returns("a", "d"))
    assert {node.name for node in placement.constants} == {"c"}
    assert "c" not in {node.name for node in placement.locations}


def test_all_ops_on_a_variable_are_where_it_lives():
    function = (
        Function("f", "x", "W")
        .op("read", "ReadVariableOp", "W")
        .op("used", "Mul", "read", "x", shard=1)
        .op("gradient", "Neg", "used", shard=2)
        .op("update", "AssignAddVariableOp", "W", "gradient")
        .returns("used", "update")
    )
    graph, placement = place(function)
    found = at(placement)
    assert homes(placement) == {"W": 1}
    assert found == {"read": 1, "used": 1, "gradient": 2, "update": 1}


def test_a_marked_use_of_a_variable_decides():
    function = (
        Function("f", "x", "W")
        .op("read", "ReadVariableOp", "W", shard=3)
        .op("used", "Mul", "read", "x", shard=1)
        .op("update", "AssignAddVariableOp", "W", "used")
        .returns("used", "update")
    )
    graph, placement = place(function)
    assert homes(placement) == {"W": 3}


def test_unused_variables_live_nowhere():
    graph, placement = place(Function("f", "x", "W").op("a", "Neg", "x").returns("a"))
    assert homes(placement) == {"W": None}


def branches(then_shard, else_shard=None):
    call = Function("f", "p", "x").op("if", "If", "p", "x", functions={"then_branch": "then", "else_branch": "else"})
    then = Function("then", "y").op("t", "Neg", "y", shard=then_shard).returns("t")
    other = Function("else", "y").op("e", "Tanh", "y", shard=else_shard).returns("e")
    call.definition.node_def[0].attr["Tcond"].type = FLOAT
    return call.returns("if"), then, other


@pytest.mark.parametrize(
    ("shards", "expected"), [((None, None), 0), ((2, None), 2), ((2, 2), 2), ((1, 2), MULTI_SHARD)]
)
def test_branches_go_where_their_ops_are(shards, expected):
    assert locations(*branches(*shards)) == {"if": expected}


def test_branches_on_several_ipus_are_placed_op_by_op():
    graph, placement = place(*branches(1, 2))
    assert [at(part) for part in placement.functions.values()] == [{"t": 1}, {"e": 2}]


def test_host_ops_in_a_body_take_the_loop_apart():
    loop = Function("f", "x").op("loop", "While", "x", functions={"cond": "cond", "body": "body"}).returns("loop")
    body = Function("body", "y").op("b", "Neg", "y", host=True).returns("b")
    condition = Function("cond", "y").op("c", "Neg", "y").returns("c")
    graph, placement = place(loop, body, condition)
    assert at(placement) == {"loop": MULTI_SHARD}
    assert at(placement.functions["body"]) == {"b": HOST}


def loop_over(body, shard=None):
    loop = Function("f", "x").op("loop", "While", "x", functions={"cond": "cond", "body": "body"}, shard=shard)
    return loop.returns("loop"), body.returns("b"), Function("cond", "y").op("c", "Neg", "y").returns("c")


def test_a_mark_for_every_ipu_takes_no_loop_apart():
    body = Function("body", "y").op("a", "Neg", "y", shard=-1).op("b", "Neg", "a")
    assert locations(*loop_over(body)) == {"loop": 0}
    assert locations(*loop_over(body, shard=-1)) == {"loop": 0}


def test_marks_for_every_ipu_make_no_shards():
    """A program of such ops alone runs on one IPU, so as many replicas as there are IPUs."""
    function = Function("f", "x").op("a", "Neg", "x", shard=-1).returns("a")
    node = function.definition.node_def.add(name="i", op="ReplicationIndex")
    node.attr["_XlaSharding"].s = function.definition.node_def[0].attr["_XlaSharding"].s
    assert [replica.count for replica in make_replicas(program(function), 4, "")] == [4] * 4


def test_what_is_on_every_ipu_is_where_the_rest_of_its_loop_is():
    body = Function("body", "y").op("a", "Neg", "y", shard=-1).op("b", "Neg", "a", shard=2)
    assert locations(*loop_over(body)) == {"loop": 2}
    assert locations(*loop_over(body, shard=-1)) == {"loop": 2}
    assert locations(*loop_over(body, shard=1)) == {"loop": MULTI_SHARD}


def test_a_loop_on_a_shard_that_is_not_there():
    body = Function("body", "y").op("b", "Neg", "y", shard=1)
    with pytest.raises(tf.errors.InternalError, match=r"loop \(While\) is placed on shard 7"):
        locations(*loop_over(body, shard=7))


def phases(function):
    graph, placement = place(function)
    found = assign_phases(graph, placement)
    clusters = {key: [node.name for node in nodes] for key, nodes in group_clusters(placement, found).items()}
    return {node.name: phase for node, phase in found.items()}, clusters


def zigzag():
    """x -> a (IPU 0) -> b (IPU 1) -> c (IPU 0); and d on IPU 0, which needs x only."""
    return (
        Function("f", "x")
        .op("a", "Neg", "x", shard=0)
        .op("b", "Tanh", "a", shard=1)
        .op("c", "Add", "b", "a", shard=0)
        .op("d", "Mul", "x", "x", shard=0)
        .returns("c", "d")
    )


def test_phases_count_crossings():
    found, clusters = phases(zigzag())
    assert found == {"a": 0, "b": 1, "c": 2, "d": 0}
    assert clusters == {(0, 0): ["a", "d"], (1, 1): ["b"], (0, 2): ["c"]}


def test_waiting_for_another_ipu_is_a_crossing():
    function = Function("f", "x", "W").op("a", "AssignAddVariableOp", "W", "x", shard=0)
    function.op("b", "Neg", "x", shard=1, after=["a"]).returns("b")
    assert phases(function)[0] == {"a": 0, "b": 1}


def test_host_ops_stand_between_phases():
    function = Function("f", "x").op("a", "Neg", "x").op("h", "Tanh", "a", host=True).op("b", "Neg", "h").returns("b")
    found, clusters = phases(function)
    assert found == {"a": 0, "h": 1, "b": 2}
    assert clusters == {(0, 0): ["a"], (0, 2): ["b"]}


def reads(function):
    graph, placement = place(function)
    found = clone_reads(graph, placement, assign_phases(graph, placement))
    return {node.name: set(at) for node, at in found.items() if at}


def read_in_two_phases(write):
    function = (
        Function("f", "x", "W")
        .op("read", "ReadVariableOp", "W", shard=0)
        .op("a", "Mul", "x", "read", shard=0)
        .op("b", "Tanh", "a", shard=1)
        .op("c", "Mul", "b", "read", shard=0)
    )
    if write:
        function.op("update", "AssignAddVariableOp", "W", "a", after=["read"])
    return function.returns("c", *(["update"] if write else []))


def test_a_variable_is_read_again_in_a_later_phase():
    assert reads(read_in_two_phases(write=False)) == {"read": {2}}


def test_but_not_after_it_was_written():
    assert reads(read_in_two_phases(write=True)) == {}


def emitted(*functions):
    """Clusters' op types by (IPU, phase), and the exchanges."""
    graphs = program(*functions)
    first = graphs.entry
    placement = Placer(graphs, 4).place(first)
    emitter = Emitter(graphs, "/device:IPU:0", lambda definition, arguments: [False] * arguments)
    emitter.emit(first, placement, {})
    made = {function.signature.name: function for function in emitter.functions}
    clusters = {
        (cluster.chip, cluster.phase): sorted(node.name for node in made[cluster.function].node_def)
        for cluster in emitter.clusters
    }
    exchanges = [(exchange.tensor, exchange.source, exchange.destination) for exchange in emitter.exchanges]
    return clusters, exchanges, emitter


def test_only_the_phases_that_need_a_variable_read_it():
    function = (
        Function("f", "x", "W")
        .op("read", "ReadVariableOp", "W", shard=0)
        .op("a", "Neg", "x", shard=0)
        .op("b", "Tanh", "a", shard=1)
        .op("c", "Mul", "b", "read", shard=0)
        .op("update", "AssignAddVariableOp", "W", "c", shard=0, after=["read"])
        .returns("c", "update")
    )
    clusters, _, _ = emitted(function)
    assert clusters == {(0, 0): ["a"], (1, 1): ["b"], (0, 2): ["c", "read", "update"]}


def test_a_read_that_is_returned_stays_in_its_phase():
    function = (
        Function("f", "x", "W")
        .op("read", "ReadVariableOp", "W", shard=0)
        .op("a", "Tanh", "x", shard=1)
        .op("b", "Mul", "a", "read", shard=0)
        .returns("b", "read")
    )
    clusters, _, _ = emitted(function)
    assert clusters == {(0, 0): ["read"], (1, 0): ["a"], (0, 1): ["b", "read"]}


def test_one_exchange_per_tensor_and_destination():
    function = Function("f", "x").op("a", "Neg", "x", shard=0)
    for name, shard in (("b", 1), ("c", 1), ("d", 2), ("e", 0)):
        function.op(name, "Tanh", "a", shard=shard)
    clusters, exchanges, _ = emitted(function.returns("b", "c", "d", "e"))
    assert exchanges == [("a:y:0", 0, 1), ("a:y:0", 0, 2)]
    assert clusters == {(0, 0): ["a", "e"], (1, 1): ["b", "c"], (2, 1): ["d"]}


def test_constants_are_cloned_not_exchanged():
    function = (
        Function("f", "x")
        .op("one", "Const")
        .op("minus", "Mul", "one", "one")
        .op("a", "Add", "x", "minus", shard=0)
        .op("b", "Add", "a", "minus", shard=1)
        .returns("b")
    )
    clusters, exchanges, _ = emitted(function)
    assert clusters == {(0, 0): ["a", "minus", "one"], (1, 1): ["b", "minus", "one"]}
    assert exchanges == [("a:z:0", 0, 1)]


def test_reads_are_cloned_not_handed_on():
    clusters, exchanges, emitter = emitted(read_in_two_phases(write=False))
    assert clusters == {(0, 0): ["a", "read"], (1, 1): ["b"], (0, 2): ["c", "read"]}
    assert exchanges == [("a:z:0", 0, 1), ("b:y:0", 1, 0)]
    assert [list(cluster.outputs) for cluster in emitter.clusters] == [["a:z:0"], ["b:y:0"], ["c:z:0"]]


def test_reads_that_are_cloned_come_before_the_write():
    function = read_in_two_phases(write=False).op("update", "AssignAddVariableOp", "W", "b").returns("update")
    clusters, _, emitter = emitted(function)
    assert clusters[0, 2] == ["c", "read", "update"]
    last = {node.name: node for node in emitter.functions[2].node_def}
    assert "^read" in last["update"].input


def test_marks_are_not_shown_to_xla():
    _, _, emitter = emitted(zigzag())
    for function in emitter.functions:
        for node in function.node_def:
            assert not {"_XlaSharding", "_class", "_xla_outside_compilation"} & set(node.attr)


def test_every_emitted_op_has_a_device():
    _, _, emitter = emitted(zigzag().op("h", "Neg", "d", host=True).returns("h"))
    (whole,) = (function for function in emitter.functions if "_lowered_" in function.signature.name)
    devices = {node.op: node.device for node in whole.node_def}
    assert devices == {"XlaLaunch": "/device:IPU:0", "IpuInterCopy": "/device:IPU:0", "Neg": "/device:CPU:0"}


def looks(variables, monkeypatch):
    """How often the placement of a loop that reads variables on two shards looks at all that the loop is handed."""
    names = [f"V{index}" for index in range(variables)]
    body = Function("body", "y", *names)
    for index, name in enumerate(names):
        body.op(f"read{index}", "ReadVariableOp", name, shard=index % 2)
    body.op("b", "Neg", "read0").returns("b", *(f"read{index}" for index in range(1, variables)))
    loop = Function("f", "x", *names).op("loop", "While", "x", *names, functions={"cond": "cond", "body": "body"})
    condition = Function("cond", "y", *names).op("c", "Neg", "y").returns("c")
    count, handed_on = [], Node.function_inputs
    monkeypatch.setattr(Node, "function_inputs", property(lambda node: count.append(node) or handed_on.fget(node)))
    _, placement = place(loop.returns("loop"), body, condition)
    monkeypatch.undo()
    assert homes(placement) == {name: index % 2 for index, name in enumerate(names)}
    return len(count)


def test_a_loop_of_many_variables_is_not_looked_through_for_each(monkeypatch):
    assert looks(40, monkeypatch) == looks(4, monkeypatch) > 0
