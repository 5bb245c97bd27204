"""`keras.ipu.optimizers.parameter_unscaling_optimizer`: the base of Adam, RMSProp and SGD with loss scaling.

Graphcore's optimizers unscale hyperparameters instead of gradients. The factor is a power of two, so both return the
same values if an unscaled gradient fits its dtype. Here gradients are unscaled.
"""

from __future__ import annotations

import inspect
from typing import Any

from tf_ipu_shim.frontend.keras.optimizers.als_optimizer import OPTIONS, ALSOptimizer


class _ParameterUnscalingALSOptimizer(ALSOptimizer):
    """Loss scaling around an optimizer that it makes itself."""

    brings_its_optimizer = True

    @classmethod
    def _hyperparameters(cls) -> list[str]:
        named = inspect.signature(cls.__init__).parameters
        return [name for name in named if name not in ("self", "name", *OPTIONS)]

    def get_config(self) -> dict[str, Any]:
        """Returns the configuration for `from_config`."""
        inner = self._opt.get_config()
        hyperparameters = {name: inner[name] for name in self._hyperparameters()}
        return {"name": self._name, **hyperparameters, **{name: getattr(self, name) for name in OPTIONS}}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Makes an optimizer like the one whose `get_config` gave `config`.

        Args:
            config: a configuration from `get_config`.
            custom_objects: accepted; see Keras.
        """
        return cls(**config)
