"""Optimizers of the addons against Keras's own on the CPU, and LAMB against NumPy."""

import itertools

import harness
import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.addons.keras import optimizers

from tf_ipu_shim import keras2

pytestmark = pytest.mark.one_version

random = np.random.RandomState(0)
INPUTS = random.rand(6, 5, 3).astype("f")
START = random.rand(3, 2).astype("f")
legacy = keras2.public_module().optimizers.legacy


@pytest.fixture(autouse=True)
def fresh():
    harness.configure()


def train(optimizer, device=harness.IPU, dtype="float32", sparse=False):
    with tf.device(device):
        weight = tf.Variable(START.astype(dtype), name="weight")

        @tf.function(jit_compile=device == harness.IPU or None, autograph=False)
        def step(x):
            with tf.GradientTape() as tape:
                used = tf.gather(weight, [0, 2, 0]) if sparse else weight
                loss = tf.reduce_sum(tf.square(tf.matmul(tf.cast(x, dtype), used)))
            optimizer.apply_gradients([(tape.gradient(loss, weight), weight)])
            return loss

        for x in INPUTS:
            step(tf.constant(x))
    return weight.numpy()


SAME = [
    (lambda: optimizers.SGDIpuOptimizer(0.01), lambda: legacy.SGD(0.01)),
    (lambda: optimizers.SGDIpuOptimizer(0.01, 0.9), lambda: legacy.SGD(0.01, 0.9)),
    (lambda: optimizers.SGDIpuOptimizer(0.01, 0.9, True), lambda: legacy.SGD(0.01, 0.9, True)),
    (lambda: optimizers.AdamIpuOptimizer(0.1), lambda: legacy.Adam(0.1)),
    (lambda: optimizers.AdamIpuOptimizer(0.1, decay=0.5), lambda: legacy.Adam(0.1, decay=0.5)),
]


@pytest.mark.parametrize(("ours", "keras"), SAME)
def test_as_keras(ours, keras):
    np.testing.assert_allclose(train(ours()), train(keras(), harness.CPU), 1e-5, 1e-6)


@pytest.mark.parametrize(("ours", "keras"), [SAME[0], SAME[3]])
def test_rows_looked_up(ours, keras):
    np.testing.assert_allclose(train(ours(), sparse=True), train(keras(), harness.CPU, sparse=True), 1e-4, 1e-5)


def gradient(weight, x):
    x = x.astype(np.float64)
    return 2 * x.T @ x @ weight


def by_hand(rate=0.01, decay=0.0, adapt=True, debiasing=True, clip=None, lamb=True, epsilon=1e-6, amsgrad=False):
    """LAMB as its paper has it, in float64; Adam for `lamb=False`."""
    weight, m, v, largest = START.astype(np.float64), 0, 0, 0
    for t, x in enumerate(INPUTS, 1):
        g = gradient(weight, x)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        correct = (1 - 0.9**t, 1 - 0.999**t) if debiasing else (1, 1)
        largest = np.maximum(largest if amsgrad else 0, v / correct[1])
        step = m / correct[0] / (np.sqrt(largest) + epsilon)
        if lamb:
            step = step + decay * weight
            norm = np.linalg.norm(weight) if clip is None else min(np.linalg.norm(weight), clip)
            step = step * (norm / np.linalg.norm(step) if adapt else 1)
        weight = weight - rate * step
    return weight


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, {}),
        ({"weight_decay_rate": 0.1}, {"decay": 0.1}),
        ({"weight_decay_rate": 0.1, "exclude_from_weight_decay": ["wei.ht"]}, {"decay": 0.0, "adapt": False}),
        (
            {"weight_decay_rate": 0.1, "exclude_from_weight_decay": ["bias"], "exclude_from_layer_adaptation": ["we"]},
            {"decay": 0.1, "adapt": False},
        ),
        ({"debiasing": False}, {"debiasing": False}),
        ({"weight_norm_clip": 0.5}, {"clip": 0.5}),
    ],
)
def test_lamb(options, expected):
    np.testing.assert_allclose(train(optimizers.LAMBIpuOptimizer(0.01, **options)), by_hand(**expected), 1e-4, 1e-5)


@pytest.mark.parametrize(
    "options", [{"debiasing": False}, {"debiasing": True}, {"epsilon": 10.0}, {"epsilon": 10.0, "amsgrad": True}]
)
def test_adam(options):
    """With an epsilon as large as gradients, too, where it matters what it is added to."""
    rate = tf.Variable(0.01)
    actual = train(optimizers.AdamIpuOptimizer(rate, **options))
    np.testing.assert_allclose(actual, by_hand(lamb=False, **{"epsilon": 1e-7, **options}), 1e-4, 1e-5)
    assert rate.numpy() == np.float32(0.01)


