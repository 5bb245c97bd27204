"""SavedModels converted for IPUs give what stock TensorFlow gives of the model they were."""

import argparse
import json

import numpy as np
import pytest
import saved_models
import tensorflow as tf
from ipu_tensorflow_addons import saved_model_tool
from ipu_tensorflow_addons.saved_model_tool import IpuConversionParams, IpuGraphConverter, create_inference_graph
from ipu_tensorflow_addons.saved_model_tool.converter import Converter, IPUPlacement, ManualSharding
from saved_models import X, v1

from tf_ipu_shim import plugin

pytestmark = pytest.mark.one_version


@pytest.fixture
def model(tmp_path):
    return saved_models.two_layers(tmp_path / "stock")


@pytest.fixture
def converted(tmp_path, model):
    """`converted(merge_subgraphs=True)` converts the model and gives its directory."""

    def convert(directory=None, **arguments):
        made = str(tmp_path / "converted")
        create_inference_graph(input_saved_model_dir=str(directory or model), output_saved_model_dir=made, **arguments)
        return made

    return convert


def ops_of(directory):
    graph_def, _ = saved_models.graph_of(directory)
    return [node.op for node in graph_def.node]


# What a converted model computes.


@pytest.mark.parametrize("merge_subgraphs", [False, True])
def test_the_values_are_those_of_the_model(ipus, model, converted, merge_subgraphs):
    ipus(1)
    expected = saved_models.run(model, {"x": X})
    made = converted(merge_subgraphs=merge_subgraphs)
    results = saved_models.run(made, {"x": X})
    assert sorted(results) == ["hidden", "y"]
    for key in expected:
        np.testing.assert_allclose(results[key], expected[key], rtol=1e-6)
    assert ("IpuProgram" in ops_of(made)) == merge_subgraphs


def test_nodes_run_on_the_ipu(ipus, converted):
    ipus(1)
    made = converted(merge_subgraphs=True)
    before = plugin.load().programs_run(0)
    saved_models.run(made, {"x": X})
    assert plugin.load().programs_run(0) == before + 1


def test_a_second_result_of_a_node(ipus, converted, tmp_path):
    ipus(1)
    with v1.Graph().as_default():
        x = v1.placeholder(tf.float32, [4], name="x")
        left, right = tf.split(x, 2, name="halves")
        model = saved_models.save(tmp_path / "split", {"x": x}, {"left": left, "right": right})
    results = saved_models.run(converted(model, merge_subgraphs=True), {"x": X[0]})
    np.testing.assert_array_equal(np.concatenate([results["left"], results["right"]]), X[0])


def test_a_node_beside_one_in_the_program(ipus, converted, tmp_path):
    ipus(1)
    with v1.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [2, 4], name="x")
        hidden = tf.nn.relu(x, name="hidden")
        with graph.colocate_with(hidden.op), graph.colocate_with(x.op):
            inside = tf.exp(hidden, name="inside")
            after = tf.exp(inside, name="after")
        model = saved_models.save(tmp_path / "beside", {"x": x}, {"after": after})
    made = converted(model, merge_subgraphs=True, excluded_nodes=["^after$"])
    assert "IpuProgram" in ops_of(made) and "Exp" in ops_of(made)
    expected = np.exp(np.exp(np.maximum(X, 0)))
    np.testing.assert_allclose(saved_models.run(made, {"x": X})["after"], expected, rtol=1e-6)


@pytest.fixture
def frames():
    v1.disable_control_flow_v2()
    yield
    v1.enable_control_flow_v2()


@pytest.mark.parametrize(
    "build, expected, message",
    [
        (lambda x: tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, 2 * y), [0, x])[1], 8 * X, "Enter"),
        (lambda x: tf.cond(x[0, 0] > 9.0, lambda: x + 1, lambda: x - 1), X - 1, "Switch"),
    ],
    ids=["loop", "condition"],
)
def test_control_flow_without_functions(ipus, converted, tmp_path, frames, build, expected, message):
    ipus(1)
    with v1.Graph().as_default():
        x = v1.placeholder(tf.float32, [2, 4], name="x")
        model = saved_models.save(tmp_path / "frames", {"x": x}, {"y": tf.identity(build(x), name="y")})
    with pytest.raises(ValueError, match=rf"\({message}\) belongs to a loop or condition .*enable_control_flow_v2"):
        converted(model, merge_subgraphs=True)
    made = converted(model)
    assert message in ops_of(made)
    np.testing.assert_allclose(saved_models.run(made, {"x": X})["y"], expected, rtol=1e-6)


