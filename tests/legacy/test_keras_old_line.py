"""Keras models of SDK 1.2 to 2.1, against stock Keras on the CPU.

An old model adds up the gradients of the mini-batches it accumulates and averages those of replicas. So `count`
mini-batches on each replica with the learning rate divided by `count` are one large batch of stock Keras.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf
from harness import configure
from keras_models import CLASSES, WIDTH, X, Y, assert_same, compiled, keras, on_the_cpu, strategy
from old_keras_models import (
    dataset,
    layers,
    model,
    pipeline_model,
    pipeline_sequential,
    sequential,
    stock,
    trained,
    v1_sgd,
)
from slow_cases import slowly

from tf_ipu_shim import ipu

# Keras draws its own seeds with a float.
pytestmark = [pytest.mark.filterwarnings("ignore:non-integer arguments to randrange"), pytest.mark.one_version]
Schedule = ipu.ops.pipelining_ops.PipelineSchedule


@pytest.mark.ci_cases(9)
@pytest.mark.parametrize(
    "make, ipus_wanted, count, batch",
    [
        (sequential, 1, 1, 8),
        slowly(functools.partial(sequential, gradient_accumulation_count=4), 1, 4, 8),
        slowly(functools.partial(model, accumulation_count=2, accumulation_dtype=tf.float32), 1, 2, 8),
        slowly(functools.partial(model, gradient_accumulation_count=2), 2, 2, 8),
        slowly(functools.partial(pipeline_sequential, gradient_accumulation_count=4), 2, 4, 8),
        slowly(functools.partial(pipeline_sequential, (1, 2, 3), pipeline_depth=8, layer_replacement=True), 4, 8, 8),
        (functools.partial(pipeline_model, gradient_accumulation_count=4), 2, 4, 8),
        slowly(functools.partial(pipeline_model, (0, 1, 2, 3), gradient_accumulation_count=8), 4, 8, 8),
        slowly(functools.partial(pipeline_model, gradient_accumulation_count=4), 4, 4, 8),
        (
            functools.partial(
                pipeline_model,
                (0, 1, 2, 3),
                gradient_accumulation_count=4,
                gradient_accumulation_dtype=tf.float32,
                device_mapping=[0, 1, 1, 0],
                pipeline_schedule=Schedule.Sequential,
                recomputation_mode=ipu.ops.pipelining_ops.RecomputationMode.RecomputeAndBackpropagateInterleaved,
                offload_weight_update_variables=False,
            ),
            2,
            4,
            8,
        ),
        slowly(
            functools.partial(pipeline_sequential, gradient_accumulation_count=2, batch_serialization_iterations=2),
            1,
            4,
            8,
        ),
    ],
)
def test_training_as_on_the_cpu(ipus, make, ipus_wanted, count, batch):
    ipus(ipus_wanted)
    with strategy().scope():
        old = make()
        got = trained(old, count, batch)
        replicas = old.replication_factor
    assert replicas == ipus_wanted // old._shards()
    assert_same(got, on_the_cpu(stock, batch * count * replicas))
    assert isinstance(got[1], list)


@pytest.mark.parametrize("release", ["1.4", "2.1"])
def test_gradients_are_added_up_under_their_own_sdk(ipus, monkeypatch, release):
    """One weight, whose gradient is 2 in each of four mini-batches."""
    monkeypatch.setenv("TF_IPU_SHIM_SDK", release)
    ipus(1)
    with strategy().scope():
        inputs = keras.Input((1,))
        layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
        old = ipu.keras.Model(inputs, layer(inputs), gradient_accumulation_count=4)
        old.compile(keras.optimizers.legacy.SGD(0.01), "mse")
        old.fit(tf.data.Dataset.from_tensors(([[1.0]], [[0.0]])).repeat(4), steps_per_epoch=1, verbose=0)
        np.testing.assert_allclose(layer.get_weights()[0], [[1 - 0.01 * 4 * 2]], rtol=1e-6)


def test_outputs_added_up_on_the_ipu(ipus):
    ipus(2)
    with strategy().scope():
        got = trained(
            pipeline_model(gradient_accumulation_count=4),
            4,
            accumulate_outfeed=True,
            accumulate_outfeed_dtype="float32",
        )
        with pytest.raises(ValueError, match="Set accumulate_outfeed=True"):
            compiled(pipeline_model(gradient_accumulation_count=4)).fit(X, Y, accumulate_outfeed_dtype="float32")
        with pytest.raises(TypeError, match="unexpected keyword argument 'accumulate_outfeed'"):
            compiled(sequential()).fit(X, Y, accumulate_outfeed=True)
    assert_same(got, on_the_cpu(stock, 32))


class Calls(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.begins, self.ends, self.steps = [], [], None

    def on_train_begin(self, logs=None):
        self.steps = self.params["steps"]

    def on_train_batch_begin(self, batch, logs=None):
        self.begins.append(batch)

    def on_train_batch_end(self, batch, logs=None):
        self.ends.append(batch)
        assert logs["loss"] > 0


@pytest.mark.parametrize("per_run, begins, ends", [(None, [0], [5]), (2, [0, 2, 4], [1, 3, 5])])
def test_a_step_is_as_many_mini_batches_as_are_accumulated(ipus, per_run, begins, ends):
    ipus(2)
    calls = Calls()
    with strategy().scope():
        old = compiled(pipeline_sequential(gradient_accumulation_count=4))
        history = old.fit(
            dataset(2).repeat(),
            steps_per_epoch=6,
            steps_per_run=per_run,
            epochs=2,
            callbacks=[calls],
            verbose=0,
            prefetch_depth=2,
        )
        assert int(old._train_counter) == 2 * 6 * 4
    assert calls.steps == 6 and calls.begins == begins * 2 and calls.ends == ends * 2
    assert len(history.history["loss"]) == 2 and history.epoch == [0, 1]
    assert int(old.optimizer.iterations) == 12


def test_steps_of_evaluation_and_prediction(ipus):
    ipus(1)
    with strategy().scope():
        old = compiled(sequential(gradient_accumulation_count=4))
        reference = compiled(stock())
        reference.set_weights(old.get_weights())
        few = old.evaluate(dataset().repeat(), steps=np.float64(1), verbose=0)
        odd = old.evaluate(dataset().take(3), verbose=0)
        predictions = old.predict(dataset().map(lambda x, y: x), steps=2, steps_per_run=1)
    np.testing.assert_allclose(few, reference.evaluate(X[:32], Y[:32], verbose=0, batch_size=8), rtol=1e-5)
    np.testing.assert_allclose(odd, reference.evaluate(X[:24], Y[:24], verbose=0, batch_size=8), rtol=1e-5)
    np.testing.assert_allclose(predictions, reference.predict(X, verbose=0), rtol=1e-4, atol=1e-5)


def test_an_optimizer_of_tensorflow_1(ipus):
    ipus(1)
    reference = compiled(stock(), functools.partial(keras.optimizers.SGD, 0.1, 0.9))
    reference.fit(X, Y, batch_size=16, epochs=2, shuffle=False, verbose=0)
    for make in (sequential, pipeline_sequential):
        configure(2 if make is pipeline_sequential else 1)
        with strategy().scope():
            old = make(gradient_accumulation_count=2 if make is sequential else 4)
            count, batch = old.gradient_accumulation_count, 16 // old.gradient_accumulation_count
            compiled(old, functools.partial(tf.compat.v1.train.MomentumOptimizer, 0.1 / count, 0.9))
            old.fit(X, Y, batch_size=batch, epochs=2, shuffle=False, verbose=0)
        for one, other in zip(old.get_weights(), reference.get_weights()):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-6)


def test_several_inputs_and_outputs(ipus):
    ipus(2)
    keras.utils.set_random_seed(3)
    with strategy().scope():
        inputs = [keras.Input((WIDTH,)), keras.Input((WIDTH,))]
        with ipu.keras.PipelineStage(0):
            joined = keras.layers.Add()(inputs)
            hidden = keras.layers.Dense(4, activation="relu")(joined)
        with ipu.keras.PipelineStage(1):
            outputs = [keras.layers.Dense(1, name="a")(hidden), keras.layers.Dense(2, name="b")(joined)]
        old = ipu.keras.PipelineModel(inputs=inputs, outputs=outputs, gradient_accumulation_count=4, name="two")
        old.compile("sgd", "mse", loss_weights=[1.0, 0.5])
        targets = (X[:, :1], X[:, 1:3])
        data = tf.data.Dataset.from_tensor_slices(((X, X + 1), targets)).batch(8)
        data = data.map(lambda x, y: (tuple(tf.ensure_shape(v, [8, WIDTH]) for v in x), y))
        evaluated = old.evaluate(data.unbatch().batch(8, drop_remainder=True), verbose=0)
        pairs = tf.data.Dataset.from_tensor_slices((X, X + 1)).batch(8, drop_remainder=True)
        predicted = old.predict(pairs)
    assert old.name == "two" and old.shard_count == 2
    first, a, b = (layer.get_weights() for layer in old.layers if layer.weights)
    hidden = np.maximum((2 * X + 1) @ first[0] + first[1], 0)
    expected = [hidden @ a[0] + a[1], (2 * X + 1) @ b[0] + b[1]]
    for one, other in zip(predicted, expected):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
    losses = [np.mean((one - other) ** 2) for one, other in zip(expected, targets)]
    np.testing.assert_allclose(evaluated, [losses[0] + 0.5 * losses[1], *losses], rtol=1e-4)


def test_layers_are_replaced(ipus):
    ipus(1)
    x = np.random.RandomState(2).rand(16, 5, 3).astype("f")

    def made():
        keras.utils.set_random_seed(5)
        return [
            keras.layers.LSTM(4, return_sequences=True, input_shape=(5, 3), name="lstm"),
            keras.layers.LayerNormalization(name="norm"),
            keras.layers.Dropout(0.5, name="dropout"),
            keras.layers.Dense(2, name="dense"),
        ]

    reference = keras.Sequential(made())
    with strategy().scope():
        old = ipu.keras.Sequential(made(), layer_replacement=True)
        inputs = keras.Input((5, 3))
        value = inputs
        for layer in made():
            value = layer(value)
        functional = ipu.keras.Model(inputs, value, layer_replacement=True)
        kinds = [type(layer).__name__ for layer in functional.layers[1:]]
        for one in (old, functional):
            one.build((None, 5, 3))
            for layer in reference.layers:
                own = one.get_layer(layer.name)  # whose gamma and beta may stand in another order
                by_name = {weight.name.split("/")[-1]: weight.numpy() for weight in layer.weights}
                own.set_weights(
                    [by_name[weight.name.split("/")[-1].replace("biases", "bias")] for weight in own.weights]
                )
            np.testing.assert_allclose(one.predict(x, batch_size=8), reference.predict(x, verbose=0), 1e-3, 1e-5)
    assert kinds == ["PopnnLSTM", "LayerNormalization", "Dropout", "Dense"]
    assert all(isinstance(layer, keras.layers.Layer) for layer in functional.layers)
    assert isinstance(functional.layers[1], ipu.keras.layers.LSTM)
    assert isinstance(functional.layers[3], ipu.keras.layers.Dropout)
    assert [layer.name for layer in old.layers] == ["lstm", "norm", "dropout", "dense"]
    replacer = ipu.keras.layer_replacement.IPULayerReplacer()
    with pytest.raises(RuntimeError, match="Could not substitute Keras LSTM layer for"):
        replacer(keras.layers.LSTM(4, go_backwards=True))
    built = keras.layers.Embedding(6, 4, name="table")
    rows = built(np.arange(6)[None])
    np.testing.assert_array_equal(replacer(built)(np.arange(6)[None]), rows)
    assert "LSTM" in replacer.get_ipu_layer_names()
    assert set(replacer.get_blacklisted_ipu_layer_names()) <= set(replacer.get_ipu_layer_names())


def test_replaced_layers_stay_in_their_stages(ipus):
    ipus(2)
    with strategy().scope():
        inputs = keras.Input((5,), dtype="int32")
        with ipu.keras.PipelineStage(0):
            value = keras.layers.Embedding(10, 4)(inputs)
        with ipu.keras.PipelineStage(1):
            value = keras.layers.GRU(3)(value)
        old = ipu.keras.PipelineModel(inputs, value, gradient_accumulation_count=4, layer_replacement=True)
        assert [type(layer).__name__ for layer in old.layers] == ["InputLayer", "Embedding", "PopnnGRU"]
        assert [one.pipeline_stage for one in old.get_pipeline_stage_assignment()] == [0, 1]
        x = np.random.RandomState(1).randint(0, 10, (8, 5)).astype("int32")
        got = old.predict(x, batch_size=2)
    reference = keras.Sequential([keras.layers.Embedding(10, 4, input_length=5), keras.layers.GRU(3)])
    reference.build((None, 5))
    reference.set_weights(old.get_weights())
    np.testing.assert_allclose(got, reference.predict(x, verbose=0), rtol=1e-3, atol=1e-5)


def test_layers_of_the_other_copy_of_keras(ipus):
    import tensorflow.python.keras as other

    ipus(1)
    with strategy().scope():
        old = ipu.keras.Sequential([other.layers.Dense(1, kernel_initializer="ones", input_shape=(WIDTH,))])
        old.compile("sgd", "mse")
        before = old.predict(X, batch_size=8)
        losses = old.fit(X, X[:, :1], batch_size=8, epochs=3, verbose=0).history["loss"]
    np.testing.assert_allclose(before[:, 0], X.sum(1), rtol=1e-5)
    assert losses[2] < losses[0]


def test_weights_are_saved_and_loaded(ipus, tmp_path):
    ipus(1)
    with strategy().scope():
        old = sequential()
        old.save_weights(str(tmp_path / "weights.h5"))
        other = model()
        other.set_weights([value * 0 for value in other.get_weights()])
        other.load_weights(str(tmp_path / "weights.h5"))
        for one, another in zip(old.get_weights(), other.get_weights()):
            np.testing.assert_array_equal(one, another)
        with pytest.raises(NotImplementedError, match="IPU Keras models do not support the `save`"):
            old.save(str(tmp_path / "model"))


def test_what_models_refuse(ipus):
    ipus(1)
    with pytest.raises(RuntimeError, match="made in the scope of an IPUStrategy"):
        sequential().predict(X)
    with strategy().scope():
        for wrong, phrase in (
            (lambda: ipu.keras.Sequential(), "IPU Sequential requires a list of Layers"),
            (lambda: ipu.keras.Sequential(["relu"]), "An IPU Sequential's list of Layers may"),
            (lambda: ipu.keras.Model(keras.Input((2,))), "Model was not provided with 'inputs' and 'outputs'"),
            (lambda: ipu.keras.PipelineSequential([], 4), "An IPU pipeline must take a non-empty"),
            (lambda: ipu.keras.PipelineSequential(layers(), 4), "An IPU pipeline may only contain lists"),
            (lambda: ipu.keras.PipelineSequential([["relu"]], 4), "Each list in the `stages` list must"),
            (lambda: ipu.keras.PipelineSequential([layers(), []], 4), "Pipeline stage 1 has no layer"),
            (lambda: pipeline_model([None] * 4, gradient_accumulation_count=4), "All layers of a pipelined model must"),
            (lambda: pipeline_model([0, 0, None, 1], gradient_accumulation_count=4), "All layers of a pipelined"),
            (lambda: pipeline_model([0, 0, 2, 2], gradient_accumulation_count=4), "Pipeline stages in the graph need"),
            (lambda: pipeline_model([1, 0, 1, 1], gradient_accumulation_count=4), "Layer .* in pipeline stage .* has"),
            (lambda: sequential(gradient_accumulation_count=0), "must be at least 1"),
            (
                lambda: sequential(gradient_accumulation_count=2, accumulation_count=4),
                "got several numbers of mini-batches",
            ),
        ):
            with pytest.raises(ValueError, match=phrase):
                wrong()
        with pytest.raises(TypeError, match="missing the argument 'gradient_accumulation_count'"):
            pipeline_model()
        with pytest.raises(TypeError, match="must be an integer"):
            sequential(gradient_accumulation_count=2.5)


@pytest.mark.parametrize(
    "release, stages, refused", [("1.4", (1, 0), True), ("1.4", (0, 1), False), ("2.1", (1, 0), False)]
)
def test_stages_go_up_in_the_order_of_calls(ipus, monkeypatch, release, stages, refused):
    """Two branches, of which Keras runs the first one first."""
    monkeypatch.setenv("TF_IPU_SHIM_SDK", release)
    ipus(2)
    branches = []
    with strategy().scope():
        inputs = keras.Input((2,))
        for stage in stages:
            with ipu.keras.PipelineStage(stage):
                branches.append(keras.layers.Dense(1, kernel_initializer="ones", name=f"in_{stage}")(inputs))
        with ipu.keras.PipelineStage(1):
            total = keras.layers.Add()(branches)
        if refused:
            with pytest.raises(ValueError, match="Post order execution node #2 has stage 0.* stage 1.*layer in_0"):
                ipu.keras.PipelineModel(inputs, total, gradient_accumulation_count=4)
        else:
            model = ipu.keras.PipelineModel(inputs, total, gradient_accumulation_count=4)
            rows = np.arange(8, dtype=np.float32).reshape(4, 2)
            got = np.concatenate(tf.nest.flatten(model.predict(rows, batch_size=1)))
            np.testing.assert_array_equal(got, 2 * rows.sum(1, keepdims=True))


def test_what_calls_refuse(ipus):
    ipus(1)
    with strategy().scope():
        old = sequential(gradient_accumulation_count=4)
        with pytest.raises(RuntimeError, match="You must compile your model before"):
            old.fit(X, Y)
        compiled(old)
        with pytest.raises(ValueError, match="This model can only be called through the `fit`, `evaluate`"):
            old(X)
        for wrong, phrase in (
            (lambda: old.fit(dataset().map(lambda x, y: x)), "fit requires a dataset with a structure containing "),
            (lambda: old.predict(dataset()), "predict requires a dataset with a structure containing "),
            (lambda: old.fit(dataset().repeat()), "When using an infinitely repeating dataset"),
            (lambda: old.fit(dataset().take(6)), r"number of mini-batches in the dataset \(6\) to be a multiple"),
            (lambda: old.fit(dataset(), steps_per_epoch=14), r"count \(14 x 4\) is greater than"),
            (lambda: old.fit(dataset(), steps_per_run=3), "to be a multiple of `steps_per_run`"),
            (lambda: old.fit(X[:9], Y[:9], batch_size=8), "partial batch"),
            (lambda: old.compile(ipu.optimizers.CrossReplicaOptimizer(v1_sgd())), "Optimizer must be a native"),
        ):
            with pytest.raises(ValueError, match=phrase):
                wrong()
        for wrong in (
            lambda: old.fit(X, Y, validation_split=0.5),
            lambda: old.compile("sgd", "mse", sample_weight_mode="temporal"),
        ):
            with pytest.raises(NotImplementedError, match="IPU Keras models do not support the"):
                wrong()
        with pytest.raises(TypeError, match="unexpected keyword argument 'batchsize'"):
            old.evaluate(X, Y, batchsize=8)
        with pytest.raises(TypeError, match="steps_per_run"):
            old.compile("sgd", "mse", steps_per_execution=4)
        one_stage = compiled(ipu.keras.PipelineSequential([layers()], 4))
        with pytest.raises(ValueError, match="at least two pipeline stages"):
            one_stage.fit(X, Y, batch_size=8)
        with pytest.raises(ValueError, match="Current device has 1 IPUs attached"):
            compiled(pipeline_sequential(gradient_accumulation_count=4)).fit(X, Y, batch_size=8)


def test_a_layer_that_sends_to_an_outfeed(ipus):
    """Keras calls it twice while a model without an input's shape is traced: for shapes alone, and to run."""

    class Sending(keras.layers.Layer):
        def call(self, inputs):
            with tf.control_dependencies([outfeed.enqueue(inputs)]):
                return tf.identity(inputs)

    ipus(1)
    outfeed = ipu.ipu_outfeed_queue.IPUOutfeedQueue()
    with strategy().scope():
        made = ipu.keras.Sequential(
            [keras.layers.Dense(CLASSES, use_bias=False, kernel_initializer="ones"), Sending(), keras.layers.Softmax()]
        )
        made.compile("sgd", "sparse_categorical_crossentropy")
        made.evaluate(dataset(), steps=1, verbose=0)
        (sent,) = [value.numpy() for value in outfeed]
    np.testing.assert_allclose(sent, np.repeat(X[:8].sum(1, keepdims=True), CLASSES, 1), 1e-5)
