"""Models exported for serving: what comes out, by the function that an export gives and by what is loaded again."""

import os

import numpy as np
import pytest
import tensorflow as tf
from tf_ipu_shim.ipu import ipu_strategy, scopes, serving
from tf_ipu_shim.ipu.ops import pipelining_ops, replication_ops

from tf_ipu_shim import errors, plugin
from tf_ipu_shim.frontend.serving import argument_order

v1 = tf.compat.v1
SPEC = tf.TensorSpec([3], tf.float32, name="x")
DATA = np.array([1.0, -2.0, 3.0], "f")


@pytest.fixture(autouse=True)
def two_ipus(ipus):
    ipus(2)


@pytest.fixture
def directory(tmp_path):
    return str(tmp_path / "model")


def signature_of(directory):
    return tf.saved_model.load(directory).signatures["serving_default"]


def programs_run():
    return plugin.load().programs_run(0)


def double(x):
    return 2.0 * x


@pytest.mark.parametrize("decorated", [False, True])
def test_a_function_comes_back(directory, decorated):
    weight = tf.Variable([1.0, 2.0, 3.0])

    def model(x):
        return x * weight, tf.reduce_sum(x)

    run = serving.export_single_step(
        tf.function(model) if decorated else model, directory, 16, [SPEC], output_names=["scaled", "total"]
    )
    weight.assign([0.0, 0.0, 0.0])  # what was written has the values of then
    served = signature_of(directory)
    before = programs_run()
    for outputs in (run(DATA), served(x=tf.constant(DATA))):
        np.testing.assert_allclose(outputs["scaled"], DATA * [1, 2, 3])
        np.testing.assert_allclose(outputs["total"], DATA.sum())
    assert programs_run() - before == 2, "both ran on the IPU"
    assert len(tf.saved_model.load(directory).variables_on_ipus) == 1


def test_a_strategy_runs_what_is_loaded(directory):
    run = serving.export_single_step(double, directory, 16, [SPEC])
    strategy = ipu_strategy.IPUStrategy()
    with strategy.scope():
        served = signature_of(directory)
        by_name = strategy.run(served, kwargs={served.inputs[0].name.partition(":")[0]: tf.constant(DATA)})
        in_order = strategy.run(run, args=[tf.constant(DATA)])
    np.testing.assert_allclose(by_name["output_0"], 2 * DATA)
    np.testing.assert_allclose(in_order[0], 2 * DATA)


def test_steps_on_the_host_may_do_what_no_ipu_can(directory):
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["graph", "core"], [1.0, 2.0]), -1.0)
    shared = tf.Variable(4.0)

    @tf.function
    def parse(words):
        return table.lookup(words) * shared

    def label(x):
        return tf.strings.as_string(tf.cast(x / shared, tf.int32))

    run = serving.export_single_step(
        lambda x: x * shared,
        directory,
        16,
        [SPEC],
        preprocessing_step=parse,
        preprocessing_step_signature=[tf.TensorSpec([3], tf.string, name="words")],
        postprocessing_step=label,
        postprocessing_step_signature=[SPEC],
    )
    words = tf.constant(["core", "graph", "other"])
    assert run(words)[0].numpy().tolist() == [b"8", b"4", b"-4"]
    with ipu_strategy.IPUStrategy().scope():
        assert signature_of(directory)(words=words)["output_0"].numpy().tolist() == [b"8", b"4", b"-4"]


def branching(x):
    if tf.reduce_sum(x) > 100.0:
        return x
    return x + 1.0


def test_python_control_flow_is_converted(directory):
    run = serving.export_single_step(branching, directory, 16, [SPEC])
    np.testing.assert_allclose(run(DATA)[0], DATA + 1)
    np.testing.assert_allclose(run(100 * DATA)[0], 100 * DATA)


