"""Errors that Graphcore documents of the conversion of SavedModels."""

import json

import documented_errors
import pytest
import tensorflow as tf
from ipu_tensorflow_addons.saved_model_tool import ipu_convert
from ipu_tensorflow_addons.saved_model_tool.converter import (
    auto_pipeline,
    gelu_replacement,
    ipu_compiler_wrapper,
    ipu_placement,
    manual_pipeline,
    manual_shard,
    pipeconf_loader,
    precision_conversion,
    utils,
)
from ipu_tensorflow_addons.saved_model_tool.converter.autograph import strategies, tfv1graph
from ipu_tensorflow_addons.saved_model_tool.converter.autograph import utils as graph_utils
from saved_models import two_layers

pytestmark = pytest.mark.one_version

v1 = tf.compat.v1
EMBEDDED = {"embedded_runtime_exec_cachedir": "cache", "runtime_api_timeout_us": 5000}
GELU = {"nodes": [], "node_as_gelu_input": [], "node_use_gelu_output": []}


def params(**options):
    return ipu_convert.IpuConversionParams(**options)


def checked(**options):
    return lambda: ipu_convert.IpuGraphConverter("model", conversion_params=params(**options))


def making(kind, **options):
    return lambda: kind(params(**options))


def embedded(kind, **cfg):
    """A converter to pipelines, whose application may be written."""
    return making(kind, pipeline_cfg=cfg, embedded_runtime_save_config=EMBEDDED, int64_to_int32_conversion=True)


def saving(**options):
    return lambda: utils.validate_embedded_runtime_save_config(params(**options))


def host_after_ipu():
    host, ipu = v1.GraphDef(), v1.GraphDef()
    ipu.node.add(name="first", op="Identity")
    host.node.add(name="second", op="Identity", input=["first"])
    utils.get_edge_tensor(host, ipu, True)


def graph_def():
    return chain().as_graph_def()


def chain():
    """Three products and relus, one after another."""
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [1, 4], name="x")
        for number in range(3):
            x = tf.nn.relu(tf.matmul(x, tf.ones([4, 4]), name=f"product{number}"), name=f"relu{number}")
    return graph


def staged(*stages):
    """A graph whose layers are in these stages."""
    graph = chain()
    signature = v1.saved_model.signature_def_utils
    with graph.as_default():
        outputs = {"y": graph.get_tensor_by_name("relu2:0")}
        described = signature.predict_signature_def({"x": graph.get_tensor_by_name("x:0")}, outputs)
    made = tfv1graph.TFv1Graph(graph, signature_def=described)
    for name, node in made.nodes.items():
        if stages and name != "x":
            node.add_attr(pipeline_stage=stages[int(name[-1])])
    return made


def on_too_few_ipus():
    graph = staged(0, 1, 1)
    graph.device_info = [0]
    graph.pipelined()


def cut_into_two():
    config = strategies_config(3)
    strategies.ManualPipelineStrategy(config).chop(staged(), [["product"], ["relu"]])


def strategies_config(stages):
    from ipu_tensorflow_addons.saved_model_tool.converter.autograph.options import RunConfig

    return RunConfig(num_required_ipus=4, num_pipeline_stages=stages, batch_size=1)


