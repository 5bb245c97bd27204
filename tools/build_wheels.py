"""Builds one wheel with the plugin for several TensorFlows in it, and tries it with each in its own environment.

python tools/build_wheels.py --tensorflow 2.15.1 --tensorflow 2.21.0

Each TensorFlow is installed into a new virtual environment and compiled against. It then runs a program from the
finished wheel without a compiler. With the wheel a user needs none, and no first run is slow.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PREBUILT = ROOT / "tf_ipu_shim" / "plugin" / "prebuilt"
TENSORFLOW = "tensorflow-cpu" if platform.machine() == "x86_64" else "tensorflow"  # there is no -cpu for ARM
FIRST_WITH_KERAS_3 = (2, 16)
TRIAL = """
import numpy as np, tensorflow as tf
from tensorflow.python import ipu
from tf_ipu_shim import memory_report
from tf_ipu_shim.plugin import build
assert "site-packages" in build.__file__, build.__file__
config = ipu.config.IPUConfig()
config.auto_select_ipus = 2
config.configure_ipu_system()
with ipu.ipu_strategy.IPUStrategyV1().scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones", input_shape=(3,))])
    model.compile("sgd", "mse", steps_per_execution=2)
    model.fit(np.ones([8, 3], "f"), 3 * np.ones([8, 1], "f"), batch_size=2, verbose=0)
    assert np.array_equal(model.predict(np.ones([4, 3], "f"), batch_size=2, verbose=0), 3 * np.ones([4, 1]))
(device,) = memory_report().to_dict()["devices"]
programs = device["modelled"]["programs"]
assert [(program["name"], program["coarse"]) for program in programs] == [("train", {}), ("predict", {})], programs
print(build.find_library())
"""


def main() -> int:
    """Builds and tries; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tensorflow", action="append", required=True, metavar="VERSION", help="one to build for")
    parser.add_argument("--directory", default="dist", help="where the wheel is put (dist)")
    parser.add_argument("--python", default=sys.executable, help="makes the environments; all versions must be for it")
    arguments = parser.parse_args()
    for library in PREBUILT.glob("*.so"):
        library.unlink()
    with tempfile.TemporaryDirectory() as scratch:
        environments = {}
        for version in arguments.tensorflow:
            environments[version] = environment(arguments.python, pathlib.Path(scratch) / version, version)
            started = time.monotonic()
            run(environments[version], "-m", "tf_ipu_shim.cli", "build", "--into-package", at=ROOT)
            print(f"TensorFlow {version}: compiled in {time.monotonic() - started:.0f} s", flush=True)
        directory = pathlib.Path(scratch) / "wheel"
        run(next(iter(environments.values())), "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(directory), str(ROOT))
        (wheel,) = directory.glob("*.whl")
        for version, python in environments.items():
            run(python, "-m", "pip", "install", "-q", "--no-deps", "--force-reinstall", str(wheel))
            found = run(python, "-c", TRIAL, at=directory, PATH="", CXX="", TF_CPP_MIN_LOG_LEVEL="2")
            print(f"TensorFlow {version}: {pathlib.Path(found.strip()).name} runs without a compiler", flush=True)
        pathlib.Path(arguments.directory).mkdir(exist_ok=True)
        target = pathlib.Path(arguments.directory) / wheel.name
        target.write_bytes(wheel.read_bytes())
    for library in PREBUILT.glob("*.so"):
        library.unlink()
    print(f"{target}: {target.stat().st_size:,} bytes")
    return 0


def environment(python: str, directory: pathlib.Path, version: str) -> pathlib.Path:
    """Makes a virtual environment with one TensorFlow and its Keras 2; returns its Python."""
    subprocess.run([python, "-m", "venv", str(directory)], check=True)
    made = directory / "bin" / "python"
    pip = ("-m", "pip", "--disable-pip-version-check", "-q", "install")
    run(made, *pip, f"{TENSORFLOW}=={version}")
    major, minor, _ = (int(part) for part in version.split("."))
    if (major, minor) >= FIRST_WITH_KERAS_3:
        run(made, *pip, "--no-deps", f"tf_keras=={major}.{minor}.*")
    return made


def run(python: pathlib.Path, *arguments: str, at: pathlib.Path | None = None, **variables: str) -> str:
    """Runs Python and returns its output; a failure is an error."""
    command = [str(python), *arguments]
    process = subprocess.run(command, cwd=at, env={**os.environ, **variables}, capture_output=True, text=True)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{process.stdout}{process.stderr}")
    return process.stdout


if __name__ == "__main__":
    sys.exit(main())
