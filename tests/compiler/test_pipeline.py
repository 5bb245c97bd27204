"""The compiler's passes in order: what each needs holds when it runs, and each runs alone."""

import dataclasses
import itertools
import types

import pytest
import tensorflow as tf
from tensorflow.core.framework import types_pb2

from tf_ipu_shim.compiler import pipeline
from tf_ipu_shim.compiler.ir.program import ProgramRequest
from tf_ipu_shim.compiler.lower import lower, prepare_for_xla
from tf_ipu_shim.compiler.lowering_state import LoweringOptions, LoweringState, XlaState
from tf_ipu_shim.compiler.pipeline import INITIAL, PASSES, XLA_PASSES, Property
from tf_ipu_shim.compiler.placement.placement import Placer
from tf_ipu_shim.compiler.replicas.replicas import Replica
from tf_ipu_shim.machine.ids import Device

BY_NAME = {one.name: one for one in PASSES}
ALL = (*PASSES, *XLA_PASSES)
RESULTS = {next(iter(one.guarantees)) for one in XLA_PASSES} - {Property.KERNEL_RESULTS}


def unmet(passes):
    """What passes need and does not hold when they run: (pass, property)."""
    holds, found = set(INITIAL), []
    for one in passes:
        found += [(one.name, need) for need in one.needs - holds]
        holds = (holds - one.destroys) | one.guarantees
    return found


def test_every_need_holds_when_its_pass_runs():
    assert unmet(ALL) == []


def test_names_are_unique_and_every_property_has_one_source():
    assert len({one.name for one in ALL}) == len(ALL)
    sources = [INITIAL, *(one.guarantees for one in ALL)]
    assert sorted(itertools.chain(*sources), key=lambda one: one.name) == sorted(Property, key=lambda one: one.name)


def test_every_property_but_the_results_is_needed():
    needed = frozenset().union(*(one.needs for one in ALL))
    assert set(Property) - needed == RESULTS


def test_what_is_destroyed_is_not_needed_again_by_mistake():
    """Each destroyed property that comes back is needed after that, each other one is not."""
    for index, one in enumerate(PASSES):
        later = PASSES[index + 1 :]
        for lost in one.destroys - one.guarantees:
            restored = next((place for place, other in enumerate(later) if lost in other.guarantees), len(later))
            assert all(lost not in other.needs for other in later[: restored + 1])


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("add_seeds", "replace_shuffles"),
        ("use_synthetic_data", "add_seeds"),
        ("overlap_mini_batches", "carry_accumulators"),
        ("share_statistics", "fold_replica_count"),
        ("mark_long_loops", "emit_replicas"),
        ("chunk_loops", "count_enqueues"),
        ("emit_replicas", "chunk_loops"),
    ],
)
def test_another_order_is_found(name, before):
    """`name` moved before the pass that it follows, or behind the one that it precedes."""
    rest = [one for one in PASSES if one.name != name]
    place = [one.name for one in rest].index(before)
    behind = name == "mark_long_loops"
    assert unmet([*rest[: place + behind], BY_NAME[name], *rest[place + behind :]])


FLOAT = tf.TensorSpec([4], tf.float32)


def double(x):
    return x + x


def state_of(function=double, *signature, call=None):
    """A program before the first pass."""
    concrete = tf.function(function).get_concrete_function(*(signature or (FLOAT,)))
    graph = concrete.graph.as_graph_def()
    definition = concrete.function_def
    library = {one.signature.name: one for one in [*graph.library.function, definition]}
    arguments = definition.signature.input_arg
    count = len(arguments)
    request = ProgramRequest(
        "program",
        definition.signature.name,
        Device(0),
        library,
        [argument.type for argument in arguments],
        [(4,)] * count,
        [""] * count,
        [0] * count,
        [()] * count,
    )
    plugin = types.SimpleNamespace(uncompilable=lambda graph: [])
    call = types.SimpleNamespace(
        stack_of=lambda function, node: [],
        constant_arguments=lambda library, name, arguments: [False] * arguments,
        stack=lambda name: [],
        names=lambda: [],
    )
    return LoweringState(plugin, call, request, LoweringOptions(num_ipus=1))


def ops_of(functions):
    return sorted(node.op for name in functions.reached() for node in functions[name].nodes)


def with_replicas(state):
    state.replicas = [Replica()]
    state.placer = Placer(state.functions, 1)
    state.enqueues = {}
    return state


@pytest.mark.parametrize("one", PASSES[:-3], ids=lambda one: one.name)
def test_each_pass_alone_leaves_what_it_is_not_about(one):
    state = with_replicas(state_of())
    one.run(state)
    assert ops_of(state.functions) == ["AddV2", "Identity"]


def compare_strings(x):
    return tf.where(tf.raw_ops.Equal(x=tf.constant("a"), y=tf.constant("b")), x, -x)