STRINGS = "must only contain lists of strings,"
CONVERSIONS = [
    (
        "model",
        ValueError,
        "Must specify one of input_meta_graph_def and input_saved_model_dir",
        ipu_convert.IpuGraphConverter,
    ),
    (
        "model",
        ValueError,
        "Can only specify one of input_meta_graph_def and",
        lambda: ipu_convert.IpuGraphConverter("model", input_meta_graph_def=v1.MetaGraphDef(graph_def=graph_def())),
    ),
    (
        "model",
        ValueError,
        "Must specify input_sess when specify input_meta_graph_def",
        lambda: ipu_convert.IpuGraphConverter(input_meta_graph_def=v1.MetaGraphDef(graph_def=graph_def())),
    ),
    *(
        ("parameter", ValueError, "num_ipus should be an integer, and greater", checked(num_ipus=number))
        for number in (0, -1, "2", 1.5)
    ),
    ("parameter", TypeError, "batch_per_step should be an integer", checked(batch_per_step="1")),
    ("parameter", TypeError, "excluded_nodes should be a list", checked(excluded_nodes=1)),
    *(
        ("parameter", ValueError, f"{name} should be True or False", checked(**{name: 1}))
        for name in ("ipu_placement", "remove_excluded_nodes", "merge_subgraphs")
    ),
    ("parameter", ValueError, "gelu_replacement should be a dict", checked(gelu_replacement=1)),
    ("parameter", ValueError, "Missing items from gelu: … gelu must", checked(gelu_replacement={"nodes": []})),
    *(
        (
            "parameter",
            ValueError,
            f"gelu_replacement['{name}'] should be a list",
            checked(gelu_replacement={**GELU, name: 1}),
        )
        for name in GELU
    ),
    ("parameter", TypeError, "manual_sharding should be a list of lists", checked(manual_sharding=1)),
    ("parameter", TypeError, f"manual_sharding {STRINGS}", checked(manual_sharding=[1])),
    ("parameter", TypeError, f"manual_sharding {STRINGS}", checked(manual_sharding=[[1]])),
    (
        "file",
        ValueError,
        "config_file nothing.json is not readable",
        lambda: params().load_from_json_file("nothing.json"),
    ),
    ("file", ValueError, "dir nowhere is not a directory or", lambda: params().save_to_json_file("nowhere")),
    (
        "gelu",
        ValueError,
        "gelu_replacement should be a dict",
        making(gelu_replacement.GeluReplacement, gelu_replacement=1),
    ),
    (
        "gelu",
        ValueError,
        "nodes, node_as_gelu_input, node_use_gelu_output must be set",
        making(gelu_replacement.GeluReplacement, gelu_replacement={"nodes": ["gelu"]}),
    ),
    (
        "compiler",
        TypeError,
        "excluded_nodes must be a list",
        making(ipu_compiler_wrapper.IPUCompilerWrapper, excluded_nodes=1),
    ),
    (
        "compiler",
        TypeError,
        "remove_excluded_nodes must be a bool",
        making(ipu_compiler_wrapper.IPUCompilerWrapper, remove_excluded_nodes=1),
    ),
    ("placement", ValueError, "excluded_nodes should be a list", making(ipu_placement.IPUPlacement, excluded_nodes=1)),
    (
        "precision",
        ValueError,
        "precision_conversion_excluded_nodes should be a list",
        making(precision_conversion.PrecisionConversion, precision_conversion_excluded_nodes=1),
    ),
    (
        "sharding",
        TypeError,
        "manual_sharding must be a list, not",
        making(manual_shard.ManualSharding, manual_sharding="a"),
    ),
    ("sharding", TypeError, f"manual_sharding {STRINGS}", making(manual_shard.ManualSharding, manual_sharding=[1])),
    (
        "sharding",
        ValueError,
        "The length of manual_sharding (1) should be",
        making(manual_shard.ManualSharding, manual_sharding=[["a"]], num_ipus=2),
    ),
    (
        "sharding",
        ValueError,
        "No ops placed on IPU device to",
        lambda: making(manual_shard.ManualSharding, manual_sharding=[["a"]])().apply(graph_def(), None),
    ),
    *(
        (
            "pipeline",
            ValueError,
            "The `embedded_runtime_save_config` argument must be specified for",
            making(kind, pipeline_cfg={"converter": name}),
        )
        for kind, name in (
            (auto_pipeline.AutoPipeline, "auto"),
            (manual_pipeline.ManualPipeline, "manual"),
            (pipeconf_loader.PipelineConfLoader, "load"),
        )
    ),
    (
        "pipeline",
        ValueError,
        "The `converter` argument is required in `pipeline_cfg`",
        embedded(manual_pipeline.ManualPipeline, device_info=[0]),
    ),
    (
        "pipeline",
        ValueError,
        '`pipeline_cfg` must contain a value for "converter"',
        embedded(pipeconf_loader.PipelineConfLoader, solution_path="file"),
    ),
    (
        "pipeline",
        ValueError,
        "`pipeline_cfg` must contain `behavior` keywords",
        lambda: utils.validate_pipeline_cfg(params(pipeline_cfg={"priority": "cycle"}), {}, "auto"),
    ),
    (
        "pipeline",
        ValueError,
        "Unkown keyword nonsense in `pipeline_cfg` in",
        embedded(auto_pipeline.AutoPipeline, converter="auto", nonsense=1),
    ),
    *(
        ("pipeline", error, words, embedded(manual_pipeline.ManualPipeline, converter="manual", **cfg))
        for error, words, cfg in (
            (ValueError, "The `manual_pipeline_config` argument is required in `pipeline_cfg`", {"device_info": [0]}),
            (
                ValueError,
                "The `device_info` argument is required in `pipeline_cfg`",
                {"manual_pipeline_config": [["a"]]},
            ),
            (
                TypeError,
                "`manual_pipeline_config` must be a list, not",
                {"manual_pipeline_config": 1, "device_info": [0]},
            ),
            (TypeError, f"`manual_pipeline_config` {STRINGS}", {"manual_pipeline_config": [1], "device_info": [0]}),
            (TypeError, f"`manual_pipeline_config` {STRINGS}", {"manual_pipeline_config": [[1]], "device_info": [0]}),
        )
    ),
    (
        "application",
        ValueError,
        "The `merge_subgraphs` must be false with `merge_subgraphs=False`",
        saving(embedded_runtime_save_config=EMBEDDED, merge_subgraphs=True, int64_to_int32_conversion=True),
    ),
    (
        "application",
        ValueError,
        "The `int64_to_int32_conversion` must be True with `int64_to_int32_conversion=True`",
        saving(embedded_runtime_save_config=EMBEDDED),
    ),
    (
        "application",
        TypeError,
        "Invalid type (int) for `embedded_runtime_save_config`.",
        saving(embedded_runtime_save_config=1, int64_to_int32_conversion=True),
    ),
    (
        "application",
        ValueError,
        "Key 'runtime_api_timeout_us' missing from `embedded_runtime_save_config`.",
        saving(
            embedded_runtime_save_config={"embedded_runtime_exec_cachedir": "cache"}, int64_to_int32_conversion=True
        ),
    ),
    ("names", ValueError, "The input name (add) is not a", lambda: utils.tensor_name_to_placehoder_name("add")),
    ("host", ValueError, "Please place … on CPU, a complete", host_after_ipu),
    ("system", TypeError, "Config should be of type `ipu.config.IPUConfig`", lambda: graph_utils.configure_ipu(1)),
    ("graph", ValueError, "The `stage_list` should not be empty", lambda: staged().auto_assign_ipu_number(2)),
    ("graph", ValueError, "The nodes … are not in topology", lambda: staged(1, 0, 1).pipeline_stage_funcs()),
    ("graph", ValueError, "No pipline device info specified. Please set", lambda: staged(0, 1, 1).pipelined()),
    ("graph", ValueError, "The length of the device info given", on_too_few_ipus),
    ("graph", AttributeError, "The node `…` of … is not", lambda: staged().pipelined(2)),
    ("graph", AttributeError, "The node `…` of … is not", lambda: staged().save_pipeline_config("file")),
    (
        "graph",
        ValueError,
        "The length of device_info (1) must be",
        lambda: staged(0, 1, 1).set_pipeline_device_info([0]),
    ),
    ("graph", ValueError, "The length of `regex_lists` (2) should be", cut_into_two),
]


@pytest.fixture(autouse=True)
def directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@documented_errors.cases(CONVERSIONS)
def test_a_conversion(error, words, call):
    documented_errors.check(error, words, call)


def test_a_file_without_stages(directory):
    (directory / "file").write_text(json.dumps({"device_info": [0]}))
    words = "`pipeline_mapping` must be specified in pipeconfig file"
    documented_errors.check(ValueError, words, lambda: staged().read_pipeline_config("file"))


def test_a_converter_that_has_converted(directory):
    converter = ipu_convert.IpuGraphConverter(two_layers(directory / "model"))
    documented_errors.check(AssertionError, "", lambda: converter.save("converted"))
    converter.convert()
    documented_errors.check(RuntimeError, "The model can't be converted multiple times", converter.convert)
