"""Graph definitions with ops of Graphcore's, against NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from harness import IPU

from tf_ipu_shim import errors, ipu

v1 = tf.compat.v1
X = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)


def exponentials(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def derivative(function, x, step=1e-3):
    x = x.astype(np.float64)
    return (function(x + step) - function(x - step)) / (2 * step)


def gelu(x):
    return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def swish(x):
    return x / (1 + np.exp(-x))


def hard_sigmoid(x):
    return np.clip(0.2 * x + 0.5, 0, 1)


EXPECTED = {
    "IpuGelu": gelu(X),
    "IpuHardSigmoid": hard_sigmoid(X),
    "IpuSwish": swish(X),
    "IpuSoftmax": exponentials(X),
    "IpuStableSoftmax": exponentials(X),
    "IpuGeluGrad": 2 * X * derivative(gelu, X),
    "IpuHardSigmoidGrad": 2 * X * derivative(hard_sigmoid, X),
    "IpuSwishGrad": 2 * X * derivative(swish, X),
}


def graph_def_of(op, dtype=tf.float32, **attributes):
    """`op` between ops of TensorFlow: `2 x` is the gradient that gradients are of."""
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(dtype, name="x")
        v1.multiply(x, 2, name="twice")
        v1.identity(x, name="activation")
        v1.add(v1.get_default_graph().get_tensor_by_name("activation:0"), 1, name="after")
        made = graph.as_graph_def()
    node = next(node for node in made.node if node.name == "activation")
    node.op = op
    node.input[:] = ["twice", "x", "^twice"] if op.endswith("Grad") else ["x", "^twice"]
    node.attr.clear()
    node.attr["dtype"].type = dtype.as_datatype_enum
    for name, value in attributes.items():
        node.attr[name].i = value
    return made


@pytest.mark.parametrize("op", EXPECTED)
@pytest.mark.parametrize("compiled", [False, True])
def test_activations_of_graph_definitions(graph, ipus, op, compiled):
    ipus(1)
    made = graph_def_of(op)

    def run(x):
        return v1.import_graph_def(made, {"x:0": x}, ["activation:0", "after:0"], name="")

    x = v1.placeholder(tf.float32, X.shape)
    if compiled:
        with ipu.scopes.ipu_scope(IPU):
            results = ipu.ipu_compiler.compile(run, [x])
    else:
        results = run(x)
        assert results[0].name == "activation:0" and results[0].shape == X.shape
    with v1.Session() as session:
        activation, after = session.run(results, {x: X})
    np.testing.assert_allclose(activation, EXPECTED[op], atol=2e-3 if op.endswith("Grad") else 1e-6)
    np.testing.assert_allclose(after, activation + 1)


def test_imported_activations_have_gradients(graph):
    x = tf.constant(X)
    (result,) = v1.import_graph_def(graph_def_of("IpuGelu"), {"x:0": x}, ["activation:0"])
    (found,) = v1.gradients(result, x)
    with v1.Session() as session:
        np.testing.assert_allclose(session.run(found), derivative(gelu, X), atol=2e-3)


def test_imported_activations_of_float16(graph):
    made = graph_def_of("IpuGelu", tf.float16)
    before = made.SerializeToString(deterministic=True)
    (result,) = v1.import_graph_def(made, {"x:0": tf.constant(X, tf.float16)}, ["activation:0"])
    assert result.dtype == tf.float16
    assert made.SerializeToString(deterministic=True) == before, "the script's graph definition is as it was"
    with v1.Session() as session:
        np.testing.assert_allclose(session.run(result), gelu(X), atol=3e-3)


@pytest.mark.parametrize("op", ["PopnnLstmLayer", "PopnnGroupNormInference", "IpuDropout"])
def test_other_ops_of_graph_definitions_are_refused(graph, op):
    with pytest.raises(errors.UnsupportedError, match=f"node activation is Graphcore's op {op} .*Build this part"):
        v1.import_graph_def(graph_def_of(op, seed=1), {"x:0": tf.constant(X)})


def test_ops_of_nobody_fail_as_ever(graph):
    with pytest.raises((ValueError, tf.errors.NotFoundError), match="Op type not registered 'NoSuchOp'"):
        v1.import_graph_def(graph_def_of("NoSuchOp"), {"x:0": tf.constant(X)})
