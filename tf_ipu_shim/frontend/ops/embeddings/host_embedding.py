"""Embedding tables in host memory: IPU programs look up rows and send gradients back."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import tensorflow.compat.v2 as tf

from tf_ipu_shim.compiler.passes import synthetic_data
from tf_ipu_shim.configuration.arguments import note_arguments
from tf_ipu_shim.frontend.ops.embeddings import replica_turns
from tf_ipu_shim.frontend.tracing import host_ops
from tf_ipu_shim.frontend.tracing.internal_variables import internal
from tf_ipu_shim.frontend.validation.counts import check_integer
from tf_ipu_shim.machine.environment import flags
from tf_ipu_shim.tf_private.variables import gen_resource_variable_ops

v1 = tf.compat.v1
_STRATEGIES = ("TOKEN", "ENCODING")

# The tables that there are by their names, which Graphcore's ops know them by.
tables: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()


class HostEmbeddingOptimizerSpec:
    """Plain stochastic gradient descent on a table.

    Args:
        learning_rate: a factor for the gradients.
        optimizer_name: the name of the optimizer; no effect.

    Raises:
        TypeError: the learning rate is not a number.

    Source: `tensorflow.python.ipu.ops.embedding_ops.HostEmbeddingOptimizerSpec`.

    Example:
        >>> HostEmbeddingOptimizerSpec(0.1).get_learning_rate()
        0.1
    """

    def __init__(self, learning_rate: float, optimizer_name: str | None = None) -> None:
        note_arguments("HostEmbedding", optimizer_name=optimizer_name)
        if isinstance(learning_rate, (bool, str)) or not hasattr(learning_rate, "__float__"):
            raise TypeError(
                f"learning_rate of a host embedding's optimizer must be a number, not {learning_rate!r}: the host "
                "multiplies gradients with it. Pass a number."
            )
        self._learning_rate = learning_rate

    def get_learning_rate(self) -> float:
        """Returns the learning rate."""
        return self._learning_rate

    def create_slot_variables(self, embedding_tensor: Any, name: str) -> list[Any]:
        """Returns the variables that this optimizer keeps in addition to a table: none."""
        return []

    def create_register_instruction(self, embedding_tensor: Any, slot_vars: Any, name: str) -> Any:
        """Returns the op that a session runs before programs use the table: reads it, so it must be initialized."""
        return tf.identity(embedding_tensor)

    def create_deregister_instruction(self, embedding_tensor: Any, slot_vars: Any, name: str) -> Any:
        """Returns the op that a session runs after the last program; no effect, as the table is always on the host."""
        return tf.no_op()

    def create_lookup_instruction(
        self, embedding_tensor: Any, indices: Any, slot_vars: Any, partition_strategy: str, name: str
    ) -> tf.Tensor:
        """Looks rows up on the host; in the backward pass the host updates the table.

        Args:
            embedding_tensor: the table, a variable on the host.
            indices: integers, shape [...].
            slot_vars: the slots from `create_slot_variables`.
            partition_strategy: how replicas share the transfer; values do not depend on it.
            name: the name of the table.

        Returns:
            Shape [*indices.shape, encoding]. The gradient reaches a dummy variable, which the script's optimizers see:
            its update updates the table.
        """
        return self.trainable_lookup(embedding_tensor, indices, slot_vars, _dummy_variable(embedding_tensor, name))

    def trainable_lookup(self, embedding_tensor: Any, indices: Any, slot_vars: Any, dummy: Any) -> tf.Tensor:
        """Looks rows up on the host, which updates the table when the gradient of `dummy`, a scalar, is computed."""

        @tf.custom_gradient
        def trainable(rows: Any, indices: Any, trigger: Any) -> Any:
            def backward(gradient: Any) -> Any:
                replicas = replica_turns.replicas()

                def update_table() -> Any:
                    with host_ops.host_placement("host_embedding_update"):
                        return call_update(self._update, embedding_tensor, slot_vars, indices, gradient, replicas)

                update = replica_turns.in_turns(update_table, [indices, gradient])
                with tf.control_dependencies([] if update is None else [update]):
                    return None, None, tf.zeros_like(trigger)

            return tf.identity(rows), backward

        indices = replica_turns.wait_for_all(indices)
        return trainable(gather_rows(embedding_tensor, indices), indices, tf.convert_to_tensor(dummy))

    def _update(self, table: Any, slots: Any, indices: Any, gradient: Any, replicas: Any) -> Any:
        rows = tf.reshape(gradient, [-1, table.shape[1]])
        step = rows * tf.constant(-self._learning_rate, rows.dtype)
        return add_rows(table, tf.reshape(indices, [-1]), step)


class HostEmbeddingSGDGAOptimizerSpec(HostEmbeddingOptimizerSpec):
    """Stochastic gradient descent that sums several gradients before each update.

    Args:
        learning_rate: a factor for the sums.
        accumulation_factor: how many gradients of each replica make an update.

    Raises:
        TypeError: the learning rate is not a number, or the factor is not an integer.
        ValueError: the factor is below 1.

    Source: `tensorflow.python.ipu.ops.embedding_ops.HostEmbeddingSGDGAOptimizerSpec`.

    Example:
        >>> HostEmbeddingSGDGAOptimizerSpec(0.1, accumulation_factor=8).get_accumulation_factor()
        8
    """

    def __init__(self, learning_rate: float, accumulation_factor: int) -> None:
        super().__init__(learning_rate)
        accumulation_factor = check_integer("accumulation_factor", accumulation_factor)
        if accumulation_factor < 1:
            raise ValueError(
                f"accumulation_factor must be at least 1, but {accumulation_factor} was given. Pass at least 1."
            )
        self._accumulation_factor = accumulation_factor

    def get_accumulation_factor(self) -> int:
        """Returns the number of gradients per update."""
        return self._accumulation_factor

    def create_slot_variables(self, embedding_tensor: Any, name: str) -> list[Any]:
        """Returns the sum of gradients since the last update, of the table's shape, and their number."""
        with v1.variable_scope(f"{name}_slots", reuse=v1.AUTO_REUSE, use_resource=True), tf.device("/device:CPU:0"):
            zeros = v1.zeros_initializer()
            shape, dtype = embedding_tensor.shape, embedding_tensor.dtype
            accumulator = v1.get_variable("accumulator", shape, dtype, zeros, trainable=False)
            count = v1.get_variable("count", [], tf.int32, zeros, trainable=False)
        return [accumulator, count]

    def _update(self, table: Any, slots: Any, indices: Any, gradient: Any, replicas: Any) -> Any:
        accumulator, count = slots
        rows = tf.reshape(gradient, [-1, table.shape[1]])
        added = add_rows(accumulator, tf.reshape(indices, [-1]), rows)
        with tf.control_dependencies([] if added is None else [added]):
            update = _read_variable(count) + 1
            total = _read_variable(accumulator)
        gradients = replicas * self._accumulation_factor
        due = tf.equal(update % gradients, 0)
        with tf.control_dependencies([update, total]):
            step = tf.where(due, total * tf.constant(-self._learning_rate, total.dtype), tf.zeros_like(total))
            remaining = tf.where(due, tf.zeros_like(total), total)
            writes = [
                gen_resource_variable_ops.assign_variable_op(_variable_handle(count), update % gradients),
                gen_resource_variable_ops.assign_variable_op(_variable_handle(accumulator), remaining),
                gen_resource_variable_ops.assign_add_variable_op(_variable_handle(table), step),
            ]
        return None if tf.executing_eagerly() else tf.group(*writes)


