"""Inputs and attributes for any TensorFlow op: what its definition allows, tried on the CPU until it runs.

An op's definition says which types it takes, not which shapes and values. Most ops run with one of a few layouts of
shapes. Arguments named like an index, a shape or an axis get such values; `op_recipes` has the others. An op without a
working case is reported as not run.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Union

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.framework import op_def_registry, versions

from soak.ops import op_recipes

Types = Mapping[str, Any]
# Values tried when a value cannot be guessed, the first most often.
_SHAPES: tuple[tuple[int, ...], ...] = (
    (2, 3), (4,), (), (3, 3), (2, 3, 3), (1, 4, 4, 3), (1, 4, 4, 4, 3), (2,), (3,), (1,), (1, 4, 4, 1),
)  # fmt: skip
_PREFERRED = (tf.float32, tf.int32, tf.string, tf.bool, tf.complex64, tf.qint8, tf.quint8, tf.float16, tf.int64)
_OTHERS = (tf.float16, tf.bfloat16, tf.int32, tf.uint8, tf.int64, tf.bool, tf.int8, tf.uint32, tf.complex64, tf.float64)
_TRIES = 400


@dataclasses.dataclass(frozen=True)
class Variable:
    """An argument that is a handle: a variable that begins with a value.

    Args:
        value: what it begins with.
    """

    value: np.ndarray


@dataclasses.dataclass(frozen=True)
class Typed:
    """A tensor of a type that NumPy does not have.

    Args:
        value: as NumPy has it.
        dtype: TensorFlow's type.
    """

    value: np.ndarray
    dtype: Any


Argument = Union[np.ndarray, Typed, Variable, list[Any]]


@dataclasses.dataclass(frozen=True)
class Case:
    """An op to run.

    Args:
        op: its type.
        arguments: for each input of its definition, in order; a list where it takes several tensors.
        attributes: all that have no default, and types.
        what: the purpose of the case: `values`, or the fault of its input.
    """

    op: str
    arguments: tuple[Argument, ...]
    attributes: Types
    what: str = "values"

    def text(self) -> str:
        """For a report."""
        kinds = ", ".join(_described(argument) for argument in self.arguments)
        return f"{self.op}({kinds}) {dict(self.attributes)} [{self.what}]"


def _described(argument: Argument) -> str:
    if isinstance(argument, list):
        return "[" + ", ".join(_described(one) for one in argument) + "]"
    if isinstance(argument, np.ndarray):
        value = f"={argument.tolist()}" if argument.size < 5 and argument.dtype.kind in "iub" else ""
        return f"{argument.dtype.name}{list(argument.shape)}{value}"
    dtype = f" {argument.dtype.name}" if isinstance(argument, Typed) else ""
    return f"{type(argument).__name__} {_described(argument.value)}{dtype}"


def definition(op: str) -> Any:
    """TensorFlow's definition of an op; None where this process has none."""
    return op_def_registry.get(op)


def why_not(op: str) -> str:
    """Why an op cannot run by itself; empty if it can."""
    found = definition(op)
    if found is None:
        return "has a kernel but no definition"
    return next((reason for reason, holds in _REASONS.items() if holds(found)), "") or _listed(op) or _handles(found)


def _is_removed(found: Any) -> bool:
    return 0 < found.deprecation.version <= versions.GRAPH_DEF_VERSION


def _has_references(found: Any) -> bool:
    return any(argument.is_ref for argument in (*found.input_arg, *found.output_arg))


_REASONS: dict[str, Callable[[Any], bool]] = {
    "TensorFlow has removed it": _is_removed,
    "made by TensorFlow's passes; scripts cannot make it": lambda found: found.name.startswith("_"),
    "reference variables, which IPUs do not have": _has_references,
    "runs functions: random programs have those": lambda found: any("func" in one.type for one in found.attr),
}


def _listed(op: str) -> str:
    """Returns the reason that the recipes have."""
    for word, reason in op_recipes.NOT_RUN.items():
        if op == word or (word.endswith("*") and op.startswith(word[:-1])):
            return reason
    return ""


def _handles(found: Any) -> str:
    """Returns whether it accepts or returns what is not a tensor of numbers."""
    given = {argument.type for argument in found.output_arg}
    taken = {argument.type for argument in found.input_arg}
    if tf.variant.as_datatype_enum in taken | given:
        return "accepts or returns a variant: a list, a dataset or an iterator"
    if tf.resource.as_datatype_enum in given:
        return "makes a handle"
    if tf.resource.as_datatype_enum in taken and not found.name.startswith(op_recipes.TAKES_VARIABLES):
        return "accepts the handle of a resource that is not a variable"
    return ""


