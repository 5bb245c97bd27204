"""What scopes write on the graph, and what running the graph makes of it."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.compiler.xla import xla_data_pb2
from tensorflow.python.eager import context
from tf_ipu_shim.ipu import ipu_compiler, scopes, sharding
from tf_ipu_shim.poplar.driver import backend_config_pb2

from tf_ipu_shim import plugin

pytestmark = pytest.mark.usefixtures("graph")

v1 = tf.compat.v1
IPU = "/device:IPU:0"


def frontend_attributes(op):
    serialised = op.get_attr(scopes.FRONTEND_ATTRIBUTES_NAME)
    return dict(xla_data_pb2.FrontendAttributes.FromString(serialised).map)


def run(fetched, feed=None):
    with v1.Session() as session:
        session.run(v1.global_variables_initializer())
        return session.run(fetched, feed)


def compiled(model, *values):
    """A compiled model, and the placeholders to feed."""
    fed = [v1.placeholder(np.asarray(value).dtype, np.shape(value)) for value in values]
    with scopes.ipu_scope(IPU):
        return ipu_compiler.compile(model, fed), dict(zip(fed, values))


def test_ipu_scope_places_and_marks():
    with scopes.ipu_scope(IPU):
        inside = tf.constant(1.0) + 2.0
        variable = v1.get_variable("v", [2])
    outside = tf.constant(1.0) + 2.0
    assert inside.op.device == variable.handle.op.device == IPU
    assert outside.op.device == ""
    assert inside.op.get_attr("_XlaCompile") is True
    assert inside.op.get_attr("_XlaSeparateCompiledGradients") is False
    assert inside.op.get_attr("_XlaScope") == b"jit_scope_ipu_0"
    assert not sharding.has_attr(outside.op, "_XlaCompile")


@pytest.mark.parametrize("device", ["IPU0", "/device:IPU:first", "/device:IPU:0:1"])
def test_what_names_no_device(device):
    with pytest.raises(ValueError, match=f"^ipu_scope takes a device such as '{IPU}', and was given '{device}'. "):
        with scopes.ipu_scope(device):
            pass
    assert v1.get_default_graph().get_operations() == [] and tf.constant(1.0).device == ""


def test_ipu_scope_ends_after_an_exception():
    with pytest.raises(KeyError), scopes.ipu_scope(IPU), scopes.ipu_shard(1):
        raise KeyError
    after = tf.constant(1.0) + 2.0
    assert after.op.device == "" and not sharding.has_attr(after.op, "_XlaSharding")
    with v1.variable_scope("reference", use_resource=False):
        assert not hasattr(v1.get_variable("v", [2]), "handle")


def test_ipu_jit_scope():
    with scopes.ipu_jit_scope("encoder"):
        assert (tf.constant(1.0) + 1.0).op.get_attr("_XlaScope") == b"jit_scope_ipu_encoder"


@pytest.mark.parametrize(("index", "expected"), [(0, [0]), (3, [3]), ([2], [2]), ({1}, [1]), (-1, [-1])])
def test_ipu_shard(index, expected):
    with scopes.ipu_shard(index):
        op = tf.constant(1.0).op
    assert sharding.get_sharding(op) == expected
    written = xla_data_pb2.OpSharding.FromString(op.get_attr("_XlaSharding"))
    assert written.type == xla_data_pb2.OpSharding.MAXIMAL


def test_the_inner_shard_counts():
    with scopes.ipu_shard(0):
        with scopes.ipu_shard(1):
            inner = tf.constant(1.0)
        outer = tf.constant(1.0)
    assert (sharding.get_sharding(inner.op), sharding.get_sharding(outer.op)) == ([1], [0])


@pytest.mark.parametrize("index", [[0, 1], [], (3, 2)])
def test_an_op_is_on_one_ipu(index):
    with pytest.raises(ValueError, match="ipu_shard was given the indices"), scopes.ipu_shard(index):
        pass


@pytest.mark.parametrize(("index", "error"), [(-2, ValueError), (None, TypeError), ("0", TypeError), (True, TypeError)])
def test_what_no_ipu_s_number_is(index, error):
    with pytest.raises(error, match=r"ipu_shard\("), scopes.ipu_shard(index):
        pass


def test_frontend_attributes_nest():
    with scopes.frontend_attribute("one", "1"):
        with scopes.frontend_attribute("two", "2"):
            both = tf.constant(1.0).op
        with scopes.frontend_attribute("one", "other"):
            changed = tf.constant(1.0).op
        first = tf.constant(1.0).op
    assert frontend_attributes(both) == {"one": "1", "two": "2"}
    assert frontend_attributes(changed) == {"one": "other"}
    assert frontend_attributes(first) == {"one": "1"}
    assert not sharding.has_attr(tf.constant(1.0).op, scopes.FRONTEND_ATTRIBUTES_NAME)


def test_frontend_attribute_restored_to_another_value():
    with scopes.frontend_attribute("one", "1", restore_to="after"):
        pass
    assert frontend_attributes(tf.constant(1.0).op) == {"one": "after"}


def test_stochastic_rounding():
    """The names are those of the compiler's attributes and of a choice with three states."""
    name = backend_config_pb2.FrontendAttributeId.Name(backend_config_pb2.FrontendAttributeId.STOCHASTIC_ROUNDING)
    with scopes.stochastic_rounding(True):
        with scopes.stochastic_rounding(False), scopes.frontend_attribute("one", "1"):
            assert frontend_attributes(tf.constant(1.0).op) == {name: "THREESTATE_OFF", "one": "1"}
        assert frontend_attributes(tf.constant(1.0).op) == {name: "THREESTATE_ON"}
    assert frontend_attributes(tf.constant(1.0).op) == {name: "THREESTATE_UNDEFINED"}


