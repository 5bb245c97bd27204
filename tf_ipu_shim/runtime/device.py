"""Represents a TensorFlow IPU device of this process: attaches to its IPUs and releases them."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from typing import Any

from tf_ipu_shim.machine import ipu_model, selection
from tf_ipu_shim.machine.chips import ChipSpec
from tf_ipu_shim.machine.environment import engine_options, flags, sdk_environment, simulated_errors
from tf_ipu_shim.machine.ids import Device
from tf_ipu_shim.machine.number_ranges import format_ranges
from tf_ipu_shim.machine.sharing import attach
from tf_ipu_shim.machine.sharing.attach import Attachment
from tf_ipu_shim.machine.systems import PoplarDevice, System
from tf_ipu_shim.runtime import captured_programs, log
from tf_ipu_shim.runtime.float_checks import FloatCheck, float_checks
from tf_ipu_shim.runtime.stochastic_rounding import Rounding, rounding

_SHOWN_OF_COMMAND = 60  # characters
ALWAYS, ON_DEMAND, NEVER, PRE_COMPILE = range(4)


class IpuDevice:
    """`/device:IPU:<ordinal>`: the number of its IPUs, their chip, and their ids once attached.

    Args:
        options: the `IpuOptions` it was configured with.
        candidates: the Poplar devices that fit, in order of preference; none if it never attaches.

    Attributes:
        connection: `ALWAYS`, `ON_DEMAND`, `NEVER` or `PRE_COMPILE`, with the flag `--use_on_demand` applied, and
            `PRE_COMPILE` in a study.
        on_model: whether it is an IPU model, which needs no IPU to attach to.

    Raises:
        ValueError: if the options name an unknown chip, too many tiles, or no tiles but I/O tiles.
    """

    def __init__(
        self, ordinal: Device, num_ipus: int, options: Any, system: System, candidates: tuple[PoplarDevice, ...]
    ) -> None:
        in_force = flags.current()
        self.ordinal = ordinal
        self.num_ipus = num_ipus
        self.options = options
        self.on_model = in_force.use_ipu_model
        self._compiled_programs: set[bytes] = set()
        # A capture plans programs for what the script configures, although nothing runs.
        self._configured_connection = ON_DEMAND if in_force.use_on_demand else int(options.device_connection_type)
        self.connection = PRE_COMPILE if captured_programs.active() else self._configured_connection
        self.chip = _chip(system.chip, options, self._configured_connection)
        _check_io_tiles(options, self.chip)
        self._system = system
        self._candidates = candidates
        self._attachment: Attachment | None = None
        self._model_attached = False
        self._failed_loads = 0
        self._lock = threading.Lock()
        self._closed = threading.Event()

    def __repr__(self) -> str:
        where = f"Poplar device {self.poplar_id}" if self.attached else "not attached"
        return f"<IpuDevice /device:IPU:{self.ordinal}: {self.num_ipus} x {self.chip.name}, {where}>"

    @property
    def name(self) -> str:
        """The TensorFlow device string."""
        return f"/device:IPU:{self.ordinal}"

    @property
    def attached(self) -> bool:
        """Returns whether it holds its IPUs now."""
        attachment = self._attachment
        return self._model_attached or (attachment is not None and attachment.held)

    @property
    def poplar_id(self) -> int | None:
        """Id of the Poplar device it is attached to: 0 on the IPU Model, None if not attached."""
        attachment = self._attachment
        if self._model_attached:
            return 0
        return attachment.device.id if attachment is not None and attachment.held else None

    @property
    def physical_ipus(self) -> tuple[int, ...]:
        """Numbers of its IPUs in the system, by place in the device; counted from 0 while it is not attached."""
        attachment = self._attachment
        if attachment is not None and attachment.held:
            return attachment.device.ipus
        return tuple(range(self.num_ipus))

    @property
    def selection_order(self) -> str:
        """The order in which shards are assigned to its IPUs, one of `machine.selection.ORDERS`."""
        return selection.ORDERS[self.options.selection_order]

    @property
    def engine_options(self) -> dict[str, str]:
        """Poplar engine options in force: the configuration's, overridden by `POPLAR_ENGINE_OPTIONS`."""
        return engine_options.merged({flag.option: flag.value for flag in self.options.compilation_options})

    def recorded_options(self) -> dict[str, Any]:
        """Flags, engine options and SDK variables in force that have no effect, by name."""
        return {
            **{f"--{name}": value for name, value in flags.set_flags_without_effect(flags.current()).items()},
            **engine_options.without_effect(self.engine_options),
            **simulated_errors.without_effect(),
            **sdk_environment.set_variables(),
        }

    @property
    def float_checks(self) -> FloatCheck:
        """The floating-point exceptions that stop it."""
        return float_checks(self.options.floating_point_behaviour, self.engine_options)

    @property
    def rounding(self) -> Rounding:
        """Returns how it rounds float16; 0 means to nearest."""
        return rounding(self.options, self.engine_options)

    @property
    def compiles_only(self) -> bool:
        """Returns whether programs are compiled and never run: connection types NEVER and PRE_COMPILE."""
        return self.connection in (NEVER, PRE_COMPILE)

    @property
    def has_remote_buffers(self) -> bool:
        """Returns whether it has remote buffers: attached IPUs do, others as configured."""
        if self._configured_connection == ALWAYS and not self.on_model:
            return True
        return bool(self.options.enable_remote_buffers_without_device)

    def note_compilation(self, key: bytes) -> bool:
        """Notes that it compiles a program; returns whether it is the first with this key."""
        with self._lock:
            is_first = key not in self._compiled_programs
            self._compiled_programs.add(key)
            return is_first

    def forget_compilation(self, key: bytes) -> None:
        """Forgets a compilation that failed."""
        with self._lock:
            self._compiled_programs.discard(key)

    def attach(self) -> None:
        """Attaches to the first free candidate; waits for one if the connection is on demand.

        Returns at once if it is attached already, or if the connection type never attaches.
        """
        if self.compiles_only:
            return
        with self._lock:
            if self.attached:
                return
            if self._closed.is_set():
                raise self._reset_error()
            if self.on_model:
                self._model_attached = True
            elif self.connection == ON_DEMAND:
                self._attachment = self._wait()
            else:
                self._attachment = attach.attach_first(self._system, self._candidates)
                if self._attachment is None:
                    raise self._unavailable("Could not find an available device for TensorFlow virtual device")
            log.attached(self.ordinal, self.num_ipus, self.poplar_id or 0)

    def load(self) -> str | None:
        """Begins to run programs; returns the message of the hardware error that is simulated, if one comes."""
        error = simulated_errors.current() if self.attached and not self.on_model else None
        with self._lock:
            if error is None or not error.comes(self._failed_loads):
                return None
            self._failed_loads += 1
        return error.text(self.name)

    def close(self) -> None:
        """Releases the IPUs for good and wakes anyone who waits for them; a second call does nothing."""
        self._closed.set()
        with self._lock:
            self._model_attached = False
            if self._attachment is not None:
                self._attachment.release()
                self._attachment = None

    def _wait(self) -> Attachment:
        in_force = flags.current()
        attachment = attach.wait(
            self._system,
            self._candidates,
            poll_seconds=in_force.poll_seconds,
            timeout_seconds=in_force.timeout_seconds,
            on_wait=lambda: log.waiting(self.ordinal),
            stop=self._closed,
        )
        if attachment is not None:
            return attachment
        if self._closed.is_set():
            raise self._reset_error()
        raise self._unavailable("Timed out trying to find an available device for TensorFlow virtual device")

    def _unavailable(self, phrase: str) -> Exception:
        from tensorflow.compat.v2 import errors

        holders = attach.in_use(self._system)
        ids = format_ranges([device.id for device in self._candidates], " to ")
        error: Exception = errors.InternalError(
            None,
            None,
            f"{phrase} {self.name}. This device was expected to have {self.num_ipus} IPU(s). "
            f"Suitable Poplar devices: {ids}. In use: {_describe_holders(holders)}. {_advice(holders)}",
        )
        return error

    def _reset_error(self) -> Exception:
        from tensorflow.compat.v2 import errors

        error: Exception = errors.CancelledError(
            None, None, f"The IPU configuration was reset while {self.name} was waiting to attach. Run it again."
        )
        return error


