"""`tensorflow.python.ipu.test_utils`: datasets, sessions, reports and assertions that Graphcore's own tests use."""

# Not lazy: its import gives every `tf.test.TestCase` the assertions.
from tf_ipu_shim.api.ipu.test_utils import test_case_extensions as test_case_extensions
from tf_ipu_shim.api.lazy_modules import lazy

__getattr__, __dir__ = lazy(
    __name__,
    "",
    {
        "dataset_utils": (
            "create_dual_increasing_dataset create_multi_increasing_dataset create_single_increasing_dataset"
        ),
        "events_utils": (
            "enable_ipu_events extract_all_events extract_all_strings_from_event_trace "
            "extract_all_types_from_event_trace"
        ),
        "hardware_test_utils": (
            "add_hw_ci_connection_options get_ci_num_ipus has_ci_ipus skip_if_not_enough_ipus skip_on_hw "
            "skip_with_asan test_may_use_ipus_or_model test_uses_ipus"
        ),
        "report_helper": "ReportHelper ReportJSON TensorMap missing_whitelist_entries_in_names",
        "session_utils": "ipu_session move_variable_initialization_to_cpu",
        "test_case_extensions": "TestCaseExtensions",
    },
)
