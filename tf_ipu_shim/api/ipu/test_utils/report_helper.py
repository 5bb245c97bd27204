"""`tensorflow.python.ipu.test_utils.report_helper`: collects profiles and trace events of a test's programs."""

from __future__ import annotations

import fnmatch
import json
import pathlib
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

from tf_ipu_shim.api.poplar.ops import gen_ipu_ops
from tf_ipu_shim.frontend.utilities import events as trace_events
from tf_ipu_shim.frontend.utilities.tensor_map import TensorMap
from tf_ipu_shim.machine.environment import engine_options
from tf_ipu_shim.messages import trace_pb2
from tf_ipu_shim.profiling import writer
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.sessions import session as session_lib

__all__ = ["ReportHelper", "ReportJSON", "TensorMap", "missing_whitelist_entries_in_names"]

_Event = trace_pb2.IpuTraceEvent


def missing_whitelist_entries_in_names(names: Iterable[str], whitelist: Iterable[str]) -> list[str]:
    """Returns the entries of a list that are in no name.

    Args:
        names: the names to look through.
        whitelist: parts of names; `*` and `?` match any text and any letter.

    Source: `tensorflow.python.ipu.test_utils.report_helper.missing_whitelist_entries_in_names`.

    Example:
        >>> missing_whitelist_entries_in_names(["Copy_1", "add.2/Op"], ["Copy_", "host"])
        ['host']
    """
    names = list(names)
    return [entry for entry in whitelist if not fnmatch.filter(names, f"*{entry}*")]


class ReportHelper:
    """A separate directory for the profiles of a test. It is removed with the helper.

    Source: `tensorflow.python.ipu.test_utils.report_helper.ReportHelper`.

    Example:
        >>> config, helper = ipu.config.IPUConfig(), ReportHelper()
        >>> helper.set_autoreport_options(config)
        >>> config.configure_ipu_system()
        >>> helper.find_reports()
        []
    """

    def __init__(self) -> None:
        """Makes the directory."""
        self._directory = tempfile.mkdtemp(prefix="tf_ipu_reports_")
        weakref.finalize(self, shutil.rmtree, self._directory, ignore_errors=True)

    def set_autoreport_options(
        self,
        cfg: Any,
        output_graph_profile: bool = True,
        output_execution_profile: bool = False,
        max_execution_reports: int = 1000,
    ) -> None:
        """Sets a configuration to write profiles into the directory.

        Args:
            cfg: an `IPUConfig` that is not applied yet.
            output_graph_profile: whether profiles have variables and liveness.
            output_execution_profile: whether they count runs.
            max_execution_reports: the largest number of runs of a program that they count.
        """
        cfg.compilation_poplar_options = {
            **cfg.compilation_poplar_options,
            engine_options.REPORT_DIRECTORY: self._directory,
            engine_options.REPORT_GRAPH: str(bool(output_graph_profile)).lower(),
            engine_options.REPORT_EXECUTION: str(bool(output_execution_profile)).lower(),
            engine_options.REPORT_RUNS: str(int(max_execution_reports)),
        }

    def find_reports(self) -> list[str]:
        """Returns the paths of all profiles, the oldest first."""
        return sorted(map(str, pathlib.Path(self._directory).glob(f"{writer.PREFIX}*/{writer.FILE}")))

    def find_report(self) -> str:
        """Returns the path of the only profile.

        Raises:
            AssertionError: there is none, or there are several.
        """
        reports = self.find_reports()
        if len(reports) != 1:
            raise AssertionError(
                f"Expected one profile in {self._directory}, and there are {len(reports)}: {reports}. "
                "clear_reports() removes those of programs that ran before. Call clear_reports() before the program "
                "runs."
            )
        return reports[0]

    def clear_reports(self) -> None:
        """Removes all profiles."""
        for folder in pathlib.Path(self._directory).iterdir():
            shutil.rmtree(folder, ignore_errors=True)


