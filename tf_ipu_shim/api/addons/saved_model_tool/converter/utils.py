"""`ipu_tensorflow_addons.saved_model_tool.converter.utils`: names, dtypes and checks for converters."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow.compat.v1 as v1
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.frontend.conversion import application, graph_nodes, host_part, system_options
from tf_ipu_shim.tf_private.protos import types_pb2

ATTR_TYPE_LIST = ["dtype", "T", "Tparams", "DstT", "SrcT"]
NODES_TYPE_LIST = ["T", "Tparams", "dtype", "SrcT"]
INPUT_NODES_TYPE_LIST = ["T", "Tparams", "dtype", "DstT"]
FLOAT_TYPE_LIST = [types_pb2.DT_HALF, types_pb2.DT_FLOAT]
DEFAULT_BATCH_PER_STEP = 1
DEFAULT_EMBEDDED_RUNTIME_CACHEDIR = "poplar_exec"
DEFAULT_RUNTIME_API_TIMEOUT_US = 5000

_PRECISIONS = {"FP16": types_pb2.DT_HALF, "FP32": types_pb2.DT_FLOAT}
_EMBEDDED_KEYS = ("embedded_runtime_exec_cachedir", "runtime_api_timeout_us")

# An input or output of a model: the tensor's name, its shape, its dtype.
Placed = tuple[str, Sequence[int | None], Any]


def str_to_dtype(type_name: str) -> int:
    """Returns the dtype of a precision mode.

    Args:
        type_name: `"FP16"` or `"FP32"`.

    Raises:
        ValueError: it is neither of these.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.utils.str_to_dtype`.

    Example:
        >>> str_to_dtype("FP16") == tf.float16.as_datatype_enum
        True
    """
    if type_name not in _PRECISIONS:
        raise ValueError(
            f"precision_mode is {type_name!r}: it can be {' or '.join(map(repr, _PRECISIONS))}. Pass one of these."
        )
    return _PRECISIONS[type_name]


def np_type_to_tf_type(dtype: Any) -> Any:
    """Converts a NumPy dtype to the TensorFlow dtype."""
    return dtypes.as_dtype(dtype)


def tf_type_to_numpy(tf_dtype: Any) -> Any:
    """Returns the NumPy type of a TensorFlow dtype."""
    return dtypes.as_dtype(tf_dtype).as_numpy_dtype


def tf_type_to_dtype(tf_type: Any) -> int:
    """Returns a TensorFlow dtype as `DataType` of the protobuf."""
    return int(dtypes.as_dtype(tf_type).as_datatype_enum)


def add_ipu_scope(node: Any, deviceinfo: str) -> None:
    """Places a node on an IPU and has TensorFlow compile it.

    Args:
        node: a `NodeDef`; it is changed.
        deviceinfo: such as `"/device:IPU:0"`.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.utils.add_ipu_scope`.

    Example:
        >>> node = tf.compat.v1.NodeDef(name="add", op="AddV2")
        >>> add_ipu_scope(node, "/device:IPU:0")
        >>> node.device, node.attr["_XlaCompile"].b
        ('/device:IPU:0', True)
    """
    node.device = deviceinfo
    node.attr["_XlaCompile"].b = True
    node.attr["_XlaScope"].s = b"jit_scope_ipu_0"
    node.attr["_XlaSeparateCompiledGradients"].b = False


def input_name_to_node_name(name: str) -> str:
    """Returns the node that a node's input names: `"split:1"` is of `"split"`."""
    return graph_nodes.node_name(name)


def node_name_from_tensor_name(tensor_name: str) -> str:
    """Returns the node that computes a tensor: `"split:1"` is of `"split"`."""
    return graph_nodes.node_name(tensor_name)


def input_name_to_tensor_name(name: str) -> str:
    """Returns the tensor that a node's input names: `"add"` is `"add:0"`."""
    return tensor_name_from_node_name(*graph_nodes.parse_tensor(name))


def tensor_name_from_node_name(node_name: str, index: int = 0) -> str:
    """Returns the name of one of a node's tensors: `"split:1"`."""
    return f"{node_name}:{index}"


def input_name_to_placeholder_name(name: str) -> str:
    """Returns the name of the node that replaces a tensor: `"split_1"` for `"split:1"`."""
    return input_name_to_tensor_name(name).replace(":", "_")


def tensor_name_to_placehoder_name(name: str) -> str:
    """The name of the placeholder for a tensor: the node's name for its first tensor, `"split_1"` for `"split:1"`.

    Raises:
        ValueError: it is not a name of a tensor.
    """
    if ":" not in name:
        raise ValueError(
            f"The input name ({name}) is not a tensor's name: those end in a colon and a number. Write it as NAME:0."
        )
    node, index = graph_nodes.parse_tensor(name)
    return f"{node}_{index}" if index else node


def get_tensor_shape(tensor: Any) -> list[int | None]:
    """Returns the shape of a tensor, None for unknown axes."""
    shape: list[int | None] = tensor.shape.as_list()
    return shape


