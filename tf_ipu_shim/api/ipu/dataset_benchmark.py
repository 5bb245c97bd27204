"""`tensorflow.python.ipu.dataset_benchmark`: measures the throughput of datasets and infeeds on the host."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from tensorflow.compat.v2 import dtypes, nest
from tensorflow.compat.v2 import errors as errors_impl

from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.feeds.ipu_infeed_queue import IPUInfeedQueue
from tf_ipu_shim.frontend.validation.counts import check_integer
from tf_ipu_shim.tf_private.control_flow import control_flow_assert
from tf_ipu_shim.tf_private.datasets import dataset_ops, structure
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.operations import array_ops, gen_array_ops, gen_logging_ops, math_ops, script_ops
from tf_ipu_shim.tf_private.tensors import constant_op


def dataset_benchmark(
    dataset: Any,
    number_of_epochs: int,
    elements_per_epochs: int,
    print_stats: bool = True,
    apply_debug_options: bool = True,
    do_memcpy: bool = True,
    apply_options: bool | None = None,
) -> Any:
    """Measures how fast a dataset yields its elements.

    Args:
        dataset: a `tf.data.Dataset`; it has to have enough elements for all epochs together.
        number_of_epochs: how often to measure.
        elements_per_epochs: elements taken in each.
        print_stats: whether to print a line for each epoch.
        apply_debug_options: no effect: the dataset's options always apply.
        do_memcpy: whether each element is copied, as a transfer to the IPU would do.
        apply_options: the name of `apply_debug_options` on TensorFlow 1; no effect.

    Returns:
        A string tensor of shape [1], JSON: `epochs` holds for each epoch `elements_processed`,
        `total_bytes_processed`, `time_elapsed` (seconds), `elements_per_second` and `bandwidth` (GB/s).

    Raises:
        TypeError: `dataset` is not a dataset.
        ValueError: a number is below one.
        InvalidArgumentError: a shape has a dimension of size zero, or, when run, the dataset ends too early.

    Source: `tensorflow.python.ipu.dataset_benchmark.dataset_benchmark`.

    Example:
        >>> dataset = tf.data.Dataset.from_tensors(tf.ones([16])).repeat()
        >>> statistics = json.loads(dataset_benchmark(dataset, 3, 100, print_stats=False).numpy()[0])
        >>> statistics["epochs"][0]["elements_processed"]
        100
    """
    note_arguments("dataset_benchmark", apply_debug_options=apply_debug_options, apply_options=apply_options)
    if not isinstance(dataset, dataset_ops.DatasetV2):
        raise TypeError(
            f"Expected `dataset` to be tf.data.Dataset, but it is a {type(dataset).__name__}. Pass a tf.data.Dataset."
        )
    number_of_epochs = check_integer("number_of_epochs", number_of_epochs)
    elements_per_epochs = check_integer("elements_per_epochs", elements_per_epochs)
    for name, value in (("number_of_epochs", number_of_epochs), ("elements_per_epochs", elements_per_epochs)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1. It is {value}. Pass at least 1.")
    for shape in structure.get_flat_tensor_shapes(dataset.element_spec):
        if shape.rank is not None and 0 in shape.as_list():
            return _refused(
                f"Detected a tensor in the dataset with a dimension of size 0: its shape is {shape}, and there is "
                "nothing to measure. Leave it out of the dataset."
            )
    with ops.device("/device:CPU:0"):
        return _measure(dataset, number_of_epochs, elements_per_epochs, print_stats, do_memcpy)


def infeed_benchmark(
    infeed_queue: Any,
    number_of_epochs: int,
    elements_per_epochs: int,
    print_stats: bool = True,
    do_memcpy: bool = True,
) -> Any:
    """Measures how fast an infeed's dataset yields its elements; the infeed itself is not consumed.

    Args:
        infeed_queue: an `IPUInfeedQueue`.
        number_of_epochs: see `dataset_benchmark`, also for the arguments below.
        elements_per_epochs: as above.
        print_stats: as above.
        do_memcpy: as above.

    Returns:
        As `dataset_benchmark`.

    Raises:
        TypeError: `infeed_queue` is not an infeed.

    Source: `tensorflow.python.ipu.dataset_benchmark.infeed_benchmark`.

    Example:
        >>> infeed_queue = ipu.ipu_infeed_queue.IPUInfeedQueue(tf.data.Dataset.from_tensors(tf.ones([16])).repeat())
        >>> statistics = json.loads(infeed_benchmark(infeed_queue, 3, 100, print_stats=False).numpy()[0])
        >>> len(statistics["epochs"])
        3
    """
    if not isinstance(infeed_queue, IPUInfeedQueue):
        raise TypeError(
            f"Expected `infeed_queue` to be ipu_infeed_queue.IPUInfeedQueue, not {type(infeed_queue).__name__}. Pass "
            "an IPUInfeedQueue."
        )
    return dataset_benchmark(
        infeed_queue._dataset, number_of_epochs, elements_per_epochs, print_stats, do_memcpy=do_memcpy
    )


def _measure(dataset: Any, epochs: int, elements: int, print_stats: bool, do_memcpy: bool) -> Any:
    def step(state: Any, element: Any) -> Any:
        measured, total, times, sizes = state
        flat = nest.flatten(element, expand_composites=True)
        copies = [gen_array_ops.deep_copy(part).op for part in flat if do_memcpy and part.dtype.is_numpy_compatible]
        with ops.control_dependencies([copy for copy in copies if copy is not None]):
            total += sum((_bytes(part) for part in flat), np.int64(0))
            now = gen_logging_ops.timestamp()
        # The last element of an epoch has the last word.
        epoch_index = [[measured // elements]]
        times = array_ops.tensor_scatter_nd_update(times, epoch_index, [now])
        sizes = array_ops.tensor_scatter_nd_update(sizes, epoch_index, [total])
        return measured + 1, total, times, sizes

    zero = array_ops.zeros([], dtypes.int64)
    state = (zero, zero, array_ops.zeros([epochs], dtypes.float64), array_ops.zeros([epochs], dtypes.int64))
    start = gen_logging_ops.timestamp()
    with ops.control_dependencies([start]):
        measured, _, times, sizes = dataset.take(epochs * elements).reduce(
            state, lambda *elements_pair: step(elements_pair[0], _one(elements_pair))
        )
    enough = control_flow_assert.Assert(
        math_ops.equal(measured, epochs * elements),
        ["The dataset ended after", measured, f"elements; {epochs} epochs of {elements} elements need more."],
    )
    with ops.control_dependencies([enough] if enough is not None else []):
        report = script_ops.numpy_function(
            lambda first, ends, bytes_: _report(first, ends, bytes_, elements, print_stats),
            [start, times, sizes],
            dtypes.string,
        )
    return array_ops.reshape(report, [1])


def _one(arguments: tuple[Any, ...]) -> Any:
    return arguments[1] if len(arguments) == 2 else arguments[1:]


def _bytes(part: Any) -> Any:
    if not part.dtype.is_numpy_compatible or part.dtype == dtypes.string:
        return np.int64(0)
    return array_ops.size(part, out_type=dtypes.int64) * part.dtype.size


def _report(start: Any, ends: Any, totals: Any, elements: int, print_stats: bool) -> bytes:
    epochs = []
    for index, (seconds, size) in enumerate(zip(np.diff(ends, prepend=start), np.diff(totals, prepend=0))):
        seconds = max(float(seconds), 1e-9)  # the clock may not have moved
        epochs.append(
            {
                "elements_processed": elements,
                "total_bytes_processed": int(size),
                "time_elapsed": seconds,
                "elements_per_second": elements / seconds,
                "bandwidth": int(size) / seconds / 1e9,
            }
        )
        if print_stats:
            print(
                f"Epoch {index}: {elements} elements, {int(size)} bytes in {seconds:.6f} s: "
                f"{elements / seconds:.1f} elements/s, {int(size) / seconds / 1e9:.3f} GB/s"
            )
    return json.dumps({"epochs": epochs}).encode()


def _refused(message: str) -> Any:
    """Returns an error of a dataset: from the call, or from the session that runs its result."""
    if context.executing_eagerly():
        raise errors_impl.InvalidArgumentError(None, None, message)
    with ops.device("/device:CPU:0"):
        failing = control_flow_assert.Assert(constant_op.constant(False), [message])
        with ops.control_dependencies([failing]):
            return array_ops.identity(constant_op.constant([""]))
