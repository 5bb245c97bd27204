"""What the out-of-memory error says an action saves, beside what it saves when the script does it.

The chip is a GC200 with four tiles. Programs are lowered and planned, and not run.
"""

import itertools
import re

import numpy as np
import pytest
import tensorflow as tf
from advice_models import compiled, deep, few_tiles, fitted, keras, layers, planned, staged  # noqa: F401 - a fixture
from slow_cases import slowly
from tf_ipu_shim.ipu.ops.pipelining_ops import PipelineSchedule

from tf_ipu_shim import ipu
from tf_ipu_shim.machine.memory import best
from tf_ipu_shim.memory_model.advice import partitioning, recommendations
from tf_ipu_shim.memory_model.shapes import batch_operands

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1


def saving(plan, action):
    """Bytes that an action of a plan saves, and whether the program fits then."""
    found = [one for one in plan.savings if re.search(action, one.action)]
    assert len(found) == 1, plan.savings
    return found[0].bytes, found[0].fits


def part_of(plan):
    """The mini-batch that is named."""
    named = next(one.action for one in plan.savings if one.action.startswith("a mini-batch"))
    return int(named.split()[3].replace(",", ""))


def done(before, after):
    """What the IPU that was fullest needs less, or what the fullest one does where layers have moved."""
    full = max(before.ipus, key=lambda one: one.peak_bytes)
    return full.peak_bytes - max(one.peak_bytes for one in after.ipus)


def convolutions():
    """What a mini-batch has to be followed through: padding, strides, norms, pooling, reshapes, means, products."""
    return keras.Sequential(
        [
            layers.Conv2D(8, 3, padding="same", activation="relu", input_shape=(16, 16, 3)),
            layers.BatchNormalization(),
            layers.ZeroPadding2D(1),
            layers.DepthwiseConv2D(3, strides=2, activation="relu"),
            layers.Conv2DTranspose(8, 3, strides=2, padding="same"),
            layers.MaxPool2D(2),
            layers.Reshape([8, 64]),
            layers.LayerNormalization(),
            layers.Permute([2, 1]),
            layers.Conv1D(16, 3, activation="gelu"),
            layers.AveragePooling1D(2),
            layers.Flatten(),
            layers.Dense(10, "softmax"),
        ]
    )


def attention():
    words = keras.Input([16], dtype="int32")
    x = layers.Embedding(50, 32)(words)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 8)(x, x))
    x = layers.Concatenate()([x, layers.Dense(32, "gelu")(x)])
    return keras.Model(words, layers.Dense(4)(x[:, 0]))


def recurrent():
    return keras.Sequential([layers.LSTM(16, input_shape=(12, 8), return_sequences=True), layers.Dense(4)])


@pytest.mark.parametrize("model, batch", [(convolutions, 96), (attention, 128), (recurrent, 1024)])
@pytest.mark.slow
def test_a_part_of_the_mini_batch(model, batch):
    before = planned(fitted(model, batch))
    saved, fits = saving(before, f"a mini-batch of .* instead of {batch:,}")
    after = planned(fitted(model, part_of(before)))
    assert fits == after.fits
    assert saved == pytest.approx(done(before, after), rel=0.01)


def test_half_of_what_is_fed():
    def model(x, y):
        weights = v1.get_variable("w", [64, 64], use_resource=True)
        return tf.reduce_mean((tf.matmul(tf.tanh(x @ weights), weights) - y) ** 2, axis=1)

    before = planned(compiled(model, *[np.zeros([4000, 64], "f")] * 2))
    saved, fits = saving(before, "a mini-batch of 2,000 instead of 4,000")
    after = planned(compiled(model, *[np.zeros([2000, 64], "f")] * 2))
    assert (saved, fits) == (done(before, after), after.fits)


def test_the_largest_part_of_what_is_fed_that_is_enough():
    def model(x, y):
        weights = v1.get_variable("w", [64, 64], use_resource=True)
        return tf.reduce_mean((tf.matmul(tf.tanh(x @ weights), weights) - y) ** 2, axis=1)

    def with_rows(rows):
        return planned(compiled(model, *[np.zeros([rows, 64], "f")] * 2))

    before, half, part = with_rows(16000), with_rows(8000), with_rows(4000)
    assert not half.fits and not part.fits
    saved, fits = saving(before, "a mini-batch of .* instead of 16,000")
    assert part_of(before) == 2000
    after = with_rows(2000)
    assert (saved, fits) == (done(before, after), after.fits) and fits