def deserialize_graph_def(graph_def: bytes) -> Any:
    """Parses a `GraphDef` from its bytes."""
    return v1.GraphDef.FromString(graph_def)


def split_graph_by_device_placement(origin_graph_def: Any) -> tuple[Any, Any]:
    """Returns the part of a graph on the IPU, and the part on the host."""
    return host_part.split_graph(origin_graph_def)


def get_edge_tensor(cpu_graph_def: Any, ipu_graph_def: Any, is_remove_excluded_nodes: bool) -> list[str]:
    """Returns the tensors that pass from the host's part to the IPU's.

    Args:
        cpu_graph_def: the host's part.
        ipu_graph_def: the IPU's.
        is_remove_excluded_nodes: whether the host's part is removed; it must then precede the IPU's.

    Returns:
        Their names, such as `"split:1"`.

    Raises:
        ValueError: the host's part is to be removed, and a node of it needs a result of the IPU.
    """
    if is_remove_excluded_nodes:
        host_part.check_host_first(cpu_graph_def, ipu_graph_def)
    return host_part.find_crossings(cpu_graph_def, ipu_graph_def)


def input_placeholder_name_shape_dtype(graph: Any, signature: Any) -> list[Placed]:
    """Returns the inputs of a model: for each the tensor's name, its shape and its dtype, sorted by their keys."""
    return _placed(graph, graph_nodes.input_tensors(signature))


def output_placeholder_name_shape_dtype(graph: Any, signature: Any) -> list[Placed]:
    """Returns the outputs of a model: for each the tensor's name, its shape and its dtype, sorted by their keys."""
    return _placed(graph, graph_nodes.output_tensors(signature))


def casted_input_from_signature(
    inputs_shape_and_dtype: Sequence[Placed], signature: Any, batch_size: int = 0
) -> list[Any]:
    """Placeholders with the dtypes of a signature, cast to the dtypes of a graph.

    Args:
        inputs_shape_and_dtype: the tensors of the graph, see `input_placeholder_name_shape_dtype`.
        signature: the tensors of the signature.
        batch_size: the size of an unknown first axis; 0 leaves it unknown.

    Returns:
        A tensor for each input.
    """
    promised = {info.name: dtypes.as_dtype(info.dtype) for info in signature.inputs.values()}
    tensors = []
    for name, shape, dtype in inputs_shape_and_dtype:
        shape = [batch_size or None, *shape[1:]] if shape and shape[0] is None else shape
        placeholder = v1.placeholder(promised.get(name, dtype), shape, name=graph_nodes.node_name(name))
        tensors.append(_cast(placeholder, dtype))
    return tensors


def casted_output_from_signature(
    output_tensors: Sequence[Any], outputs_shape_and_dtype: Sequence[Placed], signature: Any
) -> list[Any]:
    """Results cast to the dtypes that a signature promises.

    Args:
        output_tensors: the results.
        outputs_shape_and_dtype: the tensors of the graph, see `output_placeholder_name_shape_dtype`.
        signature: the tensors of the signature.

    Returns:
        A tensor for each result.
    """
    promised = {info.name: dtypes.as_dtype(info.dtype) for info in signature.outputs.values()}
    return [
        _cast(tensor, promised.get(name, tensor.dtype))
        for tensor, (name, _, _) in zip(output_tensors, outputs_shape_and_dtype)
    ]


def prepare_dataset(inputs_shape_and_dtype: Sequence[Placed], batch_size: int = 0) -> Any:
    """Returns an infinite dataset of zeros with the structure of a model's inputs.

    Args:
        inputs_shape_and_dtype: see `input_placeholder_name_shape_dtype`.
        batch_size: the size of an unknown first axis.
    """
    elements = []
    for name, shape, dtype in inputs_shape_and_dtype:
        static_shape = [
            batch_size or None if position == 0 and axis is None else axis for position, axis in enumerate(shape)
        ]
        sizes = [axis for axis in static_shape if axis is not None]
        if len(sizes) < len(static_shape):
            raise ValueError(
                f"The input {name} has the shape {list(shape)}: IPUs need to know all axes. Pass batch_size."
            )
        elements.append(np.zeros(sizes, tf_type_to_numpy(dtype)))
    return v1.data.Dataset.from_tensors(tuple(elements)).repeat()


def extract_ipu_config_from_param(param: Any, cfg: Any) -> Any:
    """Sets the system options of a conversion in its configuration.

    Args:
        param: an `IpuConversionParams`.
        cfg: an `IPUConfig`; it is changed.

    Returns:
        `cfg`.
    """
    system_options.set_options(cfg, param)
    return cfg


