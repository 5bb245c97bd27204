"""Reads and writes files of named tensors, the format of `export_dataset_to_file`.

A file is a TFRecord file, which stock TensorFlow reads. The first record is JSON. It has `format` ("ipu tensors"),
`version` (1), `kind` ("dataset", "inputs" or "variables"), `feed` (the feed's name) and `tensors`, a list of `name`,
`dtype` and `shape`. Each further record is one tensor as `tf.io.serialize_tensor` writes it. The tensors of the first
element are in the order of `tensors`, followed by the second element's, and so on. A file has its name when it is
whole, and not before.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from tensorflow.compat.v2 import dtypes
from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.tf_private.protos import tensor_pb2
from tf_ipu_shim.tf_private.tensors import tensor_util
from tf_ipu_shim.tf_private.utilities import _pywrap_record_io, tf_record

_FORMAT, _VERSION = "ipu tensors", 1
KINDS = ("dataset", "inputs", "variables")


class TensorInfo(NamedTuple):
    """One of the tensors of an element: its name, NumPy's or TensorFlow's name of its type, and its dimensions."""

    name: str
    dtype: str
    shape: tuple[int, ...]


def check_filename(filename: Any) -> None:
    """Refuses file names that cannot be written, before anything is computed."""
    if not isinstance(filename, (str, os.PathLike)):
        raise TypeError(f"The file to write must be given by its path, not as {filename!r}. Pass the path as a string.")
    directory = os.path.dirname(os.path.abspath(filename))
    if not os.path.isdir(directory):
        raise errors_impl.NotFoundError(
            None, None, f"Cannot write {os.fspath(filename)}: there is no directory {directory}. Make it first."
        )


def check_names(tensors: Sequence[TensorInfo], advice: str) -> None:
    """Refuses two tensors of one name, because a reader could return only one."""
    names = [tensor.name for tensor in tensors]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"Several tensors would have the names {twice} in the file; names must be unique. {advice}")


class TensorFileWriter:
    """Writes a file, an element at a time.

    Args:
        filename: the path; an existing file is replaced when `close` is called.
        kind: "dataset", "inputs" or "variables".
        tensors: the tensors of an element, in order.
    """

    def __init__(self, filename: str, kind: str, tensors: Sequence[TensorInfo], feed: str = "") -> None:
        self._filename, self._tensors = os.path.abspath(filename), list(tensors)
        handle, self._temporary = tempfile.mkstemp(prefix=".", suffix=".part", dir=os.path.dirname(self._filename))
        os.close(handle)
        self.bytes = self.elements = 0
        self._writer = tf_record.TFRecordWriter(self._temporary)
        header = {"format": _FORMAT, "version": _VERSION, "kind": kind, "feed": feed}
        listed = [{**tensor._asdict(), "shape": list(tensor.shape)} for tensor in tensors]
        self._writer.write(json.dumps({**header, "tensors": listed}).encode())

    def add(self, values: Sequence[Any]) -> None:
        """Adds an element: an array for each tensor."""
        for tensor, value in zip(self._tensors, values, strict=True):
            array = np.asarray(value)
            proto = tensor_util.make_tensor_proto(array, dtypes.as_dtype(tensor.dtype), tensor.shape)
            self._writer.write(proto.SerializeToString())
            self.bytes += array.nbytes
        self.elements += 1

    def close(self) -> None:
        """Closes the file and renames it to its final name."""
        self._writer.close()
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(self._temporary, 0o666 & ~umask)  # as any other new file
        os.replace(self._temporary, self._filename)

    def discard(self) -> None:
        """Leaves nothing of it."""
        self._writer.close()
        os.unlink(self._temporary)


class TensorFile:
    """Reads a file that `export_dataset_to_file`, `export_inputs_to_file` or `export_variables` has written.

    Args:
        filename: the file.

    Attributes:
        kind: "dataset", "inputs" or "variables".
        feed: the feed's name.
        tensors: a `TensorInfo` for each tensor of an element.

    Raises:
        ValueError: it is not such a file.

    Example:
        >>> ipu.utils.export_dataset_to_file(tf.data.Dataset.range(10).map(lambda i: {"i": i}), "numbers.bin", 3)
        >>> exported = TensorFile("numbers.bin")
        >>> [tensor.name for tensor in exported.tensors]
        ['i']
        >>> [int(element["i"]) for element in exported]
        [0, 1, 2]
    """

    def __init__(self, filename: str | os.PathLike[str]) -> None:
        self._filename = os.fspath(filename)
        try:
            header = json.loads(next(self._records()))
            if header["format"] != _FORMAT or header["version"] != _VERSION:
                raise ValueError(f"it says format {header['format']!r}, version {header['version']!r}")
            self.kind, self.feed = str(header["kind"]), str(header["feed"])
            self.tensors = [
                TensorInfo(entry["name"], entry["dtype"], tuple(entry["shape"])) for entry in header["tensors"]
            ]
        except FileNotFoundError:
            raise
        except (StopIteration, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(
                f"{self._filename} is not a file of exported tensors: {error or 'it is empty'}. Pass a file that "
                "export_dataset_to_file or export_inputs_to_file wrote."
            ) from error

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        """Yields the elements, one after another: a dictionary from names to arrays."""
        records = self._records()
        next(records)
        element: dict[str, np.ndarray] = {}
        for record in records:
            name = self.tensors[len(element)].name
            element[name] = tensor_util.MakeNdarray(tensor_pb2.TensorProto.FromString(record))
            if len(element) == len(self.tensors):
                yield element
                element = {}
        if element:
            raise ValueError(
                f"{self._filename} ends in the middle of an element, after {name!r}; expected a complete "
                "file. Export it again."
            )

    def _records(self) -> Iterator[bytes]:
        if not os.path.exists(self._filename):
            raise FileNotFoundError(f"There is no file {self._filename}; expected one that exists. Check the path.")
        try:
            # What `tf_record_iterator` gives, which logs that `tf.data` should be used: that is no way in a graph.
            yield from _pywrap_record_io.RecordIterator(self._filename, "")
        except (errors_impl.DataLossError, errors_impl.OutOfRangeError) as error:
            raise ValueError(
                f"{self._filename} is damaged or no file of exported tensors: {error}. Export it again."
            ) from error
