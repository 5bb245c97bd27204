"""Side effects in bodies of `loops.repeat` whose results nobody takes, against stock TensorFlow's loops."""

import numpy as np
import pytest
import tensorflow as tf
from soak.legacy_graphs import control_flow, stock_repeat
from tensorflow.python import ipu

v1 = tf.compat.v1
EFFECTS = {
    "plain": lambda add, y: add(y),
    "cond": lambda add, y: tf.cond(tf.reduce_sum(y) > 0.0, lambda: add(y), lambda: add(-y)),
    "call": lambda add, y: tf.function(lambda x: add(x) * 2.0, autograph=False)(y),
    "waited for": lambda add, y: [add(y)],
}


def total(compile_program, repeat, effect, in_branch):
    """The variable to which the loop adds, after a run."""
    with tf.Graph().as_default(), v1.Session() as session:
        with v1.variable_scope("net", use_resource=True):
            variable = v1.get_variable("total", [2], initializer=v1.zeros_initializer())

        def body(y):
            with tf.control_dependencies(EFFECTS[effect](variable.assign_add, y) if effect == "waited for" else []):
                if effect != "waited for":
                    EFFECTS[effect](variable.assign_add, y)
                return tf.identity(y * 2.0)

        def program(x):
            if not in_branch:
                return repeat(3, body, x)
            return tf.switch_case(tf.cast(x[0], tf.int32), [lambda: x, lambda: repeat(3, body, x)])

        results = compile_program(program, [tf.constant([1.0, 2.0])])
        session.run(v1.global_variables_initializer())
        session.run(results)
        return session.run(variable)


def on_ipu(program, inputs):
    with ipu.scopes.ipu_scope("/device:IPU:0"):
        return ipu.ipu_compiler.compile(program, inputs)


@pytest.mark.parametrize("in_branch", [False, True], ids=["top", "switch_case"])
@pytest.mark.parametrize("use_while_v1", [False, True])
@pytest.mark.parametrize("effect", EFFECTS)
def test_repeat_has_the_side_effects_of_stock_loops(ipus, effect, use_while_v1, in_branch):
    ipus(1)

    def repeat(n, body, x):
        return ipu.loops.repeat(n, body, [x], use_while_v1=use_while_v1)

    def stock(n, body, x):
        return stock_repeat(n, body, x, use_while_v1)

    with control_flow(False):
        wanted = total(tf.xla.experimental.compile, stock, effect, in_branch)
        np.testing.assert_allclose(total(on_ipu, repeat, effect, in_branch), wanted)
    assert np.any(wanted) or (use_while_v1 and not in_branch)