def feeds_of(kind):
    """The arguments that give the signature, one a way."""
    if kind == "argument":
        return {"predict_step_signature": [tf.TensorSpec([3], tf.float32), tf.TensorSpec([], tf.float32)]}
    if kind == "release 2.6":
        return {"input_signature": (tf.TensorSpec([3], tf.float32), tf.TensorSpec([], tf.float32))}
    if kind == "dataset":
        return {"input_dataset": tf.data.Dataset.from_tensors((tf.zeros([3]), tf.zeros([])))}
    return {"input_dataset": tf.data.Dataset.from_tensors({"right": tf.zeros([]), "left": tf.zeros([3])})}


@pytest.mark.parametrize("kind", ["argument", "release 2.6", "dataset", "dictionary"])
def test_the_signature_of_a_request(directory, kind):
    def product(left, right):
        return left * right

    run = serving.export_single_step(product, directory, 16, **feeds_of(kind))
    np.testing.assert_allclose(run(DATA, 2.0)[0], 2 * DATA)
    outputs = signature_of(directory)(left=tf.constant(DATA), right=tf.constant(2.0))
    np.testing.assert_allclose(outputs["output_0"], 2 * DATA)


def test_a_functions_own_signature(directory):
    @tf.function(input_signature=[SPEC])
    def model(anything):
        return anything - 1.0

    run = serving.export_single_step(model, directory, 16)
    np.testing.assert_allclose(run(DATA)[0], DATA - 1)
    assert [spec.name for spec in run.input_signature] == ["x"], "a spec's own name counts before the argument's"


def test_a_pipeline(directory):
    weight = tf.Variable(3.0)

    def first(constant, x):
        return constant * x * weight, x

    @tf.function
    def second(scaled, x):
        return {"sum": scaled + x * weight}

    run = serving.export_pipeline(
        [first, second],
        directory,
        16,
        inputs=[np.float32(2)],
        device_mapping=[1, 0],
        predict_step_signature=[tf.TensorSpec([], tf.float32), SPEC],
        preprocessing_step=lambda x: tf.abs(x),
        preprocessing_step_signature=[SPEC],
        output_names="y",
    )
    counters = plugin.load()
    before = counters.exchange(0, 1, 0).bytes
    np.testing.assert_allclose(run(DATA)["y"], 9 * np.abs(DATA))
    np.testing.assert_allclose(signature_of(directory)(x=tf.constant(DATA))["y"], 9 * np.abs(DATA))
    assert counters.exchange(0, 1, 0).bytes > before, "the second stage is on the other IPU"


def export_in_a_graph(directory, **options):
    """A model with a variable in each step; the table and the multiplier of the first are 1, 2 and 4."""

    def parse(words):
        weight = v1.get_variable("parsing", initializer=4.0)
        initializer = tf.lookup.KeyValueTensorInitializer(["graph", "core"], [1.0, 2.0])
        return tf.lookup.StaticHashTable(initializer, 0.0).lookup(words) * weight

    def model(x):
        return x * v1.Variable(np.float32(3.0)), x

    def after(product, x):
        return product - v1.Variable(1.0), x

    return serving.export_single_step(
        model,
        directory,
        16,
        [SPEC],
        preprocessing_step=parse,
        preprocessing_step_signature=[tf.TensorSpec([3], tf.string)],
        postprocessing_step=after,
        postprocessing_step_signature=[SPEC, SPEC],
        **options,
    )


def initialize(session):
    session.run(v1.global_variables_initializer())


WORDS = ["core", "graph", "none"]


def test_in_tensorflow_1_variables_become_constants(directory, graph):
    run = export_in_a_graph(directory, variable_initializer=initialize)
    words = v1.placeholder(tf.string, [3])
    outputs = run(words)
    before = programs_run()
    with v1.Session() as session:
        session.run(v1.tables_initializer())
        first, second = session.run(outputs, {words: WORDS})
    np.testing.assert_allclose(first, [23, 11, -1])
    np.testing.assert_allclose(second, [8, 4, 0])
    assert programs_run() - before == 1
    with tf.Graph().as_default(), v1.Session() as session:
        signature = v1.saved_model.load(session, ["serve"], directory).signature_def["serving_default"]
        assert signature.inputs["words"].name == "words:0"
        loaded = session.run(signature.outputs["output_0"].name, {"words:0": WORDS})
    np.testing.assert_allclose(loaded, [23, 11, -1])


