"""Keras 2 optimizers, bare and wrapped, against the same training on the CPU."""

import contextlib

import harness
import numpy as np
import pytest
import tensorflow as tf
from slow_cases import slowly
from tf_ipu_shim.ipu import ipu_strategy
from tf_ipu_shim.ipu.keras import optimizers as old
from tf_ipu_shim.ipu.ops import replication_ops
from tf_ipu_shim.keras import optimizers

from tf_ipu_shim import ipu, keras2

pytestmark = pytest.mark.one_version

random = np.random.RandomState(0)
INPUTS = random.rand(8, 3, 2).astype("f")
WEIGHT = random.rand(2, 2).astype("f")
new = keras2.public_module().optimizers.experimental
legacy = keras2.public_module().optimizers.legacy

OPTIMIZERS = {
    "sgd": lambda: legacy.SGD(0.01),
    "momentum": lambda: legacy.SGD(0.01, 0.9),
    "nesterov": lambda: legacy.SGD(0.01, 0.9, nesterov=True),
    "adam": lambda: legacy.Adam(0.1),
    "adamax": lambda: legacy.Adamax(0.1),
    "nadam": lambda: legacy.Nadam(0.1),
    "rmsprop": lambda: legacy.RMSprop(0.1, momentum=0.5),
    "centred rmsprop": lambda: legacy.RMSprop(0.1, centered=True),
    "adagrad": lambda: legacy.Adagrad(0.1),
    "adadelta": lambda: legacy.Adadelta(1.0),
    "ftrl": lambda: legacy.Ftrl(0.1, l1_regularization_strength=0.01),
    "new sgd": lambda: new.SGD(0.01, 0.9),
    "new adam": lambda: new.Adam(0.1),
    "new adamw": lambda: new.AdamW(0.1),
}
CONTROL = [OPTIMIZERS[name] for name in ("momentum", "adam", "new adam")]


@pytest.fixture(autouse=True)
def fresh():
    harness.configure()


def train(make, batches=INPUTS, device=harness.IPU):
    """The weight after one step for each batch, and the optimizer."""
    with tf.device(device):
        weight = tf.Variable(WEIGHT)
        optimizer = make()

        @tf.function(jit_compile=device == harness.IPU or None, autograph=False)
        def step(x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(tf.matmul(x, weight)))
            optimizer.minimize(loss, [weight], tape=tape)
            return loss

        losses = [step(tf.constant(batch)).numpy() for batch in batches]
    assert np.isfinite(losses).all()
    return weight.numpy(), optimizer


def on_cpu(make, batches=INPUTS):
    return train(make, batches, harness.CPU)[0]


def large(count=4):
    """The loss is a sum, so one large batch has the sum of the gradients of small ones."""
    return INPUTS.reshape(len(INPUTS) // count, -1, 2)


def assert_close(actual, expected, tolerance=1e-5):
    np.testing.assert_allclose(actual, expected, tolerance, tolerance)


# `test_accumulated` runs each of them too.
@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_bare(name):
    assert_close(train(OPTIMIZERS[name])[0], on_cpu(OPTIMIZERS[name]))


def test_what_xla_has_no_kernel_for_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="ResourceApplyAdamWithAmsgrad"):
        train(lambda: legacy.Adam(0.1, amsgrad=True))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_accumulated(name):
    def wrapped():
        return optimizers.GradientAccumulationOptimizer(OPTIMIZERS[name](), 4)

    weight, optimizer = train(wrapped)
    assert_close(weight, on_cpu(OPTIMIZERS[name], large()))
    assert int(optimizer.iterations) == 2


@pytest.mark.parametrize("method", ["mean", "RUNNING_MEAN"])
def test_means(method):
    def wrapped():
        return optimizers.GradientAccumulationOptimizer(CONTROL[0](), 4, dtype=tf.float32, reduction_method=method)

    # A quarter of the gradient is that of half the inputs.
    assert_close(train(wrapped)[0], on_cpu(CONTROL[0], large() / 2))


