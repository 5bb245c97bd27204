"""Options for Poplar's planner: what they change of the model, and that those it would refuse fail the program."""

from __future__ import annotations

import collections
import json

import numpy as np
import option_runs
import pytest
import tensorflow as tf
from slow_cases import slowly
from tensorflow.compiler.plugin.poplar.ops import gen_popnn_ops
from tf_ipu_shim.ipu import ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, nn_ops, rnn_ops
from tf_ipu_shim.ipu.ops import pipelining_ops
from tf_ipu_shim.ipu.scopes import ipu_scope, partials_type

from tf_ipu_shim import memory_report
from tf_ipu_shim.cycle_model import plan_matmul
from tf_ipu_shim.cycle_model.planning import OperandLayout
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.machine.memory import LIBRARY_ERROR_FACTOR
from tf_ipu_shim.profiling import reader

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
INPUTS = np.ones([3, 2, 4], np.float32)
WRONG = {"availableMemoryProportion": -123.0}
OTHER, ARRANGED, MADE = OperandLayout
ALLOCATED = (MADE, MADE)


def gen_lstm(x, options, options_bwd):
    return gen_popnn_ops.popnn_lstm_layer(
        x, tf.zeros([2, 5]), tf.zeros([2, 5]), tf.ones([9, 20]), tf.ones([4, 5]), "tanh", "sigmoid", 5, False,
        options=json.dumps(options), options_bwd=json.dumps(options_bwd),
    )[0]  # fmt: skip


def gen_gru(x, options, options_bwd):
    return gen_popnn_ops.popnn_gru_layer(
        x, tf.zeros([2, 5]), tf.ones([9, 15]), tf.ones([3, 5]), "tanh", "sigmoid", 5, False, reset_after=False,
        options=json.dumps(options), options_bwd=json.dumps(options_bwd),
    )[0]  # fmt: skip


def layer(kind):
    def model(x, options, options_bwd):
        return kind(5, options=options, options_bwd=options_bwd, return_state=False)(x)

    return model


@pytest.mark.parametrize(
    ("model", "forward"),
    [
        (gen_lstm, True),
        (gen_gru, False),
        (layer(rnn_ops.PopnnLSTM), False),
        (layer(rnn_ops.PopnnGRU), True),
        slowly(gen_lstm, False),
        slowly(gen_gru, True),
        slowly(layer(rnn_ops.PopnnLSTM), True),
        slowly(layer(rnn_ops.PopnnGRU), False),
    ],
)
def test_in_a_program(ipus, model, forward):
    ipus(1)

    def checked(options):
        both = (options, {}) if forward else ({}, options)
        with tf.Graph().as_default(), v1.Session() as session:
            with tf.device("cpu"):
                x = v1.placeholder(tf.float32, INPUTS.shape)
            with ipu_scope("/device:IPU:0"):
                compiled = ipu_compiler.compile(lambda x: model(x, *both), [x])
            session.run(v1.global_variables_initializer())
            if options is WRONG:
                with pytest.raises(tf.errors.InternalError, match="invalid_option: .*greater than or equal to 0"):
                    session.run(compiled, {x: INPUTS})
            else:
                assert session.run(compiled, {x: INPUTS})[0].shape == (3, 2, 5)

    checked(WRONG)
    checked({"availableMemoryProportion": 0.7})
    checked(None)
    checked({"availableMemoryProportion": "0.7"})


def test_in_a_session_that_runs_op_by_op(ipus):
    ipus(1)
    with tf.Graph().as_default(), v1.Session() as session:
        with tf.device("cpu"):
            x = v1.placeholder(tf.float32, INPUTS.shape)
        with ipu_scope("/device:IPU:0"):
            wrong, right = (gen_lstm(x, options, {}) for options in (WRONG, {}))
            [gradient] = tf.gradients(wrong, [x])
        for failing in (wrong, gradient):
            with pytest.raises(tf.errors.InternalError, match="invalid_option: .*greater than or equal to 0"):
                session.run(failing, {x: INPUTS})
        assert session.run(right, {x: INPUTS}).shape == (3, 2, 5)


