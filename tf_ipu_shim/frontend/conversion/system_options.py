"""Configures the IPU system that a converted model runs on."""

from __future__ import annotations

from typing import Any

from tf_ipu_shim.configuration.tree import IPUConfig


def configure(settings: Any) -> None:
    """Configures the IPUs of this process."""
    options = IPUConfig()
    set_options(options, settings)
    options.configure_ipu_system()


def set_options(options: Any, settings: Any) -> None:
    """Sets the system options of a conversion in an `IPUConfig`."""
    options.auto_select_ipus = int(settings.num_ipus)  # an IPUConfig takes no other type
    options.matmuls.poplar_options = poplar_options(settings.matmul_amp, settings.matmul_partial_type)
    options.convolutions.poplar_options = poplar_options(settings.conv_amp, settings.conv_partial_type)


def poplar_options(proportion: float | None, partials: str | None) -> dict[str, str]:
    """Returns the options of matrix multiplications or convolutions; those that are None are left out."""
    options = {"availableMemoryProportion": proportion, "partialsType": partials}
    return {name: str(value) for name, value in options.items() if value is not None}
