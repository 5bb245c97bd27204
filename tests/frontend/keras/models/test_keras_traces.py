"""Programs of Keras models are traced once, as they run: scripts see what they see with stock Keras."""

import contextlib
import re

import numpy as np
import pytest
import tensorflow as tf
from keras_models import assert_near, keras, strategy
from slow_cases import slowly

from tf_ipu_shim import errors
from tf_ipu_shim.frontend.keras.stages import stage_scopes
from tf_ipu_shim.frontend.keras.stages.pipeline_stage_assignment import PipelineStage as InStage

pytestmark = pytest.mark.filterwarnings("ignore:non-integer arguments to randrange")  # Keras' own seeds
X = np.random.RandomState(0).randn(16, 3).astype(np.float32)
CHOICES = {"batch_size": 4, "verbose": 0}


def dense(seed=1, units=3, **options):
    return keras.layers.Dense(units, kernel_initializer=keras.initializers.GlorotUniform(seed), **options)


def ran(make, choices=(), **compiling):
    """Losses of training and evaluation, predictions and weights."""
    model = make()
    model.compile(keras.optimizers.SGD(0.01, momentum=0.5), "mse", **compiling)
    for method, arguments in dict(choices).items():
        getattr(model, method)(**arguments)
    history = model.fit(X, X, epochs=2, shuffle=False, **CHOICES).history
    evaluated = model.evaluate(X, X, return_dict=True, **CHOICES)
    return history, evaluated, model.predict(X, **CHOICES), model.get_weights()


def same_as_stock(make, steps=2, **compiling):
    expected = ran(make, **compiling)
    with strategy().scope():
        got = ran(make, steps_per_execution=steps, **compiling)
    assert_near(got, expected)


