"""Built Poplar ops live as long as the programs that run them; graphs that name them say what a process lacks."""

from __future__ import annotations

import gc
import json
import pathlib

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU, configure
from tf_ipu_shim.ipu import custom_ops, ipu_compiler, scopes

from tf_ipu_shim import memory_report
from tf_ipu_shim.poplar_sdk import bridge

v1 = tf.compat.v1
A = np.float32([1, -2, 3])


@pytest.fixture(autouse=True)
def _one_ipu():
    configure()


@pytest.fixture
def product(op_libraries):
    """Calls an op that multiplies two float32 tensors of one shape."""

    def call(a, b, **options):
        outs = {"output_types": [tf.float32], "output_shapes": [a.shape]}
        paths = (str(op_libraries / "libops5.so"), str(op_libraries / "codelets.gp"))
        return custom_ops.precompiled_user_op([a, b], *paths, outs=outs, op_name="Product", **options)[0]

    return call


def run_program(function, value):
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(value.dtype, value.shape)
        with scopes.ipu_scope(IPU):
            (output,) = ipu_compiler.compile(function, [fed])
        return session.run(output, {fed: value})


def resident_bytes():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("mode", ["xla", "kernels"])
def test_ops_are_freed_with_their_program(product, monkeypatch, mode):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", mode)
    configure()
    big = np.ones(1_000_000, np.float32)
    run_program(lambda a: product(a, a), big)
    gc.collect()
    kept, resident = bridge.load().count(), resident_bytes()
    for _ in range(25):
        run_program(lambda a: product(a, a), big)
    gc.collect()
    assert bridge.load().count() <= kept
    assert resident_bytes() - resident < 100e6  # an op that stays keeps 12 MB for each of its programs


def test_ops_stay_while_their_program_does(product):
    with tf.Graph().as_default(), v1.Session() as session:
        fed = v1.placeholder(tf.float32, [3])
        with scopes.ipu_scope(IPU):
            (output,) = ipu_compiler.compile(lambda a: product(a, a), [fed])
        session.run(output, {fed: A})
        kept = bridge.load().count()
        run_program(lambda a: product(a, a + 1), A)
        gc.collect()
        assert bridge.load().count() == kept
        np.testing.assert_array_equal(session.run(output, {fed: A}), A * A)


def test_eager_ops_are_kept_up_to_a_limit(product):
    a = tf.constant(A)
    for factor in range(300):
        np.testing.assert_array_equal(product(a, a, attributes=str(factor)), factor * A * A)
    assert bridge.load().count() < 200
    np.testing.assert_array_equal(product(a, a, attributes="0"), 0 * A)


@pytest.mark.parametrize("op_name, hashable", [("Product", True), ("AddInPlace", False)])
def test_only_hashable_ops_are_cached(op_libraries, monkeypatch, tmp_path, op_name, hashable):
    monkeypatch.setenv("TF_POPLAR_FLAGS", f"--executable_cache_path={tmp_path / 'programs'}")
    configure()
    paths = (str(op_libraries / "libops5.so"), str(op_libraries / "codelets.gp"))
    outs = {"output_types": [tf.float32], "output_shapes": [[3]]}

    def program(a):
        return custom_ops.precompiled_user_op([a, a], *paths, outs=outs, op_name=op_name)

    expected = A * A if hashable else A + A
    for _ in range(2):
        np.testing.assert_array_equal(run_program(program, A), expected)
    assert (memory_report().devices[0].programs[-1].cache == "hit") == hashable


def test_cached_programs_know_the_lines_of_their_ops(op_libraries, monkeypatch, tmp_path):
    monkeypatch.setenv("TF_POPLAR_FLAGS", f"--executable_cache_path={tmp_path / 'programs'}")
    configure()
    paths = (str(op_libraries / "libops5.so"), str(op_libraries / "codelets.gp"))
    outs = {"output_types": [tf.float32], "output_shapes": [[3]]}

    def program(a):
        return custom_ops.precompiled_user_op([a, a], *paths, outs=outs, op_name="VertexThrows")

    line = rf"Op UserOp \(IpuUserOp\), made at \S+/{pathlib.Path(__file__).name}:\d+, in program\."
    for cache in ("miss", "hit"):
        with pytest.raises(tf.errors.InternalError, match=line):
            run_program(program, A)
        assert memory_report().devices[0].programs[-1].cache == cache


def test_metadata_without_effect_is_recorded(op_libraries):
    from tf_ipu_shim.runtime import ignored_options

    outs = {"output_types": [tf.float32], "output_shapes": [[3]]}
    path = str(op_libraries / "libops5.so")
    custom_ops.precompiled_user_op([A, A], path, str(op_libraries / "codelets.gp"), outs=outs, op_name="AddInPlace")
    assert ignored_options.arguments()["user_op_metadata(is_elementwise)"] is True


_LOADS = """
import sys
import tensorflow as tf
from tf_ipu_shim import plugin
from tf_ipu_shim.poplar_sdk import bridge
v1 = tf.compat.v1
v1.disable_eager_execution()
plugin.load()
definition = v1.GraphDef.FromString(open(sys.argv[1], "rb").read())
with v1.Graph().as_default(), v1.Session() as session:
    (result,) = tf.graph_util.import_graph_def(definition, name="", return_elements=["UserOp:0"])
    try:
        session.run(result)
        raise SystemExit("it ran")
    except tf.errors.FailedPreconditionError as error:
        assert "Poplar's libraries are not loaded in this process" in error.message, error.message
        assert "bridge.load()" in error.message
    bridge.load()
    print(session.run(result).tolist())
"""


@pytest.mark.subprocess
def test_a_graph_that_another_process_loads(product, forked, tmp_path):
    with tf.Graph().as_default() as graph:
        product(tf.constant(A), tf.constant(A))
    path = tmp_path / "graph.pb"
    path.write_bytes(graph.as_graph_def().SerializeToString())
    assert json.loads(forked.succeeds(forked.script(_LOADS), path).splitlines()[-1]) == (A * A).tolist()
