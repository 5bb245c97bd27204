"""SavedModels converted to embedded applications, as loops and pipelines, give what the model they were gives."""

import json

import numpy as np
import pytest
import saved_models
import tensorflow as tf
from ipu_tensorflow_addons import saved_model_tool
from ipu_tensorflow_addons.saved_model_tool import IpuConversionParams, create_inference_graph
from ipu_tensorflow_addons.saved_model_tool.converter import ManualPipeline, auto_pipeline, manual_pipeline
from saved_models import X, v1

from tf_ipu_shim.frontend.applications import engines
from tf_ipu_shim.runtime import devices

pytestmark = pytest.mark.one_version

STAGES = [["^first/"], ["^second/"]]
WANTED = {"int64_to_int32_conversion": True}


@pytest.fixture
def model(tmp_path):
    return saved_models.two_layers(tmp_path / "stock")


@pytest.fixture
def converted(tmp_path, model):
    """`converted(pipeline_cfg=...)` converts the model to an application and gives its directory; engines end after."""

    def convert(directory=None, **arguments):
        made = str(tmp_path / "converted")
        config = {"embedded_runtime_exec_cachedir": str(tmp_path / "cache"), "runtime_api_timeout_us": 5000}
        create_inference_graph(
            **{
                "input_saved_model_dir": str(directory or model),
                "output_saved_model_dir": made,
                "embedded_runtime_save_config": config,
                **WANTED,
                **arguments,
            }
        )
        return made

    yield convert
    for name in list(engines._engines):
        engines._engines.pop(name).close()


def pipeline(tmp_path, **entries):
    return {"converter": "manual", "solution_dir": str(tmp_path / "solution"), **entries}


def gives_the_same(made, model, batch=X):
    expected = saved_models.run(model, {"x": batch})
    for _ in range(2):
        results = saved_models.run(made, {"x": batch})
        assert results.keys() == expected.keys()
        for key, value in expected.items():
            np.testing.assert_allclose(results[key], value, rtol=1e-5)


def ops_of(made):
    return [node.op for node in saved_models.graph_of(made)[0].node]


@pytest.mark.parametrize("batches", [0, 3])
def test_a_loop(converted, model, batches):
    made = converted(batch_size=2, batch_per_step=batches)
    assert "ApplicationCall" in ops_of(made) and "MatMul" not in ops_of(made)
    gives_the_same(made, model)
    _, signature = saved_models.graph_of(made)
    assert [axis.size for axis in signature.inputs["x"].tensor_shape.dim] == [2, 4]
    assert [axis.size for axis in signature.outputs["y"].tensor_shape.dim] == [2, 3]


def test_the_script_keeps_its_configuration(ipus, converted, model):
    ipus(1)
    before = devices.configured()
    assert before is not None
    gives_the_same(converted(batch_size=2), model)
    assert devices.configured() == before


def test_hosts_parts_stay_around_the_application(converted, tmp_path):
    with v1.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, 4], name="x")
        scaled = tf.multiply(x, 2.0, name="before")
        y = saved_models.dense(scaled, 3, "layer")
        model = saved_models.save(tmp_path / "parts", {"x": x}, {"y": tf.add(y, 1.0, name="after")})
    made = converted(model, batch_size=2, excluded_nodes=["^before", "^after"])
    assert {"ApplicationCall", "Mul"} <= set(ops_of(made))
    gives_the_same(made, model)


def test_a_batch_size_without_an_application(converted, model, ipus):
    made = converted(embedded_runtime_save_config=None, batch_size=2, merge_subgraphs=True)
    assert [axis.size for axis in saved_models.graph_of(made)[1].outputs["y"].tensor_shape.dim] == [2, 3]
    gives_the_same(made, model)


def test_a_manual_pipeline_and_its_file(converted, model, tmp_path):
    entries = {"manual_pipeline_config": STAGES, "device_info": [1, 0], "profiling_enable": True}
    made = converted(batch_size=2, num_ipus=2, batch_per_step=2, pipeline_cfg=pipeline(tmp_path, **entries))
    assert "ApplicationCall" in ops_of(made)
    gives_the_same(made, model)
    path = tmp_path / "solution" / "manual.pipeconfig"
    mapping = json.loads(path.read_text())
    assert mapping["device_mapping"] == [1, 0] and mapping["pipeline_mapping"]["second/MatMul"] == 1
    loaded = create_inference_graph(
        input_saved_model_dir=model,
        output_saved_model_dir=str(tmp_path / "loaded"),
        batch_size=2,
        pipeline_cfg={"converter": "load", "solution_path": str(path)},
        embedded_runtime_save_config={
            "embedded_runtime_exec_cachedir": str(tmp_path / "loaded_cache"),
            "runtime_api_timeout_us": 100,
        },
        **WANTED,
    )
    assert "ApplicationCall" in [node.op for node in loaded.node]
    gives_the_same(str(tmp_path / "loaded"), model)


def deep_model(directory, width=4, layers=4):
    with v1.Graph().as_default():
        x = value = v1.placeholder(tf.float32, [None, 4], name="x")
        for index in range(layers):
            value = saved_models.dense(value, width, f"layer_{index}")
        return saved_models.save(directory, {"x": x}, {"y": tf.identity(value, name="y")})


@pytest.mark.parametrize("priority", ["cycle", "memory"])
def test_stages_that_are_found(converted, tmp_path, priority):
    model = deep_model(tmp_path / "deep")
    config = {"converter": "auto", "priority": priority, "solution_dir": str(tmp_path / "solution")}
    made = converted(model, batch_size=2, pipeline_cfg=config)
    gives_the_same(made, model)
    mapping = json.loads((tmp_path / "solution" / "auto.pipeconfig").read_text())
    stages = [mapping["pipeline_mapping"][f"layer_{index}/MatMul"] for index in range(4)]
    assert stages == [0, 0, 1, 1] and mapping["device_mapping"] == [0, 1]