CHANGES = {
    "fold_comparisons": (compare_strings, {"Equal"}, {"LogicalAnd"}),
    "replace_miscompiled_ops": (
        lambda x: tf.raw_ops.ConjugateTranspose(x=x[None], perm=[1, 0]),
        {"ConjugateTranspose"},
        {"Transpose"},
    ),
    "replace_shuffles": (tf.random.shuffle, {"RandomShuffle"}, {"StatefulPartitionedCall", "TopKV2"}),
    "replace_samplers": (
        lambda x: tf.random.uniform_candidate_sampler(tf.constant([[1]], tf.int64), 1, 2, False, 9)[2],
        {"UniformCandidateSampler"},
        {"StatefulPartitionedCall"},
    ),
    "replace_resize_gradients": (
        lambda x: tf.raw_ops.ResizeNearestNeighborGrad(grads=tf.reshape(x, [1, 2, 2, 1]), size=[1, 1]),
        {"ResizeNearestNeighborGrad"},
        {"Einsum"},
    ),
    "add_seeds": (lambda x: x + tf.random.uniform([4]), {"RandomUniform"}, {"StatelessRandomUniform", "IpuRandomSeed"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_pass_alone_rewrites_its_ops(name):
    function, gone, come = CHANGES[name]
    state = state_of(function)
    assert gone <= {*ops_of(state.functions)}
    BY_NAME[name].run(state)
    ops = {*ops_of(state.functions)}
    assert gone.isdisjoint(ops)
    assert {op for op in come if not any(one.startswith(op) for one in ops)} == set()


def test_a_pass_alone_widens_casts():
    state = state_of(lambda x: tf.cast(x, tf.uint8))
    BY_NAME["widen_casts"].run(state)
    (graph,) = [state.functions[name] for name in state.functions.reached()]
    kinds = [node.proto.attr["DstT"].type for node in graph.nodes if node.op == "Cast"]
    assert kinds == [types_pb2.DT_INT32, types_pb2.DT_UINT8]


def test_all_passes_make_one_launch():
    state = state_of()
    program = lower(state.plugin, state.call, state.request, state.options)
    assert program.node.op == "XlaLaunch"
    assert program.programs == [cluster.function for cluster in program.clusters]
    assert (program.replicas, program.inputs, program.run_group) == (1, [0], "")


def test_lowering_runs_the_table(monkeypatch):
    ran = []

    def spy(one):
        return dataclasses.replace(one, run=lambda state: (ran.append(one.name), one.run(state)))

    spies = tuple(map(spy, PASSES))
    monkeypatch.setattr(pipeline, "PASSES", spies)
    monkeypatch.setattr(pipeline, "XLA_PASSES", tuple(map(spy, XLA_PASSES)))
    state = state_of()
    program = lower(state.plugin, state.call, state.request, state.options)
    prepare_for_xla(XlaState(program, state.diagnostics, lambda node: False, False, False))
    assert ran == [one.name for one in ALL]


def count(x):
    return tf.while_loop(lambda y: tf.reduce_sum(y) < 1e4, lambda y: [y + 1.0], [x])[0]


def sum_halves(x):
    return tf.cast(x, tf.float16) * tf.constant(2.0, tf.float16)


def checked(x):
    with tf.control_dependencies([tf.debugging.Assert(x[0] > 0, [x])]):
        return tf.identity(x)


XLA_CHANGES = {
    "use_kernel_results": (lambda x: tf.cast(x, tf.int32), {"SelectV2"}),
    "with_barriers": (lambda x: x + 3.0 - 2.0 * x[0] - x, {"XlaOptimizationBarrier"}),
    "compile_assertions": (checked, {"XlaCustomCallV2"}),
    "saturate_float16": (sum_halves, {"Minimum"}),
    "make_interruptible": (count, {"XlaCustomCallV2"}),
}


@pytest.mark.parametrize("name", XLA_CHANGES)
def test_a_pass_after_planning_adds_its_ops(name):
    function, added = XLA_CHANGES[name]
    state = state_of(function)
    program = lower(state.plugin, state.call, state.request, state.options)
    before = {node.op for one in program.functions for node in one.node_def}
    changed = XlaState(program, state.diagnostics, lambda node: False, False, False)
    next(one for one in XLA_PASSES if one.name == name).run(changed)
    after = {node.op for one in changed.program.functions for node in one.node_def}
    assert after - before >= added


@pytest.mark.parametrize(
    ("name", "switch"), [("saturate_float16", "on_model"), ("make_interruptible", "in_application")]
)
def test_passes_after_planning_that_a_device_needs_not(name, switch):
    state = state_of(XLA_CHANGES[name][0])
    program = lower(state.plugin, state.call, state.request, state.options)
    changed = XlaState(program, state.diagnostics, lambda node: False, False, False)
    setattr(changed, switch, True)
    next(one for one in XLA_PASSES if one.name == name).run(changed)
    assert changed.program is program