def candidates(op: str) -> Iterator[Case]:
    """Cases that may be valid, the likeliest first."""
    found = definition(op)
    if op in op_recipes.RECIPES:
        for recipe in op_recipes.RECIPES[op]:
            yield from _from_recipe(found, recipe)
        return
    chance = random.Random(zlib.crc32(op.encode()))
    choices = [_type_choices(attribute) for attribute in found.attr if attribute.type == "type"]
    names = [attribute.name for attribute in found.attr if attribute.type == "type"]
    combinations = [dict(zip(names, some)) for some in itertools.islice(itertools.product(*choices), 40)]
    for number in range(_TRIES):
        types = combinations[0 if number < len(_SHAPES) else chance.randrange(len(combinations))]
        attributes = {**types, **_attributes(found, types, chance if number else None)}
        shape = _SHAPES[number % len(_SHAPES)]
        yield Case(op, tuple(_arguments(found, attributes, shape, number, chance)), attributes)


def variants(case: Case) -> Iterator[Case]:
    """Yields a valid case with other types."""
    found = definition(case.op)
    for attribute in found.attr:
        if attribute.type != "type" or attribute.name not in case.attributes:
            continue
        allowed = list(attribute.allowed_values.list.type) or [kind.as_datatype_enum for kind in _OTHERS]
        for kind in _OTHERS:
            if kind.as_datatype_enum in allowed and kind.as_datatype_enum != case.attributes[attribute.name]:
                yield _retyped(case, found, attribute.name, kind.as_datatype_enum)


def wrong(case: Case) -> Iterator[Case]:
    """Yields the same op with input that is out of the ordinary, or wrong."""
    yield from _everywhere(case, "zero-size dimension", _without_rows)
    yield from _everywhere(case, "NaN", _with_nan)
    for index, argument in enumerate(case.arguments):
        if not isinstance(argument, np.ndarray):
            continue
        yield _with(case, index, argument[..., np.newaxis], f"one more axis in input {index}")
        if argument.ndim:
            yield _with(case, index, argument[:0], f"input {index} empty")
            yield _with(case, index, np.concatenate([argument, argument[:1]]), f"one row more in input {index}")
        if argument.dtype.kind == "i" and argument.size:
            for value in (97, -7):
                yield _with(case, index, _first_is(argument, value), f"{value} in input {index}")
        other = np.zeros(argument.shape, np.float32 if argument.dtype != np.float32 else np.int32)
        yield _with(case, index, other, f"wrong type of input {index}")


def _everywhere(case: Case, what: str, change: Any) -> Iterator[Case]:
    arguments = tuple(change(one) if isinstance(one, np.ndarray) else one for one in case.arguments)
    if any(one is not other for one, other in zip(arguments, case.arguments)):
        yield dataclasses.replace(case, arguments=arguments, what=what)


def _without_rows(argument: np.ndarray) -> np.ndarray:
    return argument[:0] if argument.ndim and argument.dtype.kind == "f" else argument


def _with_nan(argument: np.ndarray) -> np.ndarray:
    return _first_is(argument, np.nan) if argument.dtype.kind == "f" and argument.size else argument


def _first_is(argument: np.ndarray, value: float) -> np.ndarray:
    changed = argument.copy()
    changed.flat[0] = value
    return changed


def _with(case: Case, index: int, argument: np.ndarray, what: str) -> Case:
    arguments = (*case.arguments[:index], argument, *case.arguments[index + 1 :])
    return dataclasses.replace(case, arguments=arguments, what=what)


def _from_recipe(found: Any, recipe: op_recipes.Recipe) -> Iterator[Case]:
    chance = random.Random(0)
    choices = {
        attribute.name: _type_choices(attribute)
        for attribute in found.attr
        if attribute.type == "type" and attribute.name not in recipe.attributes
    }
    for some in itertools.islice(itertools.product(*choices.values()), 20):
        types = dict(zip(choices, some))
        given = dict(recipe.attributes)
        attributes = {**types, **_attributes(found, types, None, given), **given}
        arguments: list[Any] = []
        for number, argument in enumerate(found.input_arg):
            value = recipe.inputs[number]
            kind = _kind(argument, attributes)
            if isinstance(value, list) and (argument.number_attr or argument.type_list_attr):
                attributes.update({argument.number_attr: len(value)} if argument.number_attr else {})
                one_kind = kind or tf.float32.as_datatype_enum
                arguments.append(
                    [_filled(one, one_kind, chance) if isinstance(one, tuple) else _as(one, one_kind) for one in value]
                )
            elif isinstance(value, tuple):
                arguments.append(_filled(value, kind, chance))
            else:
                arguments.append(_as(value, kind))
        yield Case(found.name, tuple(_variables(found, arguments)), attributes)


def _variables(found: Any, arguments: list[Any]) -> Iterator[Any]:
    for argument, value in zip(found.input_arg, arguments):
        resource = argument.type == tf.resource.as_datatype_enum
        yield Variable(value) if resource and isinstance(value, np.ndarray) else value


def _type_choices(attribute: op_def_pb2.OpDef.AttrDef) -> list[int]:
    allowed = list(attribute.allowed_values.list.type) or [kind.as_datatype_enum for kind in _PREFERRED]
    known = [kind.as_datatype_enum for kind in _PREFERRED if kind.as_datatype_enum in allowed]
    first = [attribute.default_value.type] if attribute.HasField("default_value") else []
    return [*first, *(kind for kind in (known or allowed[:2]) if kind not in first)][:4]


