"""Suppresses TensorFlow's log lines during its import, before `TF_CPP_MIN_LOG_LEVEL` takes effect.

Its libraries of 2.18 and later have lines of information there (oneDNN's rounding, CUDA's drivers), each several times.
On Pythons without TensorFlow 2.15 the package `tensorflow` is installed. It logs errors about CUDA's libraries (2.18),
and about a missing driver with its first device, which is therefore made here. They bypass Python, so the stream is
piped through `grep` during the import. Other lines are shown at once, even if the import ends the process. Checked on
TensorFlow 2.15.1, 2.18.1 and 2.21.0.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

from tf_ipu_shim.imports import post_import_hooks

_STREAM = 2
INFORMATION = (
    r"^WARNING: All log messages before absl::InitializeLog|^I[0-9]{4} [0-9:.]+ +[0-9]+ [a-z_0-9]+\.cc:[0-9]+\]"
    r"|cuda_[a-z]+\.cc:[0-9]+\] (Unable to register cu[A-Z]+ factory|failed call to cuInit: .*\(303\)$)"
)
"""A pattern of such lines."""
_MOST_SECONDS = 1.0


def filter_import_log() -> None:
    """Filters log lines of TensorFlow's import when the script imports it."""
    if "tensorflow" in sys.modules or shutil.which("grep") is None:
        return
    finder = post_import_hooks.PostImportFinder(lambda name: name == "tensorflow", while_loading=_filter_gpu_lines)
    finder.install(
        "TensorFlow's first lines",
        why="lines of information that TensorFlow logs while it is imported, at any level, are not shown",
    )


@contextlib.contextmanager
def _filter_gpu_lines() -> Iterator[None]:
    with filter_stderr():
        yield
        _list_gpus()


def _list_gpus() -> None:
    """Makes CUDA's library report the missing driver now (error 303), once a process; 1 ms without one."""
    tensorflow = sys.modules["tensorflow"]
    if "sysconfig" in dir(tensorflow) and tensorflow.sysconfig.get_build_info().get("is_cuda_build"):
        from tf_ipu_shim import tf_private

        tf_private.list_physical_devices()


@contextlib.contextmanager
def filter_stderr() -> Iterator[None]:
    """Leaves such lines out of the process's error stream."""
    sys.stderr.flush()
    shown = os.dup(_STREAM)
    command = ["grep", "--text", "--line-buffered", "--invert-match", "--extended-regexp", INFORMATION]
    read, written = os.pipe()
    lines = subprocess.Popen(command, stdin=read, stdout=shown, start_new_session=True)
    os.close(read)
    os.dup2(written, _STREAM)
    os.close(written)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(shown, _STREAM)
        os.close(shown)
        with contextlib.suppress(subprocess.TimeoutExpired):  # a process that the import has started may hold it
            lines.wait(_MOST_SECONDS)
