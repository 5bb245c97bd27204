"""An op from C++ for tiles: it is built by `make`, trained through, and compared with NumPy.

$ tf-ipu run tutorials/custom_op.py
"""

import pathlib
import shutil
import subprocess
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

SOURCES = pathlib.Path(__file__).resolve().with_name("custom_op")
STEEPNESS = 2.0


def build(directory):
    """Compiles the library and the codelets in a copy of the sources."""
    shutil.copytree(SOURCES, directory, dirs_exist_ok=True)
    subprocess.run(["make", "-s"], cwd=directory, check=True)


def softsign(x, directory):
    outputs = {"output_types": [x.dtype], "output_shapes": [x.shape]}
    (y,) = ipu.custom_ops.precompiled_user_op(
        [x],
        library_path=f"{directory}/libsoftsign.so",
        gp_path=f"{directory}/codelets.gp",
        outs=outputs,
        attributes=str(STEEPNESS),
        gradient_attributes=str(STEEPNESS),
    )
    return y


def main():
    config = ipu.config.IPUConfig()
    config.auto_select_ipus = 1
    config.configure_ipu_system()

    with tempfile.TemporaryDirectory() as directory:
        build(directory)

        @tf.function(jit_compile=True)
        def step(x):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = softsign(x, directory)
            return y, tape.gradient(y, x)

        strategy = ipu.ipu_strategy.IPUStrategy()
        x = np.linspace(-3, 3, 7, dtype=np.float32)
        with strategy.scope():
            y, gradient = strategy.run(step, args=[x])

    below = 1 + np.abs(STEEPNESS * x)
    np.testing.assert_allclose(y, STEEPNESS * x / below, rtol=1e-6)
    np.testing.assert_allclose(gradient, STEEPNESS / below**2, rtol=1e-6)
    print("softsign", np.round(y, 3))
    print("gradient", np.round(gradient, 3))


if __name__ == "__main__":
    main()