class HostEmbedding:
    """A table on the host; `create_host_embedding` makes one.

    Replicas share it: all look up their rows, then the table moves by the gradients of them all, added up.

    Args:
        name: the name of the table.
        embedding_tensor: a resource variable on the host, shape [tokens, encoding].
        partition_strategy: how replicas would share the transfer: by `"TOKEN"` or by `"ENCODING"`; no effect.
        optimizer_spec: how gradients update the table; None for a table that is only read.

    Raises:
        ValueError: an argument has another type.

    Source: `tensorflow.python.ipu.ops.embedding_ops.HostEmbedding`.

    Example:
        >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        ...     table = create_host_embedding("words", [1000, 4], tf.float32)
        ...     with ipu.scopes.ipu_scope("/device:IPU:0"):
        ...         (rows,) = ipu.ipu_compiler.compile(lambda: table.lookup(tf.constant([3, 7])), [])
        ...     session.run(tf.compat.v1.global_variables_initializer())
        ...     with table.register(session):
        ...         session.run(rows).shape
        (2, 4)
    """

    def __init__(
        self, name: str, embedding_tensor: Any, partition_strategy: str = "TOKEN", optimizer_spec: Any = None
    ) -> None:
        if not tf.is_tensor(embedding_tensor):
            raise ValueError(
                "HostEmbedding embedding_tensor is not a tensorflow tensor but "
                f"{type(embedding_tensor).__name__}. Use create_host_embedding, or give a resource variable."
            )
        if not isinstance(optimizer_spec, (type(None), HostEmbeddingOptimizerSpec)):
            raise ValueError(
                "HostEmbedding optimizer_spec is not a HostEmbeddingOptimizerSpec or None but "
                f"{type(optimizer_spec).__name__}. Pass a HostEmbeddingOptimizerSpec or None."
            )
        if partition_strategy not in _STRATEGIES:
            raise ValueError(
                f"Unknown partition strategy {partition_strategy!r}; expected 'TOKEN' or 'ENCODING'. Use one of these."
            )
        note_arguments("HostEmbedding", partition_strategy=partition_strategy)
        tables[name] = embedding_tensor
        self._name = name
        self._embedding_tensor = embedding_tensor
        self._partition_strategy = partition_strategy
        self._optimizer_spec = optimizer_spec
        self._slots = optimizer_spec.create_slot_variables(embedding_tensor, name) if optimizer_spec else []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Not supported since SDK 1.3.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "HostEmbedding.__call__ is not supported. Please use the `register` context manager around the run, and "
            "`lookup` in the program."
        )

    @contextmanager
    def register(self, session: Any = None) -> Iterator[Any]:
        """The time during which programs may use the table.

        Args:
            session: the session that runs the programs; None if ops run eagerly.

        Raises:
            ValueError: no session in graph mode.

        Example:
            >>> with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            ...     table = create_host_embedding("words", [1000, 4], tf.float32)
            ...     with ipu.scopes.ipu_scope("/device:IPU:0"):
            ...         (rows,) = ipu.ipu_compiler.compile(lambda: table.lookup(tf.constant([3, 7])), [])
            ...     session.run(tf.compat.v1.global_variables_initializer())
            ...     with table.register(session):
            ...         session.run(rows).shape
            (2, 4)
        """
        if session is None and not tf.executing_eagerly():
            raise ValueError(
                "HostEmbedding.register requires a session when eager execution is not enabled. Give it the session "
                "that runs the program."
            )
        yield self

    def lookup(self, indices: Any, count: Any = 1, clip_indices: bool = True) -> tf.Tensor:
        """Rows of the table, read on the host while the program on the IPU waits.

        Args:
            indices: integers of any shape.
            count: no effect since SDK 1.4. A bool in its place is `clip_indices`.
            clip_indices: whether to move indices into the table's range.

        Returns:
            Shape [*indices.shape, encoding]. If `TF_POPLAR_FLAGS` makes host embeddings synthetic, so are the rows
            on the IPU, and gradients do not reach the table.
        """
        if isinstance(count, bool):
            clip_indices = count
        else:
            note_arguments("HostEmbedding", count=count)
        table = self._embedding_tensor
        rows = tf.convert_to_tensor(indices)
        in_force = flags.current()
        if in_force.is_synthetic("hostembedding"):
            shape = tf.concat([tf.shape(rows), table.shape[1:]], 0)
            if rows.shape.is_fully_defined():
                shape = [*rows.shape, table.shape[1]]
            return synthetic_data.synthesize(in_force.synthetic_data_initializer, table.dtype, shape, self._name)
        if clip_indices:
            rows = tf.clip_by_value(rows, 0, table.shape[0] - 1)
        if self._optimizer_spec is None:
            return gather_rows(table, rows)
        return self._optimizer_spec.create_lookup_instruction(
            table, rows, self._slots, self._partition_strategy, self._name
        )

    def get_embedding_tensor(self) -> Any:
        """Returns the variable that holds the table."""
        return self._embedding_tensor


