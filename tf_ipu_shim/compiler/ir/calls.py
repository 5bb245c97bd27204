"""Creates function call ops (`StatefulPartitionedCall`) that TensorFlow's executor and XLA can run."""

from __future__ import annotations

from collections.abc import Iterable

from tf_ipu_shim.tf_private.protos import node_def_pb2


def make_call(
    node: node_def_pb2.NodeDef, types: Iterable[int], results: Iterable[int], function: str, config: bytes = b""
) -> None:
    """Turns an op into a function call; its inputs and other attributes stay.

    Example:
        >>> node = tf.compat.v1.NodeDef(name="half", op="Halve", input=["x"])
        >>> make_call(node, [1], [1], "halve")
        >>> node.op, node.attr["f"].func.name
        ('StatefulPartitionedCall', 'halve')
    """
    node.op = "StatefulPartitionedCall"
    node.attr["Tin"].list.type.extend(types)
    node.attr["Tout"].list.type.extend(results)
    node.attr["f"].func.name = function
    node.attr["config"].s = node.attr["executor_type"].s = b""
    node.attr["config_proto"].s = config