def _attributes(
    found: Any, types: Types, chance: random.Random | None, given: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the attributes without default that are not types."""
    made: dict[str, Any] = {}
    for attribute in found.attr:
        if attribute.HasField("default_value") or attribute.type == "type" or attribute.name in (given or {}):
            continue
        made[attribute.name] = _attribute(found, attribute, chance)
    return made


def _attribute(found: Any, attribute: Any, chance: random.Random | None) -> Any:
    if attribute.name in op_recipes.ATTRIBUTES:
        options = op_recipes.ATTRIBUTES[attribute.name]
        return chance.choice(options) if chance else options[0]
    if attribute.type == "string":
        return attribute.allowed_values.list.s[0].decode() if attribute.allowed_values.list.s else "a"
    if attribute.type == "list(type)":
        asked = sum(argument.type_list_attr == attribute.name for argument in found.input_arg)
        return [tf.float32.as_datatype_enum] * (2 if asked else 1)
    simple = {"int": 2, "float": 0.5, "bool": False, "shape": [2, 3], "list(int)": [1]}
    return simple.get(attribute.type, [])


def _arguments(found: Any, attributes: Types, shape: tuple[int, ...], number: int, chance: random.Random) -> Iterator:
    """Values for all inputs. First all have one shape, then shapes that ops often combine."""
    free = 0
    for argument in found.input_arg:
        kind = _kind(argument, attributes)
        known = op_recipes.VALUES.get(argument.name, ())
        layout = number // len(_SHAPES)
        own = _layout(shape, free, layout, chance)
        free += 1
        if argument.type_list_attr:
            yield [_filled(shape, one, chance) for one in attributes[argument.type_list_attr]]
        elif argument.number_attr:
            yield [_filled(own, kind, chance) for _ in range(attributes[argument.number_attr])]
        elif kind == tf.resource.as_datatype_enum:
            named = attributes.get("T", attributes.get("dtype", tf.float32.as_datatype_enum))
            yield Variable(_plain(_filled(shape, named, chance)))
        elif known and kind not in _FLOATS and (layout < 4 or chance.random() < 0.6):
            yield _as(known[layout % len(known)] if layout < 4 else chance.choice(known), kind)
        else:
            yield _filled(own, kind, chance)


def _layout(shape: tuple[int, ...], index: int, layout: int, chance: random.Random) -> tuple[int, ...]:
    if not index or not layout:
        return shape
    fixed: tuple[tuple[int, ...], ...] = ((), shape[-1:], shape[:1], shape[:-1])
    return fixed[layout - 1] if layout <= len(fixed) else chance.choice((*fixed, shape, *_SHAPES))


_FLOATS = frozenset(kind.as_datatype_enum for kind in (tf.float16, tf.float32, tf.float64, tf.bfloat16))


def _kind(argument: Any, attributes: Types) -> int:
    if argument.type_list_attr:
        return 0
    return argument.type or attributes[argument.type_attr]


def _filled(shape: tuple[int, ...], kind: int, chance: random.Random) -> Argument:
    """Small numbers that are valid for most functions: between 0 and 1, or indices 0 and 1."""
    dtype = tf.as_dtype(kind)
    size = int(np.prod(shape))
    if dtype.is_floating or dtype.is_complex:
        values: Any = [chance.randint(1, 31) / 32 for _ in range(size)]
    elif dtype == tf.string:
        values = [b"abc"] * size
    else:
        values = [number % 2 for number in range(size)]
    return _as(np.array(values, object if dtype == tf.string else None).reshape(shape), kind)


def _as(value: Any, kind: int) -> Argument:
    dtype = tf.as_dtype(kind)
    if dtype == tf.resource:
        return np.asarray(value, np.float32)
    if dtype == tf.string:
        return np.asarray(value, object)
    if dtype.is_quantized:
        return Typed(np.asarray(value, np.int32), dtype)
    return np.asarray(value).astype(dtype.as_numpy_dtype)


def _plain(argument: Argument) -> np.ndarray:
    return argument if isinstance(argument, np.ndarray) else np.zeros((2, 3), np.float32)


def _retyped(case: Case, found: Any, name: str, kind: int) -> Case:
    arguments: list[Argument] = []
    for argument, value in zip(found.input_arg, case.arguments):
        if argument.type == tf.resource.as_datatype_enum and isinstance(value, Variable) and name in ("T", "dtype"):
            arguments.append(Variable(_plain(_as(value.value, kind))))
        elif argument.type_attr != name:
            arguments.append(value)
        elif isinstance(value, list):
            arguments.append([_as(getattr(one, "value", one), kind) for one in value])
        else:
            arguments.append(_as(getattr(value, "value", value), kind))
    return Case(case.op, tuple(arguments), {**case.attributes, name: kind})
