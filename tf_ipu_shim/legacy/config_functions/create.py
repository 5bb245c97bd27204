"""`create_ipu_config`: creates an `IpuOptions`, the configuration before `IPUConfig`."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.configuration import translate, types
from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.configuration.enums import ExecutionProfileType, SchedulingAlgorithm, SelectionOrder
from tf_ipu_shim.legacy.config_functions.deprecation import replaced_by_ipu_config

_SCHEDULERS = {
    "": SchedulingAlgorithm.CHOOSE_BEST,
    "Clustering": SchedulingAlgorithm.CLUSTERING,
    "PostOrder": SchedulingAlgorithm.POST_ORDER,
    "LookAhead": SchedulingAlgorithm.LOOK_AHEAD,
    "ShortestPath": SchedulingAlgorithm.SHORTEST_PATH,
}


@replaced_by_ipu_config
@argument_order(
    12,
    "disable_graph_convolution_caching disable_graph_outlining retain_control_dependencies "
    "max_cross_replica_sum_buffer_size max_inter_ipu_copies_buffer_size max_scheduler_lookahead_depth "
    "max_scheduler_search_space_size prefetch_data_streams selection_order "
    "enable_experimental_remote_buffer_embedding",
    until=(2, 0),
)
def create_ipu_config(
    profiling: bool = False,
    enable_ipu_events: bool = False,
    use_poplar_text_report: bool = False,
    use_poplar_cbor_report: bool = False,
    profile_execution: Any = None,
    enable_poplar_serialized_graph: bool = False,
    report_every_nth_execution: int = 0,
    max_report_size: int = 0x10000000,
    report_directory: str = "",
    scheduler_selection: SchedulingAlgorithm | str = SchedulingAlgorithm.CHOOSE_BEST,
    always_rearrange_copies_on_the_host: bool = False,
    merge_infeed_io_copies: bool = False,
    disable_graph_outlining: bool = False,
    max_scheduler_lookahead_depth: int = 5,
    max_scheduler_search_space_size: int = 64,
    prefetch_data_streams: bool = True,
    selection_order: SelectionOrder | None = SelectionOrder.AUTO,
    enable_experimental_remote_buffer_embedding: bool = False,
    disable_graph_convolution_caching: bool = False,
    retain_control_dependencies: bool = False,
    max_cross_replica_sum_buffer_size: int = 0,
    max_inter_ipu_copies_buffer_size: int = 0,
) -> Any:
    """Creates an `IpuOptions` for the `set_*` functions and `configure_ipu_system`.

    Args:
        profiling: make compilation reports and trace events.
        enable_ipu_events: make trace events only.
        use_poplar_text_report: reports as text.
        use_poplar_cbor_report: reports as CBOR.
        profile_execution: True, False or an `ExecutionProfileType`; needs `profiling`.
        enable_poplar_serialized_graph: the graph in trace events.
        report_every_nth_execution: runs per report; 0 for one report.
        max_report_size: bytes a report may have.
        report_directory: directory for reports.
        scheduler_selection: a `SchedulingAlgorithm`, or its older name such as `Clustering`.
        always_rearrange_copies_on_the_host: change the layout of streams on the host.
        merge_infeed_io_copies: make one copy of an infeed's several.
        disable_graph_outlining: do not let equal parts of the graph share code.
        max_scheduler_lookahead_depth: how far the look-ahead scheduler searches.
        max_scheduler_search_space_size: how widely it searches.
        prefetch_data_streams: fetch data from the host while the device computes.
        selection_order: order in which shards use IPUs.
        enable_experimental_remote_buffer_embedding: keep host embeddings in remote buffers.
        disable_graph_convolution_caching: do not let equal convolutions share code (SDK 1.4 and older).
        retain_control_dependencies: refused, as in SDK 1.4.
        max_cross_replica_sum_buffer_size: bytes up to which all-reduces wait to be sent together.
        max_inter_ipu_copies_buffer_size: the same for copies between IPUs.

    Returns:
        An `IpuOptions`.

    Raises:
        Exception: if the profiling arguments contradict each other, or control dependencies are to be retained.
        TypeError: if the scheduler is unknown, or an argument is of another type.

    Source: `tensorflow.python.ipu.utils` (SDK 1.2 to 2.3).

    Example:
        >>> options = ipu.utils.auto_select_ipus(create_ipu_config(), 2)
        >>> options.device_config[0].auto_count
        2
    """
    if profiling and enable_ipu_events:
        raise Exception(
            "`profiling` and `enable_ipu_events` are mutually exclusive: the first includes the events of the second."
        )
    if retain_control_dependencies:
        raise Exception("`retain_control_dependencies` is deprecated and has no replacement. Leave it out.")
    profile = _profile(profile_execution)
    if profile is not ExecutionProfileType.NO_PROFILE and not profiling:
        raise Exception("`profiling` is required when `profile_execution` is set. Set both, or none.")

    if not isinstance(selection_order, (SelectionOrder, type(None))):
        raise TypeError(
            f"`selection_order` must be one of {types.members(SelectionOrder)}, not {selection_order!r}. Pass one of "
            "these."
        )
    options = translate.old_defaults()
    options.profiling.enable_compilation_trace = profiling
    options.profiling.enable_io_trace = profiling
    options.profiling.execution_trace_type = profile.value
    options.profiling.enable_ipu_trace_events = profiling or enable_ipu_events
    options.profiling.enable_poplar_reports_text = use_poplar_text_report
    options.profiling.enable_poplar_reports_cbor = use_poplar_cbor_report
    options.profiling.enable_poplar_graph = enable_poplar_serialized_graph
    options.profiling.report_every_nth_execution = report_every_nth_execution
    options.profiling.max_report_size = max_report_size
    options.profiling.report_directory = report_directory
    options.speed_size_config.scheduler_selection = _scheduler(scheduler_selection).value
    options.speed_size_config.always_rearrange_copies_on_the_host = always_rearrange_copies_on_the_host
    options.speed_size_config.merge_infeed_io_copies = merge_infeed_io_copies
    options.speed_size_config.disable_graph_outlining = disable_graph_outlining
    options.disable_graph_convolution_caching = disable_graph_convolution_caching
    options.max_cross_replica_sum_buffer_size = max_cross_replica_sum_buffer_size
    options.max_inter_ipu_copies_buffer_size = max_inter_ipu_copies_buffer_size
    options.max_scheduler_lookahead_depth = max_scheduler_lookahead_depth
    options.max_scheduler_search_space_size = max_scheduler_search_space_size
    options.prefetch_data_streams = prefetch_data_streams
    options.selection_order = (selection_order or SelectionOrder.AUTO).value
    options.enable_experimental_remote_buffer_embedding = enable_experimental_remote_buffer_embedding
    return options


def _profile(value: Any) -> ExecutionProfileType:
    if value is None or isinstance(value, bool):
        return ExecutionProfileType.DEVICE_PROFILE if value else ExecutionProfileType.NO_PROFILE
    if not isinstance(value, ExecutionProfileType):
        raise Exception(f"`profile_execution` must be True, False, or an ExecutionProfileType; received {value!r}.")
    return value


def _scheduler(value: SchedulingAlgorithm | str) -> SchedulingAlgorithm:
    if isinstance(value, str) and value not in _SCHEDULERS:
        raise TypeError(
            f"Could not convert '{value}' to a valid SchedulingAlgorithm. Use a member of it, or one of "
            f"{', '.join(name for name in _SCHEDULERS if name)}."
        )
    return _SCHEDULERS[value] if isinstance(value, str) else SchedulingAlgorithm(value)
