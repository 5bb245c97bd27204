"""Determines and checks the input signatures of a served model's steps.

Uses `def_function.Function.input_signature` and `python_function`; checked on TensorFlow 2.15.1 and 2.21.0.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tensorflow.compat.v2 import nest

from tf_ipu_shim.tf_private.datasets import dataset_ops
from tf_ipu_shim.tf_private.functions import def_function
from tf_ipu_shim.tf_private.graphs import ops
from tf_ipu_shim.tf_private.tensors import tensor_spec

_DATASETS = (dataset_ops.DatasetV1, dataset_ops.DatasetV2)


@dataclasses.dataclass(frozen=True)
class StepSignature:
    """A step's signature as the caller gave it.

    Args:
        label: the step's name in messages, such as `predict_step`.
        function: the step; None if there is none.
        signature: the argument `<label>_signature`.
        bound: how many of the function's first arguments are not part of a request.
    """

    label: str
    function: Callable[..., Any] | None
    signature: Any = None
    bound: int = 0

    @property
    def argument(self) -> str:
        """The name of the argument that defines the signature."""
        return f"{self.label}_signature"


def request_signatures(
    predict: StepSignature, preprocessing: StepSignature, dataset: Any
) -> tuple[list[Any], list[Any] | None]:
    """Returns the signatures of a request, and of the prediction after a preprocessing step."""
    first = preprocessing if preprocessing.function is not None else predict
    for step in (predict, preprocessing):
        _check_spec(step)
    if dataset is not None and first.signature is not None:
        raise ValueError(
            f"Both `{first.argument}` and `input_dataset` cannot be provided. Leave one of them out: each says what "
            f"`{first.label}` takes."
        )
    if dataset is not None and not isinstance(dataset, _DATASETS):
        raise TypeError(
            "If `input_dataset` is provided, it should be an instance of tf.data.Dataset, not "
            f"{type(dataset).__name__}. Pass a tf.data.Dataset."
        )
    specs = _dataset_specs(first, dataset) if dataset is not None else _declared_specs(first)
    request = _name_specs(first, specs)
    if first is predict:
        return request, None
    return request, _declared_specs(predict)


def step_signature(step: StepSignature) -> list[Any]:
    """Returns the signature of a step: the argument's, else its `tf.function`'s."""
    _check_spec(step)
    return _declared_specs(step)


def _check_spec(step: StepSignature) -> None:
    signature = step.signature
    if signature is None:
        return
    in_graph = not ops.executing_eagerly_outside_functions()  # Graphcore's words differ in TensorFlow 1
    if not isinstance(signature, (list, tuple)):
        must_be = "has to be" if in_graph else "must be"
        raise TypeError(
            f"`{step.argument}` {must_be} an instance of tuple or list, not {type(signature).__name__}. Put a single "
            "tf.TensorSpec into a tuple."
        )
    if not signature:
        must = "cannot be" if in_graph else "must be not"
        raise ValueError(f"`{step.argument}` {must} empty. Expected a tf.TensorSpec for each argument: add them.")
    for position, spec in enumerate(signature):
        if not isinstance(spec, tensor_spec.TensorSpec):
            raise TypeError(
                f"`{step.argument}[{position}]` is not an instance of TensorSpec, but {type(spec).__name__}. Pass a "
                "tf.TensorSpec."
            )


def _declared_specs(step: StepSignature) -> list[Any]:
    signature = step.signature
    if signature is None:
        if not isinstance(step.function, def_function.Function):
            raise ValueError(
                f"`input_signature` deduction from given `{step.label}` is not possible: it is not a tf.function. Give "
                f"`{step.argument}`, or decorate it with @tf.function(input_signature=...)."
            )
        if step.function.input_signature is None:
            inside = "inside" if ops.executing_eagerly_outside_functions() else "in the"
            raise ValueError(
                f"Empty `input_signature` {inside} provided tf.function `{step.label}`. Please give "
                f"`{step.argument}`, or the decorator's input_signature: expected a tf.TensorSpec for each argument."
            )
        signature = nest.flatten(step.function.input_signature)
    specs = list(signature)
    argument_count = len(argument_names(step, None))
    # Of a pipeline the signature may be that of the first stage, whose first arguments no request brings.
    if step.bound and len(specs) == argument_count:
        return specs[step.bound :]
    return specs


def _dataset_specs(step: StepSignature, dataset: Any) -> list[Any]:
    structure = dataset_ops.get_structure(dataset)
    for spec in nest.flatten(structure):
        if not isinstance(spec, tensor_spec.TensorSpec):
            raise TypeError(
                "The elements of `input_dataset` are requests, which must consist of dense tensors, but have "
                f"a {spec.value_type.__name__}. Make it dense, or convert it in `preprocessing_step`."
            )
    if not isinstance(structure, Mapping):
        return nest.flatten(structure)
    names = argument_names(step, len(structure))
    if set(names) != set(structure):
        raise ValueError(
            f"`input_dataset` has the elements {sorted(structure)}, and `{step.label}` takes {names}; "
            "both must have the same names. Give the elements the names of the arguments."
        )
    return [structure[name] for name in names]


def _name_specs(step: StepSignature, specs: Sequence[Any]) -> list[Any]:
    """Returns the specs by valid names for a SavedModel's signature: the specs' names, else the arguments'."""
    names = [
        _valid_name(spec.name or argument)
        for spec, argument in zip(specs, argument_names(step, len(specs)), strict=True)
    ]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(
            f"Two inputs of `{step.label}` have the name {twice[0]!r}; names must be unique. Give "
            "each tf.TensorSpec another name."
        )
    return [tensor_spec.TensorSpec(spec.shape, spec.dtype, name=name) for spec, name in zip(specs, names)]


def _valid_name(name: str) -> str:
    plain = re.sub(r"\W", "_", name)
    return plain if plain[:1].isalpha() else f"input{plain}"


def argument_names(step: StepSignature, count: int | None) -> list[str]:
    """Returns names of a step's arguments."""
    function = getattr(step.function, "python_function", step.function)
    parameters = list(inspect.signature(function).parameters.values())  # type: ignore[arg-type]
    positional = [
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    names = [positional_parameter.name for positional_parameter in positional]
    if count is None:
        return names
    required = (
        sum(positional_parameter.default is positional_parameter.empty for positional_parameter in positional)
        - step.bound
    )
    variadic = [parameter.name for parameter in parameters if parameter.kind is parameter.VAR_POSITIONAL]
    names = names[step.bound :]
    if count < required or (count > len(names) and not variadic):
        raise ValueError(
            f"Length of input_signature does not match the number of arguments of `{step.label}`: it has {count}, "
            f"and the function takes {', '.join(names) or 'none'}. Pass one tf.TensorSpec for each argument."
        )
    return (names + [f"{variadic[0]}_{i}" for i in range(count - len(names))])[:count] if variadic else names[:count]
