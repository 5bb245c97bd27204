"""`tensorflow.python.ipu.dataset_extractor`: exports datasets and variables to files.

The files are TFRecord files that `tf_ipu_shim.TensorFile` reads. Graphcore's own tools read another format.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from tensorflow.compat.v2 import dtypes

from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.utilities.exports import write_dataset, write_element
from tf_ipu_shim.frontend.utilities.tensor_files import TensorFile, TensorInfo, check_filename, check_names
from tf_ipu_shim.tf_private import variables as tf_variables
from tf_ipu_shim.tf_private.control_flow import control_flow_ops
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import script_ops
from tf_ipu_shim.tf_private.tensors import constant_op

__all__ = ["dataset_extractor", "export_variables", "get_variable_handles", "import_variables"]


def get_variable_handles(variables: Iterable[Any]) -> list[Any]:
    """Returns the names by which variables are known to a session or eager context.

    Args:
        variables: resource variables.

    Returns:
        For each a string tensor of shape [1].

    Source: `tensorflow.python.ipu.dataset_extractor.get_variable_handles`.

    Example:
        >>> [name.numpy().tolist() for name in get_variable_handles([tf.Variable(1.0, name="weights")])]
        [[b'weights']]
    """
    with ops.device("/device:CPU:0"):
        return [constant_op.constant([_name(variable)]) for variable in variables]


def dataset_extractor(dataset: Any, num_elements: int, filename: str, feed_name: str, print_stats: bool = True) -> Any:
    """Writes the first elements of a dataset to a file.

    Args:
        dataset: a `tf.data.Dataset` of tensors with fully defined shapes.
        num_elements: how many elements.
        filename: the file.
        feed_name: recorded in the file.
        print_stats: whether a line says how much was written.

    Returns:
        An int64 tensor, the number of elements; in graph mode it writes when it runs.

    Raises:
        TypeError: `dataset` is not a dataset, or it has elements that are not plain tensors.
        ValueError: `num_elements` is below one, or a shape is not fully defined.
        OutOfRangeError: when run, the dataset ends too early; the file is not written.

    Source: `tensorflow.python.ipu.dataset_extractor.dataset_extractor`.

    Example:
        >>> int(dataset_extractor(tf.data.Dataset.range(10), 3, "numbers.bin", "feed", print_stats=False))
        3
    """
    return write_dataset(dataset, num_elements, filename, feed_name, print_stats)


def export_variables(
    variables: Sequence[Any],
    names: Any = None,
    filename: str | None = None,
    metadata: Any = None,
    print_stats: bool = True,
    is_input: bool = True,
) -> Any:
    """Writes the values of variables to a file.

    Args:
        variables: resource variables.
        names: the name of each in the file; by default the variable's. In SDKs up to 2.3 this argument is the file.
        filename: the file.
        metadata: must be None: it is for Graphcore's tools.
        print_stats: whether a line says how much was written.
        is_input: accepted; the file is the same for both.

    Returns:
        An int64 tensor, the number of variables; in graph mode it writes when it runs.

    Raises:
        ValueError: the file name or a variable's name is missing, a name is used twice, or metadata was passed.

    Source: `tensorflow.python.ipu.dataset_extractor.export_variables`.

    Example:
        >>> int(export_variables([tf.Variable([1.0, 2.0])], ["weights"], "weights.bin", print_stats=False))
        1
    """
    note_arguments("export_variables", is_input=is_input)
    if filename is None and isinstance(names, (str, os.PathLike)):  # SDK 2.3 and older
        names, filename = None, os.fspath(names)
    if filename is None:
        raise ValueError("export_variables needs a filename: it is None. Pass a path.")
    check_filename(filename)
    if metadata is not None:
        raise ValueError(
            "export_variables supports no metadata: it would describe a Poplar executable, and there is "
            "none. Leave it out."
        )
    named = [_name(variable) for variable in variables] if names is None else list(names)
    if len(named) != len(variables):
        raise ValueError(
            f"There are {len(variables)} variables and {len(named)} names; both numbers must be "
            "equal. Pass one name for each variable."
        )
    tensors = [
        TensorInfo(name, variable.dtype.base_dtype.name, tuple(variable.shape.as_list()))
        for name, variable in zip(named, variables)
    ]
    check_names(tensors, "Give export_variables another name for each variable: names=[...].")

    def write(*values: Any) -> Any:
        write_element(str(filename), "variables", tensors, values)
        if print_stats:
            print(f"{filename}: {len(values)} variables, {sum(np.asarray(value).nbytes for value in values)} bytes")
        return np.int64(len(values))

    with ops.device("/device:CPU:0"):
        return script_ops.numpy_function(write, [variable.read_value() for variable in variables], dtypes.int64)


def import_variables(
    variables: Sequence[Any],
    filenames: Any,
    is_input: bool = True,
    strict: bool = True,
    print_stats: bool = True,
) -> Any:
    """Sets variables to the values that a file of `export_variables` has for their names.

    Args:
        variables: resource variables.
        filenames: a file or several; a name is read from the first file that has it.
        is_input: accepted; the file is the same for both.
        strict: whether every variable has to be in a file.
        print_stats: whether a line says how many were read.

    Returns:
        In graph mode an operation that assigns the values. In eager mode they are assigned already, and it is None.

    Raises:
        ValueError: a file is not of this format, a value has another shape or dtype, or no file has a variable.

    Source: `tensorflow.python.ipu.dataset_extractor.import_variables`.

    Example:
        >>> weights = tf.Variable([1.0, 2.0], name="weights")
        >>> written = export_variables([weights], ["weights"], "weights.bin", print_stats=False)
        >>> loaded = import_variables([weights], ["weights.bin"])
        1 of 1 variables from weights.bin
    """
    note_arguments("export_variables", is_input=is_input)
    files = [filenames] if isinstance(filenames, (str, os.PathLike)) else list(filenames)
    values_by_name: dict[str, np.ndarray] = {}
    for filename in files:
        for element in TensorFile(filename):
            values_by_name = {**element, **values_by_name}
    missing = [_name(variable) for variable in variables if _name(variable) not in values_by_name]
    if missing and strict:
        raise ValueError(
            f"{', '.join(map(str, files))} must have a value for each variable; missing: {missing}. "
            "Export these variables too, or leave them out."
        )
    selected = [variable for variable in variables if _name(variable) in values_by_name]
    for variable in selected:
        _check_value(variable, values_by_name[_name(variable)])
    assigned = [variable.assign(values_by_name[_name(variable)]) for variable in selected]
    if print_stats:
        print(f"{len(selected)} of {len(variables)} variables from {', '.join(map(str, files))}")
    return None if context.executing_eagerly() else control_flow_ops.group(*assigned)


def _check_value(variable: Any, value: np.ndarray) -> None:
    name, expected, dtype = _name(variable), variable.dtype.base_dtype, dtypes.as_dtype(value.dtype)
    if not variable.shape.is_compatible_with(value.shape):
        raise ValueError(
            f"The variable {name} has the shape {variable.shape}, and its value {value.shape}; both "
            "must be equal. Import the value that was exported from this variable."
        )
    if expected != dtype:
        raise ValueError(
            f"The variable {name} is {expected.name}, and its value {dtype.name}; both must have "
            f"one dtype. Import it into a variable of {dtype.name}, and cast that."
        )


def _name(variable: Any) -> str:
    return str(tf_variables.shared_name(variable))
