"""`tf.contrib.seq2seq`: attention and losses beside NumPy, decoders beside TensorFlow's own loops over cells."""

import harness
import numpy as np
import pytest
import tensorflow as tf

from tf_ipu_shim.legacy.contrib.seq2seq import attention as attentions
from tf_ipu_shim.legacy.contrib.seq2seq import decoders, helpers, losses
from tf_ipu_shim.legacy.contrib.seq2seq.attention_wrapper import AttentionWrapper

# cells and layers of TensorFlow 1 say that they are old
pytestmark = [pytest.mark.filterwarnings("ignore:`tf"), pytest.mark.one_version]
v1 = tf.compat.v1
BATCH, TIME, DEPTH, UNITS, WORDS = 3, 5, 4, 6, 7
RANDOM = np.random.default_rng(0)
MEMORY = RANDOM.normal(size=(BATCH, TIME, DEPTH)).astype("f")
INPUTS = RANDOM.normal(size=(BATCH, TIME, UNITS)).astype("f")
TABLE = RANDOM.normal(size=(WORDS, UNITS)).astype("f")
LENGTHS = np.array([5, 3, 4], np.int32)
LUONG, BAHDANAU = attentions.LuongAttention, attentions.BahdanauAttention


def run(build):
    """What a function builds, and the variables that it has made, by name."""
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(1)
        made = build()
        session.run(v1.global_variables_initializer())
        return session.run((made, {variable.op.name: variable for variable in v1.global_variables()}))


def softmax(scores):
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    return scores / scores.sum(-1, keepdims=True)


def masked(scores):
    return np.where(np.arange(TIME) < LENGTHS[:, None], scores, -np.inf)


@pytest.mark.parametrize("scale", [False, True])
def test_luong_attention(scale):
    (found, state), weights = run(lambda: LUONG(UNITS, MEMORY, LENGTHS, scale=scale)(tf.constant(INPUTS[:, 0]), None))
    assert ("luong_attention/attention_g" in weights) == scale
    inside = (np.arange(TIME) < LENGTHS[:, None])[..., None]
    keys = (MEMORY * inside) @ weights["memory_layer/kernel"]
    expected = softmax(masked(np.einsum("btu,bu->bt", keys, INPUTS[:, 0])))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_array_equal(found, state)


@pytest.mark.parametrize("normalize", [False, True])
def test_bahdanau_attention(normalize):
    found, weights = run(lambda: BAHDANAU(UNITS, MEMORY, LENGTHS, normalize)(tf.constant(INPUTS[:, 0]), None)[0])
    summed = (
        MEMORY @ weights["memory_layer/kernel"]
        + (INPUTS[:, 0] @ weights["bahdanau_attention/query_layer/kernel"])[:, None]
    )
    direction = weights["bahdanau_attention/attention_v"]
    if normalize:
        direction = direction / np.linalg.norm(direction) * np.sqrt(1 / UNITS)
        np.testing.assert_array_equal(weights["bahdanau_attention/attention_b"], np.zeros(UNITS))
    np.testing.assert_allclose(found, softmax(masked(np.tanh(summed) @ direction)), rtol=1e-5)


def test_hardmax():
    np.testing.assert_array_equal(attentions.hardmax([[1.0, 3.0, 2.0]]), [[0, 1, 0]])


