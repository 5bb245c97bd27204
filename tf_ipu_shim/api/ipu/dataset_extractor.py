"""`tensorflow.python.ipu.dataset_extractor`: files for Graphcore's programs that run without TensorFlow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tf_ipu_shim.names.refused import refused

_REASON = "is not emulated: its files have a binary format of Graphcore's own, which only its other tools read. Use "


def get_variable_handles(variables: Iterable[Any]) -> list[Any]:
    """The handles of variables.

    Args:
        variables: resource variables.

    Source: `tensorflow.python.ipu.dataset_extractor.get_variable_handles`.

    Example:
        >>> handles = get_variable_handles(tf.compat.v1.global_variables())
    """
    return [variable.handle for variable in variables]


@refused(_REASON + "tf.data.Dataset.save.")
def dataset_extractor(dataset: Any, num_elements: int, filename: str, feed_name: str, print_stats: bool = True) -> None:
    """Refused: writes a dataset's elements in Graphcore's own format.

    Raises:
        UnsupportedError: always.
    """


@refused(_REASON + "tf.compat.v1.train.Saver.")
def export_variables(
    variables: Any,
    names: Any = None,
    filename: str | None = None,
    is_input: bool = True,
    metadata: Any = None,
    print_stats: bool = True,
) -> None:
    """Refused: writes variables in Graphcore's own format.

    Raises:
        UnsupportedError: always.
    """


@refused(_REASON + "tf.compat.v1.train.Saver.")
def import_variables(
    variables: Any, filenames: Any, is_input: bool = True, strict: bool = True, print_stats: bool = True
) -> None:
    """Refused: reads variables in Graphcore's own format.

    Raises:
        UnsupportedError: always.
    """
