"""Graphs that are spread over IPUs by themselves, against the same training on the CPU."""

import itertools

import harness
import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import autoshard, autoshard_cnn, ipu_compiler, scopes, sharding

from tf_ipu_shim import ipu
from tf_ipu_shim.legacy.tensorflow1 import sharding_utils

pytestmark = [pytest.mark.one_version, pytest.mark.usefixtures("graph")]

v1 = tf.compat.v1
random = np.random.RandomState(0)
IMAGES = random.rand(2, 8, 8, 3).astype("f")
CHANNELS = [3, 4, 4, 8, 8]


def weight(layer):
    shape = [3, 3, *CHANNELS[layer : layer + 2]]
    value = np.random.RandomState(layer).rand(*shape) * 0.1
    return v1.get_variable(f"w{layer}", shape, initializer=v1.constant_initializer(value), use_resource=True)


def network(x):
    for layer in range(4):
        before = x
        x = tf.nn.relu(tf.nn.conv2d(x, weight(layer), 1, "SAME"))
        if x.shape == before.shape:
            x = x + before  # no cut inside
    return tf.reduce_mean(tf.square(x))


def train(shards=None, automatic=autoshard.automatic_sharding):
    """Weights after two steps, and the shards that ops were marked for."""
    marked = {}

    def net(x):
        x = tf.identity(x)
        loss = network(x)
        update = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        if shards:
            automatic(shards, x, loss)
            for op in x.graph.get_operations():
                marked[op.name] = (sharding.get_sharding(op) or [None])[0]
        with tf.control_dependencies([update]):
            return tf.identity(loss)

    with tf.device(harness.CPU):
        fed = v1.placeholder(tf.float32, IMAGES.shape)
    if shards:
        harness.configure(shards)
        with scopes.ipu_scope(harness.IPU):
            result = ipu_compiler.compile(net, [fed])
    else:
        with tf.device(harness.CPU):
            result = net(fed)
    with v1.Session() as running:
        running.run(v1.global_variables_initializer())
        losses = [running.run(result, {fed: IMAGES}) for _ in range(2)]
        return losses, running.run(v1.global_variables()), marked


@pytest.mark.parametrize("automatic", [autoshard.automatic_sharding, autoshard_cnn.automatic_sharding])
@pytest.mark.parametrize("shards", [1, 2, 4])
def test_trains_as_on_the_cpu(shards, automatic):
    losses, weights, marked = train(shards, automatic)
    with tf.Graph().as_default():
        expected_losses, expected, _ = train()
    np.testing.assert_allclose(np.ravel(losses), np.ravel(expected_losses), 1e-4)
    for actual, value in zip(weights, expected):
        np.testing.assert_allclose(actual, value, 1e-4, 1e-6)
    forward = [marked[name] for name in sorted(marked) if name.startswith("Conv2D")]
    assert sorted({*marked.values()} - {None}) == list(range(shards))
    assert forward == sorted(forward)
    for name, shard in marked.items():  # a gradient is where its forward op is
        if name.startswith("gradients/Conv2D") and name.endswith("Conv2DBackpropFilter"):
            assert shard == marked[name.split("/")[1].replace("_grad", "")]


def test_all_that_is_made_is_spread():
    def net(x):
        with autoshard.ipu_autoshard():
            loss = network(x)
        shards = [sharding.get_sharding(op) for op in loss.graph.get_operations() if op.type == "Conv2D"]
        assert {shard for (shard,) in shards} == {0, 1}
        update = v1.train.GradientDescentOptimizer(0.1).minimize(loss)
        with tf.control_dependencies([update]):
            return tf.identity(loss)

    harness.configure(2)
    with tf.device(harness.CPU):
        fed = v1.placeholder(tf.float32, IMAGES.shape)
    with scopes.ipu_scope(harness.IPU):
        result = ipu_compiler.compile(net, [fed])
    with v1.Session() as running:
        running.run(v1.global_variables_initializer())
        losses = [running.run(result, {fed: IMAGES}) for _ in range(2)]
        weights = running.run(v1.global_variables())
    with tf.Graph().as_default():
        expected_losses, expected, _ = train()
    np.testing.assert_allclose(np.ravel(losses), np.ravel(expected_losses), 1e-4)
    for actual, value in zip(weights, expected):
        np.testing.assert_allclose(actual, value, 1e-4, 1e-6)


