"""Profiles that programs write, against sizes and numbers of runs known from the script."""

import inspect
import json
import math
import os

import numpy as np
import pytest
import tensorflow as tf
from profiled_programs import IPU, X, dense, fact, run
from tensorflow.compiler.xla.service import hlo_pb2
from tensorflow.core.framework import node_def_pb2
from tf_ipu_shim.ipu import ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, ipu_strategy, loops, scopes
from tf_ipu_shim.ipu.ops import cross_replica_ops, normalization_ops, pipelining_ops

from tf_ipu_shim import keras2
from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.cycle_model import Computation, phases_of
from tf_ipu_shim.cycle_model.planning import OperandLayout
from tf_ipu_shim.cycle_model.sizes import MatmulSizes
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.memory_model.hlo import running_order
from tf_ipu_shim.memory_reports import memory_report
from tf_ipu_shim.profiling import reader

pytestmark = pytest.mark.one_version

keras = keras2.public_module()

v1 = tf.compat.v1

WEIGHTS = 64 * 32 * 4


@pytest.fixture
def profiled(environment, tmp_path):
    """Configures so that profiles are written; gives a function that reads them all, in order."""

    def configure(ipus=1, config=None, **options):
        engine = {"autoReport.all": "true", "autoReport.directory": str(tmp_path / "reports"), **options}
        environment(config or {}, engine=engine, ipus=ipus)
        return lambda: [reader.read_profile(folder) for folder in sorted((tmp_path / "reports").iterdir())]

    return configure


def rows(profile, kind):
    return [row for row in profile.programs if row.kind == kind]


def test_a_program_has_its_variables_compute_sets_and_runs(profiled, tmp_path):
    profiles = profiled()
    run(dense, X, times=3)
    (profile,) = profiles()
    weights = [row for row in profile.variables if row.kind == "weight"]
    assert [(row.name, row.bytes, row.always) for row in weights] == [("w", WEIGHTS, 1)]
    assert "MatMul/dot/Conv_1/Convolve" in {row.name for row in profile.compute_sets}
    assert any(row.name == "activation/relu/Nonlinearity" for row in profile.compute_sets)
    both = (OperandLayout.ALLOCATED, OperandLayout.ALLOCATED)
    product = phases_of(Computation("product", "", MatmulSizes(1, 16, 64, 32), layouts=both), CHIPS["gc200"])
    (step,) = (row for row in rows(profile, "step") if row.computation == "product")
    assert step.cycles == sum(phase.cycles for phase in product)
    assert os.path.basename(dense.__code__.co_filename) in step.line
    (folder,) = (tmp_path / "reports").iterdir()
    assert folder.name.startswith("tf_report__") and folder.name.endswith("__dense")
    runs = reader.read_runs(folder)
    assert len(runs) == 2 and all(one.start <= one.end for one in runs)  # two by default, as Poplar


def test_sums_of_rows_send_less_than_sums_of_columns(profiled):
    profiles = profiled()
    numbers = np.ones((512, 512), np.float32)
    run(lambda x: tf.reduce_sum(x, axis=1), numbers)
    run(lambda x: tf.reduce_sum(x, axis=0), numbers)
    of_rows, of_columns = ([row.bytes for row in rows(profile, "exchange")] for profile in profiles())
    # 180 numbers a tile: some of two rows on each of 1,457 tiles, and one number of 180 columns. So a column has 513
    # parts, of which 22 groups of 24 are added up, and then the 22.
    assert of_rows == [512 * math.ceil(1457 * 2 / 512) * 4]
    assert of_columns == [22 * 24 * 512 * 4, 22 * 512 * 4]


@pytest.mark.parametrize("group, sent", [(None, 2 * 3 / 4), (2, 2 * 1 / 2)])
def test_a_sum_of_a_group_of_replicas_is_one_of_so_many(profiled, group, sent):
    profiles = profiled(ipus=4)
    run(lambda x: cross_replica_ops.cross_replica_sum(tf.matmul(x, x, transpose_a=True), group), X)
    (profile,) = profiles()
    (moved,) = rows(profile, "links")
    assert moved.bytes == sent * 64 * 64 * 4


