"""Functions of `tensorflow.contrib.framework` that find a graph's variables."""

from __future__ import annotations

import importlib
from typing import Any


def _v1() -> Any:
    return importlib.import_module("tensorflow.compat.v1")


def get_variables(scope: Any = None, suffix: str | None = None, collection: str = "variables") -> list[Any]:
    """Variables of a collection, by the beginning and the end of their names.

    Args:
        scope: the start of names, a pattern or a variable scope; by default any.
        suffix: the end of names, before `:0`; by default any.
        collection: the searched collection; by default all saved variables.

    Example:
        >>> with tf.Graph().as_default(), tf.compat.v1.variable_scope("layer"):
        ...     names = [tf.compat.v1.get_variable(name, [2]).op.name for name in ("kernel", "bias")]
        ...     [variable.op.name for variable in get_variables("layer", suffix="bias")]
        ['layer/bias']
    """
    pattern = scope.name if isinstance(scope, _v1().VariableScope) else scope
    if suffix is not None:
        pattern = f"{pattern or ''}.*{suffix if ':' in suffix else f'{suffix}:'}"
    variables: list[Any] = _v1().get_collection(collection, pattern)
    return variables


def get_trainable_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` among trained variables.

    Args:
        scope: see `get_variables`.
        suffix: as above.
    """
    return get_variables(scope, suffix, _v1().GraphKeys.TRAINABLE_VARIABLES)


def get_model_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` among variables that layers added to the model's.

    Args:
        scope: see `get_variables`.
        suffix: as above.
    """
    return get_variables(scope, suffix, _v1().GraphKeys.MODEL_VARIABLES)


def get_local_variables(scope: Any = None, suffix: str | None = None) -> list[Any]:
    """`get_variables` among variables that are not saved.

    Args:
        scope: see `get_variables`.
        suffix: as above.
    """
    return get_variables(scope, suffix, _v1().GraphKeys.LOCAL_VARIABLES)


def get_variables_by_name(given_name: str, scope: Any = None) -> list[Any]:
    """Variables whose name without scopes is this.

    Args:
        given_name: the name.
        scope: see `get_variables`.
    """
    return [variable for variable in get_variables(scope) if variable.op.name.rpartition("/")[2] == given_name]


def get_variables_by_suffix(suffix: str, scope: Any = None) -> list[Any]:
    """`get_variables` with its arguments the other way round.

    Args:
        suffix: see `get_variables`.
        scope: as above.
    """
    return get_variables(scope, suffix)
