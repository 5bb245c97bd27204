"""Stand-ins have the shapes of what they stand for, and leave the function alone."""

import pytest
import tensorflow as tf

from tf_ipu_shim.machine.memory import Block, Value, smallest
from tf_ipu_shim.memory_model.computations.computations import ComputationClassifier
from tf_ipu_shim.memory_model.computations.compute_set_names import ComputeSetNames
from tf_ipu_shim.memory_model.computations.planner_options import PlannerOptions
from tf_ipu_shim.memory_model.computations.work import HloWork
from tf_ipu_shim.memory_model.hlo import compiler_ir
from tf_ipu_shim.memory_model.hlo.surrogate_ops import remove_extra_conversions, substitute_surrogates
from tf_ipu_shim.memory_model.walk.hlo_walk import HloAnalyzer, HloEnvironment

pytestmark = pytest.mark.one_version

ops = tf.raw_ops
SHAPE = (4, 6)


def everything(x):
    for function in (tf.exp, tf.math.log1p, tf.nn.relu, tf.nn.relu6, tf.math.rsqrt, tf.sigmoid, tf.sqrt, tf.tanh):
        x = function(x)
    x = ops.ReluGrad(gradients=x, features=x + 1)
    x = ops.Relu6Grad(gradients=x, features=x + 1)
    return x, ops.BiasAddGrad(out_backprop=x), ops.BiasAddGrad(out_backprop=tf.reshape(x, [2, 2, 6]))


def function_of(python_function):
    return tf.function(python_function).get_concrete_function(tf.TensorSpec(SHAPE)).function_def


def form_of(definition):
    return compiler_ir.shared().hlo(
        definition.signature.name, [definition], [compiler_ir.Argument(tf.float32.as_datatype_enum, SHAPE)]
    )


def work_of(definition):
    work = HloWork(form_of(definition))
    return work.count(), work.size


def planned(definition):
    """Result shapes and the largest step's bytes."""
    module = form_of(definition)
    block = Block("test")
    argument = block.add(Value(4 * SHAPE[0] * SHAPE[1], "x", "argument"))
    block.run("x", (), (argument,))
    reader = HloAnalyzer(module, block)
    block.results = reader.analyze([argument])
    return [result.shape for result in reader.results()], smallest(block).peak_bytes


def test_every_one_has_the_same_shape():
    definition = function_of(everything)
    replaced = substitute_surrogates(definition)
    assert not {"Exp", "Log1p", "Relu", "Relu6", "Rsqrt", "Sigmoid", "Sqrt", "Tanh", "ReluGrad", "BiasAddGrad"} & {
        node.op for node in replaced.node_def
    }
    assert planned(replaced)[0] == planned(definition)[0] == [(4, 6), (6,), (6,)]


def test_element_wise_ops_need_the_same_memory():
    definition = function_of(lambda x: tf.tanh(tf.nn.relu(x)) * tf.sigmoid(x))
    assert planned(substitute_surrogates(definition)) == planned(definition) == ([SHAPE], 2 * 4 * 24)


def test_so_do_those_that_a_profile_has_as_they_are():
    definition = function_of(lambda x: tf.abs(tf.floor(tf.math.expm1(x))) * tf.cos(tf.sign(tf.math.ceil(x))))
    replaced = substitute_surrogates(definition)
    assert {node.op for node in replaced.node_def} == {"Neg", "Mul", "Identity"}
    assert planned(replaced) == planned(definition) == ([SHAPE], 2 * 4 * 24)
    assert work_of(replaced) == work_of(definition)
    assert substitute_surrogates(definition, is_profiled=True) is definition


def test_all_of_many_results_are_renamed():
    definition = function_of(lambda x: [tf.nn.relu(x + float(number)) for number in range(40)])
    relus = [node.name for node in definition.node_def if node.op == "Relu"]
    for (result, _), relu in zip(sorted(definition.ret.items()), relus):  # as the stages of a pipeline give theirs
        definition.ret[result] = f"{relu}:activations:0"
    assert sorted(substitute_surrogates(definition).ret.values()) == sorted(f"{relu}:y:0" for relu in relus)


def test_the_function_itself_does_not_change():
    definition = function_of(everything)
    before = definition.SerializeToString(deterministic=True)
    substitute_surrogates(definition)
    assert definition.SerializeToString(deterministic=True) == before


def test_a_function_with_nothing_to_replace_is_returned():
    definition = function_of(lambda x: x * 2.0)
    assert substitute_surrogates(definition) is definition


def normalised(x, with_newer=False):
    image, ones = tf.reshape(x, [2, 2, 2, 3]), tf.ones([3])
    result = ops.FusedBatchNormV3(x=image, scale=ones, offset=ones, mean=ones, variance=ones)
    reserved = {f"reserve_space_{number}": getattr(result, f"reserve_space_{number}") for number in (1, 2, 3)}
    gradients = ops.FusedBatchNormGradV3(y_backprop=result.y, x=image, scale=ones, **reserved)
    kept = (result.reserve_space_3,) if with_newer else ()
    return (result.y, result.batch_mean, gradients.x_backprop, gradients.scale_backprop, *kept)


def test_batch_normalisation_has_the_same_program():
    definition = function_of(normalised)
    replaced = substitute_surrogates(definition)
    assert {node.op for node in replaced.node_def if "BatchNorm" in node.op} == {
        "FusedBatchNormV2",
        "FusedBatchNormGradV2",
    }
    assert planned(replaced) == planned(definition)
    assert planned(replaced)[0] == [(2, 2, 2, 3), (3,), (2, 2, 2, 3), (3,)]


def test_batch_normalization_stays_if_its_new_result_is_used():
    definition = function_of(lambda x: normalised(x, with_newer=True))
    assert "FusedBatchNormV3" in {node.op for node in substitute_surrogates(definition).node_def}


def test_batch_normalisation_counts_as_the_same_work():
    definition = function_of(normalised)
    assert work_of(substitute_surrogates(definition)) == work_of(definition)


def profiled(module, definition):
    """What each step of a program takes, gives and computes."""
    block = Block("test")
    argument = block.add(Value(4 * SHAPE[0] * SHAPE[1], "x", "argument"))
    instructions = ComputationClassifier(module, [definition], ComputeSetNames(), PlannerOptions(), 0)
    HloAnalyzer(module, block, HloEnvironment(classifier=instructions)).analyze([argument])
    values = [block.values[number]._replace(of=()) for step in block.steps for number in (*step.inputs, *step.outputs)]
    return [(step.owner, len(step.inputs), step.work) for step in block.steps], values


def halved(x):
    image, ones = tf.cast(tf.reshape(x, [2, 2, 2, 3]), tf.float16), tf.ones([3])
    return ops.FusedBatchNormV3(x=image, scale=ones, offset=ones, mean=ones, variance=ones, is_training=False).y


@pytest.mark.parametrize(("function", "converts_nothing"), [(normalised, True), (halved, False)])
def test_a_profile_has_batch_normalisation_as_it_is(function, converts_nothing):
    definition = function_of(function)
    replaced = substitute_surrogates(definition, is_profiled=True)
    form, expected = form_of(replaced), profiled(form_of(definition), definition)
    assert (profiled(form, definition) != expected) == converts_nothing
    remove_extra_conversions(form)
    assert profiled(form, definition) == expected
