"""What scripts do with Keras models besides training them: data of all kinds, callbacks, saving, other Kerases."""

import contextlib
import importlib

import numpy as np
import pytest
import tensorflow as tf
from keras_models import (
    CLASSES,
    SAMPLES,
    WIDTH,
    X,
    Y,
    assert_near,
    compiled,
    functional,
    keras,
    sequential,
    strategy,
    subclassed,
)
from slow_cases import slowly

from tf_ipu_shim import ipu, keras2

pytestmark = [
    pytest.mark.filterwarnings("ignore:non-integer arguments to randrange"),  # Keras' own seeds
    pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file"),
]


def in_both(run, steps=4):
    """The same outside and inside a strategy's scope."""
    expected = run(steps_per_execution=1)
    with strategy().scope():
        return run(steps_per_execution=steps), expected


@pytest.mark.slow
def test_recurrent_layers_of_stock_keras(ipus):
    """They call functions of their own; TensorFlow takes all inputs of a call for constants of the program."""
    ipus(1)
    data = np.random.RandomState(1).rand(SAMPLES, 4, 3).astype("f")

    def run(**options):
        keras.utils.set_random_seed(3)
        layers = [keras.layers.LSTM(5, return_sequences=True, input_shape=(4, 3)), keras.layers.LSTM(5)]
        model = compiled(keras.Sequential([*layers, keras.layers.Dense(3)]), **options)
        return model.fit(data, Y, batch_size=8, epochs=2, verbose=0, shuffle=False).history["loss"], model.get_weights()

    assert_near(*in_both(run))


@pytest.mark.slow
def test_data_of_all_kinds(ipus):
    ipus(1)

    def run(**options):
        model = compiled(functional(), **options)
        common = {"batch_size": 8, "verbose": 0, "shuffle": False}
        dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8, drop_remainder=True)
        return [
            model.fit(X, Y, epochs=2, class_weight={0: 1.0, 1: 2.0, 2: 0.5}, **common).history,
            model.fit(X, Y, sample_weight=np.linspace(0, 1, SAMPLES), **common).history,
            model.fit(X, Y, validation_split=0.5, **common).history,
            model.fit(
                dataset.repeat(), steps_per_epoch=8, epochs=2, verbose=0, validation_data=dataset, validation_freq=2
            ).history,
            model.evaluate(dataset, verbose=0, return_dict=True),
        ]

    assert_near(*in_both(run))


@pytest.mark.parametrize("steps", [1000, slowly(tf.constant(8, tf.int64)), slowly(tf.Variable(8))])
@pytest.mark.slow
def test_executions_as_long_as_an_epoch(ipus, caplog, steps):
    """An execution of more steps than there are takes those there are, and says so; `dataset.cardinality()` counts."""
    ipus(1)
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8, drop_remainder=True)

    def run(steps_per_execution):
        model = compiled(sequential(), steps_per_execution=steps_per_execution)
        history = model.fit(dataset, epochs=2, verbose=0, validation_data=dataset.take(3)).history
        return history, model.evaluate(X, Y, batch_size=32, verbose=0), model.predict(X, batch_size=16)

    got, expected = in_both(run, steps)
    assert_near(got, expected)
    assert ("`steps_per_execution` (1000) is more than the 8 steps" in caplog.text) == isinstance(steps, int)
    assert "is more than the 3 steps" in caplog.text


@pytest.mark.parametrize("number", [float, slowly(np.float64)])
@pytest.mark.one_version
def test_steps_that_are_quotients_rounded_by_numpy(ipus, number):
    """`np.ceil(samples / batch) * accumulation` is a float, which stock Keras takes."""
    ipus(1)
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8, drop_remainder=True).repeat()

    def run(**options):
        model = compiled(sequential(), **options)
        history = model.fit(dataset, steps_per_epoch=number(8), epochs=2, verbose=0).history
        return history, model.evaluate(dataset, steps=number(4), verbose=0), model.predict(dataset, steps=number(4))

    assert_near(*in_both(run))


