"""Lists of tensors that loops and calls hand on: what is said of them beside what they are when the function runs."""

import collections

import numpy as np
import pytest
import tensorflow as tf
from harness import configure_for_plans
from tf_ipu_shim.ipu import ipu_strategy
from tf_ipu_shim.ipu.config import reset_ipu_configuration

from tf_ipu_shim import ipu, keras2, memory_report
from tf_ipu_shim.compiler.ir.op_types import output_names
from tf_ipu_shim.compiler.ir.tensor_lists import ListContents
from tf_ipu_shim.cycle_model import timeline_of
from tf_ipu_shim.machine.chips import CHIPS
from tf_ipu_shim.memory_model.shapes.shape_inference import TensorSpec, bytes_of
from tf_ipu_shim.memory_model.shapes.tensor_lists import forwarded_inputs, infer
from tf_ipu_shim.runtime import captured_programs

keras = keras2.public_module()
FLOAT, INT, LIST = (kind.as_datatype_enum for kind in (tf.float32, tf.int32, tf.variant))


def known_of(function, *arguments):
    """What is known of all tensors of a traced function, and its nodes by name."""
    traced = tf.function(function, autograph=False).get_concrete_function(*arguments)
    definition = traced.function_def
    library = {one.signature.name: one for one in traced.graph.as_graph_def().library.function}
    given = [TensorSpec(one.dtype.as_datatype_enum, tuple(one.shape)) for one in traced.inputs]
    names = [argument.name for argument in definition.signature.input_arg]
    found = infer(definition.node_def, dict(zip(names, given)), library)
    return found, {node.name: node for node in definition.node_def}, library, traced


def scanned(x):
    """A loop that puts the square of each row into a list, and what is stacked of it."""
    squares = tf.TensorArray(tf.float32, size=x.shape[0])
    _, squares = tf.while_loop(
        lambda i, _: i < x.shape[0], lambda i, made: (i + 1, made.write(i, x[i] * x[i])), [0, squares]
    )
    return squares.stack()


def test_what_is_put_in_is_known_where_it_is_taken_out():
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    found, nodes, _, traced = known_of(scanned, x)
    stacked = next(name for name, node in nodes.items() if node.op == "TensorListStack")
    assert found[f"{stacked}:tensor:0"] == TensorSpec(FLOAT, (4, 3))
    np.testing.assert_array_equal(traced(tf.constant(x)), x * x)  # and so it is
    loop = next(node for node in nodes.values() if "While" in node.op)
    lists = [found[name].listed for name in output_names(loop) if found[name].type == LIST]
    assert ListContents(4, FLOAT, (3,)) in lists
    assert bytes_of(TensorSpec(LIST, (), listed=ListContents(4, FLOAT, (3,)))) == 4 * 3 * 4


