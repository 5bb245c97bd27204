"""`gen_sendrecv_ops`: transfers tensors between a running program and the host part of the same step.

Both ends belong to one graph and are fetched in one `session.run`; they find each other by their names. A tensor that
is sent but not received is dropped when the step ends. A receiver without a sender fails after
`TF_IPU_SHIM_COLLECTIVE_TIMEOUT` seconds (600). Between programs, or eagerly, an `IPUOutfeedQueue` does this.
"""

from __future__ import annotations

from typing import Any

import tensorflow.compat.v2 as tf


def ipu_send_to_host(
    tensor: Any,
    tensor_name: str,
    send_device: str,
    send_device_incarnation: int,
    recv_device: str,
    name: str | None = None,
) -> Any:
    """Sends a tensor from a compiled function to the host.

    In the body of a loop it runs only if the body's results wait for it (`tf.control_dependencies`), as in TensorFlow
    1.

    Args:
        tensor: the tensor to send.
        tensor_name: the name under which the host receives it, with the three arguments that follow.
        send_device: such as ``"/device:IPU:0"``.
        send_device_incarnation: any number, the same at both ends.
        recv_device: such as ``"/device:CPU:0"``.
        name: the name of the op.

    Returns:
        The op, which has no result.

    Raises:
        RuntimeError: it is called eagerly, outside a step that could receive it.

    Example:
        >>> def halve(x):
        ...     return ipu_send_to_host(x / 2.0, "half", "/device:IPU:0", 0, "/device:CPU:0")
    """
    return _ops("ipu_send_to_host").ipu_send_to_host(
        tensor, tensor_name, send_device, send_device_incarnation, recv_device, name=name
    )


def ipu_recv_at_host(
    T: Any,  # Graphcore's name
    tensor_name: str,
    send_device: str,
    send_device_incarnation: int,
    recv_device: str,
    device_ordinal: int = 0,
    name: str | None = None,
) -> Any:
    """Receives on the host a tensor that a compiled function sends by this name in the same step.

    Args:
        T: the dtype that is sent.
        tensor_name: as at the other end.
        send_device: as at the other end.
        send_device_incarnation: as at the other end.
        recv_device: as at the other end.
        device_ordinal: the ordinal of the IPU's device; not needed, because the names identify the tensor.
        name: the name of the op.

    Returns:
        The tensor, of an unknown shape.

    Raises:
        RuntimeError: it is called eagerly, and would wait indefinitely.

    Example:
        >>> with tf.Graph().as_default(), tf.device("cpu"):
        ...     half = ipu_recv_at_host(tf.float32, "half", "/device:IPU:0", 0, "/device:CPU:0")
    """
    return _ops("ipu_recv_at_host").ipu_recv_at_host(
        T, tensor_name, send_device, send_device_incarnation, recv_device, device_ordinal, name=name
    )


def _ops(direction: str) -> Any:
    if tf.executing_eagerly():
        raise RuntimeError(
            f"{direction} was called eagerly, but needs a graph: the tensor is received in the same step. "
            "Build both ends in one tf.Graph and fetch them in one session.run, or use an "
            "IPUOutfeedQueue."
        )
    from tf_ipu_shim import frontend  # connects the plugin to this process's runtime

    return frontend.library.ops