def test_float16(ipus, model, converted):
    ipus(1)
    expected = saved_models.run(model, {"x": X})
    made = converted(precision_mode="FP16", merge_subgraphs=True)
    results = saved_models.run(made, {"x": X.astype(np.float16)})
    assert results["y"].dtype == np.float16
    np.testing.assert_allclose(results["y"], expected["y"], rtol=5e-3, atol=5e-3)
    _, signature = saved_models.graph_of(made)
    assert signature.inputs["x"].dtype == tf.float16.as_datatype_enum


def test_float16_but_for_some(ipus, model, converted):
    ipus(1)
    expected = saved_models.run(model, {"x": X})
    made = converted(precision_mode="FP16", precision_conversion_excluded_nodes=["^second/", "^x$"])
    graph_def, signature = saved_models.graph_of(made)
    nodes = {node.name: node for node in graph_def.node}
    assert nodes["first/MatMul"].attr["T"].type == tf.float16.as_datatype_enum
    assert nodes["second/MatMul"].attr["T"].type == tf.float32.as_datatype_enum
    assert {key: info.dtype for key, info in signature.outputs.items()} == {"hidden": 19, "y": 1}
    results = saved_models.run(made, {"x": X})
    assert results["y"].dtype == np.float32
    np.testing.assert_allclose(results["y"], expected["y"], rtol=5e-3, atol=5e-3)


def test_float16_of_large_numbers_is_finite(ipus, converted, tmp_path):
    ipus(1)
    with v1.Graph().as_default():
        mask = v1.placeholder(tf.float32, [3], name="mask")
        scores = (1.0 - mask) * tf.constant(-1e9) + tf.constant([1.0, 2.0, float("inf")])
        model = saved_models.save(tmp_path / "mask", {"mask": mask}, {"scores": scores})
    results = saved_models.run(converted(model, precision_mode="FP16"), {"mask": np.array([1.0, 0.0, 1.0], np.float16)})
    assert results["scores"].tolist() == [1.0, -65504.0, 65504.0]  # the sum of what is infinite is clipped on an IPU


def test_float32_again(ipus, model, tmp_path):
    ipus(1)
    half, single = str(tmp_path / "half"), str(tmp_path / "single")
    create_inference_graph(input_saved_model_dir=model, output_saved_model_dir=half, precision_mode="FP16")
    create_inference_graph(input_saved_model_dir=half, output_saved_model_dir=single, precision_mode="FP32")
    results = saved_models.run(single, {"x": X})
    assert results["y"].dtype == np.float32
    np.testing.assert_allclose(results["y"], saved_models.run(model, {"x": X})["y"], atol=5e-3)


@pytest.fixture
def lookup(tmp_path):
    """Rows of a table by words: the words are looked up on the host; ids are int64."""
    with v1.Graph().as_default():
        words = v1.placeholder(tf.string, [None], name="words")
        table = v1.lookup.StaticHashTable(
            v1.lookup.KeyValueTensorInitializer(["a", "b"], [0, 1], tf.string, tf.int64, name="host/fill"),
            default_value=2,
            name="host/table",
        )
        ids = table.lookup(words, name="host/ids")
        rows = tf.constant(np.arange(12.0, dtype=np.float32).reshape(3, 4))
        taken = tf.gather(rows, ids + tf.constant(0, tf.int64), name="taken")
        counts = tf.reduce_sum(ids, name="counts")
        tail = tf.strings.as_string(counts, name="host/text")
        return saved_models.save(tmp_path / "words", {"words": words}, {"taken": taken, "counts": counts, "text": tail})


@pytest.mark.parametrize("merge_subgraphs", [False, True])
def test_int32_where_the_host_has_int64(ipus, lookup, converted, merge_subgraphs):
    ipus(1)
    expected = saved_models.run(lookup, {"words": ["b", "z", "a"]})
    made = converted(
        lookup,
        int64_to_int32_conversion=True,
        excluded_nodes=["^host/", "^keys$", "^values$", "^Const$"],
        merge_subgraphs=merge_subgraphs,
    )
    results = saved_models.run(made, {"words": ["b", "z", "a"]})
    assert results["counts"].dtype == np.int32
    assert results["counts"] == expected["counts"] == 3
    assert results["taken"].tolist() == expected["taken"].tolist()
    assert results["text"] == expected["text"] == b"3"
    if not merge_subgraphs:
        nodes = {node.name: node for node in saved_models.graph_of(made)[0].node}
        assert nodes["taken"].attr["Tindices"].type == tf.int32.as_datatype_enum


