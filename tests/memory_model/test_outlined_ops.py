"""Ops that XLA's form is made of slowly are made once, and the form stays what it is."""

import pytest
import tensorflow as tf

from tf_ipu_shim.machine.memory import Block, Value, smallest
from tf_ipu_shim.memory_model.computations.work import HloWork
from tf_ipu_shim.memory_model.hlo import compiler_ir
from tf_ipu_shim.memory_model.hlo.outlined_ops import inline, outline
from tf_ipu_shim.memory_model.walk.hlo_walk import HloAnalyzer

pytestmark = pytest.mark.one_version

SHAPE = (3, 4, 4)


def products(x, w):
    first = tf.einsum("abc,cd->abd", x, w)
    second = tf.einsum("abc,cd->abd", tf.nn.softmax(first), w)
    third = tf.einsum("abc,adc->adb", second, first)
    return tf.einsum("abc,adc->adb", tf.nn.softmax(third), x) + tf.einsum("abc->bca", x)[:3, :, :1]


def in_a_loop(x, w):
    return tf.while_loop(lambda n, y: n < 5, lambda n, y: (n + 1, products(y, w)), (0, x))[1]


def form_of(python_function):
    """XLA's form of a function, and what is made of that with calls; None where it cannot be told what they are."""
    specs = [tf.TensorSpec(SHAPE), tf.TensorSpec((4, 4))]
    concrete = tf.function(python_function).get_concrete_function(*specs)
    library = [concrete.function_def, *concrete.graph.as_graph_def().library.function]
    arguments = [compiler_ir.Argument(tf.float32.as_datatype_enum, tuple(spec.shape)) for spec in specs]
    name, ir = concrete.function_def.signature.name, compiler_ir.shared()
    plain, calling = ir.hlo(name, library, arguments), outline(library)
    if calling is None:
        return plain, None
    form = ir.hlo(name, calling.functions, arguments)
    assert any(one.opcode == "call" for computation in form.computations for one in computation.instructions)
    return plain, form if inline(form, calling.ops) else None


def steps_of(block):
    return [
        (step.owner, step.inputs, [block.values[number] for number in step.outputs], list(map(steps_of, step.inside)))
        for step in block.steps
    ]


def planned(module):
    block = Block("test")
    given = [block.add(Value(4 * size, name, "argument")) for name, size in (("x", 48), ("w", 16))]
    block.run("given", (), given)
    block.results = HloAnalyzer(module, block).analyze(given)
    return smallest(block).peak_bytes, HloWork(module).size, HloWork(module).count(), steps_of(block)


@pytest.mark.parametrize("function", [products, in_a_loop])
def test_the_form_is_that_without_calls(function):
    plain, calling = form_of(function)
    assert planned(calling) == planned(plain)


def test_nothing_is_called_that_is_there_once():
    def function(x, w):
        return tf.nn.softmax(tf.einsum("abc,cd->abd", x, w))

    assert (
        outline([tf.function(function).get_concrete_function(tf.zeros(SHAPE), tf.zeros((4, 4))).function_def]) is None
    )


def test_a_call_that_takes_a_constant_cannot_be_told():
    def function(x, w):
        return x[0, 0] + tf.einsum("ab,bc->ac", tf.ones([4, 4]), -w) + tf.einsum("ab,bc->ac", w, w)

    assert form_of(function)[1] is None


def test_the_functions_stay_as_they_are():
    definition = tf.function(products).get_concrete_function(tf.zeros(SHAPE), tf.zeros((4, 4))).function_def
    before = definition.SerializeToString(deterministic=True)
    outline([definition])
    assert definition.SerializeToString(deterministic=True) == before
