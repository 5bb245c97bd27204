"""Frozen graphs cut into pipeline stages compute what they computed whole, in one go and as a pipeline."""

import json
import pickle

import numpy as np
import pytest
import saved_models
import tensorflow as tf
from ipu_tensorflow_addons.saved_model_tool.converter.autograph import (
    ManualPipelineStrategy,
    Node,
    RunConfig,
    TFv1Graph,
    strategies,
    utils,
)
from ipu_tensorflow_addons.saved_model_tool.converter.autograph.tfv1graph import stage_function_factory
from ipu_tensorflow_addons.saved_model_tool.saved_model_test_utils import ModelForTest, declare_signature
from saved_models import X, v1
from tf_ipu_shim.ipu import ipu_compiler, ipu_infeed_queue, ipu_outfeed_queue, pipelining_ops, scopes

from tf_ipu_shim.frontend.conversion import frozen_graph

pytestmark = pytest.mark.one_version

LEFT = np.random.RandomState(3).uniform(-1, 1, (2, 3)).astype(np.float32)


@pytest.fixture
def frozen(tmp_path):
    """Two chains that meet; an input that the last op reads again; a second output on the way."""
    with v1.Graph().as_default():
        left, right = (
            v1.placeholder(tf.float32, [None, 3], name="left"),
            v1.placeholder(tf.float32, [None, 4], name="x"),
        )
        a = saved_models.dense(left, 4, "chain_a")
        b = saved_models.dense(saved_models.dense(right, 5, "chain_b"), 4, "chain_b_2")
        total = tf.add(tf.concat([a, b], 1)[:, :4], right, name="total")
        directory = saved_models.save(tmp_path / "model", {"left": left, "x": right}, {"total": total, "b": b})
    return frozen_graph.load(directory, ["serve"], "serving_default")


@pytest.fixture
def cut(frozen):
    """In three stages."""
    graph = TFv1Graph(utils.convert_graph_def_to_graph(frozen.graph_def), frozen.signature_def)
    config = RunConfig(num_required_ipus=3)
    ManualPipelineStrategy(config).chop(graph, [["^chain_b/"], ["^chain_b_2/", "^chain_a/"], ["."]])
    return graph


def expected(frozen):
    with v1.Graph().as_default(), v1.Session() as session:
        v1.import_graph_def(frozen.graph_def, name="")
        return session.run(["chain_b_2/relu:0", "total:0"], {"left:0": LEFT, "x:0": X})


def test_stages_in_one_go(frozen, cut):
    functions, devices = cut.pipelined(num_of_ipu=3)
    assert devices == [0, 1, 2]
    assert (cut.inputs, cut.outputs) == (["left:0", "x:0"], ["chain_b_2/relu:0", "total:0"])
    with v1.Graph().as_default(), v1.Session() as session:
        values = [tf.constant(LEFT), tf.constant(X)]
        for function in functions:
            values = function(*values)
        assert [value.name for value in values] == cut.outputs
        for result, stock in zip(session.run(values), expected(frozen)):
            np.testing.assert_array_equal(result, stock)


def test_stages_as_a_pipeline(ipus, frozen, cut):
    ipus(2)
    functions, _ = cut.pipelined(num_of_ipu=3)
    with v1.Graph().as_default(), v1.Session() as session:
        infeed = ipu_infeed_queue.IPUInfeedQueue(v1.data.Dataset.from_tensors((LEFT, X)).repeat())
        outfeed = ipu_outfeed_queue.IPUOutfeedQueue()

        def pipeline():
            return pipelining_ops.pipeline(
                functions,
                gradient_accumulation_count=6,
                device_mapping=[0, 1, 0],
                infeed_queue=infeed,
                outfeed_queue=outfeed,
            )

        with scopes.ipu_scope("/device:IPU:0"):
            program = ipu_compiler.compile(pipeline)
        dequeued = outfeed.dequeue()
        session.run(infeed.initializer)
        session.run(program)
        for results, stock in zip(session.run(dequeued), expected(frozen)):
            assert len(results) == 6
            np.testing.assert_allclose(results[5], stock, rtol=1e-6)


def test_what_cannot_be_cut(frozen, cut):
    cut.nodes["chain_b/relu"].add_attr(pipeline_stage=2)
    with pytest.raises(ValueError, match="needs chain_b/relu .stage 2.*not in topology order"):
        cut.pipeline_stage_funcs()
    fresh = TFv1Graph(cut.graph, frozen.signature_def)
    with pytest.raises(ValueError, match="No pipline device info specified"):
        fresh.pipelined()
    with pytest.raises(AttributeError, match="is not in a pipeline stage"):
        fresh.pipelined(num_of_ipu=2)
    with pytest.raises(ValueError, match="`stage_list` should not be empty"):
        fresh.auto_assign_ipu_number(2)
    with pytest.raises(ValueError, match=r"The length of `regex_lists` \(1\) should be"):
        ManualPipelineStrategy(RunConfig(num_required_ipus=3)).chop(cut, [["a"]])