@pytest.mark.parametrize("together, syncs", [(0, 4), (1 << 14, 3), (1 << 20, 2)])
def test_independent_sums_of_replicas_are_sent_together(environment, tmp_path, together, syncs):
    engine = {"autoReport.all": "true", "autoReport.directory": str(tmp_path)}
    option = {"optimizations.maximum_cross_replica_sum_buffer_size": together}
    environment(engine=engine, ipus=4, config=option)

    def model(x):  # sums of 8,192, 8,192 and 16,384 bytes, and one that needs the last of them
        sums = [
            cross_replica_ops.cross_replica_sum(one)
            for one in (x[:, :32] * 2.0, x[:, 32:] * 3.0, x @ tf.ones([64, 64]))
        ]
        return sums[:2], cross_replica_ops.cross_replica_sum(sums[2] @ tf.ones([64, 64]))

    run(model, np.ones((64, 64), np.float32))
    (folder,) = tmp_path.glob("*__model")
    profile = reader.read_profile(folder)
    waits = {row.name for row in rows(profile, "links")}
    assert len(waits) == 4
    assert len([row for row in rows(profile, "sync") if row.name in waits]) == syncs


def test_liveness_peaks_where_the_memory_plan_does(profiled):
    profiles = profiled()
    run(dense, X)
    (profile,) = profiles()
    plan = memory_report().devices[0].programs[-1].ipus[0]
    assert max(row.bytes for row in profile.liveness) == plan.not_always_live_bytes
    assert sum(row.bytes for row in profile.variables if row.always) == plan.always_live_bytes
    peak = max(profile.liveness, key=lambda row: row.bytes)
    alive = [row for row in profile.variables if not row.always and row.first <= peak.step <= row.last]
    assert sum(row.bytes for row in alive) == plan.not_always_live_bytes


@pytest.mark.parametrize(
    "norm, groups",
    [(normalization_ops.group_norm, 4), (normalization_ops.layer_norm, 1), (normalization_ops.instance_norm, 16)],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_norms_keep_their_input_and_statistics_for_the_gradient(profiled, norm, groups):
    batch, size, channels = 4, 32, 16
    profiles = profiled()

    def model(x, weights):
        hidden = tf.tanh(x * v1.get_variable("w", [channels], tf.float16, v1.ones_initializer(), use_resource=True))
        options = {"groups": groups} if norm is normalization_ops.group_norm else {}
        normal = norm(hidden, center=False, scale=False, **options)
        total = tf.reduce_sum(normal * weights)
        boundary = tf.sin(total, name="boundary")  # all of the forward pass is before it, all of the other behind
        return tf.gradients(total, [x], grad_ys=[boundary])

    shape = [batch, size, size, channels]
    run(model, np.ones(shape, np.float16), np.ones(shape, np.float16))
    (profile,) = profiles()
    (step,) = {row.step for row in profile.liveness if row.op == "boundary"}
    alive = [row for row in profile.variables if row.first <= step <= row.last and not row.always]
    values, statistics = 2 * batch * size * size * channels, 4 * batch * groups
    # The norm's input in float16, its means and deviations in float32; what is fed, and the boundary's number.
    assert sorted(row.bytes for row in alive) == sorted([values, statistics, statistics, values, 2])
    assert {row.name for row in alive if row.bytes == values} == {"Tanh", "placeholder_1"}


def test_cycles_of_the_tree_add_up(profiled):
    profiles = profiled()
    run(dense, X)
    (profile,) = profiles()
    outermost = [row for row in profile.programs if row.parent == -1]
    assert fact(profile, "cycles") == sum(row.cycles for row in outermost)
    for row in rows(profile, "step"):
        inside = [one for one in profile.programs if one.parent == row.id]
        assert sum(one.cycles for one in inside) == row.cycles


def test_a_loop_with_feeds_takes_its_body_so_often(profiled):
    profiles = profiled()
    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(X).repeat())
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
        with scopes.ipu_scope(IPU):
            built = ipu_compiler.compile(
                lambda: loops.repeat(10, lambda x: outfeed.enqueue(tf.matmul(x, x, transpose_b=True)), [], infeed)
            )
        session.run(infeed.initializer)
        session.run(built)
    (profile,) = profiles()
    (loop,) = rows(profile, "loop")
    assert (loop.times, loop.exact) == (10, 1)
    parts = [row for row in profile.programs if row.parent == loop.id]
    assert loop.cycles == 10 * sum(row.cycles for row in parts)
    host = {row.bytes for row in rows(profile, "host")}
    assert {16 * 64 * 4, 16 * 16 * 4} <= host  # an element, and what is sent


