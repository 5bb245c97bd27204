"""`tensorflow.python.ipu.ipu_strategy`: a distribution strategy with one IPU device as its only worker.

Builds on `distribute_lib.StrategyV1` and `StrategyExtendedV1`; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim import sdk
from tf_ipu_shim.frontend.sharding import scopes
from tf_ipu_shim.frontend.strategies import keras_extensions, strategy_extended
from tf_ipu_shim.frontend.tracing import compiled_functions, tracing
from tf_ipu_shim.tf_private.distribute import distribute_lib
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.utilities import tf_logging

_RUN_SINCE = (2, 2)  # the SDK in which `run` took the place of `experimental_run_v2`


@functools.cache
def _warn_old_name() -> None:
    """Logs once which release `experimental_run_v2` belongs to: scripts call it for every step."""
    tf_logging.warning("`experimental_run_v2` is of SDK 2.1 and older; it runs as `run` does.")


class IPUStrategyV1(distribute_lib.StrategyV1, keras_extensions.KerasExtensions):
    """Places variables and computation of a TensorFlow 2 script on an IPU device.

    Args:
        ipu_device: the device that stores variables and runs functions.
        cpu_device: the device that computes initial values and runs datasets.
        enable_dataset_iterators: whether `iter(dataset)` in the scope returns an `IPUIterator`, whose elements only
            compiled functions consume.
        enable_keras_extensions: whether Keras models made in the scope gain the IPU's methods.

    Source: `tensorflow.python.ipu.ipu_strategy.IPUStrategyV1`; up to SDK 2.1 its name is `IPUStrategy`.

    Example:
        >>> strategy = IPUStrategyV1()
        >>> with strategy.scope():
        ...     weight = tf.Variable(2.0)
        >>> float(strategy.run(tf.function(lambda x: weight * x), args=[3.0]))
        6.0
    """

    def __init__(
        self,
        ipu_device: str = "/device:IPU:0",
        cpu_device: str = "/device:CPU:0",
        enable_dataset_iterators: bool = True,
        enable_keras_extensions: bool = True,
    ) -> None:
        super().__init__(IPUExtendedV1(self, ipu_device, cpu_device))
        keras_extensions.KerasExtensions.__init__(self, enable_dataset_iterators, enable_keras_extensions)

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: Any = None,
    ) -> Any:
        """Runs a `tf.function` on the IPU, as one compiled program.

        Args:
            fn: a `tf.function`, with or without `jit_compile`; in a graph any Python function.
            args: positional arguments.
            kwargs: keyword arguments.
            options: a `tf.distribute.RunOptions`; nothing in it changes a compiled function.

        Returns:
            The function's result.

        Raises:
            ValueError: in eager mode, if `fn` is not a `tf.function`.
            TypeError: an input or result is float64.

        Source: `tensorflow.python.ipu.ipu_strategy.IPUStrategyV1.run`.

        Example:
            >>> float(strategy.run(tf.function(lambda x: x + 1.0), args=[1.0]))
            2.0
        """
        return self._run("IPUStrategyV1.run", fn, args, kwargs, options)

    def experimental_run_v2(self, fn: Any = None, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        """`run`, as it was called up to SDK 2.1.

        Args:
            fn: a `tf.function`.
            args: positional arguments.
            kwargs: keyword arguments.

        Returns:
            The function's result.

        Raises:
            RuntimeError: the user has named an SDK that is 2.2 or newer. If none is named, it can only mean `run`.
            ValueError: eager, and `fn` is not a `tf.function`.

        Source: `tensorflow.python.ipu.ipu_strategy.IPUStrategy.experimental_run_v2`.

        Example:
            >>> float(strategy.experimental_run_v2(tf.function(lambda x: x + 1.0), args=[1.0]))
            2.0
        """
        if sdk.named() and sdk.current() >= _RUN_SINCE:
            raise RuntimeError(
                f"`experimental_run_v2` has been deleted. Use `run` instead: SDK {sdk.current()} is emulated, and only "
                "SDKs up to 2.1 have it (TF_IPU_SHIM_SDK=2.1)."
            )
        if not sdk.named():
            _warn_old_name()
        return self._run("IPUStrategy.experimental_run_v2", fn, args, kwargs, None)

    @property
    def supports_loss_scaling(self) -> bool:
        """Returns whether a loss scale optimizer may be used: gradients of one device are reduced before unscaling."""
        return True

    @property
    def _device_ordinal(self) -> int:
        """The TensorFlow device that queues made in the scope belong to."""
        return self.extended._device_ordinal

    def _run(self, name: str, fn: Any, args: Sequence[Any], kwargs: Any, options: Any) -> Any:
        fn = compiled_functions.behind_call(fn)
        is_function = compiled_functions.is_function(fn)
        scopes.ensure_device(self.extended._ipu_device)
        if context.executing_eagerly() and not is_function:
            raise ValueError(
                f"{name}(fn, ...) does not support eager execution. It was given {fn!r}: decorate it with "
                "`@tf.function(jit_compile=True)`."
            )
        if is_function and not tracing.in_compilation():
            fn = compiled_functions.compile_function(fn)
        return super().run(fn, args, kwargs, options)


class IPUExtendedV1(strategy_extended.DeviceExtended):
    """The class of `IPUStrategyV1.extended`.

    Args:
        container_strategy: the strategy.
        ipu_device: the device that stores variables and runs functions.
        cpu_device: the device that computes initial values and runs datasets.

    Source: `tensorflow.python.ipu.ipu_strategy.IPUExtendedV1`.

    Example:
        >>> IPUStrategyV1().extended.worker_devices
        ('/device:IPU:0',)
    """

    def _call_for_each_replica(self, fn: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        check_supported_dtypes((args, kwargs), "input")
        result = super()._call_for_each_replica(fn, args, kwargs)
        check_supported_dtypes(result, "output")
        return result


def check_supported_dtypes(values: Any, label: str) -> None:
    """Refuses dtypes that IPUs do not compute with."""
    for value in nest.flatten(values, expand_composites=True):
        if str(getattr(getattr(value, "dtype", None), "name", "")) == "float64":
            raise TypeError(
                f"Unsupported data type for {label}: float64. An IPU has no double precision; cast it to tf.float32: "
                f"{value!r}."
            )


# Graphcore's names for the same up to SDK 2.1, and its alias since.
IPUStrategy = IPUStrategyV1
IPUExtended = IPUExtendedV1