def test_several_inputs_and_outputs(ipus):
    ipus(1)

    def run(**options):
        keras.utils.set_random_seed(3)
        one, other = keras.Input((6,), name="one"), keras.Input((6,), name="other")
        joined = keras.layers.Dense(4)(keras.layers.concatenate([one, other]))
        outputs = {
            "wide": keras.layers.Dense(2, name="wide")(joined),
            "thin": keras.layers.Dense(1, name="thin")(joined),
        }
        model = keras.Model({"one": one, "other": other}, outputs)
        model.compile("adam", {"wide": "mse", "thin": "mae"}, metrics={"wide": ["mae"]}, **options)
        x, y = {"one": X, "other": X * 2}, {"wide": X[:, :2], "thin": X[:, :1]}
        history = model.fit(x, y, batch_size=8, verbose=0, shuffle=False).history
        return history, model.evaluate(x, y, batch_size=8, verbose=0), model.predict(x, batch_size=8, verbose=0)

    assert_near(*in_both(run))


@pytest.mark.parametrize("way", ["loop", slowly("accumulation"), "pipeline"])
@pytest.mark.slow
def test_python_control_flow_over_tensors(ipus, way):
    """In layers, losses and metrics, which Keras hands to autograph; every other mini-batch is negative."""
    ipus(2 if way == "pipeline" else 1)
    data = np.where(np.arange(SAMPLES)[:, None] // 8 % 2, X, -X)

    class Layer(keras.layers.Layer):
        def call(self, x):
            return x * 2.0 if tf.reduce_mean(x) > 0.0 else tf.square(x)

    class Loss(keras.losses.Loss):
        def call(self, y_true, y_pred):
            loss = tf.zeros_like(y_pred[:, 0])
            for column in tf.range(y_pred.shape[-1]):
                loss += tf.square(y_pred[:, column]) * tf.cast(len(y_pred), tf.float32)
            return loss

    class Count(keras.metrics.Mean):
        def update_state(self, y_true, y_pred, sample_weight=None):
            if tf.reduce_mean(y_pred) > 0.1:
                super().update_state(tf.reduce_mean(y_pred))
            else:
                super().update_state(2.0)

    def run(**options):
        keras.utils.set_random_seed(1)
        layers = [Layer(), keras.layers.Dense(CLASSES, name="last")]
        model = keras.Sequential([keras.Input((WIDTH,)), keras.layers.Dense(4, name="first"), *layers])
        rate = 0.01 if way == "loop" else 0.0  # an update for several mini-batches is another one
        model.compile(keras.optimizers.SGD(rate), Loss(), [Count(name="count")], **options)
        if options["steps_per_execution"] > 1 and way == "accumulation":
            model.set_gradient_accumulation_options(2)
        elif options["steps_per_execution"] > 1 and way == "pipeline":
            model.set_pipeline_stage_assignment([0, 0, 1])
            model.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
        return [
            model.fit(data, Y, batch_size=8, verbose=0, shuffle=False).history,
            model.evaluate(data, Y, batch_size=8, verbose=0),
            model.predict(data, batch_size=8, verbose=0),
        ]

    assert_near(*in_both(run))


@pytest.mark.one_version
def test_a_subclass_takes_a_list_of_inputs(ipus):
    ipus(1)

    class Pair(keras.Model):
        def __init__(self):
            super().__init__()
            self.one, self.other = keras.layers.Dense(3), keras.layers.Dense(3)

        def call(self, inputs):
            return self.one(inputs[0]) + self.other(inputs[1])

    def run(**options):
        keras.utils.set_random_seed(5)
        model = compiled(Pair(), **options)
        history = model.fit([X, X[:, :4]], Y, batch_size=8, epochs=2, shuffle=False, verbose=0).history
        return history, model.predict([X, X[:, :4]], batch_size=8)

    assert_near(*in_both(run))


@pytest.mark.slow
def test_state_of_layers_and_a_learning_rate_schedule(ipus):
    ipus(1)

    def run(**options):
        keras.utils.set_random_seed(3)
        layers = [keras.Input((3, 2)), keras.layers.LSTM(4), keras.layers.BatchNormalization(), keras.layers.Dense(3)]
        model = keras.Sequential(layers)
        schedule = keras.optimizers.schedules.ExponentialDecay(0.1, 2, 0.5)
        model.compile(keras.optimizers.SGD(schedule), "mse", **options)
        x = X.reshape(SAMPLES, 3, 2)
        history = model.fit(x, X[:, :3], batch_size=8, verbose=0, shuffle=False).history
        return history, model.evaluate(x, X[:, :3], batch_size=8, verbose=0), model.get_weights()

    assert_near(*in_both(run))


def test_own_steps_and_own_fit(ipus):
    ipus(1)

    class Own(keras.Model):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self(x, training=True) - y))
            variables = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
            return {"own": loss}

        def fit(self, *args, **kwargs):
            return super().fit(*args, verbose=0, shuffle=False, **kwargs)

    def run(**options):
        keras.utils.set_random_seed(3)
        inputs = keras.Input((6,))
        model = Own(inputs, keras.layers.Dense(6)(inputs))
        model.compile("adam", **options)
        return model.fit(X, X, batch_size=8, epochs=2).history

    assert_near(*in_both(run))
    with strategy().scope():
        model = Own(keras.Input((6,)), keras.Input((6,)))
        assert isinstance(model, Own) and type(model) is not Own and type(model).__name__ == "Own"
        model.compile("adam", steps_per_execution=4)
        model.set_gradient_accumulation_options(2)
        with pytest.raises(RuntimeError, match="`train_step` for the model .* has been overridden"):
            model.fit(X, X, batch_size=8)


