"""Places ops of an IPU program on the host: prints, host embeddings, functions of users' libraries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import tensorflow.compat.v2 as tf

from tf_ipu_shim.compiler.ir import vocabulary
from tf_ipu_shim.frontend.tracing import tracing
from tf_ipu_shim.tf_private.protos import attr_value_pb2


@contextmanager
def host_placement(name: str) -> Iterator[None]:
    """Marks ops for the host in any kind of program; outside programs they are placed there.

    Unlike `scopes.outside_compilation_scope` it may be used anywhere, inside that scope too: library functions do not
    know their callers.
    """
    attribute = attr_value_pb2.AttrValue(s=name.encode())
    with tracing.attribute_scope({vocabulary.OUTSIDE_COMPILATION_ATTRIBUTE: attribute}), tf.device("/device:CPU:0"):
        yield