def _describe_holders(holders: Mapping[int, attach.Holder]) -> str:
    """Describes which process uses which IPUs, each process once."""
    by_process: dict[int, list[int]] = {}
    for ipu, holder in sorted(holders.items()):
        by_process.setdefault(holder.pid, []).append(ipu)
    commands = {holder.pid: _shortened(holder.command) for holder in holders.values()}
    ranges = {pid: format_ranges(ipus, " to ") for pid, ipus in by_process.items()}
    return (
        "; ".join(
            f"IPU {ipus} by {'this ' * (pid == os.getpid())}process {pid} ({commands[pid] or 'unknown'})"
            for pid, ipus in ranges.items()
        )
        or "none any more"
    )


def _shortened(command: str) -> str:
    """Shortens a command line: programs and scripts without directories."""
    return " ".join(word.rsplit("/", 1)[-1] or word for word in command.split())[:_SHOWN_OF_COMMAND]


def _advice(holders: Mapping[int, attach.Holder]) -> str:
    if {holder.pid for holder in holders.values()} == {os.getpid()}:
        return (
            "The other TensorFlow devices of this process have them: choose others for each with `select_ipus`, or "
            "ask for fewer IPUs with `auto_select_ipus`."
        )
    return (
        "Let the process that holds them end, ask for fewer IPUs, choose others with `select_ipus`, or wait for "
        "them with device_connection.type = DeviceConnectionType.ON_DEMAND."
    )


def _chip(system_chip: ChipSpec, options: Any, connection: int) -> ChipSpec:
    model = options.ipu_model_config
    in_force = flags.current()
    if connection in (NEVER, PRE_COMPILE) and options.ipu_version and not in_force.use_ipu_model:
        return ipu_model.for_version(system_chip, options.ipu_version)
    return ipu_model.chip_for(
        system_chip, in_force, version=model.ipu_model_version, tiles_per_ipu=int(model.tiles_per_ipu)
    )


def _check_io_tiles(options: Any, chip: ChipSpec) -> None:
    if options.num_io_tiles >= chip.tiles:
        raise ValueError(
            f"io_tiles.num_io_tiles is {options.num_io_tiles}, and an IPU of this device has "
            f"{chip.tiles} tiles; at least one must be left to compute. Set it below that, or give the "
            "IPU Model more tiles (ipu_model.tiles_per_ipu)."
        )
