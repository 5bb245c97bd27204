"""Pipeline stages of Keras models: scopes, assignments, models in models, and what is wrong with them."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from ipu_tensorflow_addons.keras.optimizers import SGDIpuOptimizer
from keras_models import (
    X,
    Y,
    assert_same,
    compiled,
    functional,
    keras,
    on_the_cpu,
    sequential,
    strategy,
    subclassed,
    trained,
)
from slow_cases import slowly
from staged_models import assign, flat, nested, pipelined

# Keras draws its own seeds with a float.
pytestmark = [pytest.mark.filterwarnings("ignore:non-integer arguments to randrange"), pytest.mark.one_version]

PipelineStage = keras.ipu.PipelineStage


@pytest.fixture(autouse=True)
def two_ipus(ipus):
    ipus(2)


BIG, NAMES = 1e5, ("one", "other")  # metrics too big for float16


@pytest.mark.parametrize(
    ("make", "stages"), [(nested, [0, 1, 1, 1]), slowly(nested, [0, 0, 0, 1]), slowly(functional, [0, 0, 1, 1, 1])]
)
def test_assigned_stages(make, stages):
    with strategy().scope():
        model = pipelined(make())
        assign(model, stages)
        got = trained(model)
        model.reset_pipeline_stage_assignment()
        assert all(one.pipeline_stage is None for one in flat(model.get_pipeline_stage_assignment()))
    assert_same(got, on_the_cpu(make, 32))


def test_a_layer_in_two_stages_and_a_model_in_a_stage():
    def make(scoped=True):
        keras.utils.set_random_seed(1)
        stage = PipelineStage if scoped else lambda _: tf.name_scope("none")
        shared, inputs = keras.layers.Dense(6, name="shared"), keras.Input((6,))
        with stage(0):
            x = shared(inputs)
        with stage(1):
            x = shared(x)
            inner = keras.Sequential([keras.layers.Dense(3)])
            x = inner(x)
        return keras.Model(inputs, x)

    expected = trained(compiled(make(False)), 32)
    with strategy().scope():
        model = pipelined(make())
        found = model.get_pipeline_stage_assignment()
        assert [one.node_index for one in found] == [0, 1, 0]
        assert [one.pipeline_stage for one in flat(found)] == [0, 1, 1]
        with pytest.raises(ValueError, match="layer shared is used .* can only be used by pipeline stages on the same"):
            trained(model)
        model = pipelined(make())
        model.set_pipelining_options(4, [1, 1], gradient_accumulation_reduction_method="mean")
        got = trained(model)
    assert_same(got, expected)


def test_a_dataset_with_fewer_inputs_than_the_model(ipus):
    with strategy().scope():
        inputs = [keras.Input((6,)), keras.Input((6,))]
        with PipelineStage(0):
            x = keras.layers.Dense(3)(inputs[0])
        with PipelineStage(1):
            x = keras.layers.Concatenate()([x, inputs[1]])
        model = pipelined(keras.Model(inputs, x))
        with pytest.raises(ValueError, match=r"expects 2 input\(s\), but it received 1 input tensors"):
            model.predict(tf.data.Dataset.from_tensors(X[:2]).repeat(8), steps=8)


def test_a_stage_may_have_large_constants():
    """TensorFlow captures those of more than some elements, as values that are known."""
    large = np.arange(144, dtype=np.float32).reshape(12, 12)
    with strategy().scope():
        inputs = keras.Input((1,))
        with PipelineStage(0):
            x = tf.multiply(large, inputs)
        with PipelineStage(1):
            y = tf.subtract(x, large)
        model = pipelined(keras.Model(inputs, y))
        model.compile(loss="mse", steps_per_execution=8)
        rows = np.arange(8, dtype=np.float32)
        found = model.predict(rows, batch_size=1)
    np.testing.assert_allclose(found, np.concatenate([large * row - large for row in rows]), rtol=1e-6)


@pytest.mark.slow
def test_a_model_that_begins_in_a_later_stage_is_a_part():
    def make(scoped=True):
        keras.utils.set_random_seed(1)
        stage = PipelineStage if scoped else lambda _: tf.name_scope("none")
        inside, inputs = keras.Input((6,)), keras.Input((6,))
        with stage(1):
            last = keras.layers.Dense(3)
        inner = keras.Model(inside, last(inside))
        with stage(0):
            first = keras.layers.Dense(6)
        return keras.Model(inputs, inner(first(inputs))), inner

    expected = trained(compiled(make(False)[0]), 32)
    with strategy().scope():
        model, inner = make()
        assert [one.pipeline_stage for one in flat(model.get_pipeline_stage_assignment())] == [0, 1]
        got = trained(pipelined(model))
        with pytest.raises(RuntimeError, match="preceeding stages .0. had no assignments"):
            pipelined(inner).fit(X, Y, batch_size=4)
    assert_same(got, expected)


@pytest.mark.slow
def test_a_subclass_that_was_built_is_assigned():
    with strategy().scope():
        model = pipelined(subclassed())
        with pytest.raises(RuntimeError, match="Cannot get pipeline stage assignments for model"):
            model.get_pipeline_stage_assignment()
        with pytest.raises(RuntimeError, match="Cannot set pipeline stage assignments for model"):
            model.set_pipeline_stage_assignment([])
        model.build((8, 6))
        assign(model, [0, 1])
        kind = keras.ipu.ModelLayerPipelineStageAssignment
        assert all(type(one) is kind for one in model.get_pipeline_stage_assignment())
        got = trained(model)
    assert_same(got, on_the_cpu(subclassed, 32))


@pytest.mark.parametrize("named", [False, True])
def test_the_call_of_a_subclass_may_need_training(named):
    """As `Model.build` of Keras allows; layers act by it, whether the model hands it on or not."""

    class Noisy(keras.layers.Layer):
        def call(self, x, training=None):
            return keras.backend.in_train_phase(x * 2.0, x, training)

    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.first = keras.layers.Dense(8, activation="relu")
            self.middle = Noisy()
            self.last = keras.layers.Dense(3)

        def call(self, x, training):
            x = self.first(x)
            return self.last(self.middle(x, training=training) if named else self.middle(x))

    def make():
        keras.utils.set_random_seed(1)
        return Own()

    expected = trained(compiled(make()), 32)
    with strategy().scope():
        model = pipelined(make())
        model.build((8, 6))
        assign(model, [0, 0, 1])
        got = trained(model)
    assert_same(got, expected)


@pytest.mark.slow
def test_a_subclass_within_a_model_has_stages_of_its_own():
    class Inner(keras.Model):
        def __init__(self, stages):
            super().__init__()
            self.parts = []
            for stage in stages:
                with PipelineStage(stage):
                    self.parts.append(keras.layers.Dense(6, name=f"dense_{stage}"))

        def call(self, inputs, scale=None):
            for part in self.parts:
                inputs = part(inputs)
            return inputs if scale is None else inputs * scale

    def make(scale=None):
        keras.utils.set_random_seed(1)
        inner, inputs = Inner([0, 1]), keras.Input((6,))
        inner.build((8, 6))
        with PipelineStage(1):
            last = keras.layers.Dense(3, name="last")
        return keras.Model(inputs, last(inner(inputs) if scale is None else inner(inputs, scale=scale)))

    with strategy().scope():
        model = make()
        found = model.get_pipeline_stage_assignment()
        assert [one.is_nested_model for one in found] == [True, False]
        assert [one.pipeline_stage for one in flat(found)] == [0, 1, 1]
        start = model.get_weights()
        got = trained(pipelined(model))
        with pytest.raises(ValueError, match="inner.* has not been assigned to one"):
            make(scale=2.0)
    plain = keras.Sequential([keras.layers.Dense(6), keras.layers.Dense(6), keras.layers.Dense(3)])
    plain.build((None, 6))
    plain.set_weights(start)
    assert_same(got, trained(compiled(plain), 32))


def test_stages_of_only_some_layers_of_a_subclass_are_refused():
    class Partly(keras.Model):
        def __init__(self):
            super().__init__()
            self.first, self.last = keras.layers.Dense(6), keras.layers.Dense(3, name="left_out")

        def call(self, inputs):
            with PipelineStage(0):
                inputs = self.first(inputs)
            return self.last(inputs)

    with strategy().scope(), pytest.raises(ValueError, match="left_out has not been assigned to one"):
        Partly().build((8, 6))


def test_options_of_the_pipeline():
    from tf_ipu_shim.ipu.ops.pipelining_ops import PipelineSchedule

    with strategy().scope():
        model = compiled(functional([0, 0, 1, 1]), steps_per_execution=8)
        model.set_pipelining_options(
            1,
            device_mapping=[1, 0],
            pipeline_schedule=PipelineSchedule.Sequential,
            gradient_accumulation_dtype=tf.float32,
        )
        got = trained(model)
        model = compiled(functional([0, 0, 1, 1]), steps_per_execution=8)
        model.set_pipelining_options(8, accumulate_outfeed=True)
        before = model.evaluate(X, Y, batch_size=8, verbose=0)
        weights = model.get_weights()
        history = model.fit(X, Y, batch_size=8, verbose=0, shuffle=False).history
    assert_same(got, on_the_cpu(functional))
    stock = compiled(functional())
    stock.set_weights(weights)
    expected = stock.evaluate(X, Y, batch_size=8, verbose=0)[0]  # as without accumulating what is sent
    np.testing.assert_allclose([before[0], history["loss"][0]], expected, rtol=1e-4)


@pytest.mark.slow
def test_optimizers_that_take_float16_gradients_accumulate_in_it():
    """An update of gradients that float16 holds exactly, by the addons' optimizer; Keras' own is named."""
    with strategy().scope():
        for optimizer in (keras.optimizers.SGD, keras.optimizers.legacy.Adam):
            model = compiled(functional([0, 0, 1, 1]), optimizer, steps_per_execution=8)
            model.set_pipelining_options(8, gradient_accumulation_dtype=tf.float16)
            with pytest.raises(
                TypeError, match="float16, which (SGD|Adam) does not accept for weights of float32 .*first/kernel"
            ):
                model.fit(X, Y, batch_size=8, verbose=0)
        model = compiled(functional([0, 0, 1, 1]), functools.partial(SGDIpuOptimizer, 0.1), steps_per_execution=8)
        model.set_pipelining_options(
            8, gradient_accumulation_reduction_method="mean", gradient_accumulation_dtype=tf.float16
        )
        got = trained(model)[3]
    for one, other in zip(got, on_the_cpu(functional, 64)[3]):
        np.testing.assert_allclose(one, other, atol=1e-3)


def test_dtypes_of_what_is_sent_by_the_names_of_tensors():
    """The last stage's outputs are those of `PipelineStage`: the loss, then the metrics by name."""
    asked = []

    def dtype(tensor):
        asked.append(tensor.name.rpartition("/")[2])
        return tf.float16 if tensor.name.endswith("PipelineStage:2") else tensor.dtype

    with strategy().scope():
        model = functional([0, 0, 1, 1])
        metrics = [keras.metrics.MeanMetricWrapper(lambda y, p: tf.fill([8], BIG), name=name) for name in NAMES]
        model.compile(keras.optimizers.SGD(0.1), keras.losses.mse, metrics=metrics, steps_per_execution=8)
        model.set_pipelining_options(8, accumulate_outfeed=True, accumulate_outfeed_dtype=dtype)
        targets = np.zeros((64, 3), "f")
        history = model.fit(X, targets, batch_size=8, verbose=0).history
    assert sorted(set(asked)) == ["PipelineStage:1", "PipelineStage:2", "PipelineStage:3"]
    assert (history["one"], history["other"]) == ([np.finfo(np.float16).max], [BIG])


