"""Looks up why a Graphcore name is not supported, and its alternative, for error messages.

`alternatives.csv` has them by the beginning of the name: the longest counts. `tests/names/test_alternatives.py` checks
them.
"""

from __future__ import annotations

from tf_ipu_shim import data_files

_WHY = {
    beginning: row["reason"]
    for row in data_files.rows(__file__, "alternatives.csv")
    for beginning in row["beginnings"].split()
}
# Names that a module of Graphcore's has because it imports them: where they are at home.
_AT_HOME = {
    "IPUConfig": "tensorflow.python.ipu.config",
    "IPUMultiWorkerStrategy": "tensorflow.python.ipu.ipu_multi_worker_strategy",
    "IPUMultiWorkerStrategyV1": "tensorflow.python.ipu.ipu_multi_worker_strategy",
    "all_gather": "tensorflow.python.ipu.ops.all_to_all_op",
    "estilib": "tensorflow.compat.v1, as estimator",
    "ipu_estimator": "tensorflow.python.ipu",
    "ipu_strategy": "tensorflow.python.ipu",
    "logged_steps_per_execution_warning": "tensorflow.python.ipu.keras.extensions.keras_extension_base",
    "puo": "keras.ipu.optimizers, as parameter_unscaling_optimizer",
    "sequence_slice": "tensorflow.python.ipu.ops.slicing_ops",
}


def reason_and_alternative(fullname: str) -> str:
    """Returns why a Graphcore name is not emulated and what to do, as the end of a sentence; empty if unknown.

    Example:
        >>> reason_and_alternative("tensorflow.python.ipu.ipu_run_config.IPUConfig")
        'it is only imported there. Import it from tensorflow.python.ipu.config.'
    """
    home = _AT_HOME.get(fullname.rpartition(".")[2])
    if home is not None:
        return f"it is only imported there. Import it from {home}."
    prefixes = [beginning for beginning in _WHY if fullname.startswith(beginning)]
    return _WHY[max(prefixes, key=len)] if prefixes else ""