def test_at_once_when_run_eagerly():
    with pytest.raises(tf.errors.InternalError, match="invalid_option: .*greater than or equal to 0"):
        gen_lstm(tf.constant(INPUTS), WRONG, {})
    with pytest.raises(tf.errors.InternalError, match="is 'much'; expected a number"):
        gen_gru(tf.constant(INPUTS), {}, {"availableMemoryProportion": "much"})


@pytest.fixture
def planned(environment, monkeypatch, tmp_path):
    """Runs a model on matrices of halves with some options; gives its result, and its products' cycles."""
    monkeypatch.setenv("TF_IPU_SHIM_MEMORY_PLAN", "calls")
    folders = iter(range(10))

    def run(model, shapes, profile=True, **config):
        folder = tmp_path / str(next(folders))
        engine = {"autoReport.all": "true", "autoReport.directory": str(folder)} if profile else {}
        environment({name.replace("__", "."): value for name, value in config.items()}, engine=engine, ipus=1)
        random = np.random.RandomState(0)
        with tf.Graph().as_default(), v1.Session() as session:
            fed = [v1.placeholder(tf.float16, shape) for shape in shapes]
            with ipu_scope("/device:IPU:0"):
                built = ipu_compiler.compile(model, fed)
            session.run(v1.global_variables_initializer())
            results = session.run(built, {one: random.rand(*one.shape).astype(np.float16) for one in fed})
        (made,) = (reader.read_profile(one) for one in folder.iterdir()) if profile else (None,)
        steps = [row.cycles for row in made.programs if row.computation == "product"] if profile else []
        return results, steps, memory_report().devices[0].programs[-1].ipus[0]

    return run


SHAPES = ([256, 512], [512, 384])


def by_hand(**options):
    """Both operands are allocated for the product."""
    return plan_matmul(CHIPS["gc200"], 1, 256, 512, 384, element_bytes=2, layouts=ALLOCATED, **options)


def test_the_configuration_plans_matrix_products(planned):
    results, cycles, plain = planned(tf.matmul, SHAPES)
    assert cycles == [by_hand().cycles]
    for options, expected in (
        ({"partialsType": "half"}, by_hand(partials_are_half=True)),
        ({"availableMemoryProportion": "0.005"}, by_hand(proportion=0.005)),
        (
            {"partialsType": "half", "availableMemoryProportion": "0.005"},
            by_hand(partials_are_half=True, proportion=0.005),
        ),
    ):
        same, cycles, plan = planned(tf.matmul, SHAPES, matmuls__poplar_options=options)
        np.testing.assert_array_equal(same, results)
        assert cycles == [expected.cycles] != [by_hand().cycles]
        assert plan.library.tile_bytes == expected.temporary_bytes
        assert plan.library.limit_bytes == int(float(options.get("availableMemoryProportion", 0.6)) * 638976)
        assert (plan.peak_bytes, plan.categories) == (plain.peak_bytes, plain.categories), "never added to the peak"
    _, cycles, _ = planned(tf.matmul, SHAPES, convolutions__poplar_options={"partialsType": "half"})
    assert cycles == [by_hand().cycles]


