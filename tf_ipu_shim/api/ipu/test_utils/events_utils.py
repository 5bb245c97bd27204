"""`tensorflow.python.ipu.test_utils.events_utils`: counts and asserts the driver's trace events."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.frontend.utilities.events import (
    extract_all_events,
    extract_all_strings_from_event_trace,
    extract_all_types_from_event_trace,
)

__all__ = [
    "enable_ipu_events",
    "extract_all_events",
    "extract_all_strings_from_event_trace",
    "extract_all_types_from_event_trace",
]


def enable_ipu_events(ipu_config: Any) -> None:
    """Turns on event recording in a configuration: of programs, and of transfers. No option of SDK 3 does it.

    Args:
        ipu_config: an `IPUConfig` that is not applied yet.

    Source: `tensorflow.python.ipu.test_utils.events_utils.enable_ipu_events`.

    Example:
        >>> config = ipu.config.IPUConfig()
        >>> enable_ipu_events(config)
    """
    create_protobuf = ipu_config._create_protobuf

    def with_events() -> Any:
        options = create_protobuf()
        profiling = options.profiling
        profiling.enable_ipu_trace_events = profiling.enable_compilation_trace = profiling.enable_io_trace = True
        return options

    object.__setattr__(ipu_config, "_create_protobuf", with_events)  # the set of options is closed