def test_bounds_of_slices_may_be_larger_than_int32(ipus, converted, tmp_path):
    ipus(1)
    with v1.Graph().as_default():
        x = v1.placeholder(tf.int64, [4], name="x")
        ends = tf.constant([2**62], tf.int64)
        y = tf.strided_slice(x, tf.constant([1], tf.int64), ends, tf.constant([1], tf.int64))
        model = saved_models.save(tmp_path / "slices", {"x": x}, {"y": y})
    made = converted(model, int64_to_int32_conversion=True)
    assert saved_models.run(made, {"x": np.arange(4, dtype=np.int32)})["y"].tolist() == [1, 2, 3]


def test_constants_that_no_int32_is(converted, tmp_path):
    with v1.Graph().as_default():
        x = v1.placeholder(tf.int64, [4], name="x")
        model = saved_models.save(tmp_path / "large", {"x": x}, {"y": x + tf.constant(2**40, tf.int64, name="large")})
    with pytest.raises(ValueError, match="large has the value 1099511627776, which int32 cannot represent"):
        converted(model, int64_to_int32_conversion=True)


def test_without_its_head(ipus, lookup, converted):
    """The model takes the ids that it looked up itself before."""
    ipus(1)
    excluded = ["^host/fill", "^host/table", "^host/ids", "^words", "^host/text", "^keys$", "^values$", "^Const$"]
    with pytest.raises(ValueError, match="Please place counts on CPU, a complete header"):
        converted(lookup, excluded_nodes=excluded, remove_excluded_nodes=True)


def test_without_its_head_the_edge_is_an_input(ipus, model, converted):
    ipus(1)
    expected = saved_models.run(model, {"x": X})
    made = converted(excluded_nodes=["^first/MatMul", "^first/kernel"], remove_excluded_nodes=True)
    kernel = np.random.RandomState(len("first")).uniform(-1, 1, (4, 5)).astype(np.float32)
    results = saved_models.run(made, {"first/MatMul": X @ kernel})
    for key in ("hidden", "y"):
        np.testing.assert_allclose(results[key], expected[key], rtol=1e-5)
    assert not [node.name for node in saved_models.graph_of(made)[0].node if node.name.startswith("first/kernel")]


def test_outputs_stay(converted):
    with pytest.raises(ValueError, match="The model's output 'hidden' is first/relu:0"):
        converted(excluded_nodes=["^first/"], remove_excluded_nodes=True)


def test_two_ipus(ipus, model, converted):
    ipus(2)
    expected = saved_models.run(model, {"x": X})
    made = converted(num_ipus=2, manual_sharding=[["^first/"], ["^second/"]], merge_subgraphs=True)
    before = plugin.load().exchange(0, 0, 1).bytes
    results = saved_models.run(made, {"x": X})
    np.testing.assert_allclose(results["y"], expected["y"], rtol=1e-6)
    assert plugin.load().exchange(0, 0, 1).bytes == before + 2 * 5 * 4  # the first layer's result


def gelu_model(directory):
    with v1.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        hidden = saved_models.dense(x, 5, "layer_0")
        with v1.name_scope("gelu"):
            exact = 0.5 * hidden * (1.0 + tf.math.erf(hidden / tf.sqrt(2.0)))
        return saved_models.save(directory, {"x": x}, {"y": tf.matmul(exact, tf.ones([5, 2]), name="out/MatMul")})


def test_gelu(ipus, converted, tmp_path):
    ipus(1)
    model = gelu_model(tmp_path / "gelu")
    made = converted(
        model,
        config_file=str(written(tmp_path, gelu_replacement=gelu_patterns())),
    )
    assert "Erf" not in ops_of(made) and "Tanh" in ops_of(made)
    np.testing.assert_allclose(saved_models.run(made, {"x": X})["y"], saved_models.run(model, {"x": X})["y"], atol=5e-3)


def gelu_patterns(**changed):
    names = {"nodes": ["^gelu/"], "node_as_gelu_input": ["layer_[0-9]*/relu"], "node_use_gelu_output": ["out/MatMul"]}
    return {**names, **changed}


