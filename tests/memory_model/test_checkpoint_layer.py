"""The layer `RecomputationCheckpoint` in a Keras pipeline, beside the function that marks the same values."""

import pytest
from advice_models import few_tiles, fitted, keras, layers, planned, staged  # noqa: F401 - a fixture
from tf_ipu_shim.ipu.ops import pipelining_ops

from tf_ipu_shim import ipu
from tf_ipu_shim.frontend.pipelines.options import RecomputationMode

pytestmark = pytest.mark.one_version

BATCH, WIDTH, DEPTH = 256, 64, 12


def peak_bytes(checkpoint):
    """Bytes that the first stage needs whose middle value goes through a function or layer."""

    def model():
        x = made = keras.Input([WIDTH])
        for number in range(DEPTH):
            made = layers.Dense(WIDTH, "tanh", name=f"layer{number}")(made)
            if number == DEPTH // 2:
                made = checkpoint(made)
        return keras.Model(x, layers.Dense(1)(made))

    last = DEPTH if checkpoint is unmarked else DEPTH + 1
    options = staged([last], recomputation_mode=RecomputationMode.RecomputeAndBackpropagateInterleaved)
    return planned(fitted(model, BATCH, options=options), 2, recompute=True).ipus[0].peak_bytes


def unmarked(x):
    return x


def test_the_layer_keeps_its_inputs_as_the_function_does():
    by_layer = peak_bytes(lambda x: ipu.keras.layers.RecomputationCheckpoint()(x))
    assert by_layer == peak_bytes(pipelining_ops.recomputation_checkpoint)
    values = 4 * BATCH * WIDTH
    assert peak_bytes(unmarked) - by_layer > values  # of the layers before it, which are not recomputed with the others