@pytest.mark.parametrize("several", [False, True])
def test_a_step_of_a_cell_that_attends(several):
    """The context is in the output; with a layer, output and context go through it."""

    def build():
        mechanisms = [LUONG(UNITS, MEMORY), LUONG(UNITS, MEMORY[:, ::-1].copy())]
        size = [2, 3] if several else None
        wrapper = AttentionWrapper(v1.nn.rnn_cell.GRUCell(UNITS), mechanisms if several else mechanisms[0], size)
        output, state = wrapper(tf.constant(INPUTS[:, 0]), wrapper.zero_state(BATCH, tf.float32))
        assert wrapper.output_size == output.shape[-1]
        return output, state.cell_state, state.alignments, state.time

    (output, cell_state, alignments, time), weights = run(build)
    assert time == 1
    memories = [MEMORY, MEMORY[:, ::-1]] if several else [MEMORY]
    contexts = [
        np.einsum("bt,btd->bd", aligned, memory)
        for aligned, memory in zip(alignments if several else [alignments], memories)
    ]
    if several:
        layers = [weights[f"attention_wrapper/attention_layer{suffix}/kernel"] for suffix in ("", "_1")]
        parts = [np.concatenate([cell_state, context], 1) @ layer for context, layer in zip(contexts, layers)]
        np.testing.assert_allclose(output, np.concatenate(parts, 1), rtol=1e-4, atol=1e-6)
    else:
        np.testing.assert_allclose(output, contexts[0], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("time_major", [False, True])
def test_a_decoder_of_known_sequences_is_dynamic_rnn(time_major):
    def both():
        inputs = tf.constant(INPUTS.transpose(1, 0, 2) if time_major else INPUTS)
        with v1.variable_scope("", initializer=v1.random_uniform_initializer(-1, 1, seed=3)):
            cell, other = v1.nn.rnn_cell.GRUCell(UNITS), v1.nn.rnn_cell.GRUCell(UNITS)
            helper = helpers.TrainingHelper(inputs, LENGTHS, time_major)
            decoder = decoders.BasicDecoder(cell, helper, cell.zero_state(BATCH, tf.float32))
            (outputs, samples), state, lengths = decoders.dynamic_decode(decoder, time_major, impute_finished=True)
            stock = v1.nn.dynamic_rnn(other, inputs, LENGTHS, dtype=tf.float32, time_major=time_major)
        return outputs, samples, state, lengths, *stock

    (outputs, samples, state, lengths, expected, expected_state), _ = run(both)
    np.testing.assert_allclose(outputs, expected, rtol=1e-5)
    np.testing.assert_allclose(state, expected_state, rtol=1e-5)
    np.testing.assert_array_equal(lengths, LENGTHS)
    inside = outputs.any(-1)
    np.testing.assert_array_equal(samples[inside], outputs.argmax(-1)[inside])
    assert not samples[~inside].any()


@pytest.mark.parametrize("impute", [False, True])
def test_a_greedy_decoder(impute):
    """Beside the same in NumPy: a cell without memory, whose largest output is the next word."""
    end, start = 2, np.array([3, 4, 5], np.int32)
    kernel = RANDOM.normal(size=(UNITS, WORDS)).astype("f")

    class Product(v1.nn.rnn_cell.RNNCell):
        state_size, output_size = 1, WORDS

        def call(self, inputs, state):
            return inputs @ kernel, state + 1.0

    def decoded():
        helper = helpers.GreedyEmbeddingHelper(TABLE, start, end)
        decoder = decoders.BasicDecoder(Product(), helper, tf.zeros([BATCH, 1]))
        return decoders.dynamic_decode(decoder, impute_finished=impute, maximum_iterations=6)

    ((outputs, samples), state, lengths), _ = run(decoded)
    words, finished, expected = start, np.zeros(BATCH, bool), []
    expected_lengths, steps = np.zeros(BATCH, int), np.zeros(BATCH, int)
    while len(expected) < 6 and not finished.all():
        given = TABLE[words] @ kernel
        words = given.argmax(-1)
        steps += ~finished if impute else 1
        expected_lengths += ~finished
        expected.append(np.where(finished, 0, words) if impute else words)
        finished |= words == end
    np.testing.assert_array_equal(samples, np.transpose(expected))
    np.testing.assert_array_equal(lengths, expected_lengths)
    np.testing.assert_array_equal(state[:, 0], steps)
    assert outputs.shape == (BATCH, len(expected), WORDS)


def test_helpers_of_functions():
    """One counts up from the time, until it is 3; the other is given what it gave, twice as much each time."""

    def custom():
        helper = helpers.CustomHelper(
            lambda: (tf.zeros([2], tf.bool), tf.zeros([2, 1])),
            lambda time, outputs, state: tf.fill([2], time),
            lambda time, outputs, state, sample_ids: (sample_ids >= 3, outputs, state),
        )
        return helper, tf.ones([2, 1])

    def inference():
        helper = helpers.InferenceHelper(lambda x: 2 * x, [1], tf.float32, tf.ones([2, 1]), lambda x: x[:, 0] > 20)
        return helper, tf.ones([2, 1])

    class Same(v1.nn.rnn_cell.RNNCell):
        state_size = output_size = 1

        def call(self, inputs, state):
            return inputs, state

    def decoded(make):
        helper, state = make()
        return decoders.dynamic_decode(decoders.BasicDecoder(Same(), helper, state))[0].sample_id

    assert run(lambda: decoded(custom))[0].tolist() == [[0, 1, 2, 3]] * 2
    assert run(lambda: decoded(inference))[0][..., 0].tolist() == [[2, 4, 8, 16, 32]] * 2


def test_sampled_words_and_scheduled_ones():
    """Outputs that leave no choice: what is drawn is the largest."""
    logits = tf.constant(np.where(np.eye(WORDS)[[1, 5, 0]] > 0, 0.0, -1e9).astype("f"))
    with tf.Graph().as_default():
        sampling = helpers.SampleEmbeddingHelper(TABLE, [1, 2, 3], 0, softmax_temperature=0.5)
        always, never = (
            helpers.ScheduledEmbeddingTrainingHelper(INPUTS, LENGTHS, TABLE, probability) for probability in (1.0, 0.0)
        )
        drawn = sampling.sample(0, tf.constant(logits.numpy()), None)
        own = always.sample(0, tf.constant(logits.numpy()), None)
        known = never.sample(0, tf.constant(logits.numpy()), None)
        given = [always.next_inputs(0, None, (), own)[1], never.next_inputs(0, None, (), known)[1]]
        with v1.Session() as session:
            drawn, own, known, given = session.run((drawn, own, known, given))
    assert (drawn.tolist(), own.tolist(), known.tolist()) == ([1, 5, 0], [1, 5, 0], [-1, -1, -1])
    np.testing.assert_array_equal(given[0], TABLE[[1, 5, 0]])
    np.testing.assert_array_equal(given[1], INPUTS[:, 1])


def unequal(shape, dtype=tf.float32, partition_info=None):
    """Initial values that differ: equal ones have gradients of zero, which are nothing but roundings."""
    return tf.cast(np.sin(1 + np.arange(np.prod(shape))).reshape(shape), dtype)


def translation(parts, memory, inputs, words):
    """Trains attention on known words, and translates by it."""
    cell = v1.nn.rnn_cell.LSTMCell(UNITS, initializer=unequal)
    with v1.variable_scope("words", initializer=unequal, use_resource=True):
        mechanism = BAHDANAU(UNITS, memory, LENGTHS, normalize=True)
        wrapper = AttentionWrapper(cell, mechanism, attention_layer_size=UNITS)
        layer = v1.layers.Dense(WORDS, use_bias=False, name="projection")
        kept = []
        for helper in (helpers.TrainingHelper(inputs, LENGTHS), helpers.GreedyEmbeddingHelper(TABLE, words, 0)):
            decoder = decoders.BasicDecoder(wrapper, helper, wrapper.zero_state(BATCH, tf.float32), layer)
            kept.append(decoders.dynamic_decode(decoder, impute_finished=True, maximum_iterations=TIME))
        (trained, state, _), (greedy, _, lengths) = kept
    loss = losses.sequence_loss(trained.rnn_output, tf.tile(words[:, None], [1, TIME]), tf.ones([BATCH, TIME]))
    gradients = tf.gradients(loss, v1.trainable_variables())
    # Programs have zeros for the steps that are not taken.
    return [loss, state.alignments, lengths, tf.reduce_sum(greedy.rnn_output, 1), *gradients]


@pytest.mark.slow
def test_on_ipus_as_on_the_cpu(execution_mode):
    harness.configure()
    words = np.array([1, 2, 3], np.int32)
    harness.check_session(translation, [MEMORY, INPUTS, words])


def test_a_program_needs_a_number_of_steps():
    harness.configure()

    def model(parts, inputs):
        cell = v1.nn.rnn_cell.GRUCell(UNITS)
        helper = helpers.TrainingHelper(inputs, LENGTHS)
        return decoders.dynamic_decode(decoders.BasicDecoder(cell, helper, cell.zero_state(BATCH, tf.float32)))[2]

    with pytest.raises(ValueError, match="maximum_iterations is required for XLA compilation"):
        harness.run_session(model, [INPUTS], on_ipu=True)


WAYS_OF_LOSSES = [
    (over_time, over_batch)
    for over_time in ("average", "sum", None)
    for over_batch in ("average", "sum", None)
    if {over_time, over_batch} != {"average", "sum"}  # TensorFlow 1.15 leaves the sum out
]


@pytest.mark.parametrize(("over_time", "over_batch"), WAYS_OF_LOSSES)
def test_sequence_loss(over_time, over_batch):
    logits = RANDOM.normal(size=(BATCH, TIME, WORDS)).astype("f")
    targets = RANDOM.integers(0, WORDS, (BATCH, TIME))
    weights = np.where(np.arange(TIME) < LENGTHS[:, None], RANDOM.random((BATCH, TIME)), 0).astype("f")
    weights[1] = 0
    options = {
        f"average_across_{axis}": how == "average" for axis, how in (("timesteps", over_time), ("batch", over_batch))
    } | {f"sum_over_{axis}": how == "sum" for axis, how in (("timesteps", over_time), ("batch", over_batch))}
    found = losses.sequence_loss(logits, targets, weights, **options).numpy()
    each = -np.log(np.take_along_axis(softmax(logits), targets[..., None], -1))[..., 0] * weights
    axes = tuple(axis for axis, how in ((0, over_batch), (1, over_time)) if how)
    kind = over_time or over_batch
    if kind is None:
        expected = each
    else:
        count = (weights if kind == "average" else weights != 0).sum(axes)
        expected = np.divide(each.sum(axes), count, out=np.zeros_like(each.sum(axes)), where=count != 0)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def wrapper(**options):
    return AttentionWrapper(v1.nn.rnn_cell.GRUCell(UNITS), LUONG(UNITS, MEMORY), **options)


@pytest.mark.parametrize(
    ("make", "error", "phrase"),
    [
        (lambda: LUONG(UNITS, MEMORY)(tf.ones([BATCH, 2]), None), ValueError, "set num_units to the keys"),
        (lambda: wrapper(attention_layer_size=[2, 3]), ValueError, "1 attention mechanisms and 2 layers"),
        (lambda: wrapper(attention_layer_size=2, attention_layer=[]), ValueError, "Only one of attention_layer_size"),
        (lambda: wrapper().call(INPUTS[:, 0], ()), TypeError, "instance of AttentionWrapperState"),
        (
            lambda: wrapper().zero_state(BATCH, tf.float32).clone(attention=tf.ones([2, 9])),
            ValueError,
            "of shape .3, 4., and its replacement of .2, 9.",
        ),
        (lambda: helpers.TrainingHelper(INPUTS, 3), ValueError, "Expected sequence_length to be a vector"),
        (lambda: helpers.GreedyEmbeddingHelper(TABLE, 1, 0), ValueError, "start_tokens must be a vector"),
        (lambda: helpers.GreedyEmbeddingHelper(TABLE, [1], [0]), ValueError, "end_token must be a scalar"),
        (lambda: decoders.BasicDecoder(None, object(), None), TypeError, "helper must be a Helper"),
        (lambda: decoders.dynamic_decode(object()), TypeError, "Expected decoder to be type Decoder"),
        (lambda: losses.sequence_loss(MEMORY, [1], [1.0]), ValueError, "Targets must be a tensor of 2 dimensions"),
        (
            lambda: losses.sequence_loss(MEMORY, [[1]], [[1.0]], sum_over_batch=True),
            ValueError,
            "average_across_batch and sum_over_batch cannot be set to True at same time",
        ),
    ],
)
def test_mistakes(make, error, phrase):
    with tf.Graph().as_default(), pytest.raises(error, match=phrase):
        make()