def extract_emb_setting_from_param(param: Any) -> tuple[str, str, int, int]:
    """Returns the embedded-runtime settings of a conversion.

    Args:
        param: an `IpuConversionParams`.

    Returns:
        The directory of the application, its file, the time-out in microseconds, and how many batches a step has.
    """
    config = param.embedded_runtime_save_config or {}
    directory = config.get("embedded_runtime_exec_cachedir", DEFAULT_EMBEDDED_RUNTIME_CACHEDIR)
    timeout = config.get("runtime_api_timeout_us", DEFAULT_RUNTIME_API_TIMEOUT_US)
    return directory, os.path.join(directory, application.FILE), timeout, param.batch_per_step or DEFAULT_BATCH_PER_STEP


def application_settings(param: Any, num_ipus: int | None = None) -> application.ApplicationSettings:
    """Returns the settings of the application that a conversion writes.

    Args:
        param: an `IpuConversionParams`.
        num_ipus: the number of IPUs that the application runs on; by default the conversion's number.
    """
    directory, _, timeout, _ = extract_emb_setting_from_param(param)
    return application.ApplicationSettings(
        directory=directory,
        timeout_us=timeout,
        num_ipus=num_ipus or param.num_ipus,
        matmul_amp=param.matmul_amp,
        conv_amp=param.conv_amp,
        matmul_partial_type=param.matmul_partial_type,
        conv_partial_type=param.conv_partial_type,
    )


def validate_embedded_runtime_save_config(param: Any) -> None:
    """Checks the embedded-runtime options of a conversion.

    Raises:
        TypeError: `embedded_runtime_save_config` is not a dictionary.
        ValueError: it lacks an entry, or `merge_subgraphs` is set without `int64_to_int32_conversion`.
    """
    config = param.embedded_runtime_save_config
    if not config:
        return
    if not isinstance(config, dict):
        raise TypeError(
            f"Invalid type ({type(config).__name__}) for `embedded_runtime_save_config`. Expected a "
            "dictionary: pass one."
        )
    if param.merge_subgraphs:
        raise ValueError(
            "The `merge_subgraphs` must be false with `merge_subgraphs=False` when `embedded_runtime_save_config` is "
            "set: the application is one program already. Pass merge_subgraphs=False."
        )
    if not param.int64_to_int32_conversion:
        raise ValueError(
            "The `int64_to_int32_conversion` must be True with `int64_to_int32_conversion=True` when "
            "`embedded_runtime_save_config` is set: IPUs have no 64-bit integers. Pass int64_to_int32_conversion=True."
        )
    for key in _EMBEDDED_KEYS:
        if key not in config:
            raise ValueError(
                f"Key '{key}' missing from `embedded_runtime_save_config`. It needs {' and '.join(_EMBEDDED_KEYS)}."
                " Add the key."
            )


def validate_pipeline_cfg(param: Any, kwargs: Mapping[str, Any], behavior: str) -> None:
    """Checks the keys of a pipeline's configuration.

    Args:
        param: an `IpuConversionParams`.
        kwargs: a mapping whose keys are the known ones.
        behavior: the converter that asks: `"auto"`, `"manual"` or `"load"`. Those of another are not checked.

    Raises:
        ValueError: `converter` is missing, or a key is unknown.
    """
    config = param.pipeline_cfg
    if "converter" not in config:
        raise ValueError(
            "`pipeline_cfg` must contain `behavior` keywords: its `converter` is missing. Set `converter`."
        )
    if config["converter"].lower() != behavior:
        return
    for key in config:
        if key not in kwargs:
            raise ValueError(
                f"Unkown keyword {key} in `pipeline_cfg` in {behavior} mode. It can have {', '.join(kwargs)}. Remove "
                "the keyword, or correct its name."
            )


def should_do_embedded_runtime(
    embedded_runtime_save_config: Any, batch_per_step: int, merge_subgraphs: bool, int64_to_int32_conversion: bool
) -> bool:
    """Returns whether a conversion makes an application for the embedded runtime."""
    return bool(
        embedded_runtime_save_config and batch_per_step >= 0 and not merge_subgraphs and int64_to_int32_conversion
    )


def should_do_pipeline_wrapper(
    pipeline_cfg: Any,
    behavior: str,
    embedded_runtime_save_config: Any,
    batch_per_step: int,
    merge_subgraphs: bool,
    int64_to_int32_conversion: bool,
) -> bool:
    """Returns whether a conversion makes a pipeline in this way: `"auto"`, `"manual"` or `"load"`."""
    return bool(
        pipeline_cfg
        and pipeline_cfg.get("converter", "").lower() == behavior
        and should_do_embedded_runtime(
            embedded_runtime_save_config, batch_per_step, merge_subgraphs, int64_to_int32_conversion
        )
    )


def _placed(graph: Any, names: Sequence[str]) -> list[Placed]:
    tensors = [graph.get_tensor_by_name(name) for name in names]
    return [
        (tensor.name, tensor.shape.as_list() if tensor.shape.rank is not None else [], tensor.dtype)
        for tensor in tensors
    ]


def _cast(tensor: Any, dtype: Any) -> Any:
    return tensor if tensor.dtype.base_dtype == dtypes.as_dtype(dtype) else v1.cast(tensor, dtype)