@pytest.mark.parametrize(("kind", "written"), [(tf.float16, "F16"), (tf.float32, "F32"), ("float32", "F32")])
def test_partials_type(kind, written):
    with scopes.partials_type(kind):
        assert frontend_attributes(tf.constant(1.0).op) == {"PARTIALS_TYPE": written}


def test_partials_of_other_types():
    with pytest.raises(ValueError, match="^Only support float16, float32, provided float64"):
        with scopes.partials_type(tf.float64):
            pass


def test_stochastic_rounding_is_on_or_off():
    with pytest.raises(TypeError, match="expected True or False"), scopes.stochastic_rounding("off"):
        pass


def test_scopes_do_nothing_to_eager_ops(ipus):
    ipus(1)
    with context.eager_mode():
        with scopes.ipu_scope(IPU), scopes.ipu_shard(1), scopes.frontend_attribute("a", "b"):
            value = tf.constant([1.0]) + 1.0
        assert value.numpy() == [2.0] and value.device.endswith("IPU:0")


def test_marked_programs_compute_the_same(ipus):
    ipus(2)

    def model(x):
        with scopes.frontend_attribute("one", "1"), scopes.partials_type(tf.float32), scopes.ipu_shard(1):
            return tf.matmul(x, x)

    value = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    result, feed = compiled(model, value)
    np.testing.assert_allclose(run(result, feed)[0], value @ value)


def test_outside_compilation_runs_on_the_host(ipus):
    ipus(2)

    def model(x):
        with scopes.ipu_shard(0):
            doubled = x * 2.0
        with scopes.outside_compilation_scope():
            text = tf.strings.as_string(doubled, precision=1)
            number = tf.strings.to_number(text) + 0.5
            number.set_shape(x.shape)
        with scopes.ipu_shard(1):
            return number * 10.0

    result, feed = compiled(model, np.array([1.0, 2.25], np.float32))
    library = plugin.load()
    library.reset_counters(0)
    np.testing.assert_allclose(run(result, feed)[0], [25.0, 50.0])
    # In and out of the device twice: with the program's argument and result, and with the ops on the host.
    assert library.host_to_device(0).bytes == library.device_to_host(0).bytes == 2 * 8
    assert library.exchange(0, 0, 1).transfers == 0


def test_outside_compilation_twice_in_one_program(ipus):
    ipus(1)
    seen = []

    def observe(value):
        seen.append(float(value))
        return value

    def model(x):
        for _ in range(2):
            x = x * 2.0
            with scopes.outside_compilation_scope():
                x = v1.py_func(observe, [x], tf.float32)
                x.set_shape([])
        return x + 1.0

    result, feed = compiled(model, np.float32(3.0))
    assert run(result, feed) == [13.0]
    assert seen == [6.0, 12.0]


def test_outside_compilation_needs_a_compiled_function():
    with pytest.raises(ValueError, match="only allowed in XLA context"), scopes.outside_compilation_scope():
        pass
    with scopes.ipu_scope(IPU):
        with pytest.raises(ValueError, match="only allowed in XLA context"), scopes.outside_compilation_scope():
            pass


def test_outside_compilation_scopes_do_not_nest():
    def model(x):
        with scopes.outside_compilation_scope(), scopes.outside_compilation_scope():
            return x

    with pytest.raises(ValueError, match="Illegal nesting of outside_compilation_scope"):
        compiled(model, 1.0)


def test_after_an_exception_outside_compilation_can_begin_again():
    def model(x):
        with pytest.raises(KeyError), scopes.outside_compilation_scope():
            raise KeyError
        with scopes.outside_compilation_scope():
            return x + 0.0

    result, _ = compiled(model, np.float32(1.0))
    assert len(result) == 1