def test_lists_of_a_gradient():
    def gradient(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(scanned(tf.tanh(x)))
        return tape.gradient(loss, x)

    x = tf.constant(np.linspace(-1, 1, 10, dtype=np.float32).reshape(5, 2))
    found, nodes, _, traced = known_of(gradient, x)
    loops = [node for node in nodes.values() if "While" in node.op]
    lists = [found[name].listed for loop in loops for name in output_names(loop) if found[name].type == LIST]
    assert len(loops) == 2 and ListContents(5, FLOAT, (2,)) in lists
    # TensorFlow alone knows the shape of each result too: they come from arguments.
    assert all(found[text].shape == tuple(traced.outputs[0].shape) for text in traced.function_def.ret.values())


@pytest.mark.parametrize("push", [True, False])
def test_each_way_into_a_list(push):
    def function(x):
        made = tf.raw_ops.EmptyTensorList(element_shape=tf.constant(-1), max_num_elements=6, element_dtype=tf.float32)
        if push:
            made = tf.raw_ops.TensorListPushBack(input_handle=made, tensor=x)
        else:
            made = tf.raw_ops.TensorListFromTensor(tensor=tf.stack([x] * 6), element_shape=tf.constant(-1))
        rest, last = tf.raw_ops.TensorListPopBack(
            input_handle=made, element_shape=tf.constant(-1), element_dtype=tf.float32
        )
        return tf.tanh(last), tf.raw_ops.TensorListLength(input_handle=rest)

    found, nodes, _, _ = known_of(function, tf.zeros([2, 7]))
    popped = next(name for name, node in nodes.items() if node.op == "TensorListPopBack")
    assert found[f"{popped}:output_handle:0"].listed == ListContents(6, FLOAT, (2, 7))
    assert found[f"{popped}:tensor:0"] == TensorSpec(FLOAT, (2, 7)) and found["Tanh:y:0"].shape == (2, 7)


def test_what_cannot_be_told_is_not():
    def function(x, size):
        return tf.raw_ops.TensorListReserve(element_shape=tf.constant([3]), num_elements=size, element_dtype=tf.float32)

    found, nodes, _, _ = known_of(function, tf.zeros([3]), tf.constant(4))
    (made,) = (found[output_names(node)[0]] for node in nodes.values() if node.op == "TensorListReserve")
    assert made.listed == ListContents(None, FLOAT, (3,)) and bytes_of(made) == 0


def test_what_is_handed_back():
    def called(x, y, z):
        count, kept, _ = tf.while_loop(lambda i, *_: i < 3, lambda i, a, b: (i + 1, a, b + a), [0, tf.identity(y), z])
        return kept, x + z, count, x

    function = tf.function(called, autograph=False)
    _, nodes, library, _ = known_of(lambda x, y, z: function(x, y, z), *[tf.zeros([2])] * 3)
    (call,) = (node for node in nodes.values() if "PartitionedCall" in node.op)
    assert forwarded_inputs(call, library) == {0: 1, 3: 0}


@pytest.mark.parametrize("layer", ["LSTM", "PopnnLSTM"])
def test_a_recurrent_layer_in_a_stage(layer):
    """What its gradient takes: its weights are no part of what is kept for each mini-batch."""
    steps, rows, features, units = 50, 40, 3, 60
    configure_for_plans(2)
    with ipu_strategy.IPUStrategy().scope():
        made = ipu.keras.layers.PopnnLSTM(units) if layer == "PopnnLSTM" else keras.layers.LSTM(units)
        model = keras.Sequential([keras.Input((steps, features), rows), made, keras.layers.Dense(2)])
        model.set_pipeline_stage_assignment([0, 1])
        model.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
        model.compile("sgd", "mse", steps_per_execution=4)
        x, y = np.ones((4 * rows, steps, features), np.float32), np.ones((4 * rows, 2), np.float32)
        model.fit(x, y, batch_size=rows, verbose=0)
    (plan,) = memory_report().devices[0].programs
    assert plan.coarse == ()
    (fifo,) = [owner for owner in plan.ipus[0].owners if owner.kind == "fifo"]
    # Of each time step four gates, the cell's state, its tanh and the output before it.
    state, inputs = steps * rows * units * 4, steps * rows * features * 4
    # Keras' layer multiplies inputs in the loop, the other one before it.
    kept = 7 * state + (inputs + 4 * state if layer == "PopnnLSTM" else 2 * inputs)
    assert fifo.bytes == pytest.approx(2 * kept, rel=0.02)
    reset_ipu_configuration()


def test_a_loop_in_a_stage_counts_as_in_one_program():
    """The same steps, one beside the other: as many products of the same shape, as often."""

    def products(stages):
        configure_for_plans(len(set(stages)))
        captured_programs.begin()
        with ipu_strategy.IPUStrategy().scope():
            model = keras.Sequential([keras.Input((5, 3), 4), keras.layers.LSTM(6), keras.layers.Dense(2)])
            if len(set(stages)) > 1:
                model.set_pipeline_stage_assignment(stages)
                model.set_pipelining_options(gradient_accumulation_steps_per_replica=4)
            model.compile("sgd", "mse", steps_per_execution=4)
            model.fit(np.ones((16, 5, 3), np.float32), np.ones((16, 2), np.float32), batch_size=4, verbose=0)
        (program,) = captured_programs.end()
        reset_ipu_configuration()
        return collections.Counter(products_of(program))

    assert products([0, 1]) == products([0, 0])


def products_of(program):
    """Multiplications of each product's shape, however it is turned, all iterations together."""

    def walk(entries, times):
        for entry in entries:
            if entry.computation is None:
                yield from walk(entry.children, times * (entry.times if entry.kind == "loop" else 1))
            elif entry.computation.kind == "product":
                yield from [tuple(sorted(entry.computation.sizes[:4]))] * round(times)

    return walk(timeline_of(program.blocks, CHIPS["gc200"], program.ipus).entries, 1)
