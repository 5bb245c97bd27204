"""Nets of TensorFlow 1 whose gradients pass through control flow. Each takes a vector of three and returns a scalar."""

import tensorflow as tf

v1 = tf.compat.v1


def weight(name, value=0.5, trainable=True):
    with v1.variable_scope("weights", reuse=v1.AUTO_REUSE, use_resource=True):
        return v1.get_variable(name, [3], initializer=v1.constant_initializer(value), trainable=trainable)


def is_positive(x):
    return tf.reduce_sum(x) > 0.0


def power(x, w):
    return x * w * w


def loop(times, step, x):
    return tf.while_loop(lambda i, _: i < times, lambda i, y: (i + 1, step(y)), (0, x), maximum_iterations=times)[1]


def branch_twice(x):
    w = weight("w")
    return tf.cond(is_positive(x), lambda: power(x, w), lambda: x * w)


def dense_twice(x):
    u, w = weight("u", 0.3), weight("w")

    def dense(h, matrix):
        return tf.linalg.matvec(tf.linalg.diag(matrix) + 0.1, h)

    return tf.cond(is_positive(x), lambda: dense(tf.nn.relu(dense(x, u)), w), lambda: dense(x, w))


def both_branches(x):
    u, w = weight("u", 0.3), weight("w")
    return tf.cond(is_positive(x), lambda: (x * w * u) * w, lambda: (x * u * u) * w)


def case(x):
    w = weight("w")
    branches = [(tf.reduce_sum(x) < -5.0, lambda: x * w), (is_positive(x), lambda: power(x, w))]
    return tf.case(branches, default=lambda: tf.sin(x * w) * w)


def switch_case(x):
    w = weight("w")
    return tf.switch_case(tf.cast(is_positive(x), tf.int32), [lambda: x * w, lambda: power(x, w), lambda: x])


def switch_case_in_cond(x):
    w = weight("w")
    return tf.cond(is_positive(x), lambda: switch_case(x * w) * w, lambda: x)


def cond_in_switch_case(x):
    w = weight("w")
    return tf.switch_case(tf.cast(is_positive(x), tf.int32), [lambda: x, lambda: branch_twice(x * w) * w])


def cond_in_cond(x):
    w = weight("w")
    return tf.cond(is_positive(x), lambda: branch_twice(tf.tanh(x * w)) * w, lambda: branch_twice(-x) * w)


def cond_in_while(x):
    return loop(3, branch_twice, x)


def while_in_while(x):
    w = weight("w")
    return loop(2, lambda y: loop(2, lambda z: tf.sin(z * w) * w, y) * w, x)


def while_in_cond(x):
    w = weight("w")
    return tf.cond(is_positive(x), lambda: loop(3, lambda y: tf.sin(y * w) + y, x), lambda: x * w)


def while_in_the_other_branch(x):
    w = weight("w")
    return tf.cond(is_positive(x), lambda: power(x, w), lambda: loop(2, lambda y: power(y, w), x))


def while_in_cond_in_cond(x):
    u, w = weight("u", 0.3), weight("w")
    return tf.cond(is_positive(x), lambda: while_in_cond(x * u) * w, lambda: power(x, w))


def while_in_cond_in_while(x):
    return loop(2, while_in_cond, x)


def while_in_switch_case_in_while(x):
    u, w = weight("u", 0.3), weight("w")

    def step(y):
        branches = [lambda: tf.sin(y) * u, lambda: loop(2, lambda z: z * w * u, y)]
        return tf.switch_case(tf.cast(is_positive(y), tf.int32), branches)

    return loop(2, step, x) * u


def of_another_cond(x):
    w = weight("w")
    h, g = tf.cond(is_positive(x), lambda: (power(x, w), tf.sin(w)), lambda: (x, w))
    return tf.cond(tf.reduce_sum(g) > 0.0, lambda: power(h, g) * w, lambda: h)


def second_order(x):
    w = weight("w")
    y = tf.cond(is_positive(x), lambda: power(x, w) * w, lambda: x * w)
    return tf.gradients(tf.reduce_sum(y), [w])[0] * w


def gradient_in_a_branch(x):
    w = weight("w")

    def gradient():
        return tf.gradients(tf.reduce_sum(power(x, w) * w), [w])[0] * w

    return tf.cond(is_positive(x), gradient, lambda: x)


def waits_in_a_branch(x):
    w, mean = weight("w"), weight("mean", 0.0, False)

    def normalised():
        h = power(x, w)
        with tf.control_dependencies([mean.assign_add(h)]):
            return h * w + tf.stop_gradient(mean.read_value())

    return tf.cond(is_positive(x), normalised, lambda: x - mean)


def written_between(x):
    w, state = weight("w"), weight("state", 2.0, False)

    def written():
        h = x * state.read_value() * w
        with tf.control_dependencies([h]):
            update = state.assign(tf.sin(h))
        with tf.control_dependencies([update]):
            return h * state.read_value() * w

    return tf.cond(is_positive(x), written, lambda: x)


def returned_operation(x):
    w, count = weight("w"), weight("count", 0.0, False)

    def counted():
        return power(x, w), tf.group(count.assign_add(power(x, w)))

    y, update = tf.cond(is_positive(x), counted, lambda: (x, tf.no_op()))
    with tf.control_dependencies([update]):
        return tf.identity(y)


def tensor_array_in_a_branch(x):
    w = weight("w")

    def unrolled():
        rows = tf.TensorArray(tf.float32, 2, element_shape=[3])
        rows = rows.write(0, power(x, w)).write(1, x * w)
        return tf.reduce_sum(rows.stack() * w, 0)

    return tf.cond(is_positive(x), unrolled, lambda: x)


def update_ops_in_a_branch(x):
    w, mean = weight("w"), weight("mean", 0.0, False)

    def updated():
        h = power(x, w)
        updates = [mean.assign_add(0.5 * (h - mean))]
        with tf.control_dependencies(updates):
            return h * w

    return tf.cond(is_positive(x), updated, lambda: x * w)


def normalised(x):
    image = tf.reshape(tf.concat([x, x * x, x + 1.0, x], 0), [3, 2, 2, 1])
    with v1.variable_scope("normal", use_resource=True):
        w = v1.get_variable("w", [2, 2, 1, 2], initializer=v1.glorot_uniform_initializer(1))
        scale = v1.get_variable("scale", [2], initializer=v1.ones_initializer())
        offset = v1.get_variable("offset", [2], initializer=v1.zeros_initializer())
        mean, variance = (v1.get_variable(n, [2], initializer=v1.ones_initializer(), trainable=False) for n in "mv")
    h = tf.nn.conv2d(image, w, 1, "SAME")

    def training():
        return v1.nn.fused_batch_norm(h, scale, offset)[0]

    def inference():
        return v1.nn.fused_batch_norm(h, scale, offset, mean, variance, is_training=False)[0]

    y = tf.cond(is_positive(x), training, inference)
    return tf.reduce_mean(tf.square(y - 1.0)) * tf.ones([3])


HELPERS = (weight, is_positive, power, loop)
NETS = [net for net in list(globals().values()) if callable(net) and net not in HELPERS]