def create_host_embedding(
    name: str,
    shape: Any,
    dtype: Any,
    partition_strategy: str = "TOKEN",
    optimizer_spec: HostEmbeddingOptimizerSpec | None = None,
    initializer: Any = None,
) -> HostEmbedding:
    """Makes a table in the host's memory, for tables that are too large for an IPU.

    Args:
        name: the name of the variable.
        shape: [tokens, encoding].
        dtype: float16 or float32.
        partition_strategy: `"TOKEN"` or `"ENCODING"`.
        optimizer_spec: how gradients update the table; None for a table that is only read.
        initializer: the initializer of the variable: a Keras or TensorFlow 1 initializer, or a tensor [tokens,
            encoding].

    Returns:
        The table.

    Raises:
        ValueError: an argument has another type.

    Source: `tensorflow.python.ipu.ops.embedding_ops.create_host_embedding`.

    Example:
        >>> optimizer = HostEmbeddingOptimizerSpec(0.1)
        >>> table = create_host_embedding("words", [30000, 64], tf.float32, optimizer_spec=optimizer)
    """
    if tf.TensorShape(shape).rank != 2:
        raise ValueError(
            f"create_host_embedding({name!r}) was given the shape {shape}: expected [tokens, encoding]. Pass a shape "
            "of two dimensions."
        )
    if tf.as_dtype(dtype) not in (tf.float16, tf.float32):
        raise ValueError(
            f"create_host_embedding({name!r}) was given the type {tf.as_dtype(dtype).name}; expected "
            "float16 or float32. Use one of these."
        )
    with tf.init_scope(), tf.device("/device:CPU:0"):
        if initializer is None or callable(initializer):
            variable = v1.get_variable(name, shape, dtype, initializer, trainable=False, use_resource=True)
        else:
            value = tf.convert_to_tensor(initializer, dtype)
            if not value.shape.is_compatible_with(shape):
                raise ValueError(
                    f"create_host_embedding({name!r}): initializer has the shape {value.shape}; expected "
                    f"{list(shape)}. Give it the table's shape."
                )
            variable = v1.get_variable(name, initializer=value, trainable=False, use_resource=True)
    return HostEmbedding(name, variable, partition_strategy, optimizer_spec)


