"""Adapts the recurrent ops of `gen_popnn_ops` to the arguments and results of SDK 1.2 to 2.5.

Last states are separate outputs, and up to SDK 2.4 shares of memory are arguments instead of options.
"""

from __future__ import annotations

import collections
import functools
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import tensorflow.compat.v2 as tf

from tf_ipu_shim import sdk
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.ops import planner_options
from tf_ipu_shim.frontend.ops.planner_options import RecurrentOptions
from tf_ipu_shim.frontend.ops.recurrent.popnn_layers import LAYERS, LayerKind, check_channels, matmul_options

_LAST = (2, 5)
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


_SHARES = ("available_memory_proportion_fwd", "available_memory_proportion_bwd")


def legacy_form(kind: str, backward: bool = False) -> Callable[..., Any]:
    """Adapts an op wrapper to the arguments and results of SDK 1.2 to 2.5 under these releases."""

    def decorate(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        @functools.wraps(function)
        def called(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> Any:
            if sdk.current() > _LAST:
                return function(*args, **kwargs)
            return (_backprop if backward else _layer)(LAYERS[kind], function.__name__, args, kwargs)

        return called

    return decorate


def _layer(kind: LayerKind, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    operands = _bind_operands(name, kind.operands, args, kwargs)
    with tf.name_scope(operands["name"] or name):
        outputs, *last = kind.run(operands, _planned(operands))
        fields = ("output", *(f"output_{state}" for state in kind.states), "intermediates")
        results = _name_results(name, fields, [outputs, *last, tf.zeros([0], outputs.dtype)])
        return planner_options.check_options(results, operands["options"], operands["options_bwd"])


def _backprop(kind: LayerKind, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    outputs = ("output", *(f"output_{state}" for state in kind.states))
    upstream = tuple(f"{output}_backprop" for output in outputs)
    operands = _bind_operands(name, (*kind.operands, *outputs, "intermediates", *upstream), args, kwargs)
    with tf.name_scope(operands["name"] or name):
        gradients = kind.gradients(
            operands, _planned(operands), dict(enumerate(operands[backprop_name] for backprop_name in upstream))
        )
    fields = [("att" if operand == "att_score" else operand) + "_backprop" for operand in kind.trained]
    results = _name_results(name, fields, gradients)
    return planner_options.check_options(results, operands["options"], operands["options_bwd"])


def _name_results(name: str, fields: Sequence[str], values: Sequence[Any]) -> Any:
    """Results of an op under their names."""
    form: Any = collections.namedtuple(name, fields)  # type: ignore[misc]
    return form(*values)


def _bind_operands(
    name: str, operands: Sequence[str], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Binds a call's arguments to this release's names; operands become tensors."""
    line = sdk.current()
    order = (*operands, *_ordered_attributes(line, "lstm" in name))
    if len(args) > len(order) or set(kwargs) - set(order) or set(order[: len(args)]) & set(kwargs):
        raise TypeError(f"{name}: SDK {line} has the arguments {', '.join(order)}. Give each of them once at most.")
    arguments = {**_DEFAULTS, **dict(zip(order, args)), **kwargs}
    if missing := [argument for argument in order if argument not in arguments]:
        raise TypeError(
            f"{name}: the argument {missing[0]} is missing; SDK {line} has the arguments "
            f"{', '.join(order)} and expects all. Pass it."
        )
    note_arguments("gen_popnn_ops", is_training=arguments["is_training"])
    for share, options in zip(_SHARES, ("options", "options_bwd")):
        if arguments.get(share) not in (None, -1.0):
            arguments[options] = json.dumps({"availableMemoryProportion": str(arguments[share])})
        planner_options.record_ignored_options(
            "gen_popnn_ops", planner_options.parse_options(arguments[options]), options
        )
    arguments.update({operand: tf.convert_to_tensor(arguments[operand]) for operand in operands})
    check_channels(name, arguments["num_channels"], arguments["biases"])
    return arguments


_DEFAULTS: dict[str, Any] = {
    "activation": "tanh",
    "recurrent_activation": "sigmoid",
    "partials_dtype": tf.float32,
    "reset_after": False,
    "available_memory_proportion_fwd": -1.0,
    "available_memory_proportion_bwd": -1.0,
    "options": "{}",
    "options_bwd": "{}",
    "name": None,
}


def _ordered_attributes(line: tuple[int, int], lstm: bool) -> tuple[str, ...]:
    """Returns the attributes of an op in the order of its wrapper's arguments."""
    activations = ("activation", "recurrent_activation") if line >= (2, 1) else ()
    planner_arguments: tuple[str, ...] = ()
    if line >= (2, 2):
        planner_arguments = ("options", "options_bwd") if line >= (2, 5) else _SHARES
    reset = () if lstm else ("reset_after",)
    return (*activations, "num_channels", "is_training", "partials_dtype", *reset, *planner_arguments, "name")


def _planned(arguments: Mapping[str, Any]) -> RecurrentOptions:
    return matmul_options(arguments["partials_dtype"], arguments["options"], arguments["options_bwd"])
