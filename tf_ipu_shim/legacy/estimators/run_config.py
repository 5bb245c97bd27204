"""An estimator's IPU configuration: `IPURunConfig` and `RunConfig`."""

from __future__ import annotations

from typing import Any, NamedTuple

from tf_ipu_shim import sdk
from tf_ipu_shim.configuration import translate
from tf_ipu_shim.configuration.argument_order import argument_order
from tf_ipu_shim.configuration.tree import IPUConfig
from tf_ipu_shim.frontend.validation.counts import check_integer
from tf_ipu_shim.messages import config_pb2
from tf_ipu_shim.tf_private.estimators import run_config

_ONLY_IPU_CONFIG = (2, 4)  # the SDK from which a protobuf is no longer accepted, where the user has named it
_NO_COMPILE_SUMMARY = (2, 4)  # the SDK from which there are none


class _Fields(NamedTuple):
    iterations_per_loop: int
    ipu_options: Any
    num_replicas: int
    num_shards: int
    ordinal: int
    prefetch_depth: int | None


class IPURunConfig(_Fields):
    """The part of a `RunConfig` about the IPUs.

    Args:
        iterations_per_loop: steps that a program runs before it returns to Python; hooks see no others.
        ipu_options: an `IPUConfig`, which the estimator applies; by default one IPU. The result of `create_ipu_config`
            of SDK 2.3 and older is accepted too, unless a newer SDK is named.
        num_replicas: how often the model runs side by side.
        num_shards: IPUs of each replica, wherever the model has its ops.
        ordinal: the ordinal of the TensorFlow device.
        prefetch_depth: elements that the infeed has ready; by default the SDK's.
        **kwargs: arguments of older SDKs: `compile_summary` (writes compilations and runs to a summary),
            `autosharding`.

    Attributes:
        compile_summary: whether an estimator writes such a summary.

    Raises:
        TypeError: `ipu_options` is not an `IPUConfig`, or a number is not an integer.
        ValueError: a number is out of range, or the options do not select as many IPUs as replicas and shards need.
        NotImplementedError: `autosharding` is asked for, or `compile_summary` of SDK 2.4 or newer.

    Source: `tensorflow.python.ipu.ipu_run_config.IPURunConfig`.

    Example:
        >>> options = IPUConfig()
        >>> options.auto_select_ipus = 2
        >>> IPURunConfig(iterations_per_loop=100, ipu_options=options, num_replicas=2).num_replicas
        2
    """

    compile_summary: bool = False

    @argument_order(2, "compile_summary num_replicas num_shards autosharding ordinal", until=(2, 0))
    @argument_order(2, "compile_summary num_replicas num_shards ordinal prefetch_depth", since=(2, 1), until=(2, 5))
    def __new__(
        cls,
        iterations_per_loop: int = 1,
        ipu_options: Any = None,
        num_replicas: int = 1,
        num_shards: int = 1,
        ordinal: int = 0,
        prefetch_depth: int | None = None,
        **kwargs: Any,
    ) -> IPURunConfig:
        """Checks that the options fit the replicas and shards."""
        compile_summary = _check_old_arguments(kwargs)
        iterations_per_loop = check_integer("iterations_per_loop", iterations_per_loop)
        num_replicas = check_integer("num_replicas", num_replicas)
        num_shards = check_integer("num_shards", num_shards)
        ordinal = check_integer("ordinal", ordinal)
        for name, value, least in (
            ("num_replicas", num_replicas, 1),
            ("num_shards", num_shards, 1),
            ("ordinal", ordinal, 0),
        ):
            if value < least:
                raise ValueError(f"{name} must be at least {least}, but {value} was given. Raise it.")
        needed = num_replicas * num_shards
        if ipu_options is None:
            if needed > 1:
                raise ValueError(
                    f"IPU configuration requires more than one device, {num_replicas} replicas times {num_shards} "
                    "shards, but `ipu_options` is None. Give an IPUConfig whose auto_select_ipus is their product."
                )
        else:
            _check_devices(ipu_options, needed, num_replicas, num_shards, ordinal)
        instance = super().__new__(
            cls, iterations_per_loop, ipu_options, num_replicas, num_shards, ordinal, prefetch_depth
        )
        instance.compile_summary = compile_summary
        return instance

    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]:
        """Copies are made of named arguments, whose order is not the same in all releases."""
        return (), self._asdict()


def _check_old_arguments(arguments: dict[str, Any]) -> bool:
    """Refuses unsupported arguments; returns whether compilations are written to a summary."""
    compile_summary = bool(arguments.pop("compile_summary", False))
    if compile_summary and sdk.current() >= _NO_COMPILE_SUMMARY:
        raise NotImplementedError(
            "IPURunConfig.compile_summary is deprecated, is no longer functional: it must be False. Leave it out, "
            "and use tf_ipu_shim.memory_report()."
        )
    if arguments.pop("autosharding", False):
        raise NotImplementedError(
            "IPURunConfig.autosharding is not emulated: mark the layers of the model_fn with ipu.scopes.ipu_shard."
        )
    if arguments:
        raise TypeError(
            f"IPURunConfig takes no argument {sorted(arguments)[0]!r}; expected those of Graphcore's "
            "class. Remove it, or correct its name."
        )
    return compile_summary


def _check_devices(options: Any, needed: int, replicas: int, shards: int, ordinal: int) -> None:
    if isinstance(options, IPUConfig):
        message = translate.to_protobuf(options)
    elif isinstance(options, config_pb2.IpuOptions) and (not sdk.named() or sdk.current() < _ONLY_IPU_CONFIG):
        message = options
    else:
        raise TypeError(
            f"ipu_options must be an IPUConfig instance. Received {type(options).__name__}. Pass an IPUConfig instance."
        )
    devices = message.device_config
    if ordinal >= len(devices):
        raise ValueError(
            f"Only {len(devices)} device(s) available to choose from. Cannot select a device with ordinal {ordinal}."
            " Pass a smaller ordinal."
        )
    selected = devices[ordinal].auto_count
    if selected and selected != needed:  # a device selected by its id has as many IPUs as the machine says
        raise ValueError(
            f"`IPURunConfig` configured with {needed} devices ({replicas} replicas times {shards} "
            f"shards), but `IpuOptions` configured with {selected} devices; both must be equal. Set "
            f"auto_select_ipus to {needed}."
        )


class RunConfig(run_config.RunConfig):
    """A `tf.estimator.RunConfig` with options for IPUs.

    Args:
        ipu_run_config: an `IPURunConfig`; default values if omitted.
        master: the session's target, for a job of several workers.
        **kwargs: keyword arguments of `tf.estimator.RunConfig`.

    Raises:
        TypeError: `ipu_run_config` is none.

    Source: `tensorflow.python.ipu.ipu_run_config.RunConfig`.

    Example:
        >>> RunConfig(ipu_run_config=IPURunConfig(iterations_per_loop=10)).ipu_run_config.iterations_per_loop
        10
    """

    def __init__(self, ipu_run_config: IPURunConfig | None = None, master: str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if ipu_run_config is not None and not isinstance(ipu_run_config, IPURunConfig):
            raise TypeError(
                f"ipu_run_config must be an IPURunConfig, not {type(ipu_run_config).__name__}. Pass an IPURunConfig."
            )
        self._ipu_run_config = ipu_run_config or IPURunConfig()
        if master is not None:
            self._master = master

    @property
    def ipu_run_config(self) -> IPURunConfig:
        """The part about the IPUs."""
        return self._ipu_run_config