def test_moving_statistics_in_a_pipeline_are_warned_of(caplog):
    with strategy().scope():
        inputs = keras.Input((6,))
        with PipelineStage(0):
            hidden = keras.layers.BatchNormalization(name="normal")(inputs)
        with PipelineStage(1):
            model = pipelined(keras.Model(inputs, keras.layers.Dense(3)(hidden)))
        model.fit(X, Y, batch_size=8, verbose=0)
    assert "The moving statistics of normal" in caplog.text


def test_summaries():
    def printed(model):
        lines = []
        model.print_pipeline_stage_assignment_summary(line_length=80, print_fn=lines.append)
        return lines

    with strategy().scope():
        lines = printed(functional([0, 0, 1, 1]))
        assert lines[0].startswith('Model: "model')
        assert [line.rstrip() for line in lines[2:4]] == [
            "Layer (type) (node index)       Input Layers                    Pipeline Stage",
            "=" * 80,
        ]
        table = [line for line in lines if line.startswith(("joined", "fourth")) or not line[:32].strip()]
        assert [(line[:32].strip(), line[32:64].strip(), line[64:].strip()) for line in table] == [
            ("joined (Add) (0)", "second", "1"),
            ("", "first", ""),
            ("fourth (Dense) (0)", "third", "1"),
        ]
        assert {len(line) for line in lines[1:]} == {80}
        model = sequential()
        assert any("third (Dense)" in line and "None" in line for line in printed(model))
        model.set_pipeline_stage_assignment([0, 0, 1, 1])
        assert [line.split()[-1] for line in printed(model) if "(Dense)" in line] == ["0", "0", "1", "1"]
        model.set_pipelining_options(4, accumulate_outfeed=True, gradient_accumulation_reduction_method="mean")
        assert model._pipelining_gradient_accumulation_steps_per_replica == 4 and model._pipelining_accumulate_outfeed
        assert model._gradient_accumulation_reduction_method.name == "MEAN" and not model._pipelining_device_mapping
        texts = [str(one) for one in model.get_pipeline_stage_assignment()]
        assert "third" in texts[2] and "1" in texts[2]
        assert all("four" in str(one) or "one" in str(one) for one in nested().get_pipeline_stage_assignment())


