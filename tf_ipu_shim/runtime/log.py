"""Writes log lines like Graphcore's driver, in TensorFlow's log format."""

from __future__ import annotations

import datetime
import sys

from tf_ipu_shim import sdk
from tf_ipu_shim.machine.environment import log_level
from tf_ipu_shim.machine.ids import Device

_DRIVER = "tensorflow/compiler/plugin/poplar/driver"
# SDK 2.4 and older name this file and line when a device attaches; newer lines are not published, so one is chosen.
_EXECUTOR_UNTIL_2_4 = (f"{_DRIVER}/executor.cc", 660)
_EXECUTOR = (f"{_DRIVER}/poplar_executor.cc", 1619)
_PLATFORM = (f"{_DRIVER}/poplar_platform.cc", 43)

_version_named = False


def info(message: str, source: tuple[str, int] | None = None) -> None:
    """Writes one line with TensorFlow's own prefix, unless the log level is 1 or more; see `log_level`."""
    if enabled():
        _write("I", message, source)


def warning(message: str) -> None:
    """Writes one line as TensorFlow's warnings, unless the log level is 2 or more; see `log_level`."""
    if enabled(2):
        _write("W", message)


def enabled(silent_from: int = 1) -> bool:
    """Returns whether information is logged, see `machine.environment.log_level`."""
    return log_level.enabled(silent_from)


def text(message: str) -> str:
    """Returns a line of the driver's as the plugin writes it, which adds the time: its source and the message.

    Example:
        >>> text("Compiled program step for /device:IPU:0")
        'tensorflow/compiler/plugin/poplar/driver/poplar_executor.cc:1619] Compiled program step for /device:IPU:0'
    """
    return f"{_source(None)}] {message}"


def _source(source: tuple[str, int] | None) -> str:
    file, line = source or (_EXECUTOR_UNTIL_2_4 if sdk.current() <= (2, 4) else _EXECUTOR)
    return f"{file}:{line}"


def _write(severity: str, message: str, source: tuple[str, int] | None = None) -> None:
    if sys.stderr is not None:
        now = datetime.datetime.now().isoformat(sep=" ", timespec="microseconds")
        sys.stderr.write(f"{now}: {severity} {_source(source)}] {message}\n")
        sys.stderr.flush()


def attached(ordinal: Device, num_ipus: int, poplar_id: int) -> None:
    """Logs which IPUs a TensorFlow device got.

    Example:
        >>> attached(0, 4, 24)  # writes: TensorFlow device /device:IPU:0 attached to 4 IPUs with Poplar device ID: 24
    """
    plural = "" if num_ipus == 1 else "s"
    if sdk.current() <= (2, 4):
        info(f"Device /device:IPU:{ordinal} attached to IPU{plural}: {poplar_id}")
    else:
        info(
            f"TensorFlow device /device:IPU:{ordinal} attached to {num_ipus} IPU{plural} "
            f"with Poplar device ID: {poplar_id}"
        )


def poplar_version() -> None:
    """Logs the emulated Poplar version, once per process."""
    global _version_named
    if not _version_named:
        _version_named = True
        info(f"Poplar version: {sdk.current()}.0 (simulated) Poplar package: tf_ipu_shim", _PLATFORM)


def default_device(ordinal: Device) -> None:
    """Logs that an unconfigured device has a single IPU."""
    info(f"No IPU device was configured for /device:IPU:{ordinal}, creating a device with a single IPU.")


def waiting(ordinal: Device) -> None:
    """Logs that an on-demand device waits for free IPUs."""
    info(
        f"Currently there is no available device for the TensorFlow virtual device /device:IPU:{ordinal}. "
        "Waiting for one to become available."
    )