def test_equal_branches_are_one_function_unless_they_are_random(profiled):
    def branching(work):
        return lambda x: tf.cond(x[0, 0] > 0.0, lambda: work(x), lambda: work(x))

    profiles = profiled()
    run(branching(lambda x: tf.square(x, name="squared")), X)
    run(branching(lambda x: x + tf.random.uniform(x.shape, name="drawn")), X)
    for profile, name, sets in zip(profiles(), ("squared", "drawn"), (1, 2), strict=True):
        assert len([row for row in profile.compute_sets if name in row.name]) == sets


def test_known_initial_values_of_a_loop_are_not_copied(profiled):
    profiles = profiled()
    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(np.float32(1)).repeat())
        with scopes.ipu_scope(IPU):
            built = ipu_compiler.compile(
                lambda: tf.reduce_sum(loops.repeat(10, lambda sums, x: sums + x, [tf.fill([100, 100], 0.5)], infeed))
            )
        session.run(infeed.initializer)
        assert session.run(built) == [100 * 100 * 10.5]
    (profile,) = profiles()
    assert {row.bytes for row in rows(profile, "host")} == {4}  # an element, and the result


def test_loops_of_a_stage_and_its_gradient_take_each_iteration(profiled):
    """What they hand to each other is in lists of tensors, which no XLA program gives out."""

    def stage(x):
        weights = v1.get_variable("w", [64, 64], use_resource=True)
        return tf.while_loop(
            lambda i, _: i < 5, lambda i, x: (i + 1, tf.matmul(x, weights)), [0, x], maximum_iterations=5
        )[1]

    def pipeline():
        return pipelining_ops.pipeline(
            [stage, tf.reduce_sum],
            4,
            infeed_queue=infeed,
            outfeed_queue=ipu_outfeed_queue.IPUOutfeedQueue(),
            optimizer_function=lambda loss: pipelining_ops.OptimizerFunctionOutput(
                v1.train.GradientDescentOptimizer(0.1), loss
            ),
        )

    profiles = profiled(ipus=2)
    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(X).repeat())
        with scopes.ipu_scope(IPU):
            built = ipu_compiler.compile(pipeline)
        session.run([v1.global_variables_initializer(), infeed.initializer])
        session.run(built)
    profile = next(profile for profile in profiles() if rows(profile, "links"))
    assert [(row.times, row.exact) for row in rows(profile, "loop")][-2:] == [(5, 1)] * 2
    products = [row for row in rows(profile, "step") if row.computation == "product"]
    assert len(products) == 3  # forward, and two for the gradients
    forward = phases_of(Computation("product", "", MatmulSizes(1, 16, 64, 64), 4), CHIPS["gc200"])
    assert min(row.cycles for row in products) >= sum(phase.cycles for phase in forward) / 2
    assert fact(profile, "stages") == [[0], [1]]
    copies = {row.name.partition("_to_/")[2] for row in rows(profile, "links")}
    assert copies == {"inter-ipu-copy/GlobalPre", "inter-ipu-copy.1/GlobalPre"}
    assert any(row.name.startswith("GradientAccumulatorAddWithScale") for row in profile.compute_sets)


def test_calls_of_a_stage_and_its_gradient_cost_their_bodies(profiled):
    """Keras' recurrent layers are calls, and hand lists of tensors to those of their gradients."""
    profiles = profiled(ipus=2)
    with ipu_strategy.IPUStrategy().scope():
        model = keras.Sequential([keras.Input((5, 3), 4), keras.layers.LSTM(6), keras.layers.Dense(2)])
        model.set_pipeline_stage_assignment([0, 1])
        model.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
        model.compile(keras.optimizers.legacy.SGD(), "mse", steps_per_execution=4)
        model.fit(np.ones((16, 5, 3), np.float32), np.ones((16, 2), np.float32), batch_size=4, verbose=0)
    profile = next(profile for profile in profiles() if rows(profile, "links"))
    assert len([row for row in rows(profile, "loop") if row.times == 5 or not row.exact]) >= 2
    assert not [row for row in rows(profile, "step") if "PartitionedCall" in row.op and row.computation == "other"]
    product = phases_of(
        Computation("product", "", MatmulSizes(1, 4, 3, 24), 4), CHIPS["gc200"]
    )  # the input by four gates
    step = next(row for row in rows(profile, "step") if row.computation == "product")
    assert "/while" in f"/{step.op}" and step.cycles == sum(phase.cycles for phase in product)