def test_the_tables_are_there_where_they_are_asked_for(planned, monkeypatch):
    _, _, plan = planned(tf.matmul, SHAPES, profile=False)
    expected = by_hand()
    assert (
        plan.library.tile_bytes == expected.temporary_bytes == plan.library.operand_bytes + plan.library.partial_bytes
    )
    monkeypatch.setenv("TF_IPU_SHIM_EXACT_BYTES", "1")
    text = memory_report().to_text()
    (row,) = (line.split() for line in text.splitlines() if line.endswith("MatMul/dot/Conv_1"))
    least, most = expected.temporary_bytes / LIBRARY_ERROR_FACTOR, expected.temporary_bytes * LIBRARY_ERROR_FACTOR
    shown = [expected.temporary_bytes, least, most, int(0.6 * 638976)]
    assert row[1:9] == [word for number in shown for word in (f"{number:,.0f}", "B")]
    [ipu] = json.loads(memory_report().to_json())["devices"][0]["modelled"]["programs"][0]["ipus"]
    told, code = ipu["library_call"], ipu["code"]
    assert (told["tile_bytes"], told["error_factor"]) == (expected.temporary_bytes, LIBRARY_ERROR_FACTOR)
    # Of the adder that is published, on 1,216 tiles: 3,168 bytes of stack on each.
    assert code["parts"]["stacks"] == 3168 and f"always live, {code['tile_bytes']:,} B of a tile" in text
    assert code["tile_bytes"] == sum(code["parts"].values())
    assert ipu["code_bytes"] == 1472 * sum(part.mean_bytes for part in plan.code) <= 1472 * code["tile_bytes"]
    assert ipu["always_live_with_code_bytes"] == ipu["always_live_bytes"] + ipu["code_bytes"]
    others = ipu["library_tile_bytes"] + code["tile_bytes"]
    assert ipu["expected_tile_bytes"] == ipu["max_tile_bytes"] + others
    assert ipu["verdict"] == "fits" and "Does it fit?" in text
    monkeypatch.setenv("TF_IPU_SHIM_MEMORY_PLAN", "on")
    _, _, without = planned(tf.matmul, SHAPES, profile=False)
    assert without.library is None and "largest library call" not in memory_report().to_text()
    assert without.code == () and "Code and stacks" not in memory_report().to_text()
    assert without.peak_bytes == plan.peak_bytes


def test_a_scope_sets_the_partials_of_the_ops_in_it(planned):
    def model(x, y):
        with partials_type(tf.float16):
            first = tf.matmul(x, y, name="first")
        with partials_type(tf.float32):
            second = tf.matmul(x, y + tf.ones([], tf.float16), name="second")
        return first, second

    half = by_hand(partials_are_half=True).cycles
    assert sorted(planned(model, SHAPES)[1]) == sorted([half, by_hand().cycles])
    options = {"partialsType": "half"}
    assert sorted(planned(model, SHAPES, matmuls__poplar_options=options)[1]) == sorted([half, by_hand().cycles])


def test_multi_conv_plans_the_convolutions_in_it(planned):
    shapes = ([1, 16, 16, 32], [3, 3, 32, 64])

    def model(options):
        def both(image, kernel):
            inside = nn_ops.multi_conv(lambda: tf.nn.conv2d(image, kernel, 1, "SAME"), options=options)()
            return inside, tf.nn.conv2d(image, tf.concat([kernel, kernel], 3), 1, "SAME")

        return both

    def plan(columns, half):
        window = ((3, 16), (3, 16))
        return plan_matmul(CHIPS["gc200"], 1, 256, 32, columns, 9, 2, half, layouts=ALLOCATED, window=window).cycles

    assert sorted(planned(model(None), shapes)[1]) == sorted([plan(64, False), plan(128, False)])
    made = planned(model({"partialsType": "half"}), shapes)[1]
    assert sorted(made) == sorted([plan(64, True), plan(128, False)])


@pytest.mark.parametrize("kind, gates", [slowly("PopnnLSTM", 4), ("PopnnGRU", 3)])
def test_recurrent_layers_plan_the_products_of_the_forward_pass(planned, kind, gates):
    def cycles(**options):
        def model(x):
            zeros = v1.zeros_initializer()
            return getattr(rnn_ops, kind)(64, dtype=tf.float16, weights_initializer=zeros, **options)(x)[0]

        return sorted(planned(model, [[3, 64, 128]], matmuls__poplar_options={"partialsType": "half"})[1])

    def plans(**options):
        columns = [4 * 64] if gates == 4 else [2 * 64, 64]  # of a GRU the candidate's product comes after the gates'
        shapes = [(3 * 64, 128, gates * 64), *((64, 64, width) for width in columns)]
        options = {"element_bytes": 2, "layouts": ALLOCATED, **options}
        return sorted(plan_matmul(CHIPS["gc200"], 1, *shape, **options).cycles for shape in shapes)

    assert cycles() == plans(), "partials_dtype is float32, whatever the configuration says of matrix products"
    assert cycles(partials_dtype=tf.float16) == plans(partials_are_half=True)
    starved = plans(proportion=0.0)
    assert cycles(available_memory_proportion_fwd=0.0) == starved != plans()
    assert cycles(options={"availableMemoryProportion": 0.0}) == starved


