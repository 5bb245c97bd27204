"""Mini-batches that do not fill all replicas: `predict` has a row for each sample, `fit` and `evaluate` say so."""

import numpy as np
import pytest
import tensorflow as tf
from keras_models import keras, strategy

from tf_ipu_shim import ipu

# Keras' own seeds
pytestmark = [pytest.mark.filterwarnings("ignore:non-integer arguments to randrange"), pytest.mark.one_version]


def one(**options):
    return keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", **options)


def identity(steps_per_execution=1, asynchronous=False):
    with strategy().scope():
        model = keras.Sequential([one(input_shape=(1,)), one()])
        model.compile(keras.optimizers.SGD(0.0), "mse", steps_per_execution=steps_per_execution)
    model.set_asynchronous_callbacks(asynchronous)
    model.set_replication_options("mean")
    return model


def samples(count):
    return np.arange(count, dtype=np.float32)[:, np.newaxis]


class Seen(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.begun, self.ended, self.rows = [], [], []

    def on_predict_batch_begin(self, batch, logs=None):
        self.begun.append(batch)

    def on_predict_batch_end(self, batch, logs=None):
        self.ended.append(batch)
        self.rows.append(logs["outputs"])


@pytest.mark.parametrize("asynchronous", [False, True])
def test_a_row_for_each_sample(ipus, asynchronous):
    """Two steps an execution: 5 mini-batches of 2 samples on 2 replicas are 2 executions, of 8 mini-batches."""
    ipus(2)
    model = identity(2, asynchronous=asynchronous)
    for count, steps in ((10, 3), (8, 2), (2, 1), (14, 4)):
        seen, x = Seen(), samples(count)
        got = model.predict(x, batch_size=2, verbose=0, callbacks=[seen])
        np.testing.assert_array_equal(got, x)
        np.testing.assert_array_equal(np.concatenate(seen.rows), x)
        last = [step for step in range(steps) if step % 2 or step == steps - 1]
        assert seen.ended == (list(range(steps)) if asynchronous else last)
        assert int(model._predict_counter.numpy()) == steps
    np.testing.assert_array_equal(model.predict_on_batch(samples(2)), samples(2))


def test_datasets_with_steps(ipus):
    ipus(4)
    model = identity()
    data = tf.data.Dataset.from_tensor_slices(samples(30)).batch(2, drop_remainder=True)
    unknown = tf.data.Dataset.from_generator(
        lambda: iter(samples(30)), output_signature=tf.TensorSpec([1], tf.float32)
    ).batch(2, drop_remainder=True)
    for x, steps, rows in ((data, None, 30), (data, 5, 10), (data.repeat(), 9, 18), (unknown, 7, 14), (unknown, 3, 6)):
        np.testing.assert_array_equal(model.predict(x, steps=steps, verbose=0), samples(rows))
    with pytest.raises(ValueError, match="Could not infer the size of the data"):
        model.predict(unknown, verbose=0)
    with pytest.raises(ValueError, match="Your input does not have enough data"):
        model.predict(data, steps=17, verbose=0)
    with pytest.raises(ValueError, match="The provided set of data has a partial batch"):
        model.predict(samples(15), batch_size=2, verbose=0)


def test_several_inputs_and_outputs(ipus):
    ipus(4)
    with strategy().scope():
        first, second = keras.Input((1,), name="first"), keras.Input((3,), name="second", dtype="int32")
        outputs = {"sum": first + tf.cast(second, tf.float32), "pair": [first * 2.0, second + 1]}
        model = keras.Model({"first": first, "second": second}, outputs)
    x, y = samples(6), np.arange(18, dtype=np.int32).reshape(6, 3)
    got = model.predict({"first": x, "second": y}, batch_size=2, verbose=0)
    tf.nest.map_structure(np.testing.assert_array_equal, got, {"sum": x + y, "pair": [2 * x, y + 1]})


def test_pipelines(ipus):
    """Replicas of two stages; a pipeline takes 4 mini-batches at a time."""
    ipus(4)
    model = identity_in_stages()
    for count in (10, 2, 14):
        np.testing.assert_array_equal(model.predict(samples(count), batch_size=2, verbose=0), samples(count))


def identity_in_stages():
    with strategy().scope():
        inputs = keras.Input((1,))
        with keras.ipu.PipelineStage(0):
            hidden = one()(inputs)
        with keras.ipu.PipelineStage(1):
            model = keras.Model(inputs, one()(hidden))
        model.compile("sgd", "mse", steps_per_execution=4)
        model.set_pipelining_options(4, pipeline_schedule=ipu.pipelining_ops.PipelineSchedule.Sequential)
    return model


def test_padding_is_what_the_model_can_take(ipus):
    """The last mini-batch again, where zeros would give no number."""
    ipus(2)
    with strategy().scope():
        inputs = keras.Input((1,))
        checked = keras.layers.Lambda(lambda x: tf.debugging.check_numerics(1.0 / x, "zero"))(inputs)
        model = keras.Model(inputs, checked)
    x = samples(6)[1:4]
    np.testing.assert_allclose(model.predict(x, batch_size=1, verbose=0), 1 / x, rtol=1e-6)


def test_variables_that_padding_would_change(ipus):
    ipus(2)

    class Counting(keras.Model):
        def __init__(self):
            super().__init__()
            self.count = self.add_weight(name="count", shape=(), initializer="zeros", trainable=False)

        def call(self, x):
            self.count.assign_add(1.0)
            return x

    with strategy().scope():
        model = Counting()
    np.testing.assert_array_equal(model.predict(samples(4), batch_size=1, verbose=0), samples(4))
    counted = float(model.count.numpy())
    with pytest.raises(ValueError, match=r"predict cannot share 3 mini-batches between 2 replicas .*\(.*count.*Give a"):
        model.predict(samples(3), batch_size=1, verbose=0)
    assert float(model.count.numpy()) == counted == 2


def test_what_training_and_evaluation_leave_out(ipus, caplog):
    ipus(4)
    model, x = identity(), samples(30)
    history = model.fit(x[::-1], 0 * x, batch_size=2, epochs=2, shuffle=False, verbose=0).history
    taken = np.concatenate([x[::-1], x[::-1]])[:48].reshape(2, 24)
    np.testing.assert_allclose(history["loss"], np.mean(taken**2, 1), rtol=1e-5)
    assert caplog.text.count("fit leaves out 6 of 30 samples in each epoch, 3 of 15 mini-batches of 2: 4 replicas") == 1
    assert "the last 3 do not fill them: the next epoch begins with them. Pass a multiple of 8 samples" in caplog.text
    loss = model.evaluate(x, 0 * x, batch_size=2, verbose=0)
    np.testing.assert_allclose(loss, np.mean(x[:24] ** 2), rtol=1e-5)
    assert "evaluate leaves out 6 of 30 samples, 3 of 15 mini-batches of 2: 4 replicas take 4 at a time" in caplog.text
    caplog.clear()
    model.fit(x[:16], x[:16], batch_size=2, verbose=0, epochs=2, validation_data=(x[:10], x[:10]))
    assert "fit leaves out" not in caplog.text
    assert caplog.text.count("evaluate leaves out 2 of 10 samples") == 1
    data = tf.data.Dataset.from_tensor_slices((x, x)).batch(2, drop_remainder=True).repeat()
    model.evaluate(data, steps=6, verbose=0)
    assert "evaluate runs 4 of the 6 mini-batches that `steps` asks for: 4 replicas take 4 at a time" in caplog.text
    model.fit(data, steps_per_epoch=5, verbose=0)
    assert "fit runs 4 of the 5 mini-batches that `steps_per_epoch` asks for in each epoch" in caplog.text
    caplog.clear()
    model.evaluate(x[:16], x[:16], batch_size=2, verbose=0)
    assert "evaluate" not in caplog.text
