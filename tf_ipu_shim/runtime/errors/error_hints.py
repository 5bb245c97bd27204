"""Adds hints on what to do to errors that lack them."""

from __future__ import annotations

import re
import sys
import traceback
import types

from tf_ipu_shim.runtime.errors import script_files, unknown_keywords

# What TensorFlow says of a dataset that has ended; of an infeed's we say more ourselves.
_END = re.compile(r"End of sequence(?!:)")
_END_HINT = "\nThe dataset has no more elements: end it with .repeat(), or ask for fewer iterations."
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
_REFERENCE = re.compile(
    r"Could not satisfy explicit device specification '(\S*IPU.*\bVariable(V2)?\b"
    r"|' because the node .* colocated with a group of nodes that required incompatible device '\S*IPU)",
    re.S,
)
_REFERENCE_HINT = (
    "\nA variable on an IPU is a resource variable: call tf.compat.v1.enable_resource_variables() before it is made, "
    "or make it with get_variable(..., use_resource=True)."
)
_WRITTEN_ON_HOST = re.compile(
    r"explicit device specification '\S*CPU:\d+' because no supported kernel for CPU devices is available"
    r".*^IpuProgram: IPU.*?^\s*(?P<name>\S+) \(VarHandleOp\)",
    re.S | re.M,
)
_WRITTEN_ON_HOST_HINT = (
    "\nA program writes the variable {name}, which the script has on the host. Make it for the IPU: without "
    "variables_on_host=True, and without tf.device for the CPU. Or return the gradients from the program, and apply "
    "them outside of it. With ConfigProto(allow_soft_placement=True) TensorFlow moves the variable to the IPU."
)
_ON_IPU = re.compile(
    r"Trying to access resource (?P<name>\S+) .*located in device \S*/device:IPU:\d+ from device \S*/device:CPU", re.S
)
_ON_IPU_HINT = (
    "\nThe function is compiled for the CPU, and its variable {name} is on an IPU. Call it with strategy.run(function, "
    "args=...), or in `with strategy.scope():`."
)
_NO_IPU = re.compile(r"explicitly assigned to /device:IPU:\d+ but available devices are \[(?![^\]]*IPU)[^\]]*CPU")
_NO_IPU_HINT = (
    "\nThe session has run something before the script named an IPU, so it does not have the IPU device. Create it "
    "later, or import tensorflow.python.ipu before it."
)
_NO_DEVICE = re.compile(r"explicitly assigned to (?P<name>/device:IPU:\d+) but available devices are")
_NO_DEVICE_HINT = (
    "\nThe configuration makes no {name}. Each entry of `auto_select_ipus` is one TensorFlow device, such as [1, 1] "
    "for two. Use ipu.scopes.ipu_shard to choose among the IPUs of one. A session has the devices that were "
    "configured before it."
)
_NO_GRADIENT = re.compile(r"^gradient registry has no entry for: (?P<op>\w+)$")
_NO_GRADIENT_HINT = (
    "\nTensorFlow has no gradient of the op {op}{made}: put tf.stop_gradient around its result, or leave it out of "
    "what is trained."
)
# An uninitialised variable, in a session.
_NO_VALUE = re.compile(r"Could not find variable \S+\. This could mean|Attempting to use uninitialized value")
_NO_VALUE_HINT = (
    "\nIn a session, run tf.global_variables_initializer() before the first program; make it after all variables."
)
_NO_TABLE = re.compile(r"\S*?/host_embedding/(?P<table>[^/\s]+)/(table|sum|gathers)\b")
_NO_TABLE_HINT = (
    "\nThere is no host embedding '{table}': run ipu_host_embedding_register for its variable in this session before "
    "the program, and ipu_host_embedding_deregister after it."
)
_NO_NUMPY = re.compile(r"'(Symbolic)?Tensor' object has no attribute 'numpy'")
_NO_NUMPY_HINT = (
    "\nA tensor has a value only while the program runs. Return the tensor from the function, and call numpy() there."
)
_NO_ARRAY = re.compile(r"Cannot convert a symbolic (tf\.)?Tensor \(.*\) to a numpy array\.")
_NO_ARRAY_HINT = (
    "\nA tensor has a value only while the program runs. Use TensorFlow's function instead of NumPy's, such as "
    "tf.reduce_sum for np.sum, or call NumPy's after the program has returned."
)
_OF_EXTENSIONS = re.compile(
    r"'\w+' object has no attribute '(?P<name>"
    r"set_(gradient_accumulation|pipelining|infeed_queue|outfeed_queue|replication)_options"
    r"|set_asynchronous_callbacks|(get|set|reset)_pipeline_stage_assignment)'"
)
_OF_EXTENSIONS_HINT = (
    "\nKeras models have {name} where they are made in the scope of an IPUStrategy: "
    "`with strategy.scope(): model = ...`."
)
_MIXED = re.compile("^Mixing different tf.distribute.Strategy objects")
_MIXED_HINT = (
    ".\nA model must be created, compiled and trained in the scope of one strategy. Create one strategy for the "
    "whole script, and do not nest scopes of others in it."
)
_GROWS = re.compile(r"'.+' has shape .* before the loop, but shape .* after one iteration\.")
_GROWS_HINT = (
    "\nShape invariants have no effect on IPUs: a program is compiled for one shape. Begin with a tensor of the "
    "largest size, and write a part of it in each iteration."
)
# Read, set, or given to the constructor, as the oldest scripts do.
_IPU_OPTIONS = re.compile(r"\bConfigProto\b.*\bipu_options\b|^(Protocol message \S+ has no )?ipu_options\b")
_IPU_OPTIONS_HINT = (
    "\nSDK 1.2 took ipu_options away from ConfigProto. Call ipu.utils.configure_ipu_system(options) before the session "
    "is made, and leave ipu_options out of its ConfigProto."
)
_OTHER_FRAMEWORKS = frozenset({"popart", "popxl", "poptorch", "poplar"})
_OTHER_FRAMEWORK_HINT = (
    "\n{name} is another part of Graphcore's SDK: tf_ipu_shim emulates its TensorFlow, and nothing else."
)