def test_accumulates_in_a_loop_of_ours():
    optimizer = optimizers.GradientAccumulationOptimizer(CONTROL[0](), 4)
    with tf.device(harness.IPU):
        weight = tf.Variable(WEIGHT)

    def body(i, inputs):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(tf.matmul(tf.gather(inputs, i), weight)))
        optimizer.minimize(loss, [weight], tape=tape)
        return i + 1, inputs

    @tf.function(jit_compile=True, autograph=False)
    def steps(inputs, number):
        return ipu.loops.repeat(len(INPUTS) if number is None else number, body, [tf.constant(0), inputs])[0]

    with tf.device(harness.IPU):
        assert steps(tf.constant(INPUTS), None).numpy() == len(INPUTS)
        assert_close(weight.numpy(), on_cpu(CONTROL[0], large()))
        for _ in range(2):  # what is left over belongs to no later loop
            steps(tf.constant(INPUTS), tf.constant(3))
    assert_close(weight.numpy(), on_cpu(CONTROL[0], large()))


@pytest.mark.parametrize("make", CONTROL)
def test_fit_takes_a_wrapper(make):
    keras = keras2.public_module()

    def fit(optimizer, batch):
        model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones", input_shape=(2,))])
        model.compile(optimizer, lambda y, p: tf.square(p[:, 0] - y[:, 0]))
        model.fit(INPUTS.reshape(-1, 2), np.ones((24, 1), "f"), batch_size=batch, shuffle=False, verbose=0)
        return model.get_weights()

    wrapped = optimizers.GradientAccumulationOptimizer(make(), 3, reduction_method="MEAN")
    for actual, expected in zip(fit(wrapped, 4), fit(make(), 12)):
        assert_close(actual, expected)


@pytest.mark.ci_cases(3)
@pytest.mark.parametrize(
    ("wrap", "batch"),
    [
        (lambda made: optimizers.GradientAccumulationOptimizer(made, 3, reduction_method="MEAN"), 12),
        (lambda made: optimizers.ALSOptimizer(made, 8, update_frequency=2), 4),
        (
            lambda made: optimizers.ALSGradientAccumulationOptimizer(
                optimizers.ALSOptimizer(made), 3, reduction_method="MEAN"
            ),
            12,
        ),
    ],
)
def test_fit_under_a_strategy(wrap, batch):
    keras = keras2.public_module()

    def fit(optimizer, batch, **options):
        model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones", input_shape=(2,))])
        model.compile(optimizer, "mse", **options)
        model.fit(INPUTS.reshape(-1, 2), np.ones((24, 1), "f"), batch_size=batch, shuffle=False, verbose=0, epochs=2)
        return model.get_weights()

    with ipu_strategy.IPUStrategyV1().scope():
        weights = fit(wrap(CONTROL[1]()), 4, steps_per_execution=6)
    for actual, expected in zip(weights, fit(CONTROL[1](), batch)):
        assert_close(actual, expected)


@pytest.mark.parametrize("stages", [None, [0, 1]], ids=["one IPU", "pipeline"])
@pytest.mark.parametrize("wrap", [slowly(lambda made: made), old.CrossReplicaOptimizer], ids=["alone", "wrapped"])
def test_loss_scaling_with_gradient_accumulation(stages, wrap):
    keras = keras2.public_module()

    def fit(make_optimizer, batch, **options):
        layers = [keras.layers.Dense(2, kernel_initializer="ones", input_shape=(2,)), keras.layers.Dense(1)]
        layers[1].kernel_initializer = keras.initializers.Constant(0.5)
        model = keras.Sequential(layers)
        if options and stages is None:
            model.set_gradient_accumulation_options(4, gradient_accumulation_reduction_method="mean")
        elif options:
            model.set_pipelining_options(4, device_mapping=[0, 0], gradient_accumulation_reduction_method="mean")
            model.set_pipeline_stage_assignment(stages)
        model.compile(make_optimizer(), "mse", **options)
        model.fit(INPUTS.reshape(-1, 2), np.ones((24, 1), "f"), batch_size=batch, shuffle=False, verbose=0, epochs=2)
        return model.get_weights()

    def make():
        return legacy.SGD(0.01, 0.9)

    with ipu_strategy.IPUStrategyV1().scope():
        weights = fit(lambda: wrap(optimizers.ALSOptimizer(make(), 8, update_frequency=1)), 3, steps_per_execution=8)
    for actual, expected in zip(weights, fit(make, 12)):
        assert_close(actual, expected)