def sequential_kind(layer, stage):
    return keras.ipu.SequentialLayerPipelineStageAssignment(layer, stage)


def test_wrong_assignments_of_sequential_models():
    def refused(match, change, error=ValueError):
        model = sequential()
        stages = [sequential_kind(layer, number) for number, layer in enumerate(model.layers)]
        with pytest.raises(error, match=match):
            model.set_pipeline_stage_assignment(change(stages))

    with strategy().scope():
        refused("needs to be a list", tuple)
        refused(r"The length of the provided `pipeline_stage_assignment` \(3\)", lambda stages: stages[:3])
        refused("must be instances of", lambda stages: [*stages[:3], "3"])
        refused("Layer first has not been assigned a pipeline", lambda s: [sequential_kind(s[0].layer, None), *s[1:]])
        refused("provided assignment at index 0", lambda stages: stages[::-1])
        refused("first layer in a pipelined sequential", lambda s: [sequential_kind(s[0].layer, 1), *s[1:]])
        refused("third has been assigned to pipeline stage 3", lambda s: [*s[:2], sequential_kind(s[2].layer, 3), s[3]])
        refused("has been assigned to pipeline stage 0", lambda s: [*s[:3], sequential_kind(s[3].layer, 0)])
        for stage in ("3", 3.0):
            change = lambda s, stage=stage: [*s[:3], sequential_kind(s[3].layer, stage)]  # noqa: E731
            refused(f"`pipeline_stage` of layer .* must be an integer, not {stage!r}", change, TypeError)