@pytest.mark.parametrize("kind, gates", [("PopnnLSTM", 4), slowly("PopnnGRU", 3)])
def test_recurrent_layers_plan_the_products_of_their_gradients(planned, kind, gates):
    """Those of the weights and of what comes in, outside the loop; those of the state, in its backward loop."""

    def cycles(**options):
        def model(x):
            made = getattr(rnn_ops, kind)(64, dtype=tf.float16, weights_initializer=v1.zeros_initializer(), **options)
            result = made(x)[0]
            return tf.gradients(result, [x, made.kernel])

        return sorted(planned(model, [[3, 64, 128]], matmuls__poplar_options={"partialsType": "half"})[1])

    def plans(shapes, **options):
        options["element_bytes"] = 2
        return [plan_matmul(CHIPS["gc200"], 1, *shape, layouts=known, **options).cycles for shape, known in shapes]

    columns = [4 * 64] if gates == 4 else [2 * 64, 64]
    forward = [((3 * 64, 128, gates * 64), ALLOCATED), *(((64, 64, width), ALLOCATED) for width in columns)]
    # Weights have the layout of the forward pass. Gradients of several gates are put side by side, so that they lie in
    # another order than one after the other; the product of a kernel's gradient sums over the batch.
    backward = [((3 * 64, gates * 64, 128), (ARRANGED, OTHER)), ((128, 3 * 64, gates * 64), (OTHER, OTHER))]
    backward += [((64, columns[0], 64), (OTHER, MADE)), ((64, 64, columns[0]), ALLOCATED)]
    backward += [((64, 64, 64), ALLOCATED), ((64, 64, 64), (MADE, OTHER))] if gates == 3 else []
    assert cycles() == sorted(plans(forward) + plans(backward))
    starved = sorted(plans(forward) + plans(backward, proportion=0.0))
    assert cycles(available_memory_proportion_bwd=0.0) == starved
    assert cycles(options_bwd={"availableMemoryProportion": 0.0}) == starved


STARVED = pipelining_ops.PipelineStageOptions(matmul_options={"availableMemoryProportion": "0"})
FREE = pipelining_ops.PipelineStageOptions()
WIDTH = 32


def test_stages_of_a_pipeline_have_options_of_their_own(environment, tmp_path):
    def cycles(**options):
        folder = tmp_path / "_".join(["reports", *options])
        engine = {"autoReport.all": "true", "autoReport.directory": str(folder)}
        environment(option_runs.COMPILE_ONLY, engine=engine)
        option_runs.pipeline(width=WIDTH, **options)
        (made,) = (reader.read_profile(one) for one in folder.iterdir())
        return collections.Counter(row.cycles for row in made.programs if row.computation == "product")

    def plans(first=0.6, second_backward=0.6):
        """Four stages: 8 x 32 by 32 x 32; in the backward pass 32 x 8 by 8 x 32 for the weights, whose sums go over the
        batch, and but for the first stage 8 x 32 by 32 x 32 for what came in, with weights that lie otherwise.
        """
        shapes = [
            (8, WIDTH, first, ALLOCATED), *[(8, WIDTH, 0.6, (ARRANGED, MADE))] * 3,
            (8, WIDTH, second_backward, (ARRANGED, OTHER)), *[(8, WIDTH, 0.6, (ARRANGED, OTHER))] * 2,
            (WIDTH, 8, second_backward, (OTHER, OTHER)), *[(WIDTH, 8, 0.6, (OTHER, OTHER))] * 3,
        ]  # fmt: skip
        return products(shapes)

    assert cycles() == plans()
    forward = cycles(forward_propagation_stages_poplar_options=[STARVED, FREE, FREE, FREE])
    assert forward == plans(first=0.0) != plans()
    backward = cycles(backward_propagation_stages_poplar_options=[FREE, STARVED, FREE, FREE])
    assert backward == plans(second_backward=0.0) != plans()


