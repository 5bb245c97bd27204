"""Custom ops of a library of the tests: compiles it, calls its ops and runs functions with them."""

from __future__ import annotations

import pathlib
import shlex
import subprocess
from collections.abc import Callable
from typing import Any

import tensorflow as tf
from checkout import ROOT
from harness import configure
from tf_ipu_shim.ipu import custom_ops, ipu_strategy

from tf_ipu_shim.poplar_sdk import toolchain

SOURCES = ROOT / "tests/poplar_sdk/sources"
_LIBRARIES = "-lpopsparse -lpopnn -lpoplin -lpopops -lpoputil -lpoplar"


def compile_ops(name: str, directory: pathlib.Path) -> tuple[str, str]:
    """Compiles `NAME_ops.cc` and `NAME_codelets.cpp` to a library and codelets."""
    prefix = toolchain.build_libraries()
    library, codelets = directory / f"lib{name}.so", directory / f"{name}.gp"
    flags = f"-std=c++17 -O1 -shared -fPIC -I{prefix}/include -L{prefix}/lib {_LIBRARIES}"
    for command in (
        f"g++ {SOURCES / name}_ops.cc -o {library} {flags}",
        f"{prefix}/bin/popc {SOURCES / name}_codelets.cpp -o {codelets}",
    ):
        done = subprocess.run(shlex.split(command), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return str(library), str(codelets)


def caller(library: str, codelets: str) -> Callable[..., list[Any]]:
    """Returns a function that calls an op of a library; its outputs are float32 unless types are passed."""

    def call(name, inputs, shapes, types=None, **options):
        types = types or [tf.float32] * len(shapes)
        outs = {"output_types": types, "output_shapes": list(map(tf.TensorShape, shapes))}
        return custom_ops.precompiled_user_op(inputs, library, codelets, outs=outs, op_name=name, **options)

    return call


def runner(is_eager: bool) -> Callable[..., list[Any]]:
    """Returns a function that runs a function of tensors on the IPU, compiled or eagerly."""
    configure()
    strategy = ipu_strategy.IPUStrategyV1()

    def run(function, *inputs):
        with strategy.scope():
            tensors = [tf.constant(value) for value in inputs]
            if is_eager:
                results = function(*tensors)
            else:
                results = strategy.run(tf.function(function, jit_compile=True), tensors)
        return [value.numpy() for value in tf.nest.flatten(results)]

    return run
