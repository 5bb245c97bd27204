"""`tensorflow.python.ipu.scopes`: device, shard and compiler-attribute scopes."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tensorflow.compat.v2 import dtypes

from tf_ipu_shim import patches
from tf_ipu_shim.compiler.ir import sharding_annotations, vocabulary
from tf_ipu_shim.frontend.tracing import tracing
from tf_ipu_shim.runtime import devices
from tf_ipu_shim.tf_private import graphs as tf_graphs
from tf_ipu_shim.tf_private.control_flow import control_flow_v2_func_graphs
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import device_spec, ops
from tf_ipu_shim.tf_private.protos import attr_value_pb2, xla_data_pb2

FRONTEND_ATTRIBUTES_NAME = vocabulary.FRONTEND_ATTRIBUTE
OUTSIDE_COMPILATION_NAME = vocabulary.OUTSIDE_COMPILATION_ATTRIBUTE

_PARTIALS = {dtypes.float16: xla_data_pb2.F16, dtypes.float32: xla_data_pb2.F32}


@contextmanager
def ipu_scope(device: str) -> Iterator[None]:
    """Places ops on an IPU device, and makes resource variables there.

    Args:
        device: such as `"/device:IPU:0"`.

    Raises:
        ValueError: for text that names no device.
        InvalidArgumentError: in eager mode, the device does not exist.

    Source: `tensorflow.python.ipu.scopes.ipu_scope`.

    Example:
        >>> with ipu_scope("/device:IPU:0"):
        ...     (doubled,) = ipu.ipu_compiler.compile(lambda x: 2.0 * x, [tf.constant(3.0)])
        >>> float(doubled)
        6.0
    """
    if isinstance(device, str):
        try:
            device_spec.DeviceSpecV2.from_string(device)
        except ValueError as error:
            message = (
                f"ipu_scope takes a device such as '/device:IPU:0', and was given {device!r}. Pass such a name: {error}"
            )
            raise ValueError(message) from None
    ensure_device(device, functools.partial(devices.get, attach=False))
    with tracing.resource_variable_scope(), ops.device(device), ipu_jit_scope(0):
        yield


def ensure_device(device: Any, find: Callable[..., Any] = devices.named) -> None:
    """Ensures that an IPU device exists: in eager mode TensorFlow would silently use the CPU."""
    if isinstance(device, str) and context.executing_eagerly():
        spec = device_spec.DeviceSpecV2.from_string(device)
        if spec.device_type == "IPU" and spec.device_index:
            find(spec.device_index)


@contextmanager
def ipu_jit_scope(ipu_scope: Any) -> Iterator[None]:
    """Marks ops to be compiled together.

    Args:
        ipu_scope: a name or number that identifies this group of ops.

    Source: `tensorflow.python.ipu.scopes.ipu_jit_scope`.

    Example:
        >>> with ipu_jit_scope("encoder"):
        ...     y = tf.nn.relu(tf.constant([-1.0, 2.0]))
    """
    with tracing.attribute_scope(
        {
            "_XlaCompile": attr_value_pb2.AttrValue(b=True),
            "_XlaSeparateCompiledGradients": attr_value_pb2.AttrValue(b=False),
            "_XlaScope": attr_value_pb2.AttrValue(s=f"jit_scope_ipu_{ipu_scope}".encode()),
        }
    ):
        yield


@contextmanager
def ipu_shard(index: int | Iterable[int]) -> Iterator[None]:
    """Places ops on one IPU of a multi-IPU device.

    Ops outside such scopes are placed with the ops that use them (see docs/architecture.md).

    Args:
        index: the shard, counted from 0 within the device; -1 marks ops for every IPU, as concurrent pipeline stages
            do. An iterable must hold one index.

    Raises:
        ValueError: an iterable holds several different indices, or the index is below -1.
        TypeError: the index is not an integer.

    Source: `tensorflow.python.ipu.scopes.ipu_shard`.

    Example:
        >>> with tf.Graph().as_default(), ipu_shard(1):
        ...     logits = tf.matmul(tf.ones([2, 4]), tf.ones([4, 3]))
        ...     ipu.sharding.get_sharding(logits.op)
        [1]
    """
    shards = sorted(set(index)) if isinstance(index, Iterable) else [index]
    if len(shards) != 1:
        raise ValueError(
            f"ipu_shard was given the indices {shards}; expected one, as an op is on one IPU. Pass one "
            "index, or -1 for every IPU."
        )
    shard: Any = shards[0]
    if isinstance(shard, bool) or not isinstance(shard, numbers.Integral):
        raise TypeError(
            f"ipu_shard({index!r}): expected the number of an IPU, from 0 up, or -1 for every IPU. Pass one of these."
        )
    if int(shard) < -1:
        raise ValueError(
            f"ipu_shard({index!r}): there is no such IPU; expected 0 or more within the device, or -1 "
            "for every IPU. Pass such an index."
        )
    annotation = attr_value_pb2.AttrValue(s=sharding_annotations.sharding_annotation(int(shard)))
    with tracing.attribute_scope({vocabulary.SHARDING_ATTRIBUTE: annotation}):
        yield


@contextmanager
def outside_compilation_scope(name: str = "outside") -> Iterator[None]:
    """Runs ops on the host, between the parts of the program that run on the IPUs.

    Prints, `tf.py_function` and assertions belong here. An assertion outside this scope is left out of the program, as
    Graphcore's compiler and XLA leave it out; inside it raises `tf.errors.InvalidArgumentError`. A loop or branch has
    no such part, on an IPU as here: the run raises `tf.errors.UnimplementedError`.

    Args:
        name: the name of the group of ops.

    Raises:
        ValueError: outside a function that is compiled for the IPU, or inside another such scope.

    Source: `tensorflow.python.ipu.scopes.outside_compilation_scope`.

    Example:
        >>> def model(x):
        ...     with outside_compilation_scope():
        ...         text = tf.strings.as_string(x)  # which no IPU can do
        ...         digits = tf.strings.length(text)
        ...     return 2 * digits
        >>> int(strategy.run(tf.function(model), args=[tf.constant(12345)]))
        10
    """
    by_script = attr_value_pb2.AttrValue(b=True)
    with host_scope(name), tracing.attribute_scope({vocabulary.OUTSIDE_SCOPE_ATTRIBUTE: by_script}):
        yield


@contextmanager
def host_scope(name: str) -> Iterator[None]:
    """The same scope for ops that this package puts on the host, which may be in a loop too."""
    graph = ops.get_default_graph()
    if not tracing.in_compilation():
        raise ValueError(
            "outside_compilation_scope is only allowed in XLA context: use it in a function that "
            "ipu_compiler.compile or IPUStrategy.run compiles."
        )
    if OUTSIDE_COMPILATION_NAME in tf_graphs.attr_scope_map(graph):
        raise ValueError(
            "Illegal nesting of outside_compilation_scope: one is entered inside another, which is not "
            "supported. Close the outer scope first."
        )
    group = graph.unique_name(name)
    with tracing.attribute_scope({OUTSIDE_COMPILATION_NAME: attr_value_pb2.AttrValue(s=group.encode())}):
        yield


@contextmanager
def frontend_attribute(attribute_name: str, attribute_value: str, restore_to: str | None = None) -> Iterator[None]:
    """Sets an attribute, for the compiler, on ops made inside, also in loops, branches and compiled programs.

    Args:
        attribute_name: the name of the attribute.
        attribute_value: its value.
        restore_to: the value after the scope; the one before the scope when left out.

    Source: `tensorflow.python.ipu.scopes.frontend_attribute`.

    Example:
        >>> with frontend_attribute("my_attribute", "on"):
        ...     y = tf.nn.relu(tf.constant([-1.0, 2.0]))
    """
    patches.replace(
        control_flow_v2_func_graphs.ControlFlowFuncGraph,
        "__init__",
        _patch_inherit,
        why="compiler hints for a loop or branch hold for the ops in it",
    )
    graph = ops.get_default_graph()
    before = _current_attributes(graph)
    inside = xla_data_pb2.FrontendAttributes()
    inside.CopyFrom(before)
    inside.map[attribute_name] = str(attribute_value)
    with tracing.attribute_scope({FRONTEND_ATTRIBUTES_NAME: _serialize_attributes(inside)}):
        yield
    if restore_to is not None:
        before.map[attribute_name] = str(restore_to)
        tf_graphs.attr_scope_map(graph)[FRONTEND_ATTRIBUTES_NAME] = _serialize_attributes(before)


@contextmanager
def stochastic_rounding(override: bool) -> Iterator[None]:
    """Sets stochastic rounding for the ops made inside.

    It overrides `floating_point_behaviour.esr`; `docs/reference/numerics.md` lists the ops that round float16.

    Args:
        override: whether to round stochastically.

    Raises:
        TypeError: it is not a boolean.

    Source: `tensorflow.python.ipu.scopes.stochastic_rounding`.

    Example:
        >>> with stochastic_rounding(True):
        ...     y = tf.matmul(tf.ones([2, 4], tf.float16), tf.ones([4, 3], tf.float16))
    """
    if override not in (True, False):
        raise TypeError(f"stochastic_rounding({override!r}): expected True or False. Pass True or False.")
    name = "STOCHASTIC_ROUNDING"
    on, off, undefined = "THREESTATE_ON", "THREESTATE_OFF", "THREESTATE_UNDEFINED"
    before = _current_attributes(ops.get_default_graph()).map
    with frontend_attribute(name, on if override else off, restore_to=before.get(name, undefined)):
        yield


@contextmanager
def partials_type(override_type: Any) -> Iterator[None]:
    """Sets the type of partial sums in matmuls and convolutions made inside.

    The values do not depend on it here; the cycle model plans these matmuls and convolutions with such sums.

    Args:
        override_type: `tf.float16` or `tf.float32`.

    Raises:
        ValueError: the type is not supported.

    Source: `tensorflow.python.ipu.scopes.partials_type`.

    Example:
        >>> with partials_type(tf.float32):
        ...     y = tf.matmul(tf.ones([2, 4], tf.float16), tf.ones([4, 3], tf.float16))
    """
    kind = dtypes.as_dtype(override_type)
    if kind not in _PARTIALS:
        raise ValueError(f"Only support float16, float32, provided {kind.name}. Pass one of the two.")
    with frontend_attribute("PARTIALS_TYPE", xla_data_pb2.PrimitiveType.Name(_PARTIALS[kind])):
        yield


def _patch_inherit(stock: Callable[..., None]) -> Callable[..., None]:
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        stock(self, *args, **kwargs)
        tracing.inherit_attributes(self)

    return init


def _current_attributes(graph: Any) -> Any:
    """Returns the frontend attributes of ops created now."""
    current = tf_graphs.attr_scope_map(graph).get(FRONTEND_ATTRIBUTES_NAME)
    return xla_data_pb2.FrontendAttributes.FromString(current.s if current is not None else b"")


def _serialize_attributes(attributes: Any) -> attr_value_pb2.AttrValue:
    return attr_value_pb2.AttrValue(s=attributes.SerializeToString(deterministic=True))