def test_stages_that_hand_on_what_they_are_given(profiled):
    """They have nothing to do, and so their IPUs are in no plan."""
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
    profiles = profiled(ipus=4)
    with tf.Graph().as_default(), v1.Session() as session:
        with scopes.ipu_scope(IPU):
            built = ipu_compiler.compile(
                lambda x: pipelining_ops.pipeline(
                    [lambda x: x] * 4, 8, inputs=[x], outfeed_queue=outfeed, accumulate_outfeed=True
                ),
                [3.0],
            )
        results = outfeed.dequeue()
        session.run(built)
        assert session.run(results)[0] == [8 * 3.0]
    (profile,) = profiles()
    assert fact(profile, "stages") == [[0]]
    assert any(row.name.startswith("GradientAccumulatorAddWithScale") for row in profile.compute_sets)


def test_an_exchange_has_both_ipus_wait_for_it(profiled):
    def sharded(x):
        with scopes.ipu_shard(0):
            y = tf.matmul(x, tf.ones([64, 32]))
        with scopes.ipu_shard(1):
            return tf.matmul(y, tf.ones([32, 8]))

    profiles = profiled(ipus=2)
    run(sharded, X)
    (profile,) = profiles()
    assert [(row.source, row.destination, row.bytes) for row in profile.exchanges] == [(0, 1, 16 * 32 * 4)]
    (exchange,) = rows(profile, "links")
    first = [row for row in rows(profile, "step") if row.ipus == "[0]" and row.computation == "product"]
    second = [row for row in rows(profile, "step") if row.ipus == "[1]" and row.computation == "product"]
    assert first[0].start + first[0].cycles <= exchange.start < second[0].start


