"""Report and trace event options of SDKs up to 2.3."""

from __future__ import annotations

from typing import Union

from tf_ipu_shim.configuration.enums import ExecutionProfileType
from tf_ipu_shim.configuration.table.option import Option
from tf_ipu_shim.machine.environment import reasons
from tf_ipu_shim.machine.environment.effects import OUTPUT, RECORDED

_PROFILE = Union[ExecutionProfileType, bool]
_EVENTS = {
    "profiling": "trace events of compilations, with reports, runs and transfers; a program that does not fit may run "
    "to its report",
    "enable_ipu_events": "trace events of compilations and runs",
    "profile_execution": "whether events of runs have a report; whichever kind is asked for, it is the same",
    "report_every_nth_execution": "which runs have a report in their events",
    "max_report_size": "which reports are left out of events",
    "report_directory": "reports are files, and events have their paths",
}

OPTIONS: tuple[Option, ...] = (
    *(
        Option(
            f"_profiling.{name}",
            default,
            doc,
            f"profiling.{field}",
            annotation,
            until=(2, 3),
            older=older,
            effect=OUTPUT if name in _EVENTS else RECORDED,
            meaning=_EVENTS.get(name, reasons.REPORTS),
        )
        for name, default, doc, field, annotation, older in (
            ("profiling", False, "Make compilation reports and trace events.", "enable_compilation_trace", None, ()),
            ("enable_ipu_events", False, "Make trace events only.", "enable_ipu_trace_events", None, ()),
            ("use_poplar_text_report", False, "Reports as text.", "enable_poplar_reports_text", None, ()),
            ("use_poplar_cbor_report", False, "Reports as CBOR.", "enable_poplar_reports_cbor", None, ()),
            (
                "profile_execution",
                ExecutionProfileType.NO_PROFILE,
                "How fine the execution profile is; True for one figure for the device.",
                "execution_trace_type",
                _PROFILE,
                (),
            ),
            ("enable_poplar_serialized_graph", False, "The graph in trace events.", "enable_poplar_graph", None, ()),
            ("report_every_nth_execution", 0, "Runs per report; 0 for one.", "report_every_nth_execution", None, ()),
            ("max_report_size", 0x10000000, "Bytes a report may have.", "max_report_size", None, ()),
            ("report_directory", "", "Directory for reports.", "report_directory", None, ()),
            ("graph_poplar_options", dict, "Options of graph reports.", "graph_options", None, ()),
            ("execution_poplar_options", dict, "Options of execution reports.", "execution_options", None, ()),
            (
                "auto_assign_report_subdirectories",
                True,
                "A report directory for each program.",
                "auto_assign_report_subdirectories",
                None,
                (((2, 1), bool, False),),
            ),
        )
    ),
)
