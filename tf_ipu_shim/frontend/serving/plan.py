"""Describes a serving export: its steps, their signatures, input and output names."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Sequence
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.serving import signatures
from tf_ipu_shim.frontend.serving.signatures import StepSignature
from tf_ipu_shim.frontend.tracing import autograph
from tf_ipu_shim.tf_private.functions import def_function
from tf_ipu_shim.tf_private.graphs import ops


@dataclasses.dataclass
class ServingStep:
    """A function that processes a request.

    Args:
        label: its name in messages, such as `preprocessing_step`.
        signature: `TensorSpec`s of its inputs.
    """

    label: str
    function: Callable[..., Any]
    signature: list[Any]

    def __call__(self, tensors: Sequence[Any]) -> list[Any]:
        """Calls the function in the current graph; returns its flat results."""
        if isinstance(self.function, def_function.Function):
            returned = self.function(*tensors)
        else:
            returned = autograph.convert(self.function)(*tensors)
        return [self._tensor(position, value) for position, value in enumerate(nest.flatten(returned))]

    def _tensor(self, position: int, value: Any) -> Any:
        try:
            if value is None or isinstance(value, ops.Operation):
                raise TypeError(f"{value!r} has no value; expected a tensor. Return tensors.")
            return ops.convert_to_tensor(value)
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"`{self.label}` returned value at position {position} it is not a Tensor, and cannot be made one: "
                f"{error}. Return tensors."
            ) from error


@dataclasses.dataclass
class ExportPlan:
    """An export.

    Args:
        request: `TensorSpec`s with names, for the tensors of a request.
        after: the step on the host behind it.
        output_names: the names of the results of the last step; `output_0` and so on by default.
        iterations: the iterations of the loop in Graphcore's executable.
        purges: whether the directory is emptied.
        ipus: how many the prediction needs.
        variable_initializer: TensorFlow 1: a function of a session that initialises its variables.
        checkpoint: TensorFlow 1: directory of a checkpoint with the variables of the steps on the host.
    """

    directory: str
    request: list[Any]
    predict: ServingStep
    before: ServingStep | None
    after: ServingStep | None
    output_names: list[str] | None
    iterations: int
    purges: bool = False
    ipus: int = 1
    variable_initializer: Callable[[Any], Any] | None = None
    checkpoint: str | None = None

    def empty_directory(self) -> str:
        """Returns the directory, emptied if requested: the last step before writing."""
        if self.purges and os.path.isdir(self.directory):
            shutil.rmtree(self.directory)
        return self.directory

    def names(self, count: int) -> list[str]:
        """Returns names of the outputs."""
        last = self.after or self.predict
        if not count:
            raise ValueError(
                f"`{last.label}` returned nothing. A served model has at least one output. Return a tensor."
            )
        if self.output_names is None:
            return [f"output_{i}" for i in range(count)]
        if len(self.output_names) != count:
            raise ValueError(
                f"Length of output_names does not match the number of outputs of `{last.label}`: "
                f"{self.output_names} are {len(self.output_names)}, and it returned {count}. Pass one name for each "
                "output."
            )
        return self.output_names

    def returned(self, outputs: Sequence[Any]) -> Any:
        """Packs an exported function's results: a dictionary with output names, else a list."""
        return list(outputs) if self.output_names is None else dict(zip(self.output_names, outputs))


def make_plan(
    predict_step: Callable[..., Any],
    export_dir: str,
    iterations: Any,
    *,
    predict_step_signature: Any = None,
    first_stage: Callable[..., Any] | None = None,
    bound: int = 0,
    input_dataset: Any = None,
    output_names: Any = None,
    preprocessing_step: Callable[..., Any] | None = None,
    preprocessing_step_signature: Any = None,
    postprocessing_step: Callable[..., Any] | None = None,
    postprocessing_step_signature: Any = None,
    purge_export_dir: bool = False,
    **options: Any,
) -> ExportPlan:
    """Checks the arguments of an export."""
    directory = check_directory(export_dir, purge_export_dir)
    count = check_count("iterations", iterations)
    for step, function in (("preprocessing_step", preprocessing_step), ("postprocessing_step", postprocessing_step)):
        if function is not None and not callable(function):
            raise TypeError(f"{step} must be a function, not {type(function).__name__}. Pass a function.")
    note_arguments("serving", iterations=count)
    predict = StepSignature("predict_step", first_stage or predict_step, predict_step_signature, bound)
    before = StepSignature("preprocessing_step", preprocessing_step, preprocessing_step_signature)
    after = StepSignature("postprocessing_step", postprocessing_step, postprocessing_step_signature)
    request, argument_count = signatures.request_signatures(predict, before, input_dataset)
    return ExportPlan(
        directory,
        request,
        ServingStep(predict.label, predict_step, request if argument_count is None else argument_count),
        None if preprocessing_step is None else ServingStep(before.label, preprocessing_step, request),
        None
        if postprocessing_step is None
        else ServingStep(after.label, postprocessing_step, signatures.step_signature(after)),
        _check_output_names(output_names),
        count,
        purges=purge_export_dir,
        **options,
    )


def pass_tensors(source: ServingStep, tensors: Sequence[Any], target: ServingStep) -> list[Any]:
    """Matches one step's outputs to the next step's inputs."""
    if len(tensors) != len(target.signature):
        raise ValueError(
            f"The number of the `{source.label}` outputs does not match the number of the `{target.label}` inputs: "
            f"{len(tensors)} and {len(target.signature)}. Return as many tensors as the next step has inputs."
        )
    for position, (tensor, spec) in enumerate(zip(tensors, target.signature)):
        if tensor.dtype != spec.dtype or not spec.shape.is_compatible_with(tensor.shape):
            raise ValueError(
                f"`{source.label}` returned Tensor at postion {position} does not match what `{target.label}` takes: "
                f"{tensor.dtype.name}{tensor.shape} and {spec.dtype.name}{spec.shape}. Cast or reshape it."
            )
    return list(tensors)


def check_directory(export_dir: Any, purge: bool) -> str:
    """Returns the directory of an export as text."""
    if not isinstance(export_dir, (str, os.PathLike)):
        raise TypeError(f"export_dir must be the path of a directory, not {export_dir!r}. Pass the path as a string.")
    directory = os.fspath(export_dir)
    if not directory:
        raise ValueError(
            "export_dir is an empty path; expected the path of a directory. Please specify an empty or a new directory."
        )
    if os.path.isdir(directory) and os.listdir(directory) and not purge:
        raise ValueError(
            f'Directory "{directory}" is not empty. Please specify an empty or a new directory, or '
            "purge_export_dir=True to delete its contents."
        )
    if os.path.exists(directory) and not os.path.isdir(directory):
        raise ValueError(f'"{directory}" is a file; expected a directory. Please specify an empty or a new directory.')
    return directory


def check_count(name: str, value: Any) -> int:
    """Checks an argument that is a count, and returns it."""
    try:
        count = int(value)
    except (TypeError, ValueError):
        count = 0
    if isinstance(value, bool) or count != value or count < 1:
        raise ValueError(f"{name} must be an integer of at least 1, not {value!r}. Pass an integer of 1 or more.")
    return count


def _check_output_names(output_names: Any) -> list[str] | None:
    if not output_names:
        return None
    names = [output_names] if isinstance(output_names, str) else output_names
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TypeError(
            f"output_names must be either a string or a list of strings, not {output_names!r}. Pass a string or a list "
            "of strings."
        )
    if "" in names or len(set(names)) < len(names):
        raise ValueError(
            f"output_names must be different from each other, and none of them empty. They are {names}. Rename them."
        )
    return names
