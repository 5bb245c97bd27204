"""Validates the parameters of a SavedModel conversion."""

from __future__ import annotations

import numbers
from typing import Any

from tf_ipu_shim.frontend.conversion import graph_nodes

_GELU_LISTS = ("nodes", "node_as_gelu_input", "node_use_gelu_output")
_BOOLS = ("ipu_placement", "remove_excluded_nodes", "merge_subgraphs", "int64_to_int32_conversion")
_PARTIALS = ("float", "half")


def check_params(params: Any) -> None:
    """Checks an `IpuConversionParams`."""
    if not isinstance(params.num_ipus, numbers.Integral) or params.num_ipus <= 0:
        raise ValueError(
            f"num_ipus should be an integer, and greater than 0, not {params.num_ipus!r}. Pass an integer of 1 or more."
        )
    if not isinstance(params.batch_per_step, numbers.Integral):
        raise TypeError(f"batch_per_step should be an integer, not {params.batch_per_step!r}. Pass an integer.")
    if params.batch_per_step < 0:
        raise ValueError(f"batch_per_step should be at least 0, not {params.batch_per_step}. Pass at least 0.")
    _check_libraries(params)
    if params.pipeline_cfg is not None and not isinstance(params.pipeline_cfg, dict):
        raise TypeError(f"pipeline_cfg should be a dict, not {params.pipeline_cfg!r}. Pass a dict.")
    if params.excluded_nodes is not None and not isinstance(params.excluded_nodes, list):
        raise TypeError(f"excluded_nodes should be a list, not {params.excluded_nodes!r}. Pass a list.")
    for name in _BOOLS:
        value = getattr(params, name)
        if not isinstance(value, bool):
            raise ValueError(f"{name} should be True or False, not {value!r}. Pass True or False.")
    _check_gelu(params.gelu_replacement)
    _check_sharding(params.manual_sharding)
    config = params.embedded_runtime_save_config
    if config is not None and not isinstance(config, dict):
        raise TypeError(f"embedded_runtime_save_config should be a dict, not {config!r}. Pass a dict.")


def _check_libraries(params: Any) -> None:
    for name in ("matmul_amp", "conv_amp"):
        part = getattr(params, name)
        if isinstance(part, bool) or not isinstance(part, (int, float)) or not 0.0 <= part <= 1.0:
            raise ValueError(
                f"{name} is a part of the memory and should be from 0.0 to 1.0, not {part!r}. Pass a value in this "
                "range."
            )
    for name in ("matmul_partial_type", "conv_partial_type"):
        if getattr(params, name) not in _PARTIALS:
            raise ValueError(
                f"{name} should be one of {', '.join(_PARTIALS)}, not {getattr(params, name)!r}. Pass one of these."
            )


def _check_gelu(config: Any) -> None:
    if config is None:
        return
    if not isinstance(config, dict):
        raise ValueError(f"gelu_replacement should be a dict, not {config!r}. Pass a dict.")
    missing = [key for key in _GELU_LISTS if key not in config]
    if missing:
        raise ValueError(
            f"Missing items from gelu: {', '.join(missing)}. gelu must have {', '.join(_GELU_LISTS)}. Add the missing "
            "items."
        )
    for key in _GELU_LISTS:
        if not isinstance(config[key], list):
            raise ValueError(f"gelu_replacement['{key}'] should be a list, not {config[key]!r}. Pass a list.")


def _check_sharding(shards: Any) -> None:
    if shards is None:
        return
    if not isinstance(shards, list):
        raise TypeError(f"manual_sharding should be a list of lists of strings, not {shards!r}. Pass a list.")
    graph_nodes.check_pattern_lists(shards, "manual_sharding")
