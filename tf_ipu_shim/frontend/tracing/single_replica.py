"""Asserts that a device has one replica, for uncompiled ops whose operand would differ between replicas."""

from __future__ import annotations

from typing import Any

from tensorflow.compat import v1

from tf_ipu_shim import plugin


def assertions(replica_op: Any, op_name: str) -> list[Any]:
    """Returns ops that fail on several replicas; none without an op whose value differs by replica."""
    if replica_op is None:
        return []
    replicas = plugin.load().ops.ipu_replication_factor()
    message = (
        f"{op_name} cannot run outside of a compiled function: {replica_op.name} ({replica_op.type}) has a different "
        "value in each replica, and the device has several; expected one IPU. Build both in a function, and compile it "
        "with ipu_compiler.compile."
    )
    return [v1.Assert(v1.equal(replicas, 1), [message])]