class Loop(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = dense()

    def call(self, inputs):
        hidden = inputs
        for i in tf.range(3):
            if i > 0:
                hidden = self.dense(hidden)
        return hidden


class Branch(Loop):
    def call(self, inputs):
        hidden = self.dense(inputs)
        if tf.reduce_sum(hidden) > 0.0:
            hidden = hidden * 2.0
        return hidden


class Layer(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.loop = Loop()

    def call(self, inputs):
        hidden = self.loop(inputs)
        for _ in tf.range(2):
            if tf.reduce_max(tf.abs(hidden)) > 1.0:
                hidden = hidden * 0.5
        return hidden


class OfLayer(keras.Model):
    def __init__(self):
        super().__init__()
        self.layer = Layer()

    def call(self, inputs, training=None):
        return self.layer(inputs) + (0.5 if training else 0.0)


ONCE = pytest.mark.one_version


@pytest.mark.parametrize(
    "make",
    [
        slowly(Loop),
        Branch,
        pytest.param(OfLayer, marks=ONCE),
        slowly(lambda: keras.Sequential([Layer()])),
    ],
)
def test_control_flow_over_tensors_in_call(ipus, make):
    ipus(1)
    same_as_stock(make)


@ONCE
@pytest.mark.parametrize("method", ["evaluate", "predict"])
def test_replicas_look_for_stages_as_the_program_runs(ipus, method):
    ipus(2)
    seen = []
    for scope in (contextlib.nullcontext(), strategy().scope()):
        with scope:
            model = Branch()
            model.compile("sgd", "mse")
            seen.append(getattr(model, method)(X, *[X][: method == "evaluate"], **CHOICES))
    if method == "predict":
        assert_near(*seen)
    else:
        assert np.isfinite(seen[1])


class Counting(keras.Model):
    """Notes each trace, and makes state of three kinds."""

    def __init__(self, own_variable=False):
        super().__init__()
        self.dense, self.own_variable, self.scale, self.traces = dense(), own_variable, None, []

    def call(self, inputs, training=None):
        self.traces.append(training)
        if self.own_variable and self.scale is None:
            self.scale = tf.Variable(tf.ones([3]) * 2.0, name="scale")
        hidden = self.dense(inputs)
        self.add_metric(tf.reduce_sum(hidden), name="total", aggregation="mean")
        self.add_loss(0.01 * tf.reduce_sum(hidden**2))
        return hidden * self.scale if self.own_variable else hidden


@pytest.mark.parametrize("steps", [slowly(1), 4])
def test_each_program_is_traced_once(ipus, steps):
    ipus(1)
    with strategy().scope():
        model = Counting()
        model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"], steps_per_execution=steps)
        for run, arguments, traces in (
            (model.fit, (X, X), [True]),
            (model.fit, (X, X), []),
            (model.evaluate, (X, X), [False]),
            (model.predict, (X,), [False]),
        ):
            model.traces.clear()
            run(*arguments, **CHOICES)
            assert model.traces == traces
        model.traces.clear()
        model.train_on_batch(X[:4], X[:4])
        assert model.traces == [True][: steps > 1]  # the program of one step is that of fit


class Noting(Loop):
    """Its results tell how often it was traced."""

    traces = 0

    def call(self, inputs):
        self.traces += 1
        return self.dense(inputs) * self.traces


@pytest.mark.parametrize(("method", "samples"), [("evaluate", 16), ("predict", 12)])
def test_replicas_trace_once(ipus, method, samples):
    """The trace that tells whether the model is in stages is that of the program."""
    ipus(2)
    x = X[:samples]
    with strategy().scope():
        model = Noting()
        model.compile("sgd", "mse")
        got = [getattr(model, method)(x, *[x][: method == "evaluate"], **CHOICES) for _ in range(2)]
        assert model.traces == 1
        if method == "predict":
            kernel, bias = model.dense.get_weights()
            assert_near(got, [x @ kernel + bias] * 2)


def test_an_accumulating_program_is_traced_once(ipus):
    def weights(model, batch_size, **compiling):
        model.compile(keras.optimizers.SGD(0.1), "mse", **compiling)
        if compiling:
            model.set_gradient_accumulation_options(
                gradient_accumulation_steps_per_replica=4, gradient_accumulation_reduction_method="mean"
            )
        model.fit(X, X, batch_size=batch_size, epochs=2, shuffle=False, verbose=0)
        return model.get_weights()

    ipus(1)
    expected = weights(keras.Sequential([dense()]), 16)
    with strategy().scope():
        model = Noting()
        assert_near(weights(model, 4, steps_per_execution=4), expected)
        assert model.traces == 1


@ONCE
@pytest.mark.parametrize("own_variable", [slowly(False), True])
def test_state_made_in_a_trace_is_stock_keras_own(ipus, own_variable):
    ipus(1)
    names = []

    def make():
        model = Counting(own_variable)
        names.append(lambda: [v.name for v in (*model.weights, *model.optimizer.weights, *model.metrics)])
        return model

    same_as_stock(make, metrics=["mae"])
    stock, ours = ([re.sub(r"_\d+", "", name) for name in get()] for get in names)
    assert ours == stock


def test_a_variable_made_in_each_call_is_refused(ipus):
    class Anew(Loop):
        def call(self, inputs):
            return self.dense(inputs) * tf.Variable(2.0)

    ipus(1)
    with strategy().scope():
        model = Anew()
        model.compile("sgd", "mse")
        with pytest.raises(ValueError, match="only supports singleton tf.Variables"):
            model.fit(X, X, **CHOICES)


def test_the_trace_sees_what_callbacks_have_set(ipus):
    class Scaled(Loop):
        factor = 1.0

        def call(self, inputs):
            return self.dense(inputs) * self.factor

    class Sets(keras.callbacks.Callback):
        def on_train_begin(self, logs=None):
            self.model.factor = 3.0

    def make():
        model = Scaled()
        fit = model.fit
        model.fit = lambda *arguments, **options: fit(*arguments, callbacks=[Sets()], **options)
        return model

    ipus(1)
    same_as_stock(make)


def test_a_program_that_failed_is_traced_again(ipus):
    class Fails(Loop):
        fails = True

        def call(self, inputs):
            if self.fails:
                raise ArithmeticError("not yet")
            return self.dense(inputs)

    ipus(1)
    with strategy().scope():
        model = Fails()
        model.compile("sgd", "mse")
        with pytest.raises(Exception, match="not yet"):
            model.fit(X, X, **CHOICES)
        model.fails = False
        assert np.isfinite(model.fit(X, X, **CHOICES).history["loss"]).all()


@ONCE
@pytest.mark.parametrize("way", ["distribute_datasets_from_function", slowly("experimental_distribute_dataset")])
def test_datasets_of_a_strategy(ipus, way):
    ipus(1)
    data = tf.data.Dataset.from_tensor_slices((X, X)).batch(4, drop_remainder=True)
    own = strategy()
    with own.scope():
        given = getattr(own, way)((lambda context: data) if "function" in way else data)
        seen = []
        for fed in (data, given):
            model = keras.Sequential([dense()])
            model.compile("sgd", "mse", steps_per_execution=2)
            history = model.fit(fed, validation_data=fed, epochs=2, verbose=0).history
            seen.append((history, model.evaluate(fed, verbose=0), model.predict(fed, verbose=0)))
    assert_near(*seen)


class Decorated(keras.Model):
    """Adds a loss in a `call` that is a function of TensorFlow, itself or by its layer."""

    def __init__(self, kind):
        super().__init__()
        regularizer = keras.regularizers.L2(1.0) if kind == "activity" else None
        self.kind, self.dense = kind, dense(1, activity_regularizer=regularizer)

    @tf.function
    def call(self, inputs):
        hidden = self.dense(inputs)
        if self.kind == "add_loss":
            self.add_loss(tf.reduce_sum(hidden * hidden))
        if self.kind == "add_metric":
            self.add_metric(tf.reduce_sum(hidden), name="extra", aggregation="mean")
        return hidden


@ONCE
def test_a_metric_added_in_a_decorated_call(ipus):
    """Its value is a variable's, which a graph outside may read."""
    ipus(1)
    same_as_stock(lambda: Decorated("add_metric"))


@pytest.mark.parametrize(
    ("kind", "first"),
    [
        ("add_loss", None),
        ("add_loss", "predict"),
        ("activity", "call"),
        slowly("activity", None),
        slowly("activity", "predict"),
        slowly("add_loss", "call"),
    ],
)
def test_no_loss_is_lost_in_a_decorated_call(ipus, kind, first):
    ipus(1)
    with strategy().scope():
        model = Decorated(kind)
        model.compile("sgd", "mse")
        if first == "predict":
            model.predict(X, **CHOICES)
        elif first == "call":
            model(X[:4])
        for run in (model.fit, model.evaluate, model.fit):
            with pytest.raises(ValueError, match="out of scope"):
                run(X, X, **CHOICES)
        assert model.predict(X, **CHOICES).shape == X.shape


@ONCE
def test_a_decorated_call_that_takes_its_losses_trains(ipus):
    class Takes(keras.Model):
        def __init__(self):
            super().__init__()
            self.inner = dense(1, activity_regularizer=keras.regularizers.L2(1.0))

        @tf.function
        def both(self, inputs):
            hidden = self.inner(inputs)
            return hidden, tf.add_n(self.inner.losses)

        def train_step(self, data):
            with tf.GradientTape() as tape:
                hidden, penalty = self.both(data[0])
                loss = tf.reduce_mean((hidden - data[1]) ** 2) + penalty
            self.optimizer.minimize(loss, self.trainable_variables, tape=tape)
            return {"loss": loss}

        def call(self, inputs):
            return self.both(inputs)[0]

    def losses():
        model = Takes()
        model.compile(keras.optimizers.SGD(0.01), "mse")
        return [model.fit(X, X, shuffle=False, **CHOICES).history["loss"], model.predict(X, **CHOICES)]

    ipus(1)
    expected = losses()
    with strategy().scope():
        assert_near(losses(), expected)


class Staged(keras.Model):
    """Layers in two stages, with a loss or metric of the model's own, or losses of its layers."""

    def __init__(self, adds, staged=True):
        super().__init__()
        self.adds, self.staged, self.traces = adds, staged, []
        self.first, self.last = dense(1, activity_regularizer=keras.regularizers.L2(0.1)), dense(2)

    def call(self, inputs):
        self.traces.append(inputs.dtype)
        stage = keras.ipu.PipelineStage if self.staged else contextlib.nullcontext
        with stage(0):
            hidden = self.first(inputs)
        if self.adds == "add_loss":
            self.add_loss(tf.reduce_mean(hidden))
        if self.adds == "add_metric":
            self.add_metric(tf.reduce_mean(hidden), name="extra", aggregation="mean")
        with stage(1):
            return self.last(hidden)


def staged(adds):
    model = Staged(adds)
    model.compile(keras.optimizers.SGD(0.0), "mse", steps_per_execution=4)
    model.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
    return model


@ONCE
def test_pipelines_have_the_losses_of_layers(ipus):
    ipus(2)
    stock = Staged("", staged=False)
    stock.compile(keras.optimizers.SGD(0.0), "mse")
    expected = [stock.fit(X, X, **CHOICES).history["loss"], stock.evaluate(X, X, **CHOICES)]
    with strategy().scope():
        model = staged("")
        assert_near([model.fit(X, X, **CHOICES).history["loss"], model.evaluate(X, X, **CHOICES)], expected)
        assert len(model.traces) == 1  # for the graph of its layers


@ONCE
@pytest.mark.parametrize("first", ["predict", "build"])
def test_a_pipelined_call_is_traced_once(ipus, first):
    """Its code names `PipelineStage`, so that no trace has to tell whether it is in stages."""
    ipus(2)
    with strategy().scope():
        model = Staged("")
        model.compile("sgd", "mse", steps_per_execution=4)
        if first == "predict":
            predicted = model.predict(X, **CHOICES)
        else:
            model.build((4, 3))
            assert [one.pipeline_stage for one in model.get_pipeline_stage_assignment()] == [0, 1]
            model.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
            model.fit(X, X, **CHOICES)
            predicted = model.predict(X, **CHOICES)
        assert len(model.traces) == 1
        (kernel, bias), (last_kernel, last_bias) = model.first.get_weights(), model.last.get_weights()
        assert_near(predicted, (X @ kernel + bias) @ last_kernel + last_bias)


class Renamed(Loop):
    """Names the scope as the script has imported it, in a function inside `call`."""

    def call(self, inputs):
        def staged(number, hidden):
            with InStage(number):
                return self.dense(hidden) if number == 0 else hidden * 2.0

        return staged(1, staged(0, inputs))


@pytest.mark.parametrize(("kind", "named"), [(Staged, True), (Renamed, True), (Loop, False), (OfLayer, False)])
def test_code_that_names_stages(kind, named):
    assert stage_scopes.are_named_in(kind) == named


@pytest.mark.parametrize("adds", ["add_loss", "add_metric"])
def test_a_pipelined_call_that_adds_is_refused(ipus, adds):
    ipus(2)
    with strategy().scope():
        model = staged(adds)
        with pytest.raises(errors.UnsupportedError, match=f"calls {adds}; .* in the `call` of a layer"):
            model.fit(X, X, **CHOICES)
        assert model.predict(X, **CHOICES).shape == X.shape


def test_stages_without_options_are_refused_before_they_train(ipus):
    for count, message in ((1, "requires a multiple of 2 IPUs"), (2, "steps_per_replica. hasn't been set")):
        ipus(count)
        with strategy().scope():
            model = Staged("")
            model.compile("sgd", "mse")
            with pytest.raises(ValueError, match=message):
                model.fit(X, X, **CHOICES)
            assert model.get_pipeline_stage_assignment()


@ONCE
def test_what_a_built_model_adds_is_added_once(ipus):
    def make():
        model = Counting()
        model.build(keras.Input((3,), batch_size=4))
        return model

    ipus(1)
    expected = ran(Counting)
    with strategy().scope():
        assert_near(ran(make), expected)
