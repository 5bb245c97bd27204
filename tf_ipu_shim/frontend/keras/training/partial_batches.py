"""Handles mini-batches that do not fill all replicas: pads predictions, warns in training and evaluation."""

from __future__ import annotations

from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim.compiler.ir import written_variables
from tf_ipu_shim.tf_private import keras_members
from tf_ipu_shim.tf_private.control_flow import cond
from tf_ipu_shim.tf_private.datasets import dataset_ops
from tf_ipu_shim.tf_private.operations import array_ops
from tf_ipu_shim.tf_private.utilities import tf_logging

_NAMED = 3  # variables that a message names


def pad_dataset(dataset: Any, mini_batches: int, padding: int) -> Any:
    """Returns a dataset whose first mini-batches are followed by repetitions of the last, which the model accepts.

    Example:
        >>> list(pad_dataset(tf.data.Dataset.range(9), 3, 2).as_numpy_iterator())
        [0, 1, 2, 2, 2]
    """
    blank = nest.map_structure(lambda spec: array_ops.zeros(spec.shape, spec.dtype), (dataset.element_spec,))
    data = dataset.take(mini_batches).map(lambda *element: (True, _as_element(dataset, element)))
    padding_batches = dataset_ops.DatasetV2.from_tensors((False, blank)).repeat(padding)

    def next_or_last(last: Any, pair: Any) -> Any:
        element = cond.cond(pair[0], lambda: pair[1], lambda: last)
        return element, element

    return (
        data.concatenate(padding_batches)
        .scan(blank, lambda last, pair: next_or_last(last, pair))
        .map(lambda only: only)
    )


def _as_element(dataset: Any, arguments: tuple[Any, ...]) -> tuple[Any]:
    """Returns an element, in its tuple type, from the arguments of the function that `map` calls."""
    return (arguments if isinstance(dataset.element_spec, tuple) else arguments[0],)


def find_written_variables(concrete: Any, *expected: Any) -> list[str]:
    """Returns names of the variables that a traced function writes."""
    library = {item.signature.name: item for item in concrete.graph.as_graph_def().library.function}
    definition = concrete.function_def
    library[definition.signature.name] = definition
    written = written_variables.written_arguments(definition.signature.name, library)
    handles = {id(handle) for index, handle in enumerate(concrete.captured_inputs) if index in written}
    expected_handles = {id(variable.handle) for variable in expected}
    return sorted(item.name for item in concrete.graph.variables if id(item.handle) in handles - expected_handles)


def check_padding(model: Any, program: Any, handler: Any, replicas: int) -> None:
    """Refuses to pad the data of a prediction if padding is needed and the model would notice."""
    if not handler.padding:
        return
    if program.written is None:
        program.written = find_written_variables(program.trace(), keras_members.predict_counter(model))
    _check_no_writes(model, program.written, handler.mini_batches, replicas)


def warn_dropped_batches(mode: str, handler: Any, callbacks: Any) -> None:
    """Logs it once for a list of callbacks, which the validations of a `fit` share."""
    line, warned = handler.dropped_batches_message(mode), vars(callbacks).setdefault("_ipu_said", set())
    if line and line not in warned:
        warned.add(line)
        tf_logging.warning(line)


def _check_no_writes(model: Any, written: list[str], mini_batches: int, replicas: int) -> None:
    """Refuses to pad if an additional mini-batch would change variables."""
    if not written:
        return
    names = ", ".join(written[:_NAMED]) + (", ..." if len(written) > _NAMED else "")
    raise ValueError(
        f"predict cannot share {mini_batches} mini-batches between {replicas} replicas of model {model.name}: the "
        f"last ones do not fill all replicas. Padding would change variables that the model writes ({names}). Give "
        f"a multiple of {replicas} mini-batches, or use fewer IPUs."
    )


def dropped_batches_message(
    mode: str, mini_batches: int, batch_size: int, replicas: int, steps_set: bool, goes_on: bool
) -> str:
    """Returns the warning about mini-batches that training or evaluation drops; empty if none."""
    dropped = mini_batches % replicas
    if not dropped:
        return ""
    epoch = " in each epoch" if mode == "fit" else ""
    fill = "the last one does not" if dropped == 1 else f"the last {dropped} do not"
    why = f"{replicas} replicas take {replicas} at a time, and {fill} fill them"
    if goes_on:
        why += f": the next epoch begins with {'it' if dropped == 1 else 'them'}"
    if steps_set or not batch_size:
        reason = f" that `{'steps_per_epoch' if mode == 'fit' else 'steps'}` asks for" if steps_set else ""
        return (
            f"{mode} runs {mini_batches - dropped} of the {mini_batches} mini-batches{reason}{epoch}: {why}. Give a "
            f"multiple of {replicas}."
        )
    samples = mini_batches * batch_size
    return (
        f"{mode} leaves out {dropped * batch_size} of {samples} samples{epoch}, {dropped} of {mini_batches} "
        "mini-batches of "
        f"{batch_size}: {why}. Pass a multiple of {replicas * batch_size} samples, a smaller batch_size, or use fewer "
        "IPUs."
    )