def test_loop_of_tensorflow_s_under_a_strategy():
    strategy = ipu_strategy.IPUStrategyV1()
    with strategy.scope():
        weight = tf.Variable(WEIGHT)
        optimizer = optimizers.GradientAccumulationOptimizer(CONTROL[0](), 4)
        iterator = iter(tf.data.Dataset.from_tensor_slices(INPUTS))

        @tf.function(jit_compile=True)
        def steps(batches):
            for _ in tf.range(len(INPUTS)):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_sum(tf.square(tf.matmul(next(batches), weight)))
                optimizer.minimize(loss, [weight], tape=tape)

        strategy.run(steps, args=(iterator,))
    assert_close(weight.numpy(), on_cpu(CONTROL[0], large()))


@pytest.mark.parametrize("make", CONTROL)
def test_wrapper_shows_the_wrapped(make):
    optimizer = optimizers.GradientAccumulationOptimizer(make(), 2, reduction_method="MEAN")
    optimizer.learning_rate = 0.25
    assert float(optimizer._opt.learning_rate) == float(optimizer.learning_rate) == float(optimizer.lr) == 0.25
    optimizer.clipnorm = 2.0
    assert optimizer._opt.clipnorm == optimizer.clipnorm == 2.0
    assert optimizers.GradientAccumulationOptimizer(optimizer._opt, 2).clipnorm == 2.0
    same = optimizers.GradientAccumulationOptimizer.from_config(optimizer.get_config())
    assert type(same._opt) is type(optimizer._opt)
    assert same.get_config() == optimizer.get_config()


def test_weights_are_those_of_the_wrapped():
    _, optimizer = train(lambda: optimizers.GradientAccumulationOptimizer(legacy.SGD(0.1, 0.9), 2))
    assert len(optimizer.get_weights()) == len(optimizer.weights) == 2  # iterations and momentum
    assert optimizer.get_slot_names() == ["momentum"]
    optimizer.set_weights([np.int64(7), np.ones((2, 2), "f")])
    assert int(optimizer.iterations) == 7


@pytest.mark.parametrize("make", CONTROL)
def test_loss_scaling_trains_as_without(make):
    weight, optimizer = train(lambda: optimizers.ALSOptimizer(make(), 64, update_frequency=2))
    assert_close(weight, on_cpu(make))
    assert float(optimizer.loss_scaling_factor) == 64 * 2**3
    assert optimizer.decrease_factor == 0.5
    assert optimizer.supports_captured_grads
    optimizer.reset()
    assert float(optimizer.loss_scaling_factor) == 64


@pytest.mark.parametrize(
    ("wrapped", "bare"),
    [
        (lambda: optimizers.ALSOptimizerSGD(0.01, 0.9), lambda: legacy.SGD(0.01, 0.9)),
        (lambda: optimizers.ALSOptimizerAdam(0.1), lambda: legacy.Adam(0.1)),
        (lambda: optimizers.ALSOptimizerRMSProp(0.1, momentum=0.5), lambda: legacy.RMSprop(0.1, momentum=0.5)),
        (lambda: old.AutomaticLossScalingOptimizer(legacy.Adam(0.1)), lambda: legacy.Adam(0.1)),
    ],
)
def test_optimizers_with_loss_scaling(wrapped, bare):
    weight, optimizer = train(wrapped)
    assert_close(weight, on_cpu(bare))
    same = type(optimizer).from_config(optimizer.get_config())
    assert same.get_config() == optimizer.get_config()