def products(shapes):
    """How many products of 32 columns take how long, by rows, summed axis, proportion and layouts."""
    return collections.Counter(
        plan_matmul(CHIPS["gc200"], 1, rows, inner, WIDTH, proportion=proportion, layouts=layouts).cycles
        for rows, inner, proportion, layouts in shapes
    )


@pytest.mark.parametrize("mapping, name", [([0, 1], None), ([0, 0], "inner")], ids=["by themselves", "in a program"])
def test_a_stages_options_hold_in_its_loops(environment, tmp_path, mapping, name):
    def stage(number, x):
        weight = v1.get_variable(f"w{number}", [WIDTH, WIDTH], initializer=v1.ones_initializer())
        if number:
            return tf.reduce_sum(tf.matmul(x, weight))
        # XLA wants to know how long the lists are that the backward loop takes.
        return tf.while_loop(
            lambda i, x: i < 3, lambda i, x: (i + 1, tf.matmul(x, weight, name=name)), [0, x], maximum_iterations=3
        )[1]

    def cycles(config=(), **options):
        folder = tmp_path / "_".join(["reports", *dict(config), *options])
        engine = {"autoReport.all": "true", "autoReport.directory": str(folder)}
        environment({**option_runs.COMPILE_ONLY, **dict(config)}, engine=engine)
        option_runs.pipeline(stages=2, stage=stage, width=WIDTH, device_mapping=mapping, **options)
        (made,) = (reader.read_profile(one) for one in folder.iterdir())
        return collections.Counter(row.cycles for row in made.programs if row.computation == "product")

    def plans(loop=0.6, backward_loop=0.6, others=0.6):
        """The loop's product, that of what came in of its backward loop, and of its weight; those of the other stage.

        The layouts in a loop are known if it is part of a program. The gradient of the sum has no neighbours.
        """
        here = [ALLOCATED, ALLOCATED, (MADE, OTHER)] if name else [(OTHER, OTHER)] * 3
        shapes = [
            (8, WIDTH, loop, here[0]), (8, WIDTH, backward_loop, here[1]), (WIDTH, 8, backward_loop, here[2]),
            (8, WIDTH, others, (ARRANGED if name else MADE, OTHER)), (8, WIDTH, others, (OTHER, MADE)),
            (WIDTH, 8, others, (OTHER, OTHER)),
        ]  # fmt: skip
        return products(shapes)

    assert cycles() == plans()
    assert cycles(forward_propagation_stages_poplar_options=[STARVED, FREE]) == plans(loop=0.0) != plans()
    assert cycles(backward_propagation_stages_poplar_options=[STARVED, FREE]) == plans(backward_loop=0.0) != plans()
    everywhere = cycles({"matmuls.poplar_options": {"availableMemoryProportion": "0"}})
    assert everywhere == plans(0.0, 0.0, 0.0)


@pytest.mark.parametrize("way", ["forward", "backward"])
def test_a_stage_s_options_that_poplar_refuses_fail_the_program(environment, way):
    environment(option_runs.COMPILE_ONLY)
    wrong = pipelining_ops.PipelineStageOptions(matmul_options=WRONG)
    with pytest.raises(tf.errors.InternalError, match="invalid_option: .*greater than or equal to 0"):
        option_runs.pipeline(**{f"{way}_propagation_stages_poplar_options": [FREE, wrong, FREE, FREE]})


def halved(x):
    return tf.nn.conv2d(x, tf.eye(4, batch_shape=[1, 1]) / 2.0, 1, "SAME")


