"""Collectives of groups of replicas, against NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from replicated import compiled, configure, sent
from tf_ipu_shim.ipu.ops import all_to_all_op, reduce_scatter_op, replication_ops

VALUES = np.array([[3, 0, 1, 2], [0, 5, 2, 3], [1, 2, 7, 4], [2, 3, 4, 9]], np.float32)  # a row a replica
SIZES = [1, 2, 4]


@pytest.fixture(autouse=True)
def own_graph(graph):
    return graph


def of_group(replica, size):
    first = replica - replica % size
    return VALUES[first : first + size], replica % size


def check(function, expected):
    found, _ = sent(lambda x: [function(x, size) for size in SIZES], 4, VALUES)
    for size, values in zip(SIZES, found):
        for replica in range(4):
            wanted = expected(*of_group(replica, size), size)
            np.testing.assert_allclose(values[replica], wanted, err_msg=f"replica {replica}, groups of {size}")


def test_gathers_of_groups():
    check(all_to_all_op.all_gather, lambda rows, place, size: rows)


@pytest.mark.parametrize(
    ("op", "reduce"), [("ADD", np.sum), ("MEAN", np.mean), ("MAX", np.max), ("MUL", np.prod), ("LOCAL", None)]
)
def test_scatters_of_groups(op, reduce):
    def expected(rows, place, size):
        whole = rows[place] if reduce is None else reduce(rows, axis=0)
        return np.split(whole, size)[place]

    check(lambda x, size: reduce_scatter_op.reduce_scatter(x, size, f"COLLECTIVE_OP_{op}"), expected)


def test_exchanges_of_groups():
    def expected(rows, place, size):
        return np.concatenate([np.split(row, size)[place] for row in rows])

    check(lambda x, size: all_to_all_op.all_to_all(x, 0, 0, size), expected)


def test_gradients_of_gathers_of_groups():
    """Replica r weighs row i of what it gathers by (r + 1) (i + 2)."""

    def gradient(x, size):
        index = tf.cast(replication_ops.replication_index(), tf.float32)
        with tf.GradientTape() as tape:
            tape.watch(x)
            weights = (index + 1) * (tf.range(float(size))[:, None] + 2)
            loss = tf.reduce_sum(weights * all_to_all_op.all_gather(x, size))
        return tape.gradient(loss, x)

    found, _ = sent(lambda x: [gradient(x, size) for size in SIZES], 4, VALUES)
    for size, values in zip(SIZES, found):
        for replica in range(4):
            first, place = replica - replica % size, replica % size
            wanted = sum(other + 1 for other in range(first, first + size)) * (place + 2)
            np.testing.assert_allclose(values[replica], np.full(4, wanted))


@pytest.mark.parametrize(("ipus", "size"), [(4, 3), (2, 4), (1, 2)])
def test_groups_that_do_not_divide_the_replicas(ipus, size):
    configure(ipus)
    gathered = compiled(lambda: all_to_all_op.all_gather(tf.ones([2]), size))
    match = f"replication_factor of {size}, but the program runs as {ipus} replica.*or a divisor of it"
    with tf.compat.v1.Session() as session, pytest.raises(tf.errors.InvalidArgumentError, match=match):
        session.run(gathered)