@pytest.mark.one_version
def test_a_subclass_that_turns_out_to_be_functional(ipus):
    ipus(1)

    class Own(keras.Model):
        def __init__(self):
            inputs = keras.Input((6,))
            super().__init__(inputs, keras.layers.Dense(6, kernel_initializer="ones")(inputs))

    with strategy().scope():
        model = Own()
        assert hasattr(model, "set_pipelining_options") and len(model.get_pipeline_stage_assignment()) == 1
        model.compile("sgd", "mse", steps_per_execution=4)
        history = model.fit(X, X, batch_size=8, shuffle=False, verbose=0).history
        assert hasattr(subclassed(), "set_pipelining_options")
    stock = Own()
    stock.compile("sgd", "mse")
    assert_near(history, stock.fit(X, X, batch_size=8, shuffle=False, verbose=0).history)


def test_one_batch(ipus):
    ipus(1)

    def run(steps_per_execution):
        model = compiled(functional())
        return [
            model.train_on_batch(X[:8], Y[:8]),
            model.train_on_batch(X[:16], Y[:16], class_weight={0: 2.0, 1: 1.0, 2: 1.0}, return_dict=True),
            model.test_on_batch(X[:8], Y[:8]),
            model.predict_on_batch(X[:8]),
        ]

    assert_near(*in_both(run))


@pytest.mark.one_version
def test_what_is_trained_on_batches_is_what_compile_saw(ipus):
    """A generator and a discriminator, which is frozen when the two together are compiled."""
    ipus(1)

    def run(**options):
        keras.utils.set_random_seed(3)
        generator = keras.Sequential([keras.Input((6,)), keras.layers.Dense(6, activation="tanh")])
        discriminator = keras.Sequential([keras.Input((6,)), keras.layers.Dense(1)])
        discriminator.compile(keras.optimizers.SGD(0.1), "mse", **options)
        discriminator.trainable = False
        both = keras.Sequential([generator, discriminator])
        both.compile(keras.optimizers.SGD(0.1), "mse", **options)
        losses = []
        for _ in range(2):
            losses.append(discriminator.train_on_batch(X[:8], np.ones([8, 1], "f")))
            losses.append(both.train_on_batch(X[8:16], np.zeros([8, 1], "f")))
        assert not discriminator.trainable_weights and len(generator.trainable_weights) == 2
        return losses, generator.get_weights(), discriminator.get_weights()

    assert_near(*in_both(run))


