"""SavedModels of TensorFlow 1: made, and run in a session of their own."""

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
X = np.random.RandomState(7).uniform(-1, 1, (2, 4)).astype(np.float32)


def save(directory, inputs, outputs):
    """Saves the current graph with what its variables begin with."""
    with v1.Session() as session:
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        v1.saved_model.simple_save(session, str(directory), inputs, outputs, v1.tables_initializer())
    return str(directory)


def run(directory, feeds, outputs=None):
    """What a SavedModel gives, by the keys of its signature: its main op has run before."""
    with v1.Graph().as_default(), v1.Session() as session:
        meta = v1.saved_model.loader.load(session, ["serve"], str(directory))
        signature = meta.signature_def["serving_default"]
        given = {signature.inputs[key].name: value for key, value in feeds.items()}
        wanted = {key: info.name for key, info in signature.outputs.items() if outputs is None or key in outputs}
        return session.run(wanted, given)


def graph_of(directory):
    """The GraphDef and the signature of a SavedModel, without running anything."""
    with v1.Graph().as_default(), v1.Session() as session:
        meta = v1.saved_model.loader.load(session, ["serve"], str(directory))
        return meta.graph_def, meta.signature_def["serving_default"]


def dense(x, width, name, resource=True):
    """A layer of numbers that one can tell apart."""
    with v1.variable_scope(name, use_resource=resource):
        random = np.random.RandomState(len(name))
        start = random.uniform(-1, 1, (int(x.shape[-1]), width)).astype(np.float32)
        kernel = v1.get_variable("kernel", start.shape, initializer=v1.constant_initializer(start))
        bias = v1.get_variable("bias", [width], initializer=v1.constant_initializer(np.linspace(-0.5, 0.5, width)))
        return tf.nn.relu(tf.nn.bias_add(tf.matmul(x, kernel), bias), name="relu")


def two_layers(directory):
    """Two layers in scopes, one input, two outputs."""
    with v1.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        hidden = dense(x, 5, "first", resource=False)
        y = dense(hidden, 3, "second")
        return save(directory, {"x": x}, {"hidden": hidden, "y": y})