def test_a_model_of_tensorflow_1_under_a_strategy(directory):
    with tf.Graph().as_default():
        export_in_a_graph(directory, variable_initializer=initialize)
    strategy = ipu_strategy.IPUStrategy()
    with strategy.scope():
        outputs = strategy.run(signature_of(directory), kwargs={"words": tf.constant(WORDS)})
    np.testing.assert_allclose(outputs["output_0"], [23, 11, -1])


def test_the_steps_on_the_host_are_restored_from_a_checkpoint(directory, graph, tmp_path):
    with tf.Graph().as_default(), v1.Session() as session:
        parsing, other = v1.get_variable("parsing", initializer=10.0), v1.Variable(2.0)
        initialize(session)
        v1.train.Saver([parsing, other]).save(session, str(tmp_path / "checkpoints" / "last"))
    run = export_in_a_graph(
        directory, variable_initializer=initialize, checkpoint_restore_dir=str(tmp_path / "checkpoints")
    )
    outputs = run(tf.constant(WORDS))
    with v1.Session() as session:
        session.run(v1.tables_initializer())
        np.testing.assert_allclose(session.run(outputs)[0], [58, 28, -2])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match='passed as "checkpoint_restore_dir" param is empty'):
        export_in_a_graph(
            directory,
            variable_initializer=initialize,
            checkpoint_restore_dir=str(tmp_path / "empty"),
            purge_export_dir=True,
        )


def test_variables_that_nothing_initialises(directory, graph):
    with pytest.raises(TypeError, match="variable_initializer must be a function, not int"):
        export_in_a_graph(directory, variable_initializer=3)
    with pytest.raises(ValueError, match="variables of `predict_step` are not initialised: Variable. Give"):
        export_in_a_graph(directory)


def test_a_directory_with_something_in_it(directory):
    serving.export_single_step(double, directory, 16, [SPEC])
    with pytest.raises(ValueError, match='Directory ".*model" is not empty. Please specify'):
        serving.export_single_step(double, directory, 16, [SPEC])
    with pytest.raises(ValueError, match="is not empty"):
        serving.export_pipeline([double, double], directory, 16, predict_step_signature=[SPEC])
    with pytest.raises(ValueError, match="returned nothing"):
        serving.export_single_step(lambda x: [], directory, 16, [SPEC], purge_export_dir=True)
    assert os.listdir(directory), "what cannot be exported leaves what is there"
    run = serving.export_single_step(lambda x: x, directory, 16, [SPEC], purge_export_dir=True)
    np.testing.assert_allclose(run(DATA)[0], DATA)
    np.testing.assert_allclose(signature_of(directory)(x=tf.constant(DATA))["output_0"], DATA)


