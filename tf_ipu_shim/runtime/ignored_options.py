"""Records options and arguments without effect, for the memory report and the log.

Each name is logged once a process; names logged together share a line. Configuring a device notes the flags and engine
options then in force, configuring the system its options, a call its arguments.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from tf_ipu_shim.runtime import log

_lock = threading.Lock()
_arguments: dict[str, Any] = {}
_logged: set[str] = set()


def note(options: Iterable[str]) -> None:
    """Logs options that were not logged before."""
    with _lock:
        new = [name for name in options if name not in _logged]
        _logged.update(new)
    if new:
        log.info(f"no effect on a simulated system: {', '.join(new)}")


def note_arguments(arguments: Mapping[str, Any]) -> None:
    """Records and logs call arguments without effect; see `configuration.arguments`.

    Example:
        >>> note_arguments({"PopnnLSTM(options)": {"partialsType": "half"}})
        >>> arguments()["PopnnLSTM(options)"]
        {'partialsType': 'half'}
    """
    with _lock:
        _arguments.update(arguments)
    note(arguments)


def arguments() -> dict[str, Any]:
    """Returns the recorded arguments by call and name."""
    with _lock:
        return dict(_arguments)


def forget() -> None:
    """Forgets all recorded options; for tests."""
    with _lock:
        _arguments.clear()
        _logged.clear()
