"""Adds hints on what to do to errors that lack them."""

from __future__ import annotations

import builtins
import functools
import re
import sys
import traceback
import types

from tf_ipu_shim import data_files
from tf_ipu_shim.names import suggestions
from tf_ipu_shim.runtime.errors import script_files, unknown_keywords

# The first call of many scripts for IPUs, run without `--tf1`.
_OLD_NAME_HINT = (
    "\n{name} is a name of TensorFlow 1: run the script with `tf-ipu run --tf1`, or have it "
    "`import tensorflow.compat.v1 as tf`."
)
# What TensorFlow 2 says to scripts that make graphs, as those of TensorFlow 1 do. Checked on 2.15.1 and 2.21.0.
_NO_GRAPH = re.compile(
    r"compatible with eager execution|when eager execution is enabled|The Session graph is empty|EagerTensor'>"
    r"|in compilation of <function compile\.<locals>\.compiled at .*found return value of type Operation"
)
_NO_GRAPH_HINT = (
    "\nA script of TensorFlow 1 makes a graph: run it with `tf-ipu run --tf1`, or have it call "
    "tensorflow.compat.v1.disable_v2_behavior() first."
)
_NO_GRADIENT = re.compile(r"^gradient registry has no entry for: (?P<op>\w+)$")
_NO_GRADIENT_HINT = (
    "\nTensorFlow has no gradient of the op {op}{made}: put tf.stop_gradient around its result, or leave it out of "
    "what is trained."
)
_OTHER_FRAMEWORKS = frozenset({"popart", "popxl", "poptorch", "poplar"})
_OTHER_FRAMEWORK_HINT = (
    "\n{name} is another part of Graphcore's SDK: tf_ipu_shim emulates its TensorFlow, and nothing else."
)


@functools.cache
def _hints() -> list[tuple[type[BaseException], re.Pattern[str], str]]:
    """Patterns searched in an error of a type, in this order, and the hint for each, formatted with its groups."""
    return [
        (getattr(builtins, row["error"]), re.compile(row["pattern"]), f"{row['closing']}\n{row['hint']}")
        for row in data_files.rows(__file__, "error_hints.csv")
    ]


def hint(error: BaseException, message: str) -> str:
    """Returns a hint for an error of TensorFlow or Python that has none."""
    for kind, pattern, advice in _hints():
        match = pattern.search(message) if isinstance(error, kind) else None
        if match:
            return advice.format(**match.groupdict())
    if isinstance(error, TypeError) and (suggestion := unknown_keywords.suggestion(error, message)):
        return f"\n{suggestion}"
    no_gradient = _NO_GRADIENT.match(message) if isinstance(error, LookupError) else None
    if no_gradient:
        return _NO_GRADIENT_HINT.format(op=no_gradient["op"], made=_differentiated(error))
    if isinstance(error, ModuleNotFoundError) and str(error.name).partition(".")[0] in _OTHER_FRAMEWORKS:
        return _OTHER_FRAMEWORK_HINT.format(name=error.name)
    if isinstance(error, (RuntimeError, TypeError, AttributeError)) and _NO_GRAPH.search(message) and _is_eager():
        return _NO_GRAPH_HINT
    return _old_name_hint(error)


def _is_eager() -> bool:
    tensorflow = sys.modules.get("tensorflow")
    return tensorflow is not None and tensorflow.compat.v1.executing_eagerly_outside_functions()


def _differentiated(error: BaseException) -> str:
    """Returns the op whose gradient was requested: layer name and script line.

    The callback of a tape for each op (`frontend/sharding/sharded_tape`) has the op's results. Checked on 2.15.1 and
    2.21.0.
    """
    calls = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if "outputs" in frame.f_locals]
    if not calls:
        return ""
    outputs = calls[-1].f_locals["outputs"]
    op = getattr(outputs[0], "op", None) if isinstance(outputs, (list, tuple)) and outputs else None
    if op is None:
        return ""
    from tf_ipu_shim.tf_private import graphs  # TensorFlow has made the op; importing it would be slow before

    user_frames = [frame for frame in graphs.creation_stack(op) or () if script_files.is_users(frame.filename)]
    line = (
        f", made at {user_frames[-1].filename}:{user_frames[-1].lineno}, in {user_frames[-1].name}"
        if user_frames
        else ""
    )
    return f" ({op.name}{line})"


def _old_name_hint(error: BaseException) -> str:
    """Returns a hint for names that `tensorflow` no longer has."""
    if not isinstance(error, AttributeError):
        return ""
    module, name = error.obj, str(error.name)
    if not isinstance(module, types.ModuleType) or module.__name__ != "tensorflow":
        return ""
    if f"tensorflow.{name}" == suggestions.MISNAMED:
        return f"\n{suggestions.MISNAMED_HINT}"
    if name != "contrib" and not hasattr(module.compat.v1, name):
        return ""
    return _OLD_NAME_HINT.format(name=f"tf.{name}")