MATRIX = tf.TensorSpec([3, 3], tf.float32)
DATASET = tf.data.Dataset.from_tensors(tf.zeros([3]))


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({}, ValueError, "`input_signature` deduction from given `predict_step` is not possible"),
        ({"predict_step": tf.function(double)}, ValueError, "Empty `input_signature` inside provided tf.function"),
        ({"predict_step": 3, "predict_step_signature": [SPEC]}, TypeError, "predict_step must be a function, not int"),
        ({"predict_step_signature": SPEC}, TypeError, "`predict_step_signature` must be an instance of tuple or list"),
        ({"predict_step_signature": []}, ValueError, "`predict_step_signature` must be not empty"),
        ({"predict_step_signature": [3]}, TypeError, r"`predict_step_signature\[0\]` is not an instance of TensorSpec"),
        ({"predict_step_signature": [SPEC, MATRIX]}, ValueError, "Length of input_signature does not match the number"),
        (
            {"predict_step_signature": [SPEC], "input_dataset": DATASET},
            ValueError,
            "Both `predict_step_signature` and `input_dataset` cannot be provided",
        ),
        ({"input_dataset": [1.0]}, TypeError, "If `input_dataset` is provided, it should be an instance of"),
        (
            {"predict_step_signature": [SPEC], "input_signature": [SPEC]},
            ValueError,
            "Pass only predict_step_signature",
        ),
        ({"predict_step_signature": [SPEC], "output_names": ("y",)}, TypeError, "output_names must be either a string"),
        (
            {"predict_step_signature": [SPEC], "output_names": ["y", "z"]},
            ValueError,
            "Length of output_names does not match the number of outputs of `predict_step`",
        ),
        (
            {"predict_step": lambda x: (x, x), "predict_step_signature": [SPEC], "output_names": ["y", "y"]},
            ValueError,
            "output_names must be different from each other",
        ),
        ({"predict_step_signature": [SPEC], "iterations": 0}, ValueError, "iterations must be an integer of at least"),
        (
            {"predict_step_signature": [SPEC], "iterations": None},
            ValueError,
            "iterations must be an integer.* not None",
        ),
        ({"export_dir": None}, TypeError, "export_dir must be the path of a directory, not None"),
        ({"export_dir": ""}, ValueError, "export_dir is an empty path"),
        (
            {"predict_step_signature": [SPEC], "preprocessing_step": 3, "preprocessing_step_signature": [SPEC]},
            TypeError,
            "preprocessing_step must be a function, not int",
        ),
        (
            {"input_dataset": tf.data.Dataset.from_tensors(tf.ragged.constant([[1.0], [2.0, 3.0]]))},
            TypeError,
            "must consist of dense tensors, but have a RaggedTensor",
        ),
        (
            {"predict_step": lambda x: (x, None), "predict_step_signature": [SPEC]},
            ValueError,
            "`predict_step` returned value at position 1 it is not a Tensor",
        ),
        (
            {"predict_step": lambda x: [], "predict_step_signature": [SPEC]},
            ValueError,
            "predict_step` returned nothing",
        ),
        (
            {"predict_step_signature": [SPEC], "preprocessing_step": double},
            ValueError,
            "deduction from given `preprocessing_step` is not",
        ),
        (
            {
                "predict_step_signature": [SPEC],
                "preprocessing_step": double,
                "preprocessing_step_signature": [SPEC],
                "input_dataset": DATASET,
            },
            ValueError,
            "Both `preprocessing_step_signature` and `input_dataset` cannot be provided",
        ),
        (
            {
                "predict_step_signature": [SPEC],
                "preprocessing_step": lambda x: (x, x),
                "preprocessing_step_signature": [SPEC],
            },
            ValueError,
            "of the `preprocessing_step` outputs does not match the number of the `predict_step` inputs: 2 and 1",
        ),
        (
            {
                "predict_step_signature": [SPEC],
                "postprocessing_step": double,
                "postprocessing_step_signature": [MATRIX],
            },
            ValueError,
            r"`predict_step` returned Tensor at postion 0 does not match .* float32\(3,\) and float32\(3, 3\)",
        ),
        (
            {"predict_step_signature": [SPEC], "variable_initializer": initialize},
            ValueError,
            "variable_initializer is only for graphs of TensorFlow 1",
        ),
    ],
)
def test_errors(directory, arguments, error, match):
    given = {"predict_step": double, "export_dir": directory, "iterations": 16, **arguments}
    with pytest.raises(error, match=match):
        serving.export_single_step(**given)


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"computational_stages": [double]}, ValueError, "Pipeline requires at least two computational stages"),
        ({"device_mapping": [0]}, ValueError, "Each stage must be mapped to an IPU"),
        ({"pipeline_schedule": "grouped"}, TypeError, "not a member of PipelineSchedule"),
        ({"inputs": 3.0}, TypeError, "inputs must be a list or a tuple of values for the first stage, not 3.0"),
        ({"name": 3}, TypeError, "name must be a string, not 3"),
        ({"iterations": None}, ValueError, "iterations must be an integer of at least 1, not None"),
        ({"poplar_options": [{}]}, ValueError, "poplar_options must be a list or a tuple of 2 options"),
        (
            {"iterations": 3, "pipeline_schedule": pipelining_ops.PipelineSchedule.Grouped},
            ValueError,
            "2 stages and the schedule Grouped runs a multiple of 2 mini-batches, and iterations is 3",
        ),
    ],
)
def test_errors_of_pipelines(directory, arguments, error, match):
    given = {"computational_stages": [double, double], "iterations": 16, **arguments}
    with pytest.raises(error, match=match):
        serving.export_pipeline(export_dir=directory, predict_step_signature=[SPEC], **given)


