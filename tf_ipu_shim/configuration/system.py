"""Configures and resets this process's IPU system, and reads the active configuration."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.configuration import checks, warnings
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.configuration.base import _ConfigBase
from tf_ipu_shim.configuration.effects import Effect, effects_in, effects_of
from tf_ipu_shim.machine.environment.effects import RECORDED
from tf_ipu_shim.messages import config_pb2

_set_options: tuple[Effect, ...] = ()


def configure_ipu_system(config: Any, device: str = "cpu", reset_configuration: bool = True) -> None:
    """Configures this process's IPU system; attaches to the IPUs unless the connection type says otherwise.

    Args:
        config: an `IPUConfig`, or an `IpuOptions` protobuf.
        device: the CPU device that Graphcore's op ran on; any will do here.
        reset_configuration: whether an active configuration is reset first if it has other options or other
            `TF_POPLAR_FLAGS`.

    Raises:
        TypeError: if `config` is neither.
        ValueError: if options contradict each other.
        Exception: if both options that select IPUs are set, or neither.
        tf.errors.FailedPreconditionError: if the system has no device with this number of IPUs, or another
            configuration is active and must not be reset.
        tf.errors.InternalError: if all fitting devices are in use.

    Source: `tensorflow.python.ipu.config`.

    Example:
        >>> config = ipu.config.IPUConfig()
        >>> config.auto_select_ipus = [1, 2]
        >>> configure_ipu_system(config)
    """
    from tf_ipu_shim.runtime import devices, ignored_options

    note_arguments("configure_ipu_system", device=device)
    # By its method, which Graphcore's tests replace on the object.
    options = config._create_protobuf() if hasattr(type(config), "_create_protobuf") else config
    if not isinstance(options, config_pb2.IpuOptions):
        raise TypeError(
            f"`config` must be an IpuOptions instance or an IPUConfig; received {type(config).__name__}. "
            "Make one with ipu.config.IPUConfig()."
        )
    if reset_configuration and devices.configured() is not None and not devices.is_active(options):
        warnings.warn("Resetting existing IPU configuration before applying new configuration")
        devices.reset()
    devices.configure(options)
    global _set_options
    listed = effects_of(config, changed_only=True) if isinstance(config, _ConfigBase) else effects_in(options)
    _set_options = tuple(part for effect in listed for part in effect.parts())
    ignored_options.note({option.name: option.value for option in _set_options if option.effect == RECORDED})


def set_options() -> tuple[Effect, ...]:
    """Returns the options that the last configuration set, each with its effect here."""
    return _set_options


def reset_ipu_configuration() -> None:
    """Detaches from all IPUs and drops the configuration; without one it does nothing.

    Programs compile again when they next run.

    Source: `tensorflow.python.ipu.config`.
    """
    from tf_ipu_shim.runtime import devices

    devices.reset()


def get_ipu_config(session: Any = None) -> list[Any]:
    """Returns the active configuration, once for each TensorFlow device.

    Args:
        session: a TensorFlow 1 session; it may only be given in graph mode.

    Returns:
        Copies of the `IpuOptions`, one for each device.

    Raises:
        RuntimeError: if nothing is configured.
        AssertionError: if a session is given while executing eagerly.

    Source: `tensorflow.python.ipu.config`.
    """
    from tf_ipu_shim.runtime import devices
    from tf_ipu_shim.tf_private.eager import context

    if session is not None and context.executing_eagerly():
        raise AssertionError(
            "get_ipu_config was called eagerly with a session, which it takes in graph mode only. Leave "
            "the session out."
        )
    options = devices.configured()
    if options is None:
        raise RuntimeError(
            "No IPU devices configured. There is no configuration, and this call needs one: call "
            "IPUConfig.configure_ipu_system() first."
        )
    copies = []
    for _ in range(devices.count()):
        duplicate = config_pb2.IpuOptions()
        duplicate.CopyFrom(options)
        copies.append(duplicate)
    return copies


def running_on_ipu_model() -> bool:
    """Returns whether `TF_POPLAR_FLAGS` currently contains `--use_ipu_model`.

    Source: `tensorflow.python.ipu.config`.

    Example:
        >>> running_on_ipu_model()
        False
    """
    return checks.on_ipu_model()