def test_a_variable_has_no_part_of_what_is_fed(monkeypatch):
    """What is fed is summed with the rows of the weights, at which the search for its parts has to end."""
    looked, operand_axes = itertools.count(), batch_operands.operand_axes

    def counted(*given):
        assert next(looked) < 100
        return operand_axes(*given)

    monkeypatch.setattr(batch_operands, "operand_axes", counted)

    def model(row):
        return tf.broadcast_to(row, [64, 1024]) @ v1.get_variable("w", [1024, 1024], use_resource=True)

    plan = planned(compiled(model, np.zeros([1024], "f")))
    assert not plan.fits
    assert 0 < next(looked) < 100


def test_where_no_part_is_enough_few_are_tried(monkeypatch):
    tried = []
    beside = recommendations.saving_between
    monkeypatch.setattr(recommendations, "saving_between", lambda *given: tried.append(given[-1]) or beside(*given))
    wide = np.zeros([64, 1024], "f")

    def model(x):  # the weights alone are too large
        return x @ v1.get_variable("w", [1024, 1024], use_resource=True)

    assert not any(fits for _, fits in [saving(planned(compiled(model, wide)), "a mini-batch of 32 instead of 64")])
    assert [action for action in tried if action.startswith("a mini-batch")] == ["a mini-batch of 32 instead of 64"]


def perceptron(width=300, count=4):
    return lambda: keras.Sequential(
        [layers.Dense(width, "relu", input_shape=(width,), name=f"layer{number}") for number in range(count)]
    )


def test_half_precision():
    before = planned(fitted(perceptron(), 4, "adam"))
    saved, fits = saving(
        before,
        r'float16 instead of float32 \(tf.keras.backend.set_floatx\("float16"\); with Adam, epsilon=1e-4 or larger\)',
    )
    after = planned(fitted(perceptron(), 4, "adam", floats="float16"))
    assert fits == after.fits is True
    assert saved == pytest.approx(done(before, after), rel=0.01)


def sharded(split):
    """Six layers with momentum, each on the shard that its digit names."""

    def model(x):
        for number, shard in enumerate(map(int, split)):
            with ipu.scopes.ipu_shard(shard):
                x = tf.tanh(tf.matmul(x, v1.get_variable(f"w{number}", [270, 270], use_resource=True)))
        with ipu.scopes.ipu_shard(shard):
            loss = tf.reduce_sum(x)
        return ipu.sharded_optimizer.ShardedOptimizer(v1.train.MomentumOptimizer(0.1, 0.9)).minimize(loss)

    return compiled(model, np.zeros([8, 270], "f"))


@pytest.mark.parametrize(
    "split, ipus, action, cut, then",
    [
        ("000001", 2, r"other shards on the same 2 IPUs \(ipu_shard\), shard 1 from MatMul_3 \(.*\) on", "000111", 2),
        ("000000", 1, r"2 IPUs to a replica instead of 1 \(auto_select_ipus, ipu_shard\), shard 1 from", "000111", 2),
    ],
)
def test_layers_on_other_shards(split, ipus, action, cut, then):
    before = planned(sharded(split), ipus)
    saved, fits = saving(before, action)
    after = planned(sharded(cut), then)
    assert (saved, fits) == (done(before, after), after.fits)


BATCH = 480  # 122,880 bytes a layer: seven of them, and twice as many of waiting mini-batches, do not fit