def test_what_tensorflow_serving_could_not_run_is_refused(directory):
    def model(x):
        return x * tf.cast(replication_ops.replication_index(), tf.float32)

    with pytest.raises(errors.UnsupportedError, match="uses ReplicationIndex .* cannot be exported for serving"):
        serving.export_single_step(model, directory, 16, [SPEC])
    assert not os.path.exists(directory)


@pytest.mark.parametrize("call", [tf.numpy_function, tf.py_function])
def test_python_functions_are_refused(directory, call):
    def sines(x):
        return tf.ensure_shape(call(np.sin, [x], tf.float32), [3])

    with pytest.raises(errors.UnsupportedError, match="Python function .* another process does not have"):
        serving.export_single_step(
            double, directory, 16, [SPEC], preprocessing_step=sines, preprocessing_step_signature=[SPEC]
        )


def test_marks_of_shards_are_kept(directory):
    def model(x):
        with scopes.ipu_shard(1):
            y = x * x
        with scopes.ipu_shard(0):
            return y + 1.0

    run = serving.export_single_step(model, directory, 16, [SPEC])
    before = plugin.load().exchange(0, 1, 0).bytes
    np.testing.assert_allclose(run(DATA)[0], DATA**2 + 1)
    assert plugin.load().exchange(0, 1, 0).bytes - before == DATA.nbytes


@pytest.mark.parametrize("named", [{}, {"iterations": 16}])
def test_a_pipeline_with_a_depth(directory, named):
    """SDK 2.5 has the depth before `iterations`."""
    stages = [lambda a, x: a * x + 4.0, lambda y: y - 6.0]
    run = serving.export_pipeline(
        stages,
        directory,
        2,
        *([] if named else [16]),
        inputs=[42.0],
        device_mapping=[0, 0],
        input_signature=[tf.TensorSpec([]), SPEC],
        **named,
    )
    np.testing.assert_allclose(run(DATA)[0], 42 * DATA - 2, rtol=1e-6)


def test_a_depth_is_checked(directory):
    for depth, error, match in [(3, ValueError, "runs a multiple of 2"), (0, ValueError, "pipeline_depth")]:
        with pytest.raises(error, match=match):
            serving.export_pipeline([double, double], directory, depth, 16, predict_step_signature=[SPEC])
    with pytest.raises(TypeError, match="multiple values for argument 'pipeline_depth'"):
        serving.export_pipeline([double, double], directory, 2, 16, pipeline_depth=2)


def test_both_orders_of_positional_arguments():
    def export(step, directory, output_names=None, preprocessing_step=None, *more, **named):
        return {"output_names": output_names, "preprocessing_step": preprocessing_step, "more": more, **named}

    either = argument_order.accept_either_order(before=2)(export)
    start, step, signature = (lambda session: None), (lambda x: x), [tf.TensorSpec([1])]
    assert either("f", "d", "y", step, signature) == export("f", "d", "y", step, signature)
    assert either("f", "d", None, step) == export("f", "d", None, step)
    in_order = {"variable_initializer": start, "output_names": "y", "preprocessing_step": step, "more": ()}
    assert either("f", "d", start, "y", step) == in_order
    assert either("f", "d", None, ["y"]) == {**export("f", "d", ["y"]), "variable_initializer": None}
    assert either("f", "d", None, None, step)["preprocessing_step"] is step
    assert either("f", "d", start, output_names="y")["output_names"] == "y"
    with pytest.raises(TypeError, match="multiple values for argument 'variable_initializer'"):
        either("f", "d", start, variable_initializer=start)
    with pytest.raises(TypeError, match="takes 10 positional"):
        either("f", "d", start, *[None] * 8)