def halved_in_a_loop(x):
    return tf.while_loop(lambda i, x: i < 1, lambda i, x: (i + 1, halved(x)), [0, x])[1]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (halved, tf.nn.relu, None),
        (halved_in_a_loop, tf.nn.relu, None),
        (tf.nn.relu, halved, lambda x: x / 2),
        (lambda x: tf.matmul(x, x), tf.nn.relu, lambda x: x @ x),
    ],
    ids=["has one", "in a loop", "of another stage", "none"],
)
def test_a_stage_s_convolution_options_are_read_if_it_has_one(ipus, first, second, expected):
    ipus(2)
    x = np.random.RandomState(0).rand(1, 4, 4, 4).astype(np.float32)
    wrong = pipelining_ops.PipelineStageOptions(convolution_options=WRONG)
    outfeed = ipu_outfeed_queue.IPUOutfeedQueue()
    with tf.Graph().as_default(), v1.Session() as session:
        infeed = ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(x).repeat())

        def network():
            return pipelining_ops.pipeline(
                [first, second],
                4,
                infeed_queue=infeed,
                outfeed_queue=outfeed,
                forward_propagation_stages_poplar_options=[wrong, FREE],
                backward_propagation_stages_poplar_options=[wrong, wrong],  # of training, which this is not
            )

        with ipu_scope("/device:IPU:0"):
            program = ipu_compiler.compile(network)
        session.run(infeed.initializer)
        if expected is None:
            with pytest.raises(tf.errors.InternalError, match="invalid_option: .*greater than or equal to 0"):
                session.run(program)
        else:
            session.run(program)
            np.testing.assert_allclose(session.run(outfeed.dequeue())[0], expected(x), rtol=1e-6)


def test_options_of_stages_that_are_not_read_are_recorded(environment):
    environment(option_runs.COMPILE_ONLY)
    made = pipelining_ops.PipelineStageOptions({"partialsType": "half", "a": "1"}, None, {"b": "2"})
    option_runs.pipeline(forward_propagation_stages_poplar_options=[FREE, made, FREE, FREE])
    recorded = dict(memory_report().without_effect)["pipeline(forward_propagation_stages_poplar_options)"]
    assert recorded == [{}, {"convolution_options": {"a": "1"}, "slice_options": {"b": "2"}}, {}, {}]


def test_other_options_are_recorded(environment):
    config = {"convolutions.poplar_options": {"partialsType": "half", "enableFastReduce": "true"}}
    environment(config, ipus=1)
    nn_ops.multi_conv(tf.nn.conv2d, options={"planType": "serial", "availableMemoryProportion": "0.2"})
    without = dict(memory_report().without_effect)
    assert without["convolutions.poplar_options"] == {"enableFastReduce": "true"}
    assert without["nn_ops.multi_conv(options)"] == {"planType": "serial"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"availableMemoryProportion": "-1"}, "is '-1'. Value must be greater than or equal to 0"),
        ({"availableMemoryProportion": "much"}, "is 'much'; expected a number"),
        ({"partialsType": "double"}, "partialsType is 'double'; expected 'half' or 'float'"),
    ],
)
def test_a_configuration_that_poplar_refuses_fails_the_program(planned, options, message):
    with pytest.raises(tf.errors.InternalError, match=message):
        planned(tf.matmul, SHAPES, profile=False, matmuls__poplar_options=options)


@pytest.mark.parametrize("options", [{"availableMemoryProportion": "0,23"}, {"partialsType": "double"}])
@pytest.mark.parametrize("memory", ["calls", "off"])
def test_options_of_products_that_a_program_has_not_are_not_read(environment, monkeypatch, options, memory):
    # Published scripts say "0,23" of convolutions and have none.
    monkeypatch.setenv("TF_IPU_SHIM_MEMORY_PLAN", memory)
    environment({"convolutions.poplar_options": options}, ipus=1)
    x = np.random.RandomState(0).rand(2, 8, 8, 4).astype(np.float32)
    kernel = np.full((1, 1, 4, 4), 0.5, np.float32)
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, x.shape)
        with ipu_scope("/device:IPU:0"):
            product = ipu_compiler.compile(lambda x: tf.matmul(x, x, transpose_b=True), [fed])
            convolution = ipu_compiler.compile(lambda x: tf.nn.conv2d(x, kernel, 1, "SAME"), [fed])
        np.testing.assert_allclose(session.run(product, {fed: x})[0], x @ x.swapaxes(2, 3), rtol=1e-5)
        with pytest.raises(tf.errors.InternalError, match=f"invalid_option: .*is '{[*options.values()][0]}'"):
            session.run(convolution, {fed: x})
