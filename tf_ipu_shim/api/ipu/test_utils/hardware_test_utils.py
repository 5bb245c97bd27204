"""`tensorflow.python.ipu.test_utils.hardware_test_utils`: declares how many IPUs a test needs.

`TF_IPU_COUNT` is the number of IPUs that tests may use; unset, it means none, and tests that need hardware are skipped.
The simulated machine is hardware here: `TF_IPU_COUNT=8` runs tests that need up to eight IPUs.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

from tf_ipu_shim.configuration.enums import DeviceConnectionType
from tf_ipu_shim.machine.environment import flags

__all__ = [
    "add_hw_ci_connection_options",
    "get_ci_num_ipus",
    "has_ci_ipus",
    "skip_if_not_enough_ipus",
    "skip_on_hw",
    "skip_with_asan",
    "test_may_use_ipus_or_model",
    "test_uses_ipus",
]

_Test = Callable[..., Any]
_COUNT = "TF_IPU_COUNT"


def get_ci_num_ipus() -> int:
    """Returns how many IPUs tests may use: `TF_IPU_COUNT`, 0 when it is unset.

    Raises:
        ValueError: it is not a number.

    Source: `tensorflow.python.ipu.test_utils.hardware_test_utils.get_ci_num_ipus`.
    """
    setting = os.environ.get(_COUNT, "0")
    try:
        return int(setting)
    except ValueError:
        raise ValueError(
            f"{_COUNT} is {setting!r}; it must be the number of IPUs tests may use, such as 8. Set it to a whole "
            "number, or unset it."
        ) from None


def has_ci_ipus() -> bool:
    """Returns whether tests may use IPUs.

    Source: `tensorflow.python.ipu.test_utils.hardware_test_utils.has_ci_ipus`.
    """
    return get_ci_num_ipus() > 0


def add_hw_ci_connection_options(opts: Any) -> None:
    """Makes a configuration attach on demand and use remote buffers, for tests on machines that share their IPUs.

    Args:
        opts: an `IPUConfig` that is not applied yet.

    Source: `tensorflow.python.ipu.test_utils.hardware_test_utils.add_hw_ci_connection_options`.

    Example:
        >>> config = ipu.config.IPUConfig()
        >>> add_hw_ci_connection_options(config)
    """
    opts.device_connection.enable_remote_buffers = True
    opts.device_connection.type = DeviceConnectionType.ON_DEMAND


def test_uses_ipus(num_ipus: int, allow_ipu_model: bool = False, func: _Test | None = None) -> Any:
    """Marks a test method with the number of IPUs it needs; it is skipped if tests may use fewer.

    Args:
        num_ipus: how many it needs.
        allow_ipu_model: whether it runs on the IPU model too, and so anywhere.
        func: the method; without it, a decorator is returned.

    Source: `tensorflow.python.ipu.test_utils.hardware_test_utils.test_uses_ipus`.

    Example:
        >>> class Replicated(tf.test.TestCase):
        ...     @test_uses_ipus(num_ipus=2)
        ...     def test_two_replicas(self):
        ...         ...
    """

    def decorator(test: _Test) -> _Test:
        @functools.wraps(test)
        def decorated(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not allow_ipu_model:
                skip_if_not_enough_ipus(self, num_ipus)
            if get_ci_num_ipus() >= num_ipus and flags.current().use_ipu_model:
                raise AssertionError(
                    f"{_COUNT} is {get_ci_num_ipus()}, so this test runs on IPUs, but TF_POPLAR_FLAGS has "
                    "--use_ipu_model. Unset one of the two."
                )
            return test(self, *args, **kwargs)

        return decorated

    return decorator if func is None else decorator(func)


def test_may_use_ipus_or_model(num_ipus: int, func: _Test | None = None) -> Any:
    """Marks a test method that runs on IPUs and on the IPU model.

    Args:
        num_ipus: how many IPUs it needs.
        func: the method; without it, a decorator is returned.

    Source: `tensorflow.python.ipu.test_utils.hardware_test_utils.test_may_use_ipus_or_model`.
    """
    return test_uses_ipus(num_ipus, allow_ipu_model=True, func=func)


# pytest takes functions of these names for tests where a test module imports them.
test_uses_ipus.__test__ = test_may_use_ipus_or_model.__test__ = False  # type: ignore[attr-defined]


def skip_on_hw(func: _Test) -> _Test:
    """Marks a test method that is skipped if tests may use IPUs.

    Args:
        func: the method.

    Source: `tensorflow.python.ipu.test_utils.hardware_test_utils.skip_on_hw`.
    """

    @functools.wraps(func)
    def decorated(self: Any, *args: Any, **kwargs: Any) -> Any:
        if has_ci_ipus():
            self.skipTest(f"Not for hardware, and {_COUNT} is {get_ci_num_ipus()}.")
        return func(self, *args, **kwargs)

    return decorated


def skip_if_not_enough_ipus(self: Any, num_ipus: int) -> None:
    """Skips the running test if tests may use fewer IPUs than it needs.

    Args:
        self: the test case.
        num_ipus: how many it needs.

    Source: `tensorflow.python.ipu.test_utils.hardware_test_utils.skip_if_not_enough_ipus`.
    """
    available = get_ci_num_ipus()
    if available < num_ipus:
        self.skipTest(f"Needs {num_ipus} IPUs and {available} are available: set {_COUNT}.")


def skip_with_asan(reason: str) -> Callable[[_Test], _Test]:
    """Marks a test method that is skipped in a build with AddressSanitizer, which sets `ASAN_OPTIONS`.

    Args:
        reason: shown with the skipped test.

    Raises:
        TypeError: the reason is not a string, as when the decorator is written without brackets.

    Source: `tensorflow.python.ipu.test_utils.hardware_test_utils.skip_with_asan`.
    """
    if not isinstance(reason, str):
        raise TypeError(f"'reason' should be string, got {type(reason)}. Write @skip_with_asan('why').")

    def decorator(test: _Test) -> _Test:
        @functools.wraps(test)
        def decorated(self: Any, *args: Any, **kwargs: Any) -> Any:
            if "ASAN_OPTIONS" in os.environ:
                self.skipTest(reason)
            return test(self, *args, **kwargs)

        return decorated

    return decorator
