"""Writes the trace of a profile as TensorBoard's profiler reads it: a trace file, or an XSpace with a plane per IPU.

Of an XSpace, the profiler offers each of its tools, and all but the trace viewer are empty for IPUs. For a trace file
it shows only the trace viewer, but the profiler based on `xprof` does not read such files. It keeps the tools of a run
in a file, which is written here. If it finds that file outdated, it offers all tools again. Checked on xprof 2.24.2.
"""

from __future__ import annotations

import collections
import datetime
import gzip
import importlib.util
import json
import pathlib
from typing import Any

from tf_ipu_shim.profiling.profile import Profile, parse_facts
from tf_ipu_shim.profiling.trace import make_trace

_PROFILER, _WITHOUT_TRACE_FILES = "tensorboard_plugin_profile", "xprof"
_PLANE = "/device:CUSTOM:IPU {}"  # the plugin shows planes of hosts, GPUs, TPUs and custom devices
# TensorFlow 2.15 reads this one whether it is there or not (`ProcessMegascaleDcn`), and crashes where it is not.
_HOST_PLANE = "/host:CPU"
_TOOLS_FILE, _TOOLS_VERSION = ".cached_tools.json", 1
_PICOSECONDS = 1e6  # in a microsecond


def write_log(profile: Profile, log_dir: str) -> pathlib.Path:
    """Writes the trace of one run to the directory that TensorBoard searches."""
    program = parse_facts(profile)["program"]
    run = f"{datetime.datetime.now():%Y_%m_%d_%H_%M_%S_%f}_{program}".replace("/", "_")
    folder = pathlib.Path(log_dir, "plugins", "profile", run)
    folder.mkdir(parents=True)
    if _reads_trace_files():
        path = folder / "ipu.trace.json.gz"
        path.write_bytes(gzip.compress(json.dumps(make_trace(profile)).encode()))
    else:
        path = folder / "ipu.xplane.pb"
        path.write_bytes(make_xspace(profile).SerializeToString())
        (folder / _TOOLS_FILE).write_text(json.dumps(_tools(path)))
    return path


def _tools(path: pathlib.Path) -> dict[str, Any]:
    """Returns the tools that have data of an XSpace, as `xprof` keeps them: with the time and the size of its file."""
    status = path.stat()
    files = {path.name: f"{int(status.st_mtime)}-{status.st_size}"}
    return {"version": _TOOLS_VERSION, "files": files, "tools": ["trace_viewer@"]}


def _reads_trace_files() -> bool:
    """Whether the installed profiler reads trace files; an XSpace works with all versions, if none is installed."""
    return importlib.util.find_spec(_PROFILER) is not None and importlib.util.find_spec(_WITHOUT_TRACE_FILES) is None


def make_xspace(profile: Profile) -> Any:
    """Returns the trace of one run in the form of TensorFlow's profiler."""
    from tf_ipu_shim.tf_private.profiler_protos import xplane_pb2

    space = xplane_pb2.XSpace(hostnames=["ipu"])
    space.planes.add(id=len(profile.ipus), name=_HOST_PLANE)
    planes: dict[int, _PlaneBuilder] = {}
    for event in make_trace(profile)["traceEvents"]:
        ipu = event["pid"]
        if ipu not in planes:
            planes[ipu] = _PlaneBuilder(space.planes.add(id=ipu, name=_PLANE.format(ipu)))
        if event["ph"] == "X":
            planes[ipu].add(event)
        elif event["name"] == "thread_name":
            planes[ipu].track(event["tid"], event["args"]["name"])
    return space


class _PlaneBuilder:
    """An IPU: names and values are numbers in its events."""

    def __init__(self, plane: Any) -> None:
        self._plane = plane
        self._lines: dict[int, Any] = {}
        self._names: dict[str, int] = collections.defaultdict(lambda: len(self._names) + 1)
        self._stats: dict[str, int] = collections.defaultdict(lambda: len(self._stats) + 1)

    def track(self, track_id: int, name: str) -> None:
        self._lines[track_id] = self._plane.lines.add(id=track_id, name=name, display_name=name)

    def add(self, event: dict[str, Any]) -> None:
        metadata_id = self._names[event["name"]]
        metadata = self._plane.event_metadata[metadata_id]
        metadata.id, metadata.name = metadata_id, event["name"]
        added = self._lines[event["tid"]].events.add(
            metadata_id=metadata_id,
            offset_ps=round(event["ts"] * _PICOSECONDS),
            duration_ps=round(event["dur"] * _PICOSECONDS),
        )
        for key, value in event["args"].items():
            stat = self._stats[key]
            self._plane.stat_metadata[stat].id, self._plane.stat_metadata[stat].name = stat, key
            if isinstance(value, str):
                added.stats.add(metadata_id=stat, str_value=value)
            else:
                added.stats.add(metadata_id=stat, double_value=float(value))
