"""`tensorflow.python.ipu.test_utils`: helpers of Graphcore's own tests. What reads Poplar's reports is refused."""

from tf_ipu_shim.ipu.test_utils.dataset_utils import (
    create_dual_increasing_dataset,
    create_multi_increasing_dataset,
    create_single_increasing_dataset,
)
from tf_ipu_shim.ipu.test_utils.events_utils import (
    enable_ipu_events,
    extract_all_events,
    extract_all_strings_from_event_trace,
    extract_all_types_from_event_trace,
)
from tf_ipu_shim.ipu.test_utils.report_helper import ReportHelper, missing_whitelist_entries_in_names
from tf_ipu_shim.ipu.test_utils.session_utils import ipu_session, move_variable_initialization_to_cpu
from tf_ipu_shim.ipu.test_utils.test_case_extensions import TestCaseExtensions

__all__ = [
    "ReportHelper",
    "TestCaseExtensions",
    "create_dual_increasing_dataset",
    "create_multi_increasing_dataset",
    "create_single_increasing_dataset",
    "enable_ipu_events",
    "extract_all_events",
    "extract_all_strings_from_event_trace",
    "extract_all_types_from_event_trace",
    "ipu_session",
    "missing_whitelist_entries_in_names",
    "move_variable_initialization_to_cpu",
]
