"""Where a pipeline's stages are and how often they are traced: devices, checkpoints, names, places to keep things."""

import numpy as np
import pytest
import tensorflow as tf
from pipelines_by_hand import (
    ELEMENTS,
    check_training,
    configure,
    descent,
    in_eager_thread,
    run,
    trained_by_hand,
    two_layers,
    variable,
)
from tf_ipu_shim.ipu import scopes
from tf_ipu_shim.ipu.ops import pipelining_ops
from tf_ipu_shim.ipu.ops.pipelining_ops import PipelineSchedule, RecomputationMode

from tf_ipu_shim import memory_report

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1


@pytest.fixture(autouse=True)
def two_ipus(graph):
    configure(2)


def test_results_do_not_depend_on_where_things_are_kept():
    options = {
        "offload_weight_update_variables": True,
        "replicated_optimizer_state_sharding": True,
        "offload_activations": True,
        "offload_gradient_accumulation_buffers": True,
        "replicated_weight_sharding": True,
        "offload_weights": True,
        "recomputation_mode": RecomputationMode.RecomputeThenBackpropagate,
        "weight_update_poplar_options": pipelining_ops.PipelineStageOptions(matmul_options={"a": "b"}),
        "forward_propagation_stages_poplar_options": [pipelining_ops.PipelineStageOptions()] * 2,
        "backward_propagation_stages_poplar_options": (pipelining_ops.PipelineStageOptions(),) * 2,
    }
    check_training(run(two_layers(gradient_accumulation_count=4, **options)), trained_by_hand(4))


@pytest.mark.parametrize(
    "options",
    [
        {name: "False"}
        for name in (
            "outfeed_loss",
            "accumulate_outfeed",
            "gradient_accumulation_for_captured_grads",
            "offload_weight_update_variables",
            "replicated_optimizer_state_sharding",
            "offload_activations",
            "offload_gradient_accumulation_buffers",
            "replicated_weight_sharding",
            "offload_weights",
        )
    ]
    + [{"outfeed_mask": mask} for mask in (True, "10", {"loss": True}, [0, 2])],
    ids=str,
)
def test_switches_that_are_none_are_refused_by_name(options):
    (name,) = options
    with pytest.raises(TypeError, match=f"{name} must be .*True or False"):
        run(two_layers(gradient_accumulation_count=4, **options))


def test_a_stage_on_an_ipu_that_is_not_there_names_the_mapping():
    expected = "of pipeline stage 1 is placed on shard 3 at .*, in <lambda>, .* with the pipeline's device_mapping"
    with pytest.raises(tf.errors.InternalError, match=expected):
        run(two_layers(gradient_accumulation_count=4, device_mapping=[0, 3]))


@pytest.mark.parametrize("mapping", [[0, 1, 0], [1, 0, 0]])
def test_a_variable_is_of_stages_on_one_ipu(mapping):
    """The first stage and the last have a weight in common, as tied embeddings do."""

    def tied(x):  # the first stage makes the variable, the last finds it
        with v1.variable_scope(v1.get_variable_scope(), reuse=v1.AUTO_REUSE):
            return x * variable("tied", 0.5)

    def build(infeed, outfeed):
        return pipelining_ops.pipeline(
            [tied, lambda x: x + 1.0, lambda x: tf.reduce_sum(tied(x))],
            gradient_accumulation_count=6,
            device_mapping=mapping,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=descent,
        )

    if mapping[0] != mapping[2]:
        with pytest.raises(ValueError, match="Variable tied is .*stage 0 on IPU 1 and stage 2 on IPU 0.*same IPU"):
            run(build)
        return
    (losses,), weights = run(build)
    x = ELEMENTS[:6].astype("d")
    np.testing.assert_allclose(losses, (0.5 * (0.5 * x + 1)).sum((1, 2)), rtol=1e-6)
    np.testing.assert_allclose(weights["tied"], 0.5 - 0.01 * (2 * 0.5 * x + 1).sum(), rtol=1e-6)


def test_functions_of_a_concurrent_stage_are_on_their_own_ipus():
    configure(4)
    start = np.array([[0.5, -1.0], [2.0, 1.0]], "f")

    def branch(name):
        def run_branch(x):
            return tf.reduce_sum(x @ variable(name, start), 1), tf.reduce_sum(x)

        return run_branch

    def last(left, left_sum, right, right_sum):
        return tf.reduce_sum(left * right), left_sum + right_sum

    (losses, sums), weights = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [lambda x: tf.tile(x, [1, 2]), [branch("left"), branch("right")], last],
            gradient_accumulation_count=6,
            device_mapping=[0, [1, 3], 2],
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=descent,
        )
    )
    x = np.tile(ELEMENTS[:6], [1, 1, 2]).astype("d")
    products = (x @ start).sum(2)
    np.testing.assert_allclose(losses, (products**2).sum(1), rtol=1e-5)
    np.testing.assert_allclose(sums, 2 * x.sum((1, 2)), rtol=1e-5)
    gradient = np.einsum("brc,br->c", x, products)[:, None].repeat(2, 1)
    for name in ("left", "right"):
        np.testing.assert_allclose(weights[name], start - 0.01 * gradient, rtol=1e-4)
    (used,) = [program for program in memory_report().devices[0].programs if program.variables]
    assert {name: ipus for (ipus, name), size in used.variables.items() if size} == {"left": 1, "right": 3}


