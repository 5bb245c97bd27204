"""`IpuOptions` functions for the options of the Poplar libraries, as dictionaries of strings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tf_ipu_shim.configuration import translate
from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.legacy.config_functions.deprecation import replaced_by_ipu_config

_Options = Mapping[str, str]


def _append(flags: Any, options: Any, name: str, error: type[Exception] = Exception) -> None:
    if options:
        if not isinstance(options, dict):
            raise error(f"`{name}` must be a dictionary from text to text; received a {type(options).__name__}.")
        translate.set_flags(flags, options, f"`{name}`")


@replaced_by_ipu_config
def set_compilation_options(opts: Any, compilation_options: _Options | None = None) -> Any:
    """Sets options of the Poplar engine, such as `debug.allowOutOfMemory`.

    Args:
        opts: an `IpuOptions`; it is changed.
        compilation_options: name to value, both text.

    Returns:
        `opts`.

    Raises:
        Exception: if it is not a dictionary.
        TypeError: if a name or value is not text.

    Source: `tensorflow.python.ipu.utils` (SDK 1.2 to 2.3).

    Example:
        >>> options = ipu.utils.create_ipu_config()
        >>> len(set_compilation_options(options, {"debug.allowOutOfMemory": "true"}).compilation_options)
        1
    """
    _append(opts.compilation_options, compilation_options, "compilation_options")
    return opts


@replaced_by_ipu_config
def set_convolution_options(opts: Any, convolution_options: _Options | None = None) -> Any:
    """Sets options of PopLibs convolutions, such as `partialsType`.

    Arguments, result, exceptions and source as for `set_compilation_options`.
    """
    _append(opts.convolution_options, convolution_options, "convolution_options")
    return opts


@replaced_by_ipu_config
def set_matmul_options(opts: Any, matmul_options: _Options | None = None, clear_pass_type: bool = False) -> Any:
    """Sets options of PopLibs matmuls, such as `availableMemoryProportion`.

    Arguments, result, exceptions and source as for `set_compilation_options`; with `clear_pass_type`, PopLibs is not
    told whether a matmul belongs to the forward or the backward pass.
    """
    _append(opts.matmul_options, matmul_options, "matmul_options")
    opts.clear_matmul_pass_type = clear_pass_type
    return opts


@replaced_by_ipu_config
def set_pooling_options(opts: Any, pooling_options: _Options | None = None) -> Any:
    """Sets options of PopLibs pooling.

    Arguments, result, exceptions and source as for `set_compilation_options`.
    """
    _append(opts.pooling_options, pooling_options, "pooling_options")
    return opts


@replaced_by_ipu_config
def set_gcl_options(opts: Any, gcl_options: _Options | int | None = None, num_io_tiles: int | _Options = 0) -> Any:
    """Sets options of the collectives library.

    Arguments, result and source as for `set_compilation_options`. `num_io_tiles` was the first argument up to SDK 1.4,
    so a number instead of `gcl_options` is used as it.

    Raises:
        TypeError: if the options are not a dictionary of strings.
    """
    if isinstance(gcl_options, int) and not isinstance(gcl_options, bool):
        first: Any = gcl_options
        second: Any = num_io_tiles
        num_io_tiles, gcl_options = first, second or None
    _append(opts.gcl_options, gcl_options, "gcl_options", TypeError)
    if num_io_tiles:
        translate.set_number(opts, "num_io_tiles", num_io_tiles, "`num_io_tiles`")
    return opts


@replaced_by_ipu_config
@argument_order(1, "report_options graph_options execution_options", until=(2, 0))
def set_report_options(
    opts: Any,
    graph_options: _Options | None = None,
    execution_options: _Options | None = None,
    report_options: _Options | None = None,
) -> Any:
    """Sets options of graph and execution reports; `report_options` is the older name of `graph_options`.

    Arguments, result, exceptions and source as for `set_compilation_options`.
    """
    _append(opts.profiling.graph_options, report_options, "report_options")
    _append(opts.profiling.graph_options, graph_options, "graph_options")
    _append(opts.profiling.execution_options, execution_options, "execution_options")
    return opts