def test_a_matmul_s_result_is_rearranged_before_another_ipu(profiled):
    """Its 2,048 bytes are copied on their tiles, 128 on each, 8 a cycle; what an addition gives goes as it is."""

    def sharded(last):
        def model(x):
            with scopes.ipu_shard(0):
                y = tf.reshape(last(x), [32, 16])
            with scopes.ipu_shard(1):
                return tf.sin(y)

        return model

    profiles = profiled(ipus=2)
    run(sharded(lambda x: tf.matmul(x, tf.ones([64, 32]), name="product")), X)
    run(sharded(lambda x: tf.add(x, 1.0, name="sum")[:, :32]), X)
    copied, plain = profiles()
    (rearranged,) = [row for row in rows(copied, "compute") if row.name.endswith("OnTileCopy")]
    assert rearranged.name == "Copy_product/dot_to_/inter-ipu-copy/OnTileCopy"
    assert (rearranged.tiles, rearranged.cycles) == (2048 // 128, 128 // 8)
    (exchange,) = rows(copied, "links")
    assert rearranged.start + rearranged.cycles <= exchange.start
    assert not any("OnTileCopy" in row.name for row in rows(plain, "compute"))


@pytest.mark.parametrize(("together", "copies"), [(0, [8, 4, 8, 4]), (11, [8, 4, 8, 4]), (12, [12, 12])])
def test_host_scope_copies_are_merged_up_to_the_requested_bytes(profiled, together, copies):
    """Two and one numbers go to the host and come back: those of one direction in one copy, if 12 bytes may."""

    def model(x, y):
        with scopes.outside_compilation_scope():
            first, second = x + 1.0, y + 2.0
        return first * 2.0, second * 2.0

    profiles = profiled(config={"optimizations.maximum_send_recv_cluster_size": together})
    with tf.Graph().as_default(), v1.Session() as session:
        fed = [v1.placeholder(tf.float32, [2]), v1.placeholder(tf.float32, [1])]
        with scopes.ipu_scope(IPU):
            built = ipu_compiler.compile(lambda x, y: model(x * 3.0, y * 3.0), fed)
        first, second = session.run(built, {fed[0]: [1.0, 2.0], fed[1]: [3.0]})
    assert (first.tolist(), second.tolist()) == ([8.0, 14.0], [22.0])
    (profile,) = profiles()
    assert [row.bytes for row in rows(profile, "host")][1:-1] == copies


def test_instructions_in_post_order():
    """Each right after what it takes, as XLA's `MakeInstructionPostOrder` has it; what nothing takes as it stands."""
    computation = hlo_pb2.HloComputationProto()
    for number, operands in enumerate([(), (), (1,), (0,), (3, 2), ()]):
        computation.instructions.add(id=number, operand_ids=operands)
    assert [one.id for one in running_order.post_order(computation)] == [0, 3, 1, 2, 4, 5]


def test_shards_that_only_swap_values_work_side_by_side(profiled):
    def sharded(x, y):
        with scopes.ipu_shard(0):
            left = x + 1.0
        with scopes.ipu_shard(1):
            right = y + 1.0
        with scopes.ipu_shard(0):
            first = tf.matmul(left, right, transpose_b=True)
        with scopes.ipu_shard(1):
            second = tf.matmul(right, left, transpose_b=True)
        return first, second

    profiles = profiled(ipus=2)
    run(sharded, X, X)
    (profile,) = profiles()
    products = {row.ipus: row for row in rows(profile, "step") if row.computation == "product"}
    ends = {ipu: row.start + row.cycles for ipu, row in products.items()}
    assert products["[0]"].start < ends["[1]"] and products["[1]"].start < ends["[0]"]
    (swap,) = rows(profile, "links")  # both ways at once
    assert (json.loads(swap.ipus), swap.bytes) == ([0, 1], 2 * X.nbytes)


def test_consecutive_shards_swap_with_neighbours_in_one_exchange(profiled):
    def step(*parts):
        made = []
        for shard, part in enumerate(parts):
            with scopes.ipu_shard(shard):
                made.append(part + sum(parts[other][:1] for other in (shard - 1, shard + 1) if 0 <= other < 4))
        return made

    profiles = profiled(ipus=4)
    run(lambda *parts: loops.repeat(3, step, list(parts)), X, X, X, X)
    (profile,) = profiles()
    (loop,) = rows(profile, "loop")
    (swap,) = rows(profile, "links")
    assert (loop.times, json.loads(swap.ipus)) == (3, [0, 1, 2, 3])
    assert swap.bytes == 6 * X.nbytes == sum(row.bytes for row in profile.exchanges)


def test_copies_of_a_phase_are_one_exchange_if_ipus_connect_them():
    def copy(name, source, destination, taken):
        node = node_def_pb2.NodeDef(name=name, op=vocabulary.INTER_COPY, input=[taken])
        node.attr["source"].i, node.attr["destination"].i = source, destination
        return node

    starts = [node_def_pb2.NodeDef(name=f"on {ipu}", op="XlaLaunch") for ipu in range(6)]
    first = [copy("a", 0, 1, "on 0:0"), copy("b", 2, 3, "on 2:0"), copy("c", 4, 5, "on 4:0"), copy("d", 3, 1, "on 3:0")]
    then = node_def_pb2.NodeDef(name="then", op="XlaLaunch", input=["a:0"])
    later = copy("e", 1, 0, "then:0")
    found = [[node.name for node in unit] for unit in running_order.execution_order([*starts, *first, then, later])]
    units = {frozenset(unit) for unit in found}
    assert {frozenset("abd"), frozenset("c"), frozenset("e")} <= units and len(found) == 6 + 1 + 3
    place = {name: number for number, unit in enumerate(found) for name in unit}
    assert max(place[f"on {ipu}"] for ipu in (0, 2, 3)) < place["a"] < place["then"] < place["e"]


@pytest.mark.parametrize("stages", [1, 2])
def test_what_is_in_no_xla_program_has_lines_too(profiled, stages):
    """What replicas do together, copies of feeds, exchanges between IPUs: the line of what they move, or of `fit`."""
    profiles = profiled(ipus=4)  # four replicas, or two of two stages
    with ipu_strategy.IPUStrategy().scope():
        hands_on, made = keras.layers.Dense(16, name="hands_on"), inspect.currentframe().f_lineno
        model = keras.Sequential([keras.Input([32]), hands_on, keras.layers.Dense(16, name="last")])
        if stages > 1:
            model.set_pipeline_stage_assignment([0, 1])
            model.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
        model.compile("sgd", "mse", steps_per_execution=16)
        x, y = np.zeros([8 * 16 * 4, 32], np.float32), np.zeros([8 * 16 * 4, 16], np.float32)
        model.fit(x, y, batch_size=8, verbose=0)
        fitted = inspect.currentframe().f_lineno - 1
    lines = {row.op: row.line for profile in profiles() for row in profile.programs}
    kinds = {"IpuCrossReplicaSum": fitted, "IteratorGetNext from the host": fitted, "to the host": fitted}
    if stages > 1:
        kinds["exchange of hands_on/"] = made
    for text, number in kinds.items():
        found = {name: line for name, line in lines.items() if text in name}
        assert found, text
        expected = f"{os.path.basename(__file__)}:{number}, in test_what_is_in_no_xla_program_has_lines_too"
        assert all((line or "").endswith(expected) for line in found.values()), found