def test_stages_go_through_a_file(frozen, cut, tmp_path):
    path = str(tmp_path / "stages.pipeconfig")
    cut.save_pipeline_config(path, device_info=[0, 1, 0])
    written = json.loads((tmp_path / "stages.pipeconfig").read_text())
    assert written["device_mapping"] == [0, 1, 0]
    assert written["pipeline_mapping"]["chain_b_2/relu"] == written["pipeline_mapping"]["chain_b_2/kernel"] == 1
    read = TFv1Graph(cut.graph, frozen.signature_def)
    read.read_pipeline_config(path)
    assert read.device_info == [0, 1, 0]
    assert {name: node.pipeline_stage for name, node in read.nodes.items()} == {
        name: node.pipeline_stage for name, node in cut.nodes.items()
    }
    (tmp_path / "stages.pipeconfig").write_text("{}")
    with pytest.raises(ValueError, match="`pipeline_mapping` must be specified"):
        read.read_pipeline_config(path)


def test_places_of_stages(cut):
    with pytest.raises(ValueError, match=r"The length of device_info \(1\) must be the number of stages \(3\)"):
        cut.set_pipeline_device_info([0])
    cut.auto_assign_ipu_number(2)
    assert cut.device_info == [0, 1, 0]
    cut.clear_device_info()
    assert cut.device_info is None


def test_nodes_in_order(cut):
    names = [node.name for node in cut.topology_sort()]
    assert sorted(names) == sorted(cut.nodes)
    place = {name: index for index, name in enumerate(names)}
    assert place["chain_b/MatMul"] < place["chain_b_2/MatMul"] < place["concat"] < place["total"]
    assert place["x"] < place["chain_b/MatMul"] and place["left"] < place["chain_a/MatMul"]
    assert cut.size_of_nodes() == len(names) < cut.total_size_of_nodes()


def test_a_function_of_tensors(frozen, cut):
    function = stage_function_factory(
        cut.graph, ["chain_b/relu:0", "x:0"], ["chain_b_2/relu:0"], ["chain_b/relu:0"], ["x:0", "chain_b_2/relu:0"]
    )
    with v1.Graph().as_default(), v1.Session() as session:
        v1.import_graph_def(frozen.graph_def, name="whole")
        hidden = session.graph.get_tensor_by_name("whole/chain_b/relu:0")
        taken, computed = session.run(function(hidden, tf.constant(X)), {"whole/x:0": X})
    np.testing.assert_array_equal(taken, X)
    np.testing.assert_array_equal(computed, expected(frozen)[0])


@pytest.mark.parametrize(
    ("numbers", "groups", "solution"),
    [
        ([1, 1, 2, 4, 90, 0, 45, 45], 4, [[1, 1, 2, 4], [90, 0], [45], [45]]),
        ([20, 40, 30, 10, 10, 10, 10, 10, 50, 70, 30], 8, None),
        ([5], 1, [[5]]),
    ],
)
def test_the_best_cut(numbers, groups, solution):
    """Compared with all cuts there are."""
    import itertools

    (found,) = strategies.find_opt(numbers, groups)
    cuts = itertools.combinations(range(1, len(numbers)), groups - 1)
    costs = [sum(sum(numbers[a:b]) ** 2 for a, b in zip((0, *places), (*places, len(numbers)))) for places in cuts]
    assert sum(sum(group) ** 2 for group in found) == min(costs)
    assert [number for group in found for number in group] == numbers
    assert solution in (None, found)
    with pytest.raises(ValueError, match="cannot be cut into"):
        strategies.find_opt(numbers, len(numbers) + 1)


def test_run_config(tmp_path):
    config = RunConfig(num_required_ipus=2, batch_size=4, matmul_partial_type="half")
    path = str(tmp_path / "run.json")
    config.to_json(path)
    assert str(RunConfig.from_json(path)) == str(config) == str(pickle.loads(pickle.dumps(config)))
    assert config.get_ipu_config().matmuls.poplar_options == {
        "availableMemoryProportion": "0.6",
        "partialsType": "half",
    }
    (tmp_path / "run.json").write_text("[]")
    with pytest.raises(ValueError, match="must contain RunConfig"):
        RunConfig.from_json(path)


def test_configurations_of_another_type():
    with pytest.raises(TypeError, match="Config should be of type `ipu.config.IPUConfig`"):
        utils.configure_ipu({"auto_select_ipus": 1})


def test_nodes_have_what_they_are_given():
    node = Node("add", op_type="AddV2", pipeline_stage=3)
    assert (node.pipeline_stage, node.inputs, str(node)) == (3, [], "add (AddV2)")


def test_models_to_try_converters_on():
    class Doubled(ModelForTest):
        @declare_signature(output_name_keys=["out"])
        def create(self):
            x = v1.placeholder(tf.float32, [None, 4], name="x")
            return saved_models.dense(x, 3, "layer")

    saved, frozen = Doubled(save=True), Doubled(freeze=True, save=True)
    assert {node.op for node in frozen.graph_def.node} & {"VarHandleOp", "VariableV2"} == set()
    assert list(saved.signature_def.outputs) == ["out"]
    results = [saved_models.run(model.model_path, {"x": X})["out"] for model in (saved, frozen)]
    np.testing.assert_array_equal(*results)
    with pytest.raises(ValueError, match="make it with save=True"):
        Doubled().model_path  # noqa: B018