@pytest.mark.parametrize(
    ("optimizer", "slots"),
    [
        (lambda **types: optimizers.SGDIpuOptimizer(0.001, 0.9, **types), {"momentum": "momentum_accum_dtype"}),
        (
            lambda **types: optimizers.AdamIpuOptimizer(0.01, amsgrad=True, **types),
            {n: f"{n}_dtype" for n in "m v vhat".split()},
        ),
        (lambda **types: optimizers.LAMBIpuOptimizer(0.01, **types), {"m": "m_dtype", "v": "v_dtype"}),
    ],
)
def test_types_of_slots(optimizer, slots):
    for slot, option in slots.items():
        made = optimizer(**{option: tf.float32})
        weight = train(made, dtype="float16")
        assert weight.dtype == np.float16
        np.testing.assert_allclose(weight, train(optimizer(), dtype="float32"), 0.02, 0.02)
        types = {variable.name.rpartition("/")[2].partition(":")[0]: variable.dtype for variable in made.weights}
        assert {name: types[name] for name in slots} == {
            name: tf.float32 if name == slot else tf.float16 for name in slots
        }
        with pytest.raises(AssertionError, match="no slot 'other'"):
            made.get_slot_dtype(tf.Variable(1.0), "other")


def test_precision_of_the_arithmetic():
    """A step of 2 ** -12 of the weight is lost in float16, and not in float32."""
    for precision, moved in ((tf.float16, False), (tf.float32, True)):
        weight = tf.Variable([1.0, 1.0])
        optimizer = optimizers.SGDIpuOptimizer(2.0**-12, optimizer_compute_precisions=(precision,))
        optimizer.apply_gradients([(tf.constant([2.0**-13, 1.0]), weight)])
        # The product is 2 ** -25, which float16 rounds to zero.
        slot = 2.0**-12 * 2.0**-13 if moved else 0.0
        np.testing.assert_array_equal(weight.numpy(), np.float32([1 - slot, 1 - 2.0**-12]))


@pytest.mark.parametrize("kind", [optimizers.SGDIpuOptimizer, optimizers.AdamIpuOptimizer, optimizers.LAMBIpuOptimizer])
def test_configuration(kind):
    made = kind(0.5, outline_apply_gradients=True, outline_apply_gradients_kwargs={"unique_sharding": True})
    config = made.get_config()
    assert config["outline_apply_gradients"] is True
    assert config["learning_rate"] == 0.5
    assert kind.from_config(config).get_config() == config


def test_wrong_use_is_refused():
    with pytest.raises(ValueError, match="Must provide a list of two elements"):
        optimizers.LAMBIpuOptimizer(optimizer_compute_precisions=(tf.float32,))
    slots = {
        optimizers.AdamIpuOptimizer: ("m_dtype", "v_dtype", "vhat_dtype"),
        optimizers.LAMBIpuOptimizer: ("m_dtype", "v_dtype"),
        optimizers.SGDIpuOptimizer: ("momentum_accum_dtype",),
    }
    for kind, names in slots.items():
        for name, wrong in itertools.product(names, (tf.int32, "many", 3)):
            with pytest.raises(TypeError, match=f"^{name} must be a floating-point type"):
                kind(**{name: wrong})
        for wrong in (tf.float32, (), ("many", "float32"), [tf.int8, tf.int8]):
            with pytest.raises(TypeError, match="optimizer_compute_precisions must be"):
                kind(optimizer_compute_precisions=wrong)
        with pytest.raises(TypeError, match="outline_apply_gradients_kwargs must be a dictionary .* not 3"):
            kind(outline_apply_gradients_kwargs=3)
        with pytest.raises(TypeError, match="outline_apply_gradients must be True or False, not 'yes'"):
            kind(outline_apply_gradients="yes")
    for kind in (optimizers.AdamIpuOptimizer, optimizers.LAMBIpuOptimizer):
        with pytest.raises(TypeError, match="debiasing must be True or False, not 'no'"):
            kind(debiasing="no")
    for wrong in ("1.0", True, [1.0]):
        with pytest.raises(TypeError, match="weight_norm_clip must be a number"):
            optimizers.LAMBIpuOptimizer(weight_norm_clip=wrong)
    for kind in (optimizers.AdamIpuOptimizer, optimizers.SGDIpuOptimizer):
        kind(optimizer_compute_precisions=("float32", tf.float32))
        with pytest.raises(
            ValueError, match="Optimizer must compute its whole update in one type: .* float32, float16"
        ):
            kind(optimizer_compute_precisions=(tf.float32, tf.float16))


def test_slots_of_any_type():
    class Plain(optimizers.IpuOptimizerBase):
        pass

    weight = tf.Variable([1.0, 2.0])
    optimizer = Plain("plain")
    slot = optimizer.add_slot_with_dtype(weight, "count", tf.int32, "ones")
    assert slot.dtype == tf.int32
    assert slot.numpy().tolist() == [1, 1]
    assert optimizer.add_slot(weight, "count") is slot
    assert optimizer.get_slot(weight, "count") is slot
    assert optimizer.add_slot(weight, "other").dtype == tf.float32


def test_names():
    import ipu_tensorflow_addons.keras.optimizers as graphcore

    assert graphcore.adam_optimizer.AdamIpuOptimizer is optimizers.AdamIpuOptimizer
    import ipu_tensorflow_addons.v1.optimizers  # noqa: F401