def written(directory, **values):
    path = directory / "config.json"
    path.write_text(json.dumps(values))
    return path


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"node_as_gelu_input": ["nothing"]}, "neither nodes nor node_as_gelu_input names"),
        ({"node_use_gelu_output": ["nothing"]}, "must name a GELU of this model"),
    ],
)
def test_gelus_that_are_none(converted, tmp_path, changed, message):
    model = gelu_model(tmp_path / "gelu")
    with pytest.raises(ValueError, match=message):
        converted(model, config_file=str(written(tmp_path, gelu_replacement=gelu_patterns(**changed))))


# What is refused.


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"num_ipus": 0}, ValueError, "num_ipus should be an integer, and greater"),
        ({"batch_per_step": -1}, ValueError, "batch_per_step should be at least 0, not -1"),
        ({"matmul_amp": 2.0}, ValueError, "matmul_amp is a part of the memory .* not 2.0"),
        ({"conv_amp": None}, ValueError, "conv_amp is a part of the memory .* not None"),
        ({"conv_partial_type": "double"}, ValueError, "conv_partial_type should be one of float, half, not 'double'"),
        ({"int64_to_int32_conversion": "yes"}, ValueError, "int64_to_int32_conversion should be True or False"),
        ({"pipeline_cfg": 3}, TypeError, "pipeline_cfg should be a dict, not 3"),
        ({"input_saved_model_tags": "other"}, RuntimeError, "associated with tags 'other'"),
        ({"batch_per_step": "1"}, TypeError, "batch_per_step should be an integer"),
        ({"excluded_nodes": "x"}, TypeError, "excluded_nodes should be a list"),
        ({"excluded_nodes": ["("]}, ValueError, r"'\(', which is not a regular expression"),
        ({"ipu_placement": 1}, ValueError, "ipu_placement should be True or False"),
        ({"merge_subgraphs": None}, ValueError, "merge_subgraphs should be True or False"),
        ({"manual_sharding": {}}, TypeError, "manual_sharding should be a list of lists"),
        ({"manual_sharding": [[1]]}, TypeError, "manual_sharding must only contain lists of strings"),
        ({"manual_sharding": [["a"], ["b"]]}, ValueError, r"The length of manual_sharding \(2\) should be"),
        ({"precision_mode": "BF16"}, ValueError, "precision_mode is 'BF16'"),
        (
            {"input_saved_model_signature_key": "other"},
            ValueError,
            "no signature 'other'; expected one of serving",
        ),
        ({"ipu_placement": False, "merge_subgraphs": True}, ValueError, "No ops placed on IPU device to merge"),
        (
            {"ipu_placement": False, "manual_sharding": [["a"]]},
            ValueError,
            "No ops placed on IPU device to shard",
        ),
        (
            {"excluded_nodes": ["^second/MatMul$"], "merge_subgraphs": True},
            ValueError,
            "second/MatMul is on the host between nodes on the IPU",
        ),
    ],
)
def test_arguments(converted, arguments, error, message):
    with pytest.raises(error, match=message):
        converted(**arguments)


def test_converters_of_sessions(model):
    with pytest.raises(TypeError, match="conversion_params should be an IpuConversionParams, not 3"):
        IpuGraphConverter(model, conversion_params=3)
    with pytest.raises(ValueError, match="Must specify one of"):
        IpuGraphConverter()
    with pytest.raises(ValueError, match="Can only specify one of"):
        IpuGraphConverter(input_saved_model_dir=model, input_meta_graph_def="meta")
    with pytest.raises(ValueError, match="Must specify input_sess"):
        IpuGraphConverter(input_meta_graph_def="meta")
    converter = IpuGraphConverter(input_saved_model_dir=model)
    with pytest.raises(AssertionError, match="call convert"):
        converter.save("somewhere")
    converter.convert()
    with pytest.raises(RuntimeError, match="can't be converted multiple times"):
        converter.convert()


def test_what_a_session_has(ipus, model, tmp_path):
    ipus(1)
    made = str(tmp_path / "of_session")
    with v1.Graph().as_default(), v1.Session() as session:
        meta = v1.saved_model.loader.load(session, ["serve"], model)
        converter = IpuGraphConverter(input_meta_graph_def=meta, input_sess=session, output_saved_model_dir=made)
        converter.convert()
    converter.save()
    np.testing.assert_allclose(saved_models.run(made, {"x": X})["y"], saved_models.run(model, {"x": X})["y"], rtol=1e-6)


# Converters by themselves.


