"""`ipu_tensorflow_addons.saved_model_tool.converter.autograph.utils`: graph loading, saving and configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow.compat.v1 as v1
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.configuration.tree import IPUConfig
from tf_ipu_shim.frontend.conversion import system_options


def convert_graph_def_to_graph(graph_def: Any) -> Any:
    """Returns a `tf.Graph` of a `GraphDef`, with its names."""
    with v1.Graph().as_default() as graph:
        v1.import_graph_def(graph_def, name="")
    return graph


def import_from_graph(tf_graph: Any) -> Any:
    """Returns a copy of a `tf.Graph`, with its names."""
    return convert_graph_def_to_graph(tf_graph.as_graph_def(add_shapes=True))


def load_tf_graph(
    model_path: str, with_meta_graph: bool = True, tag: str = v1.saved_model.tag_constants.SERVING
) -> tuple[Any, Any]:
    """Returns the graph of a SavedModel or of a frozen `GraphDef`.

    Args:
        model_path: the SavedModel's directory; without `with_meta_graph`, the file of a binary `GraphDef`.
        with_meta_graph: whether it is a SavedModel.
        tag: selects one of the SavedModel's graphs.

    Returns:
        The `tf.Graph`, and the `MetaGraphDef` or None.
    """
    if with_meta_graph:
        with v1.Graph().as_default() as graph, v1.Session() as session:
            meta_graph_def = v1.saved_model.loader.load(session, [tag], model_path)
        return graph, meta_graph_def
    with open(model_path, "rb") as file:
        return convert_graph_def_to_graph(v1.GraphDef.FromString(file.read())), None


def analyze_pb_inputs_outputs(graph: Any) -> tuple[list[Any], list[Any]]:
    """Returns the operations of a graph that are placeholders, and the operations whose results nothing reads."""
    operations = graph.get_operations()
    inputs = [operation for operation in operations if operation.type == "Placeholder"]
    outputs = [
        operation
        for operation in operations
        if operation.outputs and not any(tensor.consumers() for tensor in operation.outputs)
    ]
    return inputs, outputs


def tf_type_to_str_type(tf_type: Any) -> str:
    """Returns the name of a dtype: `"float32"`."""
    return str(dtypes.as_dtype(tf_type).name)


def str_type_to_tf_type(str_type: str) -> Any:
    """Returns the dtype of a name: `"float32"`."""
    return dtypes.as_dtype(str_type)


def next_power_of_two(x: int) -> int:
    """Returns the smallest power of two that is not less: 4 for 3.

    Example:
        >>> next_power_of_two(3), next_power_of_two(4)
        (4, 4)
    """
    return 1 << max(x - 1, 0).bit_length()


def get_ipu_config(
    num_required_ipus: int = 1,
    ipu_id: int | Sequence[int] | None = None,
    matmul_amp: float | None = None,
    conv_amp: float | None = None,
    matmul_partial_type: str | None = None,
    conv_partial_type: str | None = None,
) -> Any:
    """Returns an `IPUConfig`.

    Args:
        num_required_ipus: how many IPUs to use.
        ipu_id: the Poplar device to use, instead of any device with that many IPUs.
        matmul_amp: the part of a tile's memory, 0.0 to 1.0, for temporary values of matrix multiplications.
        conv_amp: the same for convolutions.
        matmul_partial_type: `"float"` or `"half"`: the dtype in which matmuls accumulate.
        conv_partial_type: the same for convolutions.

    Source: `ipu_tensorflow_addons.saved_model_tool.converter.autograph.utils.get_ipu_config`.

    Example:
        >>> get_ipu_config(2, matmul_amp=0.3).matmuls.poplar_options
        {'availableMemoryProportion': '0.3'}
    """
    config = IPUConfig()
    if ipu_id is None:
        config.auto_select_ipus = num_required_ipus
    else:
        config.select_ipus = ipu_id
    config.matmuls.poplar_options = system_options.poplar_options(matmul_amp, matmul_partial_type)
    config.convolutions.poplar_options = system_options.poplar_options(conv_amp, conv_partial_type)
    return config


def configure_ipu(config: Any) -> None:
    """Configures the system.

    Raises:
        TypeError: it is not an `IPUConfig`.
    """
    if not isinstance(config, IPUConfig):
        raise TypeError(
            f"Config should be of type `ipu.config.IPUConfig`, not {type(config).__name__}. Pass an "
            "ipu.config.IPUConfig."
        )
    config.configure_ipu_system()