def test_the_copy_of_keras_in_tensorflow(ipus):
    ipus(1)
    copy = importlib.import_module("tensorflow.python.keras")

    def run(**options):
        tf.random.set_seed(1)
        layer = copy.layers.Dense(3, kernel_initializer=copy.initializers.Constant(0.1))
        model = copy.Sequential([copy.layers.InputLayer((6,)), layer])
        model.compile("adam", "mse", metrics=["mae"], **options)
        history = model.fit(X, X[:, :3], batch_size=8, epochs=2, shuffle=False, verbose=0).history
        return history, model.evaluate(X, X[:, :3], batch_size=8, verbose=0), model.predict(X, batch_size=8)

    assert_near(*in_both(run))
    assert copy.ipu is keras.ipu is tf.keras.ipu
    assert keras.ipu.PipelineStage.__name__ == "PipelineStage"


def test_a_strategy_without_extensions(ipus):
    from tf_ipu_shim.ipu.ipu_strategy import IPUStrategy

    ipus(1)
    with IPUStrategy(enable_keras_extensions=False).scope():
        assert not hasattr(sequential(), "set_pipelining_options")
    with contextlib.nullcontext():
        assert not hasattr(sequential(), "set_pipelining_options")


def test_weights_before_they_are_made_and_inputs_of_integers():
    class Numbered(keras.Model):
        def call(self, inputs):
            assert inputs.dtype == tf.int32
            return inputs * 2

    with strategy().scope():
        model = keras.Sequential([keras.layers.Dense(2)])
        with pytest.raises(ValueError, match="Weights for model .* have not yet been created"):
            _ = model.weights
        model.build((None, 3))
        assert [tuple(one.shape) for one in model.weights] == [(3, 2), (2,)]
        model.compile("sgd", "mse")
        with pytest.raises(TypeError, match="dataset length is unknown"):
            model.fit(np.zeros([0, 3], "f"), np.zeros([0, 2], "f"))
        numbered = Numbered()
        numbered.build(keras.Input(batch_shape=(2, 3), dtype="int32"))
        assert numbered.built
        numbers = np.arange(6, dtype=np.int32).reshape(2, 3)
        np.testing.assert_array_equal(numbered.predict(numbers, batch_size=2), 2 * numbers)


@pytest.mark.one_version
def test_epochs_of_a_data_handler():
    handler = keras.ipu.extensions.data_adapter.IPUDataHandler(
        tf.data.Dataset.range(4).batch(1, drop_remainder=True), epochs=2, steps_per_epoch=2
    )
    seen = [[next(batches).numpy().tolist() for _ in handler.steps()] for _, batches in handler.enumerate_epochs()]
    assert seen == [[[0], [1]], [[2], [3]]]
    whole = keras.ipu.extensions.data_adapter.IPUDataHandler(np.arange(3.0), batch_size=1, epochs=2)
    assert sum(len(list(whole.steps())) for _ in whole.enumerate_epochs()) == 6
    short = keras.ipu.extensions.data_adapter.IPUDataHandler(
        tf.data.Dataset.range(3).filter(lambda _: True), epochs=2, steps_per_epoch=2
    )
    seen = []
    for _, batches in short.enumerate_epochs():
        for _ in short.steps():
            with short.catch_stop_iteration():
                seen.append(int(next(batches)))
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("structure", [lambda x: x, lambda x: (x,), lambda x: {"x": x, "n": tf.range(64)}])
def test_double_numbers_of_a_dataset_are_cast(structure):
    dataset = tf.data.Dataset.from_tensor_slices(structure(X.astype(np.float64))).batch(8, drop_remainder=True)
    handler = keras.ipu.extensions.data_adapter.IPUDataHandler(dataset)
    assert handler.inferred_steps == 8
    ((_, iterator),) = handler.enumerate_epochs()
    element = next(iterator)
    tf.nest.assert_same_structure(element, next(iter(dataset)))
    parts = tf.nest.flatten(element)
    assert [part.dtype for part in parts] == [tf.int32, tf.float32][2 - len(parts) :]
    np.testing.assert_array_equal(parts[-1], X[:8])


