"""Accepts positional export arguments in the order of Graphcore's TensorFlow 1 as well as TensorFlow 2."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
# Arguments after those that both have in the same order. The other order has the third last first.
_TENSORFLOW_1 = (
    "variable_initializer",
    "output_names",
    "preprocessing_step",
    "preprocessing_step_signature",
    "postprocessing_step",
    "postprocessing_step_signature",
    "purge_export_dir",
    "checkpoint_restore_dir",
)


def accept_either_order(
    before: int,
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """Accepts positional arguments in the order of TensorFlow 1 as well as TensorFlow 2.

    The types of the arguments show the order: `variable_initializer` is a function but `output_names` a string, and so
    on for the next two.

    Args:
        before: how many positional arguments precede these, the same in both.

    Returns:
        A decorator.

    Example:
        >>> @accept_either_order(before=1)
        ... def export(step, output_names=None, preprocessing_step=None, *, variable_initializer=None):
        ...     return output_names, variable_initializer
        >>> export("step", "y"), export("step", None, "y"), export("step", len, "y") == ("y", len)
        (('y', None), ('y', None), True)
    """

    def decorate(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        @functools.wraps(function)
        def either(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
            rest = args[before:]
            if not _uses_tf1_order(rest):
                return function(*args, **kwargs)
            if len(rest) > len(_TENSORFLOW_1):
                raise TypeError(
                    f"{function.__name__}() takes {before + len(_TENSORFLOW_1)} positional arguments, but "
                    f"{len(args)} were given; expected no more. Remove the others."
                )
            named = dict(zip(_TENSORFLOW_1, rest, strict=False))
            for name in named:
                if name in kwargs:
                    raise TypeError(
                        f"{function.__name__}() got multiple values for argument {name!r}; expected one. Pass it once."
                    )
            return function(*args[:before], **named, **kwargs)  # type: ignore[arg-type]

        return either

    return decorate


def accept_pipeline_depth(
    function: Callable[_Parameters, _Result],
) -> Callable[_Parameters, _Result]:
    """Accepts `pipeline_depth` before `iterations`, as SDK 2.5 does: an integer in place of the inputs.

    Example:
        >>> @accept_pipeline_depth
        ... def export(stages, export_dir, iterations, inputs=None, pipeline_depth=None):
        ...     return iterations, inputs, pipeline_depth
        >>> export([], "", 16, [1.0]), export([], "", 2, 16, [1.0])
        ((16, [1.0], None), (16, [1.0], 2))
    """

    @functools.wraps(function)
    def with_depth(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        third, fourth = (*args[2:4], None, None)[:2]
        if isinstance(fourth, int) or (third is not None and "iterations" in kwargs):
            if "pipeline_depth" in kwargs:
                raise TypeError(
                    f"{function.__name__}() got multiple values for argument 'pipeline_depth'; expected one. Pass it "
                    "once."
                )
            return function(*args[:2], *args[3:], pipeline_depth=third, **kwargs)  # type: ignore[arg-type]
        return function(*args, **kwargs)

    return with_depth


def _uses_tf1_order(rest: tuple[Any, ...]) -> bool:
    first, second, third = (*rest, None, None, None)[:3]
    return callable(first) or isinstance(second, (str, list)) or callable(third)