def test_accumulated_with_loss_scaling():
    def wrapped():
        return optimizers.ALSGradientAccumulationOptimizer(optimizers.ALSOptimizer(CONTROL[1](), update_frequency=1), 4)

    weight, optimizer = train(wrapped)
    assert_close(weight, on_cpu(CONTROL[1], large()), 1e-4)
    assert float(optimizer.loss_scaling_factor) == 2**2
    assert optimizer.update_frequency == 1
    assert optimizer.als_optimizer is optimizer._opt
    same = optimizers.ALSGradientAccumulationOptimizer.from_config(optimizer.get_config())
    assert same.get_config() == optimizer.get_config()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"increase_factor": 3}, "increase_factor must be a power of two"),
        ({"initial_loss_scaling_factor": 5}, "initial_loss_scaling_factor must be a power of two"),
        ({"max_loss_scaling_factor": 100}, "max_loss_scaling_factor must be a power of two"),
        ({"initial_loss_scaling_factor": 65536}, "must be less than max_loss_scaling_factor"),
        ({"initial_loss_scaling_factor": 16384}, "initial_loss_scaling_factor x increase_factor must be less than"),
        ({"ratio_threshold": 0.0}, "ratio_threshold must be greater than zero and"),
        ({"update_frequency": 0}, "update_frequency must be nonzero and positive"),
    ],
)
def test_loss_scaling_checks(options, message):
    with pytest.raises(ValueError, match=message):
        optimizers.ALSOptimizer(legacy.SGD(0.1), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"update_frequency": 2.5}, "update_frequency must be an integer, not 2.5"),
        ({"update_frequency": True}, "update_frequency must be an integer, not True"),
        ({"captured_grads_only": "no"}, "captured_grads_only must be True or False, not 'no'"),
        ({"accumulate_statistics_over_update_period": 2}, "accumulate_.* must be True or False, not 2"),
    ]
    + [
        ({name: "2"}, f"{name} must be a number, not '2'")
        for name in "increase_factor initial_loss_scaling_factor max_loss_scaling_factor ratio_threshold lpf_alpha "
        "histogram_bin_edge".split()
    ],
    ids=str,
)
def test_loss_scaling_takes_numbers_and_switches(options, message):
    with pytest.raises(TypeError, match=message):
        optimizers.ALSOptimizer(legacy.SGD(0.1), **options)


@pytest.mark.parametrize(
    "name",
    "histogram normalized_histogram loss_scaling_factor previous_loss_scaling_factor update_counter "
    "decrease_factor".split(),
)
def test_read_only(name):
    with pytest.raises(ValueError, match=f"{name} is a read only property"):
        setattr(optimizers.ALSOptimizer(legacy.SGD(0.1)), name, 1)


@pytest.mark.parametrize("accumulated", [False, True])
def test_replicas_average(accumulated):
    """The replicas' gradients are 1 and 2."""
    harness.configure(2)
    with tf.device(harness.IPU):
        weight = tf.Variable([1.0, 1.0])
        optimizer = old.CrossReplicaOptimizer(legacy.SGD(0.5))
        if accumulated:
            optimizer = optimizers.GradientAccumulationOptimizer(optimizer, 2)

        @tf.function(jit_compile=True, autograph=False)
        def step(x):
            gradient = x * (tf.cast(replication_ops.replication_index(), tf.float32) + 1)
            optimizer.apply_gradients([(gradient, weight)])
            return x

        for x in ([1.0, 2.0], [1.0, 0.0]):
            step(tf.constant(x))
    np.testing.assert_allclose(weight.numpy(), [1 - 0.5 * 1.5 * 2, 1 - 0.5 * 1.5 * 2])


def test_maps_gradients():
    def square(gradient, variable):
        return gradient * gradient

    def decay(gradient, variable):
        return gradient + variable

    weight = tf.Variable([2.0])
    inner = old.MapGradientOptimizerInvertedChaining(legacy.SGD(1.0), square)
    old.MapGradientOptimizerInvertedChaining(inner, decay).apply_gradients([(tf.constant([3.0]), weight)])
    np.testing.assert_allclose(weight.numpy(), [2 - (3 + 2) ** 2])
    with pytest.raises(ValueError, match="gradient_mapping_function must be a callable"):
        inner.gradient_mapping_function = 3
    assert old.MapGradientOptimizer.from_config(inner.get_config()).gradient_mapping_function is square


def test_options_that_may_be_left_open():
    words = map(optimizers.GradientAccumulationOptimizer.bool_to_three_state, (True, False), (None, None))
    assert list(words) == ["THREESTATE_ON", "THREESTATE_OFF"]
    assert optimizers.GradientAccumulationOptimizer.bool_to_three_state(None, "THREESTATE_ON") == "THREESTATE_ON"