@pytest.mark.parametrize(
    "action, change",
    [
        (r"recomputation \(allow_recompute=True\)", {"recompute": True}),
        (r"other stages on the same 2 IPUs \(model.set_pipeline.*\), stage 1 from layer2 on", {"cut": 2}),
        (r"a mini-batch of 240 instead of 480", {"batch": BATCH // 2}),
    ],
)
@pytest.mark.slow
def test_a_pipeline(action, change):
    def run(cut=7, batch=BATCH, recompute=False, **options):
        return planned(fitted(deep, batch, options=staged([cut], **options)), 2, recompute)

    before = run()
    saved, fits = saving(before, action)
    after = run(**change)
    assert (saved, fits) == (done(before, after), after.fits)


@pytest.mark.parametrize(
    "batch, action, change",
    [
        (600, r"\(PipelineSchedule.Interleaved\)", {"pipeline_schedule": PipelineSchedule.Interleaved}),
        (1100, r"in Streaming Memory \(offload_activations=True\)", {"offload_activations": True}),
    ],
)
@pytest.mark.slow
def test_mini_batches_that_wait(batch, action, change):
    """Of what is done about them, the first that is enough is named."""

    def run(**options):
        return planned(fitted(deep, batch, options=staged([6], **options)), 2)

    before, after = run(), run(**change)
    assert saving(before, "Interleaved|Sequential|offload_activations") == (done(before, after), after.fits)
    assert saving(before, action)


@pytest.mark.parametrize("option", ["offload_weight_update_variables", "replicated_optimizer_state_sharding"])
@pytest.mark.slow
def test_the_optimizer_s_state_elsewhere(option):
    def run(**options):
        def accumulate(model):
            model.set_gradient_accumulation_options(2, **options)

        return planned(fitted(perceptron(), 4, "adam", accumulate, samples=8), 2)

    before = run()
    saved, fits = saving(before, option)
    after = run(**{option: True})
    assert (saved, fits) == (done(before, after), after.fits)


def dense_and_strided():
    """Gradients that are more than one product: of biases, kernels, norms."""
    return keras.Sequential(
        [
            layers.Conv2D(32, 3, strides=2, activation="relu", input_shape=(8, 8, 4)),
            layers.LayerNormalization(),
            layers.Flatten(),
            layers.Dense(600, "relu"),
            layers.Dense(200),
        ]
    )


@pytest.mark.parametrize(
    "model, batch, optimizer, then",
    [
        (perceptron(), 4, "adam", 4),  # half of so small a mini-batch saves less
        slowly(perceptron(), 64, "adam", 32),
        (perceptron(200, 3), 512, "sgd", 256),
        slowly(dense_and_strided, 32, "adam", 32),
    ],
)
def test_gradients_accumulated(model, batch, optimizer, then):
    has_state = optimizer == "adam"
    before = planned(fitted(model, batch, optimizer))
    which = f"gradients of 2 mini-batches {f'of {then} ' if then < batch else ''}accumulated"
    saved, fits = saving(before, f"^{which}{', optimizer state in Streaming Memory' if has_state else ''} ")

    def accumulate(model):
        model.set_gradient_accumulation_options(2, offload_weight_update_variables=has_state)

    after = planned(fitted(model, then, optimizer, accumulate))
    assert fits == after.fits and saved > 0
    assert saved == pytest.approx(done(before, after), rel=0.01)


def looped(batch, width=256, accumulated=None, adam=False, replicas=False, **options):
    """A TensorFlow 1 loop over mini-batches: four dense layers, gradients accumulated where asked for."""

    def body(x):
        for number in range(4):
            with v1.variable_scope(f"layer{number}"):
                weights = v1.get_variable("w", [width, width], use_resource=True)
                x = tf.nn.relu(x @ weights + v1.get_variable("b", [width], use_resource=True))
        optimizer = v1.train.AdamOptimizer(0.1) if adam else v1.train.MomentumOptimizer(0.1, 0.9)
        if accumulated is not None:
            prefix = "CrossReplica" if replicas else ""
            kind = getattr(ipu.optimizers, f"{prefix}GradientAccumulationOptimizerV2")
            optimizer = kind(optimizer, accumulated, **options)
        elif replicas:
            optimizer = ipu.optimizers.CrossReplicaOptimizer(optimizer)
        return optimizer.minimize(tf.reduce_mean(x**2))

    def run():
        with tf.Graph().as_default():
            fed = tf.data.Dataset.from_tensors(np.zeros([batch, width], "f")).repeat()
            feed = ipu.ipu_infeed_queue.IPUInfeedQueue(fed)
            with ipu.scopes.ipu_scope("/device:IPU:0"):
                program = ipu.ipu_compiler.compile(lambda: ipu.loops.repeat(16, body, [], feed))
            with v1.Session() as session:
                session.run([feed.initializer, v1.global_variables_initializer()])
                session.run(program)

    return run


@pytest.mark.parametrize("batch, parts", [(64, 4), slowly(192, 16)])
def test_a_part_of_the_mini_batch_of_a_loop(batch, parts):
    """A gradient begins with a number that is spread over the mini-batch, and is a part of it too."""
    before = planned(looped(batch))
    saved, fits = saving(before, f"^a mini-batch of {batch // parts:,} instead of {batch:,}$")
    after = planned(looped(batch // parts))
    assert (saved, fits) == (done(before, after), after.fits)


@pytest.mark.slow
def test_a_part_of_the_mini_batch_with_equal_samples_per_update():
    before = planned(looped(768, accumulated=2))
    saved, fits = saving(before, "^a mini-batch of 384 instead of 768 with num_mini_batches=4 instead of 2 for the sam")
    after = planned(looped(384, accumulated=4))
    assert (saved, fits) == (done(before, after), after.fits)


@pytest.mark.parametrize("width, batch, count, then", [(320, 8, 2, 8), (256, 192, 4, 48), (256, 1024, 16, 64)])
@pytest.mark.slow
def test_gradients_accumulated_in_a_loop(width, batch, count, then):
    before = planned(looped(batch, width, adam=True))
    which = f"gradients of {count} mini-batches {f'of {then} ' if then < batch else ''}accumulated, optimizer state in"
    saved, fits = saving(before, rf"^{which} .*\(GradientAccumulationOptimizerV2\(..., num_mini_batches={count}, offl")
    after = planned(looped(then, width, accumulated=count, adam=True, offload_weight_update_variables=True))
    assert fits == after.fits and saved > 0
    assert saved == pytest.approx(done(before, after), rel=0.01)


def test_gradients_accumulated_in_a_loop_of_replicas():
    before = planned(looped(8, 320, adam=True, replicas=True), ipus=2)
    which = r"^gradients of 2 mini-batches accumulated, optimizer state in .*"
    option = r"\(CrossReplicaGradientAccumulationOptimizerV2\(..., num_mini_batches=2, offload_weight_update_variables="
    saved, fits = saving(before, which + option)
    options = {"accumulated": 2, "offload_weight_update_variables": True}
    after = planned(looped(8, 320, adam=True, replicas=True, **options), ipus=2)
    assert fits == after.fits and saved > 0
    assert saved == pytest.approx(done(before, after), rel=0.01)


def test_accumulators_are_added_to_where_they_are():
    """Beside the program without, an accumulator for each weight and nothing else."""
    plain, accumulated = planned(looped(64)), planned(looped(64, accumulated=2))
    assert accumulated.peak_bytes - plain.peak_bytes == pytest.approx(4 * 4 * (256 + 1) * 256, abs=256)


def test_an_mlp_with_adam_on_one_ipu_gets_three_actions(monkeypatch):
    monkeypatch.setattr(recommendations, "best", best)
    before = planned(fitted(perceptron(), 4, "adam"))
    assert len(before.savings) == 3 and all(one.bytes > 0 for one in before.savings)


def wide():
    """Weights of as many bytes as activations: what is largest is neither all of these nor all gradients."""
    hidden = [layers.Dense(240, "relu", name=f"wide{number}") for number in range(5)]
    return keras.Sequential([keras.Input([64]), *hidden, layers.Dense(10, name="last")])


@pytest.mark.parametrize("model, batch", [slowly(perceptron(), 4), (deep, 1000), slowly(wide, 64)])
def test_a_pipeline_that_is_to_come_is_told_about(model, batch):
    """It is added up and not planned: the script has no such program yet."""
    before = planned(fitted(model, batch, "adam"))
    (action,) = (one for one in before.savings if "a pipeline of" in one.action)
    count, schedule, names = re.search(
        r"a pipeline of (\d) stages, an IPU each(?:, (\w+))? \(.*\), stages? 1.* from (.*) on$", action.action
    ).groups()
    begins = [[layer.name for layer in model().layers].index(name) for name in names.split(", ")]
    options = staged(begins, pipeline_schedule=PipelineSchedule[schedule or "Grouped"])
    after = planned(fitted(model, batch, "adam", options), int(count))
    assert action.fits and after.fits
    needed = max(one.peak_bytes for one in before.ipus)
    assert needed - action.bytes == pytest.approx(needed - done(before, after), rel=0.05)


def test_what_the_host_gives_is_read_and_not_changed():
    with tf.Graph().as_default():
        fed = tf.data.Dataset.from_tensors((tf.zeros([8, 3]), tf.zeros([8], tf.int64)))
        v1.data.make_one_shot_iterator(fed).get_next()
        nodes = {node.op: node for node in v1.get_default_graph().as_graph_def().node}
    for node, text, expected in (
        (nodes["IteratorGetNext"], "next:components:0", 8 * 3 * 4),
        (nodes["IteratorGetNext"], "next:components:1", 8 * 8),
        (type(nodes["IteratorGetNext"])(name="other", op="Const"), "other", 0),
    ):
        before = node.SerializeToString(deterministic=True)
        assert partitioning._fed_bytes(node, text) == expected
        assert node.SerializeToString(deterministic=True) == before


def test_layers_that_are_many_are_counted():
    (action,) = (one.action for one in planned(sharded("0" * 24)).savings if "8 IPUs to a replica" in one.action)
    assert re.search(r"shards 1 to 7 from MatMul_\d+, MatMul_\d+, MatMul_\d+, MatMul_\d+ and 3 more \(.*\) on$", action)


@pytest.mark.slow  # an MLP on one IPU is quicker
def test_three_actions_are_named(monkeypatch):
    monkeypatch.setattr(recommendations, "best", best)
    before = planned(fitted(deep, BATCH, options=staged([7])), 2)
    assert len(before.savings) == 3 and all(one.bytes > 0 for one in before.savings)
    assert [one.fits for one in before.savings] == sorted((one.fits for one in before.savings), reverse=True)