@pytest.mark.one_version
def test_an_outfeed_that_a_layer_fills_once(ipus):
    """Graphs that are traced for variables alone leave its queue as it was."""
    ipus(1)
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()

    class Sending(keras.layers.Layer):
        def call(self, inputs):
            if not outfeed.enqueued:
                outfeed.enqueue({"doubled": 2.0 * inputs})
            return inputs

    with strategy().scope():
        inputs = keras.Input([WIDTH], batch_size=8)
        model = compiled(keras.Model(inputs, keras.layers.Dense(CLASSES)(Sending()(inputs))), steps_per_execution=2)
        model.fit(X[:16], Y[:16], batch_size=8, shuffle=False, verbose=0)
        sent = outfeed.dequeue()["doubled"]
    np.testing.assert_allclose(sent, 2 * X[:16].reshape(2, 8, WIDTH))


def test_a_wrapping_optimizer_has_variables_before_the_trace(ipus):
    """A program whose trace makes variables is traced twice, at twice the time."""
    ipus(1)
    traced = []

    class Wrapper(tf.compat.v1.train.Optimizer):
        def __init__(self, wrapped):
            super().__init__(False, "Wrapper")
            self.wrapped = wrapped

        def apply_gradients(self, grads_and_vars, global_step=None, name=None):
            traced.append(len(grads_and_vars))
            return self.wrapped.apply_gradients(grads_and_vars)

    with strategy().scope():
        model = keras.Sequential([keras.layers.Dense(CLASSES, input_shape=[WIDTH])])
        wrapped = keras.optimizers.SGD(0.1, momentum=0.9)
        compiled(model, lambda: Wrapper(wrapped), steps_per_execution=2)
        model.fit(X[:16], Y[:16], batch_size=8, shuffle=False, verbose=0)
    assert traced == [2] and int(wrapped.iterations) == 2
    assert np.any(wrapped.get_slot(model.trainable_variables[0], "momentum"))


@pytest.mark.one_version
def test_double_numbers_that_no_layer_casts_are_refused(ipus):
    """Arrays are cast by Keras itself; elements of datasets by layers, where these cast at all."""
    ipus(1)
    utils = keras2.module("engine.base_layer_utils")
    dataset = tf.data.Dataset.from_tensor_slices((X.astype(np.float64), Y)).batch(8, drop_remainder=True)
    with strategy().scope():

        def made():
            return compiled(keras.Sequential([keras.layers.Dense(CLASSES, input_shape=[WIDTH])]), steps_per_execution=2)

        made().fit(dataset, steps_per_epoch=2, verbose=0)
        before = utils.V2_DTYPE_BEHAVIOR
        utils.disable_v2_dtype_behavior()
        try:
            model = made()
            model.evaluate(X.astype(np.float64), Y, batch_size=8, steps=2, verbose=0)
            for run in model.fit, model.evaluate:
                with pytest.raises(tf.errors.FailedPreconditionError, match="Unsupported datatype double on index 0"):
                    run(dataset, verbose=0)
        finally:
            utils.V2_DTYPE_BEHAVIOR = before


class Recurrent(keras.Model):
    def __init__(self):
        super().__init__()
        recurrent = keras.initializers.Orthogonal(seed=1)
        self.lstm = keras.layers.LSTM(3, kernel_initializer="ones", recurrent_initializer=recurrent)

    def call(self, inputs):
        return self.lstm(inputs)


def test_a_recurrent_subclass_accumulates_gradients(ipus):
    """Keras gives its loop a bound only where it sees that something is compiled."""
    x = np.random.RandomState(1).randn(8, 5, 3).astype(np.float32)

    def weights(batch_size, accumulated=1):
        model = Recurrent()
        model.compile(keras.optimizers.SGD(0.1), "mse", steps_per_execution=accumulated)
        if accumulated > 1:
            model.set_gradient_accumulation_options(accumulated, "mean")
        model.fit(x, x[:, 0], batch_size=batch_size, epochs=2, shuffle=False, verbose=0)
        return model.get_weights()

    ipus(1)
    expected = weights(8)
    with strategy().scope():
        assert_near(weights(4, accumulated=2), expected)