# Patterns searched in an error of a type, in this order, and the hint for each, formatted with its groups.
_HINTS: tuple[tuple[type[BaseException], re.Pattern[str], str], ...] = (
    (BaseException, _END, _END_HINT),
    (BaseException, _REFERENCE, _REFERENCE_HINT),
    (BaseException, _WRITTEN_ON_HOST, _WRITTEN_ON_HOST_HINT),
    (BaseException, _ON_IPU, _ON_IPU_HINT),
    (BaseException, _MIXED, _MIXED_HINT),
    (BaseException, _NO_VALUE, _NO_VALUE_HINT),
    (BaseException, _NO_TABLE, _NO_TABLE_HINT),
    (BaseException, _NO_IPU, _NO_IPU_HINT),
    (BaseException, _NO_DEVICE, _NO_DEVICE_HINT),
    (ValueError, _GROWS, _GROWS_HINT),
    (ValueError, _IPU_OPTIONS, _IPU_OPTIONS_HINT),
    (AttributeError, _IPU_OPTIONS, _IPU_OPTIONS_HINT),
    (AttributeError, _NO_NUMPY, _NO_NUMPY_HINT),
    (AttributeError, _OF_EXTENSIONS, _OF_EXTENSIONS_HINT),
    (NotImplementedError, _NO_ARRAY, _NO_ARRAY_HINT),
)


def hint(error: BaseException, message: str) -> str:
    """Returns a hint for an error of TensorFlow or Python that has none."""
    for kind, pattern, advice in _HINTS:
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
    user_frames = [frame for frame in op.traceback or () if script_files.is_users(frame.filename)]
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
    if name != "contrib" and not hasattr(module.compat.v1, name):
        return ""
    return _OLD_NAME_HINT.format(name=f"tf.{name}")