def test_more_ipus_where_the_chips_are_small(monkeypatch, tmp_path):
    model = deep_model(tmp_path / "deep")
    frozen = saved_model_tool.ipu_convert.frozen_graph.load(model, ["serve"], "serving_default")
    search = [2, 0.6, "float", 0.6, "float", 5, True, 4, 2, "memory", "profiles", str(tmp_path)]
    # Each layer has a kernel of 64 bytes, a bias of 16 and results of as many as the batch has.
    monkeypatch.setattr(auto_pipeline.stage_costs, "chip_bytes", lambda: 64 + 16 + 32)
    path = auto_pipeline.AutoPipelineImpl(*search).apply(frozen.graph_def, frozen.signature_def)
    assert json.loads((tmp_path / "auto.pipeconfig").read_text())["device_mapping"] == [0, 1, 2, 3]
    assert path == str(tmp_path / "auto.pipeconfig")
    monkeypatch.setattr(auto_pipeline.stage_costs, "chip_bytes", lambda: 16)
    with pytest.raises(ValueError, match=r"\(IPU-END\) Can not find the optimal solution\."):
        auto_pipeline.AutoPipelineImpl(*search).apply(frozen.graph_def, frozen.signature_def)


def test_nodes_that_nobody_has_placed(converted, model, tmp_path):
    frozen = saved_model_tool.ipu_convert.frozen_graph.load(model, ["serve"], "serving_default")
    config = pipeline(tmp_path, manual_pipeline_config=STAGES, device_info=[0, 1])
    params = IpuConversionParams(
        num_ipus=2,
        pipeline_cfg=config,
        embedded_runtime_save_config={
            "embedded_runtime_exec_cachedir": str(tmp_path / "cache"),
            "runtime_api_timeout_us": 5000,
        },
        **WANTED,
    )
    graph_def, _ = ManualPipeline(params).apply(frozen.graph_def, frozen.signature_def)
    assert "ApplicationCall" in [node.op for node in graph_def.node]
    impl = manual_pipeline.ManualPipelineImpl(
        1, 0.6, 2, "float", 0.6, "float", True, "profiles", str(tmp_path / "other"), STAGES, [0, 1], False
    )
    assert impl.apply(frozen.graph_def, frozen.signature_def) == str(tmp_path / "other" / "manual.pipeconfig")


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (
            {"embedded_runtime_save_config": None, "batch_per_step": 2},
            ValueError,
            "Pass embedded_runtime_save_config too",
        ),
        ({"embedded_runtime_save_config": {}, "pipeline_cfg": {"converter": "load"}}, ValueError, "must be specified"),
        ({"embedded_runtime_save_config": {"runtime_api_timeout_us": 1}}, ValueError, "exec_cachedir' missing"),
        ({"batch_size": 0}, ValueError, "batch_size .* greater than 0"),
        ({"merge_subgraphs": True}, ValueError, "The `merge_subgraphs` must be false"),
        ({"int64_to_int32_conversion": False}, ValueError, "The `int64_to_int32_conversion` must be True"),
        ({"pipeline_cfg": {"solution_dir": "x"}}, ValueError, 'must contain a value for "converter"'),
        ({"pipeline_cfg": {"converter": "best"}}, ValueError, "'manual', 'auto', 'load', not 'best'"),
        ({"pipeline_cfg": {"converter": "manual", "speed": 1}}, ValueError, "Unkown keyword speed"),
        ({"pipeline_cfg": {"converter": "manual"}}, ValueError, "The `manual_pipeline_config` argument is required"),
        ({"pipeline_cfg": {"converter": "load"}}, ValueError, "The `solution_path` argument is required"),
        (
            {"pipeline_cfg": {"converter": "load", "solution_path": "no"}},
            ValueError,
            "'no'; expected a file that exists",
        ),
        ({"pipeline_cfg": {"converter": "auto", "priority": "speed"}}, ValueError, "`priority` .* cycle or memory"),
        ({"pipeline_cfg": {"converter": "auto", "min_ipu_quantity": 1}}, ValueError, "asks for 1 to 64 IPUs"),
        (
            {"pipeline_cfg": {"converter": "manual", "manual_pipeline_config": "x", "device_info": []}},
            TypeError,
            "must be a list, not str",
        ),
        (
            {"pipeline_cfg": {"converter": "manual", "manual_pipeline_config": [[1]], "device_info": []}},
            TypeError,
            "must only contain lists of strings",
        ),
    ],
)
def test_what_is_refused(converted, arguments, error, message):
    with pytest.raises(error, match=message):
        converted(**arguments)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"manual_pipeline_config": STAGES, "device_info": [0]}, r"The length of device_info \(1\)"),
        ({"manual_pipeline_config": STAGES, "device_info": [0, -1]}, "expected 0, 1, 2, ... without a gap"),
        ({"manual_pipeline_config": [["^second/"], ["^first/"]], "device_info": [0, 1]}, "are not in topology order"),
    ],
)
def test_stages_that_make_no_pipeline(converted, tmp_path, entries, message):
    with pytest.raises(ValueError, match=message):
        converted(pipeline_cfg=pipeline(tmp_path, **entries))


def test_an_open_shape_is_refused(converted, tmp_path):
    with v1.Graph().as_default():
        x = v1.placeholder(tf.float32, [None, None], name="x")
        model = saved_models.save(tmp_path / "open", {"x": x}, {"y": tf.multiply(x, 2.0, name="y")})
    with pytest.raises(ValueError, match=r"takes x:0 of the shape \(1, None\)"):
        converted(model)