def test_fewer_places_than_shards():
    with scopes.ipu_scope(harness.IPU):
        x = v1.placeholder(tf.float32, [4])
        loss = tf.reduce_sum(tf.nn.relu(x))
        with pytest.raises(Exception, match=r"There are fewer subgraphs \(\d+\) than available shards \(9\)"):
            autoshard.automatic_sharding(9, x, loss)
        other = v1.placeholder(tf.float32, [4])
        with pytest.raises(RuntimeError, match="Error: number of disconnected subgraphs in auto-sharder"):
            autoshard.automatic_sharding(2, other, loss)


def test_nothing_on_an_ipu():
    x = v1.placeholder(tf.float32, [4])
    with pytest.raises(ValueError, match="No ops placed on IPU device to shard"):
        autoshard.automatic_sharding(2, x, tf.nn.relu(x))
    with pytest.raises(ValueError, match="No ops placed on IPU device to shard"), autoshard.ipu_autoshard():
        tf.nn.relu(x)


def test_edges_are_left_out():
    with scopes.ipu_scope(harness.IPU):
        x = v1.placeholder(tf.float32, [4], name="x")
        loss = tf.exp(tf.exp(tf.exp(x, name="a"), name="b"), name="c")
        autoshard.automatic_sharding(2, x, loss, edge_filter=lambda edge: edge != ("a", "b"))
    shards = [sharding.get_sharding(op) for op in tf.compat.v1.get_default_graph().get_operations()]
    assert shards == [[0], [0], [1], [1]]


def test_splitting_edges_are_those_whose_removal_disconnects():
    for seed in range(20):
        order = np.random.RandomState(seed)
        with tf.Graph().as_default():
            tensors = [v1.placeholder(tf.float32, [2])]
            for _ in range(8):
                chosen = order.choice(len(tensors), min(len(tensors), order.randint(1, 3)), replace=False)
                tensors.append(tf.add_n([tensors[i] for i in chosen]))
            way = sharding_utils.ops_between(tensors[0].op, tensors[-1].op)
            found = sharding_utils.splitting_edges(way)
            edges = [(op, user) for op in way for user in sharding_utils.children(op) if user in way]
            assert {edge for edge in edges if not reachable(way, set(edges) - {edge})} == set(found)


def reachable(way, edges):
    seen = {way[0]}
    for _ in way:
        seen |= {user for op, user in edges if op in seen}
    return way[-1] in seen


def largest(costs, ends):
    return max(sum(costs[begin:end]) for begin, end in zip([0, *ends], [*ends, len(costs)]))


@pytest.mark.parametrize("parts", [1, 2, 3, 4])
def test_parts_are_the_best_there_are(parts):
    for seed in range(30):
        costs = np.random.RandomState(seed).randint(0, 9, 7).tolist()
        ends = sharding_utils.best_ends(costs, parts)
        assert len(ends) == parts - 1
        every = itertools.combinations(range(1, len(costs)), parts - 1)
        assert largest(costs, ends) == min(largest(costs, list(each)) for each in every)


def test_helpers():
    x = tf.zeros([2, 3], tf.float16)
    y = tf.nn.relu(x)
    assert sharding_utils.tensor_memory_use(x) == 12
    assert sharding_utils.children(x.op) == {y.op}
    sharding_utils.set_ipu_shard(y.op, 3)
    assert sharding.get_sharding(y.op) == [3]


def test_a_shard_is_written_the_same_way_by_all():
    with tf.compat.v1.Graph().as_default(), ipu.scopes.ipu_shard(3):
        by_scope, by_function = tf.constant(1.0).op, tf.constant(1.0).op
    sharding_utils.set_ipu_shard(by_function, 3)
    assert by_function.get_attr("_XlaSharding") == by_scope.get_attr("_XlaSharding")
