"""Callbacks of Keras models under a strategy, and what is saved."""

import numpy as np
import pytest
import tensorflow as tf
from keras_models import X, Y, assert_near, compiled, functional, keras, sequential, strategy, subclassed
from slow_cases import slowly

pytestmark = [
    pytest.mark.one_version,
    pytest.mark.filterwarnings("ignore:non-integer arguments to randrange"),  # Keras' own seeds
    pytest.mark.filterwarnings("ignore:You are saving your model as an HDF5 file"),
]


class Recorder(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.calls = []

    def on_train_batch_begin(self, batch, logs=None):
        self.calls.append(("begin", batch))

    def on_train_batch_end(self, batch, logs=None):
        self.calls.append(("end", batch))
        self.loss = logs["loss"]

    def on_predict_batch_end(self, batch, logs=None):
        self.calls.append((batch, logs["outputs"].shape))


@pytest.mark.one_version
def test_callbacks_come_once_an_execution(ipus, capsys):
    ipus(1)
    recorder = Recorder()
    with strategy().scope():
        model = compiled(functional(), steps_per_execution=4)
        history = model.fit(X, Y, batch_size=8, callbacks=[recorder], verbose=1).history
        assert recorder.calls == [("begin", 0), ("end", 3), ("begin", 4), ("end", 7)]
        assert history["loss"] == [recorder.loss]
        printed = capsys.readouterr().out
        assert "4/8" in printed and "8/8" in printed and "3/8" not in printed
        recorder.calls.clear()
        model.predict(X, batch_size=8, callbacks=[recorder], verbose=0)
        assert recorder.calls == [(3, (32, 3)), (7, (32, 3))]


@pytest.mark.one_version
def test_asynchronous_callbacks_come_for_each_batch(ipus):
    ipus(1)
    recorder = Recorder()
    with strategy().scope():
        model = compiled(functional(), steps_per_execution=4)
        model.set_asynchronous_callbacks(True)
        history = model.fit(X, Y, batch_size=8, callbacks=[recorder], verbose=0).history
        assert recorder.calls == [(what, batch) for batch in range(8) for what in ("begin", "end")]
        assert history["loss"] == [recorder.loss]
        recorder.calls.clear()
        predictions = model.predict(X, batch_size=8, callbacks=[recorder], verbose=0)
        assert recorder.calls == [(batch, (8, 3)) for batch in range(8)]
        np.testing.assert_allclose(predictions, model(X), rtol=1e-4, atol=1e-5)

        class Failing(keras.callbacks.Callback):
            def on_train_batch_end(self, batch, logs=None):
                raise KeyError("from a callback")

        with pytest.raises(KeyError, match="from a callback"):
            model.fit(X, Y, batch_size=8, callbacks=[Failing()], verbose=0)
        model.fit(X, Y, batch_size=8, verbose=0)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (sequential, "model.h5"),
        (functional, "model.keras"),
        slowly(functional, "directory"),
        (subclassed, "directory"),
    ],
)
def test_saving_and_loading(ipus, tmp_path, make, name):
    ipus(1)
    path = str(tmp_path / name)
    with strategy().scope():
        model = compiled(make(), steps_per_execution=4)
        model.fit(X, Y, batch_size=8, verbose=0)
        predictions = model.predict(X, batch_size=8, verbose=0)
        model.save(path)
        loaded = keras.models.load_model(path)
        assert hasattr(loaded, "set_pipelining_options")
        np.testing.assert_allclose(loaded.predict(X, batch_size=8, verbose=0), predictions, rtol=1e-4, atol=1e-5)
        loaded.fit(X, Y, batch_size=8, verbose=0)
    outside = keras.models.load_model(path)
    assert not hasattr(outside, "set_pipelining_options")
    np.testing.assert_allclose(outside.predict(X, verbose=0), predictions, rtol=1e-4, atol=1e-5)


def test_checkpoints_json_and_clones(ipus, tmp_path):
    ipus(1)
    with strategy().scope():
        model = compiled(functional(), keras.optimizers.Adam, steps_per_execution=4)
        weights = keras.callbacks.ModelCheckpoint(str(tmp_path / "weights"), save_weights_only=True)
        model.fit(X, Y, batch_size=8, verbose=0, callbacks=[weights])
        saved = tf.train.Checkpoint(model=model, optimizer=model.optimizer).save(str(tmp_path / "checkpoint"))
        again = keras.models.model_from_json(model.to_json())
        again.load_weights(str(tmp_path / "weights"))
        assert_near(again.get_weights(), model.get_weights())
        assert again.summary(print_fn=lambda *_, **__: None) is None
        restored = compiled(keras.models.clone_model(model), keras.optimizers.Adam, steps_per_execution=4)
        tf.train.Checkpoint(model=restored, optimizer=restored.optimizer).restore(saved)
        for one in (model, restored):
            one.fit(X, Y, batch_size=8, verbose=0, shuffle=False)
        assert_near(restored.get_weights(), model.get_weights())
        assert all(hasattr(one, "set_pipelining_options") for one in (again, restored))


@pytest.mark.parametrize("accumulates", [False, True])
def test_the_graph_of_training_that_tensorboard_writes(ipus, accumulates):
    """Keras' callback takes it from the model after the first batch; `tf.summary.graph` needs TensorBoard installed."""
    ipus(1)
    graphs = []

    class Board(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            function = self.model.train_tf_function
            assert hasattr(function, "function_spec")
            graphs.append(function._concrete_variable_creation_fn.graph.as_graph_def())

    with strategy().scope():
        model = compiled(functional(), steps_per_execution=8)
        if accumulates:
            model.set_gradient_accumulation_options(gradient_accumulation_steps_per_replica=2)
        model.fit(X, Y, batch_size=8, callbacks=[Board()], verbose=0)
    (graph,) = graphs
    assert all(f"{layer.name}/" in str(graph) for layer in model.layers if layer.weights)
