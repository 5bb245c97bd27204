"""`tensorflow.contrib` of TensorFlow 1.15, as far as published scripts for IPUs use it.

Most of what they take from it is in TensorFlow proper today: `TABLE` says where. Served in a process that uses `ipu`,
or under the runner. Checked on 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import functools
import importlib
import types
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from typing import Any

from tf_ipu_shim import errors

NAME = "tensorflow.contrib"
_V1 = "tensorflow.compat.v1"
_XLA = "tensorflow.python.compiler.xla.xla"
_CHECKPOINTS = "tensorflow.python.training.checkpoint_utils"
_INITIALIZERS = "tf_ipu_shim.names.contrib_layers"
_SIGNATURES = "tf_ipu_shim.names.contrib_learn"
_OPTIMIZERS = "tf_ipu_shim.building.optimizers.contrib_lars"

# Module below `tensorflow.contrib` -> the names it has here, by the module that they are in today.
TABLE = {
    "compiler": {},
    "compiler.xla": {_XLA: "compile"},
    "data": {
        "tensorflow.data": "AUTOTUNE",
        f"{_V1}.data.experimental": "bucket_by_sequence_length map_and_batch parallel_interleave prefetch_to_device "
        "shuffle_and_repeat unbatch",
    },
    "framework": {
        _V1: "is_tensor",
        f"{_V1}.train": "get_global_step get_or_create_global_step",
        _CHECKPOINTS: "init_from_checkpoint list_variables load_checkpoint load_variable",
        "tensorflow": "nest",
    },
    "framework.python": {},
    "framework.python.framework": {},
    "framework.python.framework.checkpoint_utils": {
        _CHECKPOINTS: "init_from_checkpoint list_variables load_checkpoint load_variable"
    },
    "layers": {
        _INITIALIZERS: "l1_regularizer l2_regularizer variance_scaling_initializer xavier_initializer "
        "xavier_initializer_conv2d",
    },
    "learn": {},
    "learn.python": {},
    "learn.python.learn": {},
    "learn.python.learn.estimators": {},
    "learn.python.learn.estimators.constants": {_SIGNATURES: "ProblemType"},
    "learn.python.learn.utils": {},
    "learn.python.learn.utils.saved_model_export_utils": {_SIGNATURES: "build_standardized_signature_def"},
    "opt": {_OPTIMIZERS: "LARSOptimizer"},
    "opt.python": {},
    "opt.python.training": {},
    "opt.python.training.lars_optimizer": {_OPTIMIZERS: "LARSOptimizer"},
    "rnn": {
        f"{_V1}.nn.rnn_cell": "BasicLSTMCell BasicRNNCell DeviceWrapper DropoutWrapper GRUCell LSTMCell LSTMStateTuple "
        "MultiRNNCell RNNCell ResidualWrapper",
        f"{_V1}.nn": "static_bidirectional_rnn static_rnn",
    },
    "util": {_V1: "make_ndarray make_tensor_proto"},
}


class ContribModule(types.ModuleType):
    """A module of `tensorflow.contrib`.

    Args:
        fullname: of the module.
        path: below `tensorflow.contrib`; `""` for the package itself.
    """

    def __init__(self, fullname: str, path: str):
        super().__init__(fullname, f"{fullname} as far as scripts for IPUs use it.")
        self.__path__: list[str] = []
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        place = places(self._path).get(name)
        if place is not None:
            return getattr(importlib.import_module(place), name)
        below = f"{self._path}.{name}".strip(".")
        if below in TABLE:
            return importlib.import_module(f"{NAME}.{below}")
        raise errors.MissingAttributeError(
            f"{self.__name__}.{name}: tensorflow.contrib is gone from TensorFlow, and of it only what published "
            f"scripts for IPUs use is here (tf_ipu_shim/names/contrib.py). {self._advice()}"
        )

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *places(self._path)})

    def _advice(self) -> str:
        have = sorted({*places(self._path), *(path for path in TABLE if "." not in path and not self._path)})
        return f"{self.__name__} has {', '.join(have)}." if have else "Use tf.compat.v1."


class _Loader(Loader):
    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return ContribModule(spec.name, spec.name[len(NAME) + 1 :])

    def exec_module(self, module: types.ModuleType) -> None:
        return None


@functools.cache
def places(path: str) -> dict[str, str]:
    """Each name of a module, and the module that has it today.

    Args:
        path: of the module, below `tensorflow.contrib`.

    Example:
        >>> places("compiler.xla")
        {'compile': 'tensorflow.python.compiler.xla.xla'}
    """
    return {name: place for place, names in TABLE.get(path, {}).items() for name in names.split()}


def spec(fullname: str) -> ModuleSpec | None:
    """How a module of `tensorflow.contrib` is loaded; None for one that is not in the table.

    Args:
        fullname: of the module.
    """
    if fullname != NAME and fullname[len(NAME) + 1 :] not in TABLE:
        return None
    return ModuleSpec(fullname, _Loader(), is_package=True)
