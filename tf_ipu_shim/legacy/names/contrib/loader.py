"""Loads `tensorflow.contrib` of TensorFlow 1.15, as far as published IPU scripts use it.

Most names that they use from it are in TensorFlow proper today: `contrib_names.csv` says where. `slim` is its own
package, `tf_slim`, which has the layers too; it is used if it is installed. Served in a process that uses `ipu`, or
under the runner. Checked on 2.15.1 and 2.21.0, which has no Estimator, and tf_slim 1.1.0.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
import types
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from typing import Any

from tf_ipu_shim import data_files, errors
from tf_ipu_shim.imports import import_callers
from tf_ipu_shim.legacy.names.contrib import contrib_ipu

NAME = "tensorflow.contrib"
# Replacements of modules that are not supported.
_INSTEAD = {
    "bayesflow": "Use the package tensorflow_probability.",
    "crf": "Use the package tensorflow_addons, or ipu.nn_ops.ctc_loss for sequences without alignment.",
    "cudnn_rnn": "cuDNN runs on GPUs only. Use ipu.rnn_ops.PopnnLSTM or PopnnGRU, or tf.compat.v1.nn.dynamic_rnn.",
    "distribute": "Use tf.distribute, or ipu.ipu_strategy.IPUStrategy.",
    "distributions": "Use tf.compat.v1.distributions, or the package tensorflow_probability.",
    "eager": "Use tf.compat.v1.enable_eager_execution() and tf.GradientTape.",
    "estimator": "Use tf.estimator, or ipu.ipu_estimator.IPUEstimator.",
    "image": "Use tf.image, or the package tensorflow_addons.",
    "losses": "Use tf.compat.v1.losses.",
    "mixed_precision": "Use ipu.optimizers.AutomaticLossScalingOptimizer, or scale the loss by a constant.",
    "nccl": "Use ipu.cross_replica_ops.",
    "predictor": "Use tf.compat.v1.saved_model.load.",
    "quantize": "Use ipu.f8_ops, or ipu.ops.experimental.popfloat_cast_to_gfloat.",
    "saved_model": "Use tf.compat.v1.saved_model.",
    "tensorrt": "TensorRT runs on GPUs only. Use ipu.serving to export a model.",
}
_TPU = "tensorflow_estimator.python.estimator.tpu"
# Packages that continue parts of it outside TensorFlow, by module below `tensorflow.contrib`.
SLIM = {"slim": "tf_slim", "layers": "tf_slim.layers", "framework": "tf_slim"}

_ROWS = data_files.rows(__file__, "contrib_names.csv")
"""Module below `tensorflow.contrib`, a module of today, and the names that are there."""
MODULES = tuple(dict.fromkeys(row["module"] for row in _ROWS))


class ContribModule(types.ModuleType):
    """A module of `tensorflow.contrib`.

    Args:
        fullname: the full name of the module.
        path: below `tensorflow.contrib`; `""` for the package itself.
    """

    def __init__(self, fullname: str, path: str):
        super().__init__(fullname, f"{fullname} as far as scripts for IPUs use it.")
        self.__path__: list[str] = []
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        below = f"{self._path}.{name}".strip(".")
        if below == "ipu":
            return importlib.import_module(contrib_ipu.NAME)
        place = places(self._path).get(name)
        if place is not None and _is_installed(place):
            return getattr(importlib.import_module(place), name)
        if below in MODULES or (below in SLIM and _is_installed(SLIM[below])):
            return importlib.import_module(f"{NAME}.{below}")
        if self._path in SLIM and _is_installed(SLIM[self._path]):
            module = importlib.import_module(SLIM[self._path])
            if hasattr(module, name):
                return getattr(module, name)
        message = absence(below)
        if import_callers.is_import_from(sys._getframe(1)):
            raise errors.MissingModuleError(message, name=self.__name__)
        raise errors.MissingAttributeError(message)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *places(self._path)})


def absence(path: str) -> str:
    """Returns the error for a missing part of `tensorflow.contrib`, with a replacement.

    Example:
        >>> "pip install tf_slim" in absence("slim")
        True
    """
    module, _, name = path.rpartition(".")
    start = f"{NAME}.{path}: TensorFlow no longer has tensorflow.contrib, and "
    if (path in SLIM or module in SLIM) and not _is_installed("tf_slim"):
        return f"{start}its layers and slim are a separate package: pip install tf_slim"
    place = places(module).get(name, "").partition(".")[0]
    if place == "tensorboard" and not _is_installed(place):
        return f"{start}this part of it is in a separate package: pip install tensorboard"
    instead = _INSTEAD.get(path.partition(".")[0])
    if instead:
        return f"{start}this part of it is not supported. {instead}"
    if places(module).get(name, "").startswith(_TPU):
        return f"{start}has no Estimator from 2.16 on: install TensorFlow 2.15 (Python 3.10 or 3.11)."
    have = sorted({*places(module), *(module_name for module_name in MODULES if "." not in module_name and not module)})
    advice = f"{f'{NAME}.{module}'.strip('.')} has {', '.join(have)}." if have else "Use tf.compat.v1."
    return f"{start}of it only what published scripts for IPUs use is here (tf_ipu_shim/legacy/names/contrib). {advice}"


def _is_installed(module: str) -> bool:
    """Returns whether a module's package is installed: Estimator and `tf_slim` may not be."""
    return importlib.util.find_spec(module.partition(".")[0]) is not None


class _Loader(Loader):
    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return ContribModule(spec.name, spec.name[len(NAME) + 1 :])

    def exec_module(self, module: types.ModuleType) -> None:
        return None


@functools.cache
def places(path: str) -> dict[str, str]:
    """Returns each name of a module, and the module that has it today.

    Example:
        >>> places("compiler.xla")
        {'compile': 'tensorflow.python.compiler.xla.xla', 'xla': 'tensorflow.python.compiler.xla'}
    """
    return {name: row["place"] for row in _ROWS if row["module"] == path for name in row["names"].split()}


def moved(fullname: str) -> str | None:
    """Returns the module that one of `tensorflow.contrib` is today as a whole, if it is installed."""
    slim = f"{NAME}.slim"
    if (fullname == slim or fullname.startswith(f"{slim}.")) and _is_installed(SLIM["slim"]):
        return SLIM["slim"] + fullname[len(slim) :]
    return None


def spec(fullname: str) -> ModuleSpec | None:
    """Returns how a module of `tensorflow.contrib` is loaded; None for one that is not in the table."""
    if fullname != NAME and fullname[len(NAME) + 1 :] not in MODULES:
        return None
    return ModuleSpec(fullname, _Loader(), is_package=True)
