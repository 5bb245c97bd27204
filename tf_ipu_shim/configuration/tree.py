"""Builds `IPUConfig`, the tree of all options, from the table for the emulated SDK."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim import sdk
from tf_ipu_shim.configuration import table
from tf_ipu_shim.configuration.base import _ConfigBase
from tf_ipu_shim.configuration.effects import Effect, effects_of


class _Category(_ConfigBase):
    """A group of options."""


class IPUConfig(_ConfigBase):
    """The configuration of the IPU system; every option has a default.

    Set the options that you need, then call `configure_ipu_system()`. Assigning an unknown option raises ValueError,
    and a value of the wrong type TypeError.

    Source: `tensorflow.python.ipu.config` (SDK 2.1 and newer).

    Example:
        >>> config = IPUConfig()
        >>> config.auto_select_ipus = 4
        >>> config.convolutions.poplar_options = {"partialsType": "half"}
        >>> config.auto_select_ipu = 4
        Traceback (most recent call last):
        ...
        ValueError: 'auto_select_ipu' is not a valid attribute of this config. Did you mean 'auto_select_ipus'?
    """

    def __init__(self) -> None:
        line = max(sdk.current(), (2, 1))
        for option in table.options_of(line):
            *categories, name = option.path.split(".")
            owner: Any = self
            for depth, category in enumerate(categories):
                if category not in owner._attributes:
                    owner._declare(category, _Category(), doc=table.CATEGORIES[".".join(categories[: depth + 1])])
                owner = getattr(owner, category)
            annotation, default = option.in_release(line)
            owner._declare(name, default, annotation, option.doc)
            if option.deprecated is not None:
                owner._attributes[name]._deprecated_msg = option.deprecated

    def configure_ipu_system(self, device: str = "cpu") -> None:
        """Checks the options against each other and configures this process with them.

        Args:
            device: the CPU device that Graphcore's op ran on; any will do here.

        Raises:
            ValueError: if options contradict each other.
            Exception: if both options that select IPUs are set, or neither.
            tf.errors.FailedPreconditionError: if the system has no device with this number of IPUs.
            tf.errors.InternalError: if all fitting devices are in use.

        Source: `tensorflow.python.ipu.config`.

        Example:
            >>> config = IPUConfig()
            >>> config.auto_select_ipus = 1
            >>> config.configure_ipu_system()
        """
        from tf_ipu_shim.configuration import system

        system.configure_ipu_system(self, device)

    def _create_protobuf(self) -> Any:
        """Returns the `IpuOptions` of all options, including a subclass's and those in a user's categories."""
        from tf_ipu_shim.messages import config_pb2

        options = config_pb2.IpuOptions()
        self._to_protobuf(options)
        return options

    def _to_protobuf(self, pb: Any) -> None:
        from tf_ipu_shim.configuration import translate

        pb.MergeFrom(translate.to_protobuf(self))
        super()._to_protobuf(pb)


def effects(config: IPUConfig | None = None, changed_only: bool = False) -> list[Effect]:
    """Lists the options with their effects on a simulated system.

    Args:
        config: a configuration; the defaults if None.
        changed_only: leave out the options that have their default value.

    Returns:
        One `Effect` for each option, in the order of the table.
    """
    return effects_of(IPUConfig() if config is None else config, changed_only)