def test_older_releases_argument_for_the_assignment_count(monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.4")
    with (
        strategy().scope(),
        pytest.raises(ValueError, match=r"The size of the provided `pipeline_stage_assignment` \(0\)"),
    ):
        sequential().set_pipeline_stage_assignment([])


def test_the_words_of_sdk_2_5_for_subclassed_models(monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.5")

    def refused(match, change):
        stages = model.get_pipeline_stage_assignment()
        for place, one in enumerate(stages):
            one.pipeline_stage = place
        with pytest.raises(ValueError, match=match):
            model.set_pipeline_stage_assignment(change(stages))

    def twice(stages):
        for one in stages:
            one.pipeline_stage *= 2
        return stages

    with strategy().scope():
        model = subclassed()
        model.build((8, 6))
        refused(
            r"The length of the provided .* match the number of layers in the graph \(2\)", lambda stages: stages[:1]
        )
        refused("must be instances of `ModelLayerPipelineStageAssignment`.", lambda stages: [None, *stages[1:]])
        refused("does not match the post-order generated from the graph", lambda stages: stages[::-1])
        refused(r"must start at 0 and be strictly .* was stage 2, however the preceeding stages \[1\] had", twice)


def test_wrong_assignments_of_functional_models():
    def refused(match, change, error=ValueError):
        model = functional()
        stages = model.get_pipeline_stage_assignment()
        for one, stage in zip(stages, [0, 0, 1, 1, 1]):
            one.pipeline_stage = stage
        with pytest.raises(error, match=match):
            model.set_pipeline_stage_assignment(change(stages))

    def staged(*numbers):
        def change(stages):
            for one, number in zip(stages, numbers):
                one.pipeline_stage = number
            return stages

        return change

    with strategy().scope():
        refused("needs to be a list", tuple)
        refused(r"The length of the provided `pipeline_stage_assignment` \(2\)", lambda stages: stages[:2])
        refused("assignment for layer first in .* must be an instance", lambda stages: [1, *stages[1:]])
        refused("order of `pipeline_stage_assignment` does not match", lambda stages: stages[::-1])
        refused("Layer first with node_index 0 has not", staged(None, 0, 1, 1, 1))
        for stage in ("1", 1.0):
            refused(f"must be an integer, not {stage!r}", staged(0, 0, 1, 1, stage), TypeError)
        refused("Layer second in pipeline stage 0 has a dependency", staged(1, 0, 1, 1, 1))
        model = compiled(functional())
        stages = staged(0, 0, 2, 2, 2)(model.get_pipeline_stage_assignment())
        model.set_pipeline_stage_assignment(stages)  # may be set anew until the model runs
        model.set_pipelining_options(2, device_mapping=[0, 0, 0])
        with pytest.raises(RuntimeError, match=r"highest stage .* is stage 2, however the preceeding stages \[1\] had"):
            model.predict(X, batch_size=8)
        with pytest.raises(ValueError, match="All layers of a pipelined model must have an associated"):
            functional([0, None, 1, 1])
        with pytest.raises(ValueError, match="strictly increasing"):
            functional([0, 0, 2, 2])
        with pytest.raises(ValueError, match="has a dependency from a pipeline stage"):
            functional([1, 0, 1, 1])


def test_a_layer_of_an_inner_model_without_a_stage():
    with strategy().scope():
        inner = keras.Sequential([keras.layers.Dense(4, input_shape=(6,), name="inner")])
        inputs = keras.Input((6,))
        model = keras.Model(inputs, keras.layers.Dense(2)(inner(inputs)))
        stages = model.get_pipeline_stage_assignment()
        stages[1].pipeline_stage = 1
        with pytest.raises(ValueError, match="Layer inner has not been assigned a pipeline stage"):
            model.set_pipeline_stage_assignment(stages)


def test_wrong_scopes():
    with pytest.raises(RuntimeError, match="may only be used from within an IPUStrategy"), PipelineStage(0):
        pass
    with strategy().scope():
        with pytest.raises(ValueError, match="-1 is not a valid pipeline stage"), PipelineStage(-1):
            pass
        for stage in ("0", 0.0, None):
            with pytest.raises(TypeError, match=f"`stage` of PipelineStage must be .* {stage!r}"), PipelineStage(stage):
                pass
        with pytest.raises(RuntimeError, match="must not be nested"), PipelineStage(0), PipelineStage(1):
            pass
        with PipelineStage(0):
            made = keras.layers.Dense(1)
        assert "_pipeline_stage" not in vars(keras.layers.Dense(1)) and made._pipeline_stage == 0
        one_stage = pipelined(functional([0, 0, 0, 0]))
        with pytest.raises(ValueError, match="at least two pipeline stages"):
            one_stage.fit(X, Y, batch_size=4)


def test_assignments_are_in_the_order_in_which_keras_runs_layers():
    """Layers far from the outputs come first, however the branches are written."""
    with strategy().scope():
        left, right = keras.Input((4,)), keras.Input((4,))
        shared = keras.layers.Dense(4, name="shared")
        first, second = (keras.layers.Dense(4, name=name) for name in ("first", "second"))
        model = keras.Model((left, right), (shared(first(left)), shared(second(right))))
        order = [(one.layer.name, one.node_index) for one in model.get_pipeline_stage_assignment()]
        assert order == [("second", 0), ("first", 0), ("shared", 1), ("shared", 0)]
        assert keras.ipu.extensions.pipeline_stage_assignment.PipelineStage is PipelineStage


def test_a_class_without_a_constructor_is_functional():
    class Named(keras.Model):
        """What a script tells its models apart by."""

    with strategy().scope():
        inputs = keras.Input((6,))
        outputs = keras.layers.Dense(3)(keras.layers.Dense(4)(inputs))
        model = Named(inputs=inputs, outputs=outputs)
        assert isinstance(model, Named) and isinstance(model, keras.ipu.extensions.FunctionalExtension)
        assign(pipelined(model), [0, 1])
        copy = Named.from_config(model.get_config())
        assert isinstance(copy, Named)
        assert [one.pipeline_stage for one in copy.get_pipeline_stage_assignment()] == [0, 1]
        expected = model.predict(X, batch_size=8, verbose=0)
    kernels = model.get_weights()
    by_hand = (X @ kernels[0] + kernels[1]) @ kernels[2] + kernels[3]
    np.testing.assert_allclose(expected, by_hand, rtol=1e-4, atol=1e-5)