def test_concurrent_first_and_last_stages_get_consecutive_ipus():
    configure(4)
    got, _ = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [[lambda x: x + 1.0, lambda x: x - 1.0], [lambda a, b: a * b, lambda a, b: {"sum": a + b}]],
            gradient_accumulation_count=2,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
        )
    )
    np.testing.assert_allclose(got[0], ELEMENTS[:2] ** 2 - 1)
    np.testing.assert_allclose(got[1]["sum"], ELEMENTS[:2] * 2)


def test_a_stage_on_all_ipus_marks_its_ops_itself():
    def spread(x):
        with scopes.ipu_shard(1):
            return x * variable("one", 3.0)

    got, _ = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [spread, lambda x: x * variable("zero", 2.0)],
            gradient_accumulation_count=2,
            device_mapping=[-1, 0],
            infeed_queue=infeed,
            outfeed_queue=outfeed,
        )
    )
    np.testing.assert_allclose(got, ELEMENTS[:2] * 6)
    (used,) = [program for program in memory_report().devices[0].programs if program.variables]
    assert {name: ipu for (ipu, name), size in used.variables.items() if size} == {"one": 1, "zero": 0}


def test_checkpoints_hand_on_values_and_gradients():
    def first(x):
        pair = pipelining_ops.recomputation_checkpoint({"x": x, "y": [x * variable("first", 0.5)]}, name="kept")
        return pair["y"][0]

    got = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [first, lambda x: tf.reduce_sum(tf.square(x * variable("second", 0.25)))],
            gradient_accumulation_count=4,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=descent,
        )
    )
    check_training(got, trained_by_hand(4))
    x = pipelining_ops.recomputation_checkpoint(tf.constant([1.0, 2.0]))
    assert isinstance(x, tf.Tensor) and x.shape == [2]


def test_its_name():
    operations = []

    def build(infeed, outfeed):
        operations.append(
            pipelining_ops.pipeline(
                [lambda x: x * 2.0, lambda x: tf.reduce_sum(x)],
                gradient_accumulation_count=2,
                infeed_queue=infeed,
                outfeed_queue=outfeed,
                name="part/whole",
            )
        )
        return operations[0]

    got, _ = run(build)
    assert isinstance(operations[0], tf.Operation) and operations[0].name == "part/whole"
    np.testing.assert_allclose(got, 2 * ELEMENTS[:2].sum((1, 2)))


def test_each_stage_is_traced_once():
    calls = []

    def stage(number):
        def run_stage(x):
            calls.append(number)
            return x * variable(f"w{number}", 1.5) if number < 2 else tf.reduce_sum(x)

        return run_stage

    def optimizer_function(loss):
        calls.append("optimizer")
        return descent(loss)

    run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [stage(0), stage(1), stage(2)],
            gradient_accumulation_count=12,
            repeat_count=2,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
            optimizer_function=optimizer_function,
            device_mapping=[0, 1, 0],
            pipeline_schedule=PipelineSchedule.Sequential,
        )
    )
    assert calls == [0, 1, 2, "optimizer"]


@pytest.mark.parametrize("count", [0, -1, 2**31, 2**40])
def test_executions_that_an_int32_does_not_count(count):
    with tf.Graph().as_default(), pytest.raises(ValueError, match="repeat_count must be from 1 to 2147483647"):
        pipelining_ops.pipeline([tf.identity, tf.identity], 4, repeat_count=count, inputs=[1.0])


def test_not_eagerly():
    def call():
        with pytest.raises(RuntimeError, match="cannot run eagerly.*IPUStrategy.run"):
            pipelining_ops.pipeline([tf.identity, tf.identity], 4, inputs=[1.0])
        with pytest.raises(ValueError, match="at least two computational stages"):
            pipelining_ops.pipeline([tf.identity], 4, inputs=[1.0])
        return True

    assert in_eager_thread(call)


def test_helpers_of_graphcores_own_tests():
    from tensorflow.python.ipu.ops import functional_ops

    assert pipelining_ops._to_flat_list([0, [1, (2,)], 3]) == [0, 1, 2, 3]
    assert functional_ops._convert_to_list((1, 2)) == [1, 2] and functional_ops._convert_to_list("a") == ["a"]


def test_replicas_have_ipus_for_all_stages():
    """Also for stages whose ops need none: four stages on four IPUs are one replica."""
    configure(4)
    got, _ = run(
        lambda infeed, outfeed: pipelining_ops.pipeline(
            [lambda x: x * 2.0, lambda x: x, lambda x: x, lambda x: x],
            gradient_accumulation_count=4,
            infeed_queue=infeed,
            outfeed_queue=outfeed,
        )
    )
    np.testing.assert_allclose(got, 2 * ELEMENTS[:4])
