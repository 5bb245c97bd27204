"""Implements `export_dataset_to_file` and `export_inputs_to_file` of `tensorflow.python.ipu.utils`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from tensorflow.compat.v2 import dtypes
from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.feeds.ipu_infeed_queue import IPUInfeedQueue
from tf_ipu_shim.frontend.utilities.tensor_files import TensorFileWriter, TensorInfo, check_filename, check_names
from tf_ipu_shim.frontend.validation.counts import check_integer
from tf_ipu_shim.tf_private.datasets import dataset_ops
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import script_ops
from tf_ipu_shim.tf_private.sessions import session as session_lib
from tf_ipu_shim.tf_private.tensors import nest, tensor_spec

_HOST = "/device:CPU:0"


def write_dataset(dataset: Any, num_elements: int, filename: str, feed_name: str, print_stats: bool) -> Any:
    """Writes the first elements of a dataset: at once when run eagerly, else when the op that it returns runs.

    Args:
        dataset: a `tf.data.Dataset` of tensors with fully defined shapes.
        num_elements: how many.
        filename: the path of the file.
        feed_name: recorded in the file.
        print_stats: whether a line says how much it was.

    Returns:
        An int64 tensor: the number of elements written.

    Raises:
        TypeError: `dataset` is not a dataset, its elements are not plain tensors, `num_elements` is not an integer, or
            `filename` is not a path.
        NotFoundError: the file's directory does not exist.
        ValueError: `num_elements` is below one, or a shape is not fully defined.
        OutOfRangeError: when run, the dataset ends too early; the file is not written.
    """
    if not isinstance(dataset, dataset_ops.DatasetV2):
        raise TypeError(
            f"Expected `dataset` to be tf.data.Dataset, but it is a {type(dataset).__name__}. Pass a tf.data.Dataset."
        )
    num_elements = check_integer("num_elements", num_elements)
    if num_elements < 1:
        raise ValueError(f"num_elements must be at least 1. It is {num_elements}. Pass at least 1.")
    check_filename(filename)
    tensors = _name_tensors(dataset.element_spec)
    writer = _DatasetWriter(filename, tensors, feed_name, num_elements, print_stats)

    def add(written_count: Any, *element: Any) -> Any:
        return script_ops.numpy_function(writer.add, [written_count, *nest.flatten(element)], dtypes.int64)

    def count(written_count: Any, element_count: Any) -> Any:
        return written_count + element_count

    with ops.device(_HOST):
        written = dataset.take(num_elements).enumerate().map(add)
        written_count = written.reduce(np.int64(0), count)
        return script_ops.numpy_function(writer.close, [written_count], dtypes.int64)


class _DatasetWriter:
    """Writes the elements of one dataset; starts again at the first element."""

    def __init__(
        self, filename: str, tensors: Sequence[TensorInfo], feed: str, expected: int, print_stats: bool
    ) -> None:
        self._arguments = (filename, "dataset", tensors, feed)
        self._expected, self._print_stats = expected, print_stats
        self._writer: TensorFileWriter | None = None

    def add(self, count: Any, *values: Any) -> Any:
        if count == 0:
            if self._writer is not None:  # a run before this one failed
                self._writer.discard()
            self._writer = TensorFileWriter(*self._arguments)
        if self._writer is not None:
            self._writer.add(values)
        return np.int64(1)

    def close(self, count: Any) -> Any:
        writer, self._writer = self._writer, None
        if count < self._expected or writer is None:
            if writer is not None:
                writer.discard()
            raise errors_impl.OutOfRangeError(
                None,
                None,
                f"The dataset ended after {count} elements; expected {self._expected} to export. Lower "
                "num_elements, or repeat the dataset.",
            )
        writer.close()
        if self._print_stats:
            print(f"{self._arguments[0]}: {writer.elements} elements, {writer.bytes} bytes")
        return np.int64(writer.elements)


def _name_tensors(structure: Any) -> list[TensorInfo]:
    """Returns a name for each tensor of an element: its keys and places in the structure."""
    tensors = []
    for path, part in nest.flatten_with_joined_string_paths(structure, separator="."):
        if not isinstance(part, tensor_spec.TensorSpec):
            raise TypeError(
                f"Only tensors can be exported, and {path or 'the element'} is a {type(part).__name__}. Convert it "
                "with tf.convert_to_tensor."
            )
        if not part.shape.is_fully_defined():
            raise ValueError(
                f"{path or 'The element'} has the shape {part.shape}. Shapes must be fully defined; give a batch "
                "`drop_remainder=True`, or the tensor a shape with tf.ensure_shape."
            )
        tensors.append(TensorInfo(path, part.dtype.name, tuple(part.shape.as_list())))
    check_names(tensors, "Give the dataset's dictionaries keys that differ when they are joined by dots.")
    return tensors


def export_dataset_to_file(
    dataset_or_infeed: Any,
    output_filename: str,
    num_elements: int,
    feed_name: str = "",
    apply_debug_options: bool = True,
    apply_options: bool | None = None,
) -> None:
    """Writes the first elements of a dataset or infeed to a file, so that a program's data can be inspected or kept.

    `tf_ipu_shim.TensorFile` reads it; the format is documented there. Graphcore's own tools read another format.

    Args:
        dataset_or_infeed: a `tf.data.Dataset`, or an `IPUInfeedQueue`, which is not consumed.
        output_filename: the file.
        num_elements: how many elements.
        feed_name: recorded in the file; the infeed's own name when left out.
        apply_debug_options: no effect: the dataset's options always apply.
        apply_options: the name of `apply_debug_options` on TensorFlow 1.

    Raises:
        AssertionError: it is neither a dataset nor an infeed.
        ValueError: `num_elements` is below one, or a shape is not fully defined.
        OutOfRangeError: the dataset has fewer elements.

    Source: `tensorflow.python.ipu.utils.export_dataset_to_file`.

    Example:
        >>> export_dataset_to_file(tf.data.Dataset.range(10), "numbers.bin", 3)
        >>> [int(element[""]) for element in tf_ipu_shim.TensorFile("numbers.bin")]
        [0, 1, 2]
    """
    note_arguments("export_dataset_to_file", apply_debug_options=apply_debug_options, apply_options=apply_options)
    dataset = dataset_or_infeed
    if isinstance(dataset_or_infeed, IPUInfeedQueue):
        dataset, feed_name = dataset_or_infeed._dataset, feed_name or dataset_or_infeed._id
    if not isinstance(dataset, dataset_ops.DatasetV2):
        raise AssertionError(
            "export_dataset_to_file takes a tf.data.Dataset or an IPUInfeedQueue, not a "
            f"{type(dataset_or_infeed).__name__}. Pass one of these."
        )
    op = write_dataset(dataset, num_elements, output_filename, feed_name, print_stats=False)
    if not context.executing_eagerly():
        with session_lib.Session(graph=op.graph) as session:
            session.run(op)


def export_inputs_to_file(inputs: Sequence[Any], output_filename: str, feed_dict: Mapping[Any, Any]) -> None:
    """Writes a program's inputs to a file.

    `tf_ipu_shim.TensorFile` reads it; the format is documented there. Graphcore's own tools read another format.

    Args:
        inputs: placeholders of the program.
        output_filename: the file.
        feed_dict: a dictionary from each of them to its value.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: an input has no value, or one of another shape, or is given twice.

    Source: `tensorflow.python.ipu.utils.export_inputs_to_file`.

    Example:
        >>> with tf.Graph().as_default():
        ...     x = tf.compat.v1.placeholder(tf.float32, [2, 2], name="x")
        ...     export_inputs_to_file([x], "inputs.bin", {x: np.ones([2, 2])})
        >>> next(iter(tf_ipu_shim.TensorFile("inputs.bin")))["x"].shape
        (2, 2)
    """
    input_tensors: Any = inputs
    if not isinstance(input_tensors, Iterable):
        raise TypeError(f"inputs must be a list of the program's placeholders, not {input_tensors!r}.")
    by_reference = {_tensor_name(tensor): value for tensor, value in feed_dict.items()}
    tensors, values = [], []
    for tensor in inputs:
        if _tensor_name(tensor) not in by_reference:
            raise ValueError(
                f"feed_dict has no value for the input {tensor.name}; expected one for each input. Add it."
            )
        value = np.asarray(by_reference[_tensor_name(tensor)], tensor.dtype.as_numpy_dtype)
        if not tensor.shape.is_compatible_with(value.shape):
            raise ValueError(
                f"The input {tensor.name} has the shape {tensor.shape}, and its value {value.shape}; "
                "both must be equal. Reshape the value."
            )
        tensors.append(TensorInfo(tensor.op.name, tensor.dtype.name, value.shape))
        values.append(value)
    check_names(tensors, "Pass each input once.")
    write_element(output_filename, "inputs", tensors, values)


def write_element(
    filename: str, kind: str, tensors: Sequence[TensorInfo], values: Sequence[Any], feed: str = ""
) -> None:
    """Writes a file of one element."""
    check_filename(filename)
    writer = TensorFileWriter(filename, kind, tensors, feed)
    try:
        writer.add(values)
    except BaseException:
        writer.discard()
        raise
    writer.close()


def _tensor_name(tensor: Any) -> Any:
    return tensor.ref() if hasattr(tensor, "ref") else tensor