class ReportJSON:
    """The trace events of a test's programs.

    Args:
        test: the test case, whose assertions are used.
        sess: the session whose events are read; None if each call receives one.
        eager_mode: whether events are read without a session.

    Source: `tensorflow.python.ipu.test_utils.report_helper.ReportJSON`.

    Example:
        >>> class Events(tf.test.TestCase):
        ...     def test_no_program(self):
        ...         report = ReportJSON(self, eager_mode=True)
        ...         report.reset()
        ...         report.parse_log(assert_len=0)
    """

    def __init__(self, test: Any, sess: Any = None, eager_mode: bool = False) -> None:
        self.test = test
        self.session = sess
        self.eager_mode = eager_mode
        self.create_ipu_event_trace()
        self._events: list[Any] = []

    def create_ipu_event_trace(self) -> None:
        """Makes the op that reads events, in the session's graph: before that is finalised."""
        self._op: Any = None
        if self.eager_mode:
            return
        graph = getattr(self.session, "graph", None)
        if graph is None:
            self._op = gen_ipu_ops.ipu_event_trace()
        elif not graph.finalized:
            with graph.as_default(), ops.device("/device:CPU:0"):  # a test may make its report in an IPU's scope
                self._op = gen_ipu_ops.ipu_event_trace()

    def get_event_trace(self, session: Any = None) -> Any:
        """Removes and returns the events so far, serialised.

        Args:
            session: a session to read them in, instead of the helper's own.

        Raises:
            ValueError: there is no session.
        """
        if self.eager_mode:
            return gen_ipu_ops.ipu_event_trace().numpy()
        running = session or self.session or session_lib.get_default_session()
        if running is None:
            raise ValueError(
                "ReportJSON has no session to read events in, and needs one in graph mode. Pass sess or "
                "session, or eager_mode=True."
            )
        return running.run(self._op)

    def get_ipu_events(self, session: Any = None) -> list[Any]:
        """Removes and returns the events so far, as `IpuTraceEvent` messages."""
        return self.get_events_from_log(self.get_event_trace(session))

    @staticmethod
    def get_events_from_log(log: Any) -> list[Any]:
        """Serialised events as `IpuTraceEvent` messages."""
        return trace_events.extract_all_events(log)

    def reset(self) -> None:
        """Forgets the events so far."""
        self.get_event_trace()
        self._events = []

    def parse_log(self, assert_len: int | None = None, assert_msg: str = "", session: Any = None) -> dict[int, int]:
        """Removes the events so far and keeps them for the methods that follow; see `parse_events`."""
        return self.parse_events(self.get_ipu_events(session), assert_len, assert_msg)

    def parse_events(
        self, events: Iterable[Any], assert_len: int | None = None, assert_msg: str = ""
    ) -> dict[int, int]:
        """Looks at events.

        Args:
            events: `IpuTraceEvent` messages, or serialised ones as `ipu_event_trace` returns them.
            assert_len: how many there must be; None for any number.
            assert_msg: shown if there are others.

        Returns:
            The number of events of each `IpuTraceEvent.Type`.
        """
        self._events = [_Event.FromString(event) if isinstance(event, bytes) else event for event in events]
        if assert_len is not None:
            self.assert_num_events(assert_len, assert_msg)
        event_types = [event.type for event in self._events]
        return {kind: event_types.count(kind) for kind in _Event.Type.values()}

    def assert_num_events(self, num_expected: int, assert_msg: str = "") -> None:
        """Asserts the number of events."""
        event_types = [_Event.Type.Name(event.type) for event in self._events]
        self.test.assertEqual(num_expected, len(event_types), f"{assert_msg} There are: {event_types}")

    def assert_no_event(self, msg: str = "") -> None:
        """Asserts that there are no events."""
        self.assert_num_events(0, msg)

    def _transfers(self, kind: int) -> list[list[str]]:
        """Returns names of the tensors of each transfer."""
        messages = [event.data_transfer.data_transfer for event in self._events if event.type == kind]
        return [[tensor["name"] for tensor in json.loads(message)["tensors"]] for message in messages]

    def assert_contains_host_to_device_transfer_event(self) -> None:
        """Asserts that a tensor was transferred to the device."""
        self.test.assertTrue(self._transfers(_Event.HOST_TO_DEVICE_TRANSFER), "There is no transfer to the device.")

    def assert_contains_device_to_host_transfer_event(self) -> None:
        """Asserts that a tensor was transferred from the device."""
        self.test.assertTrue(self._transfers(_Event.DEVICE_TO_HOST_TRANSFER), "There is no transfer from the device.")

    def assert_num_host_to_device_transfer_events(self, num: int) -> None:
        """Asserts the number of transfers to the device."""
        self.test.assertEqual(num, len(self._transfers(_Event.HOST_TO_DEVICE_TRANSFER)))

    def assert_num_device_to_host_transfer_events(self, num: int) -> None:
        """Asserts the number of transfers from the device."""
        self.test.assertEqual(num, len(self._transfers(_Event.DEVICE_TO_HOST_TRANSFER)))

    def get_host_to_device_event_names(self, event_idx: int = 0) -> list[str]:
        """Returns names of the tensors that went to the device in one transfer; nothing if there was none."""
        return _of_event(self._transfers(_Event.HOST_TO_DEVICE_TRANSFER), event_idx)

    def get_device_to_host_event_names(self, event_idx: int = 0) -> list[str]:
        """Returns names of the tensors that came from the device in one transfer; nothing if there was none."""
        return _of_event(self._transfers(_Event.DEVICE_TO_HOST_TRANSFER), event_idx)

    def assert_host_to_device_event_names(
        self, names: Iterable[str], msg: str | None = None, event_idx: int = 0
    ) -> None:
        """Asserts that one transfer to the device had these tensors, in any order."""
        self.test.assertCountEqual(self.get_host_to_device_event_names(event_idx), list(names), msg)

    def assert_device_to_host_event_names(
        self, names: Iterable[str], msg: str | None = None, event_idx: int = 0
    ) -> None:
        """Asserts that one transfer from the device had these tensors, in any order."""
        self.test.assertCountEqual(self.get_device_to_host_event_names(event_idx), list(names), msg)

    def get_tensor_map(self) -> TensorMap | None:
        """Returns the tensor map of the program that was compiled last; None if none was."""
        json_text = self._compiled("tensor_map")
        return TensorMap(json.loads(json_text)) if json_text else None

    @property
    def tensor_map(self) -> TensorMap | None:
        """As `get_tensor_map()`."""
        return self.get_tensor_map()

    def assert_tensor_input_names(self, *expected_inputs: str) -> None:
        """Asserts the names of the program's first arguments; `*` matches any text and `?` any letter."""
        tensor_map = self.get_tensor_map()
        names = (
            {}
            if tensor_map is None
            else {tensor.inst.split(".")[0]: tensor.name for tensor in tensor_map.all_tensors()}
        )
        for index, expected in enumerate(expected_inputs):
            self.test.assertIn(f"arg{index}", names, f"There is no argument {index}.")
            name = names[f"arg{index}"].removeprefix("XLA_Args/")
            self.test.assertTrue(fnmatch.fnmatchcase(name, expected), f"argument {index} is {name!r}, not {expected}")

    def assert_tensor_inst_name_mappings(self, expected_mappings: Mapping[str, str]) -> None:
        """Asserts that a tensor whose id begins with each key has the name of its value, with the same wildcards."""
        tensor_map = self.get_tensor_map()
        names = {} if tensor_map is None else tensor_map.tensor_inst_name_mappings()
        for inst, expected in expected_mappings.items():
            fitting = [name for instruction, name in names.items() if fnmatch.fnmatchcase(instruction, f"{inst}*")]
            self.test.assertEqual(1, len(fitting), f"There are {list(names)}, of which {len(fitting)} fit {inst!r}.")
            self.test.assertTrue(fnmatch.fnmatchcase(fitting[0], expected), f"{inst!r} is {fitting[0]!r}")

    def assert_pipeline_stages_on_expected_ipu(self, expected_ipus: Iterable[int], tile_per_ipu: int) -> None:
        """Asserts that the stages of the program's pipeline are on these IPUs.

        Args:
            expected_ipus: the expected IPUs of each stage, in order.
            tile_per_ipu: ignored: the event has the IPUs.
        """
        tensor_map = self.get_tensor_map()
        pipelines = [] if tensor_map is None else tensor_map.pipelines
        self.test.assertTrue(pipelines, "No program with a pipeline was compiled.")
        for stages in pipelines:
            self.test.assertEqual([[ipu] for ipu in expected_ipus], stages)

    def get_instruction_info(self) -> dict[str, Any]:
        """Returns the matmuls of the program in the last compilation event; empty without such an event."""
        json_text = self._compiled("instruction_info")
        return json.loads(json_text) if json_text else {}

    def get_ml_type_counts(self) -> list[int]:
        """Returns the numbers of matmuls of inference, of the forward pass, of the backward pass, and of updates."""
        types = list(self.get_instruction_info().get("ml_types", {}).values())
        return [types.count(ml_type) for ml_type in (1, 2, 3, 4)]

    def _compiled(self, field: str) -> str:
        messages = [getattr(event.compile_end, field) for event in self._events if event.type == _Event.COMPILE_END]
        return messages[-1].decode() if messages else ""


def _of_event(transfers: list[list[str]], index: int) -> list[str]:
    return transfers[index] if index < len(transfers) else []