def test_placement():
    with v1.Graph().as_default() as graph:
        tf.add(v1.placeholder(tf.float32, [], name="x"), tf.constant(1.0, name="one"), name="sum")
    graph_def, _ = IPUPlacement(IpuConversionParams(excluded_nodes=["^on"])).apply(graph.as_graph_def(), None)
    assert {node.name: node.device for node in graph_def.node} == {"x": "", "one": "", "sum": "/device:IPU:0"}
    assert {node.name for node in graph_def.node if "_XlaCompile" in node.attr} == {"sum"}


def test_sharding_marks_what_is_placed():
    with v1.Graph().as_default() as graph:
        tf.add(v1.placeholder(tf.float32, [], name="x"), tf.constant(1.0, name="one"), name="sum")
    params = IpuConversionParams(num_ipus=2, manual_sharding=[["nothing"], ["^sum"]])
    graph_def, _ = ManualSharding(params).apply(*IPUPlacement(params).apply(graph.as_graph_def(), None))
    with v1.Graph().as_default() as graph:
        v1.import_graph_def(graph_def, name="")
    from tf_ipu_shim.ipu import sharding

    found = {operation.name: sharding.get_sharding(operation) for operation in graph.get_operations()}
    assert found == {"x": None, "one": [0], "sum": [1]}


def test_converters_of_ones_own():
    class Forgets(Converter):
        def apply(self, graph_def, signature_def):
            return super().apply(graph_def, signature_def)

    with pytest.raises(NotImplementedError, match="Abstract method"):
        Forgets().apply(None, None)
    with pytest.raises(TypeError):
        Converter()


# Files and names.


def test_parameters_go_through_a_file(tmp_path):
    params = IpuConversionParams(num_ipus=4, excluded_nodes=["^a"], precision_mode="FP16")
    params.save_to_json_file(str(tmp_path))
    (path,) = tmp_path.iterdir()
    read = IpuConversionParams()
    read.load_from_json_file(str(path))
    assert vars(read) == vars(params)
    read.load_from_json_file(str(written(tmp_path, no_ipu_placement=True, batch_size=3)))
    assert (read.ipu_placement, read.batch_size, read.num_ipus) == (False, 3, 4)


def test_files_that_are_wrong(tmp_path):
    with pytest.raises(ValueError, match="is not a directory"):
        IpuConversionParams().save_to_json_file(str(tmp_path / "none"))
    with pytest.raises(ValueError, match="is not readable"):
        IpuConversionParams().load_from_json_file(str(tmp_path / "none"))
    with pytest.raises(ValueError, match="has the key 'speed'; expected one of batch_size"):
        IpuConversionParams().load_from_json_file(str(written(tmp_path, speed=1)))


# The command line.


def test_command_line(ipus, model, tmp_path, monkeypatch, capsys):
    made = str(tmp_path / "converted")
    command = ["convert", "--dir", model, "--output_dir", made, "--tag_set", "serve", "ipu", "--merge_subgraphs"]
    monkeypatch.setattr("sys.argv", ["ipu_saved_model_cli", *command, "--precision_mode", "FP32"])
    saved_model_tool.saved_model_cli.main()
    assert "IpuProgram" in ops_of(made)
    results = str(tmp_path / "results")
    run = ["run", "--dir", made, "--tag_set", "serve", "--signature_def", "serving_default", "--outdir", results]
    monkeypatch.setattr(
        "sys.argv", ["ipu_saved_model_cli", *run, "--input_exprs", "x=[[1.0, 1.0, 1.0, 1.0]]", "--init_ipu"]
    )
    saved_model_tool.saved_model_cli.main()
    expected = saved_models.run(model, {"x": np.ones((1, 4), np.float32)})
    np.testing.assert_allclose(np.load(tmp_path / "results" / "y.npy"), expected["y"], rtol=1e-6)
    assert "Result for output key y" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["no", "[1]", "[['a'], 'b']", "[[1]]"])
def test_lists_that_are_none(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not a list of lists of strings"):
        saved_model_tool.saved_model_cli.list_of_lists_str(text)


@pytest.mark.parametrize("text", ["no", "[1]"])
def test_json_that_is_none(text):
    with pytest.raises(argparse.ArgumentTypeError, match="is not (a )?JSON"):
        saved_model_tool.saved_model_cli.json_dict(text)


def test_runs_need_inputs(model):
    command = ["run", "--dir", model, "--tag_set", "serve", "--signature_def", "serving_default"]
    with pytest.raises(AttributeError, match="At least one of --inputs"):
        saved_model_tool.saved_model_cli.run(saved_model_tool.saved_model_cli.create_parser().parse_args(command))