def _dummy_variable(table: Any, name: str) -> Any:
    """Returns the variable whose gradient represents the table's, one for each table."""
    if not hasattr(table.handle, "numpy"):
        with v1.variable_scope(f"{name}_trainable", reuse=v1.AUTO_REUSE, use_resource=True):
            return v1.get_variable("dummy", [], table.dtype, v1.zeros_initializer(), trainable=True)
    if not hasattr(table, "_ipu_dummy"):
        with tf.init_scope():
            table._ipu_dummy = tf.Variable(tf.zeros([], table.dtype), trainable=True, name=f"{name}_dummy")
    return table._ipu_dummy


def gather_rows(table: Any, indices: Any) -> tf.Tensor:
    """Rows of a table, read on the host."""
    with host_ops.host_placement("host_embedding_lookup"):
        if not _is_eager_variable(table):
            return gen_resource_variable_ops.resource_gather(_variable_handle(table), indices, table.dtype)
        rows = tf.py_function(lambda row_indices: tf.gather(table, row_indices), [indices], table.dtype)
        rows.set_shape([*indices.shape, table.shape[1]])
        return rows


def call_update(update: Any, table: Any, slots: Any, *inputs: Any) -> Any:
    """Calls the function that updates a table: `update(table, slots, *inputs)`."""
    if not _is_eager_variable(table):
        return update(table, slots, *inputs)
    return tf.py_function(lambda *values: update(table, slots, *values), list(inputs), [])


def _is_eager_variable(variable: Any) -> bool:
    """Returns whether graphs cannot reach a variable by name, because it was made eagerly.

    They cannot be passed to a program either: TensorFlow keeps the variables of an op on the op's device.
    """
    return not tf.executing_eagerly() and hasattr(variable.handle, "numpy")


def _variable_handle(variable: Any) -> tf.Tensor:
    """Returns the variable's handle in the current graph: by its name, for the reason above."""
    handle = variable.handle
    if tf.executing_eagerly() or handle.graph is v1.get_default_graph():
        return internal(handle)
    name, container = (handle.op.get_attr(attribute) for attribute in ("shared_name", "container"))
    return internal(
        gen_resource_variable_ops.var_handle_op(
            variable.dtype, variable.shape, shared_name=name.decode(), container=container.decode()
        )
    )


def add_rows(table: Any, indices: Any, rows: Any) -> Any:
    """Adds values to rows of a table; indices of shape [n]."""
    return gen_resource_variable_ops.resource_scatter_add(_variable_handle(table), indices, rows)


def _read_variable(variable: Any) -> tf.Tensor:
    return gen_resource_variable_ops.read_variable_op(_variable_handle(variable), variable.dtype)
