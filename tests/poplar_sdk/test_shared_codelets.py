"""Codelets that one op of a program adds are known to its gradient and to later ops, as in Poplar's one graph."""

from __future__ import annotations

import gc
import pathlib
import subprocess

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from tf_ipu_shim.ipu import custom_ops, ipu_compiler, loops, scopes

from tf_ipu_shim import memory_report
from tf_ipu_shim.poplar_sdk import toolchain

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
SOURCES = pathlib.Path(__file__).with_name("sources")
X = np.float32([1, -2, 3])
OTHER = """
#include <poplar/Vertex.hpp>
class Times : public poplar::Vertex {
 public:
  poplar::Input<poplar::Vector<float>> a, b;
  poplar::Output<poplar::Vector<float>> result;
  float scale;
  void compute() {
    for (unsigned i = 0; i < a.size(); ++i) result[i] = -scale * a[i] * b[i];
  }
};
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    prefix = toolchain.build_libraries()
    path = tmp_path_factory.mktemp("shared") / "libshared.so"
    flags = ["-std=c++17", "-fPIC", "-shared", f"-I{prefix}/include", f"-L{prefix}/lib"]
    subprocess.run(["g++", *flags, SOURCES / "shared_codelets.cc", "-o", path, "-lpoplar"], check=True)
    return path


@pytest.fixture(params=["xla", "kernels"], autouse=True)
def mode(request, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", request.param)
    configure()


@pytest.fixture
def op(library, op_libraries):
    """Calls an op of one float32 vector; it adds codelets.gp unless told another file."""

    def call(name, value, codelets=op_libraries / "codelets.gp"):
        outs = {"output_types": [tf.float32], "output_shapes": [value.shape]}
        options = {"op_name": name, "attributes": str(codelets)}
        return custom_ops.precompiled_user_op([value], str(library), outs=outs, **options)[0]

    return call


def run(program):
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, X.shape)
        with scopes.ipu_scope(IPU):
            outputs = ipu_compiler.compile(program, [fed])
        return session.run(outputs, {fed: X})


def squared_with_gradient(op, x):
    y = op("Adds", x)
    return y, v1.gradients(y, x)[0]


def test_a_gradient_uses_codelets_of_its_op(op):
    y, gradient = run(lambda x: squared_with_gradient(op, x))
    np.testing.assert_array_equal(y, X**2)
    np.testing.assert_array_equal(gradient, 2 * X)


@pytest.mark.parametrize("later", ["Uses", "AddsAgain"])
def test_later_ops_use_codelets_of_another(op, later):
    np.testing.assert_array_equal(run(lambda x: op(later, op("Adds", x)))[0], X**4)


def test_ops_that_do_not_depend_on_each_other(op):
    def program(x):
        y = op("Adds", x)
        return op("Uses", 2 * x), y

    np.testing.assert_array_equal(run(program), [4 * X**2, X**2])


def test_codelets_are_known_in_loops_and_on_other_ipus(op):
    configure(2)

    def program(x):
        with scopes.ipu_shard(0):
            y = op("Adds", x)
        with scopes.ipu_shard(1):
            z = op("Uses", y)
        with scopes.ipu_shard(0):
            return loops.repeat(2, lambda value: op("Uses", value), [z])

    np.testing.assert_array_equal(run(program)[0], X**16)


def test_codelets_of_a_program_from_the_cache(op, monkeypatch, tmp_path):
    monkeypatch.setenv("TF_POPLAR_FLAGS", f"--executable_cache_path={tmp_path}")
    configure()

    def program(x):  # the op that is made last runs first
        later = loops.repeat(10, lambda value: value + 1, [x])
        return (*squared_with_gradient(op, later), op("Uses", x))

    for cache in ("miss", "hit"):
        np.testing.assert_array_equal(run(program), [(X + 10) ** 2, 2 * (X + 10), X**2])
        assert memory_report().devices[0].programs[-1].cache == cache
        gc.collect()  # the program's ops are freed


def test_another_program_does_not_know_them(op):
    run(lambda x: op("Adds", x))
    with pytest.raises(tf.errors.InternalError, match="'Times' is in none of the 0 codelet files of the graph"):
        run(lambda x: op("Uses", x))


def test_an_op_prefers_its_own_codelets(op, tmp_path):
    other = tmp_path / "other.cpp"
    other.write_text(OTHER)
    np.testing.assert_array_equal(run(lambda x: op("AddsOther", op("Adds", x), other))[0], -(X**4))
    with pytest.raises(tf.errors.InternalError, match=r"'Times' is in two codelet files .*codelets\.gp' and '.*other"):
        run(lambda x: op("Uses", op("AddsOther", op("Adds", x), other)))