@pytest.mark.parametrize(
    "wrap",
    [old.CrossReplicaOptimizer, lambda opt: optimizers.GradientAccumulationOptimizer(opt, 1), optimizers.ALSOptimizer],
    ids=["cross-replica", "accumulation", "loss scaling"],
)
def test_the_wrapped_optimizer_is_told_how_to_apply(wrap):
    told = []

    class Told(keras2.public_module().optimizers.SGD):
        def apply_gradients(self, grads_and_vars, name=None, experimental_aggregate_gradients=True):
            told.append((name, experimental_aggregate_gradients))
            return super().apply_gradients(grads_and_vars)

    weight = tf.Variable(1.0)
    wrapper = wrap(Told(0.5))
    wrapper.apply_gradients([(tf.constant(1.0), weight)], name="step", experimental_aggregate_gradients=False)
    wrapper.apply_gradients([(tf.constant(1.0), weight)])
    assert told == [("step", False), (None, True)]
    assert float(weight) == 0.0


def test_wrong_use_is_refused():
    sgd, als = legacy.SGD(0.1), optimizers.ALSOptimizer(legacy.SGD(0.1))
    with pytest.raises(ValueError, match="num_mini_batches must be >= 1"):
        optimizers.GradientAccumulationOptimizer(sgd, 0)
    with pytest.raises(ValueError, match="ALSGradientAccumulationOptimizer can only be used with instances"):
        optimizers.ALSGradientAccumulationOptimizer(sgd, 2)
    with pytest.raises(ValueError, match="ALSOptimizer has been used to wrap an"):
        optimizers.ALSOptimizer(optimizers.ALSOptimizerSGD(0.1))
    with pytest.raises(ValueError, match="can only be used to create"):
        optimizers.GradientAccumulationOptimizer.from_config.__func__(type(als), {})
    accumulated = optimizers.GradientAccumulationOptimizer(sgd, 2).get_config()
    with pytest.raises(ValueError, match="from_config can only be used with configurations"):
        optimizers.ALSGradientAccumulationOptimizer.from_config(accumulated)
    with pytest.raises(TypeError, match="wraps a Keras 2 optimizer"):
        optimizers.GradientAccumulationOptimizer(tf.compat.v1.train.GradientDescentOptimizer(0.1), 2)


def test_first_form_of_loss_scaling_checks():
    optimizer = old.AutomaticLossScalingOptimizer(legacy.SGD(0.1), 3.0)
    with pytest.raises(ValueError, match="decrease_factor must be less than increase_factor"):
        optimizer.decrease_factor = 5.0
    with pytest.raises(ValueError, match="increase_factor must be greater than decrease_factor"):
        optimizer.increase_factor = 0.25
    assert (optimizer.decrease_factor, optimizer.increase_factor) == (0.5, 2.0)
    with pytest.raises(ValueError, match="clip_levels is a read only property"):
        optimizer.clip_levels = [1.0]
    np.testing.assert_array_equal(optimizer.clip_levels, [np.finfo(np.float16).max])
    np.testing.assert_allclose(optimizer.get_unscaled_gradients([tf.constant([6.0])]), [[2.0]])


@pytest.mark.parametrize("release, refused", [("2.1", False), ("2.3", True), ("3.0", True), ("3.1", False)])
def test_optimizers_that_some_releases_refuse(monkeypatch, release, refused):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", release)
    wanted = pytest.raises(NotImplementedError) if refused else contextlib.nullcontext()
    with wanted as found:
        old.GradientAccumulationOptimizer(legacy.SGD(0.1), 2)
    if refused:
        assert str(found.value).startswith("Cannot use v2 optimizer. Have to use")
        assert f"SDK {release}" in str(found.value)
    with wanted as found:
        old.MapGradientOptimizer(legacy.SGD(0.1), lambda gradient, variable: gradient)
    if refused:
        assert str(found.value).startswith("Use MapGradientOptimizerInvertedChaining instead")
    old.MapGradientOptimizerInvertedChaining(legacy.SGD(0.1), lambda gradient, variable: gradient)
    optimizers.GradientAccumulationOptimizer(legacy.SGD(0.1), 2)


def test_names_of_all_sdks():
    from tensorflow.python.ipu.keras import optimizers as graphcore

    older = graphcore.gradient_accumulate_optimizer.GradientAccumulationOptimizer
    assert older is graphcore.GradientAccumulationOptimizer and issubclass(
        older, optimizers.GradientAccumulationOptimizer
    )
    assert graphcore.AutomaticLossScalingOptimizer is old.AutomaticLossScalingOptimizer
