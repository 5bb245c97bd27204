"""Initializers, regularizers, embeddings and reshaping layers of `tensorflow.contrib.layers`."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

_MODES = {"FAN_IN": "fan_in", "FAN_OUT": "fan_out", "FAN_AVG": "fan_avg"}


def _v1() -> Any:
    return importlib.import_module("tensorflow.compat.v1")


def variance_scaling_initializer(
    factor: float = 2.0, mode: str = "FAN_IN", uniform: bool = False, seed: int | None = None, dtype: Any = "float32"
) -> Any:
    """Returns an initializer whose values have the variance `factor / n`.

    Args:
        factor: the factor of the variance.
        mode: the meaning of n: `FAN_IN`, `FAN_OUT` or `FAN_AVG`.
        uniform: draws from a uniform distribution rather than a truncated normal one.
        seed: the seed of the numbers.
        dtype: the dtype of the values.

    Returns:
        A `tf.compat.v1` initializer.

    Raises:
        ValueError: the mode is unknown.

    Example:
        >>> values = variance_scaling_initializer(1.0, uniform=True)([300, 10])
        >>> values.shape.as_list()
        [300, 10]
    """
    if mode not in _MODES:
        raise ValueError(f"Unknown mode {mode!r}. It is one of {', '.join(_MODES)}. Choose one of these.")
    distribution = "uniform" if uniform else "truncated_normal"
    kind = _v1().initializers.variance_scaling
    return kind(scale=factor, mode=_MODES[mode], distribution=distribution, seed=seed, dtype=_v1().as_dtype(dtype))


def xavier_initializer(uniform: bool = True, seed: int | None = None, dtype: Any = "float32") -> Any:
    """Glorot's initializer: a variance of one over the mean of inputs and outputs.

    Args:
        uniform: draws from a uniform distribution rather than a truncated normal one.
        seed: the seed of the numbers.
        dtype: the dtype of the values.

    Returns:
        A `tf.compat.v1` initializer.

    Example:
        >>> bool((abs(xavier_initializer()([30, 20])) <= (6 / 50) ** 0.5).numpy().all())
        True
    """
    return variance_scaling_initializer(1.0, "FAN_AVG", uniform, seed, dtype)


xavier_initializer_conv2d = xavier_initializer


def l1_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Any]:
    """Returns a penalty of `scale` times the sum of magnitudes.

    Args:
        scale: 0 for no penalty.
        scope: name of the penalty's ops.

    Returns:
        A function from weights to the penalty, or to None if there is none.

    Raises:
        ValueError: the scale is negative or an integer.

    Example:
        >>> float(l1_regularizer(0.5)([1.0, -3.0]))
        2.0
    """
    return _regularizer(scale, scope, "l1_regularizer", lambda tf, weights: tf.reduce_sum(tf.abs(weights)))


def l2_regularizer(scale: float, scope: str | None = None) -> Callable[[Any], Any]:
    """Returns a penalty of `scale` times half the sum of squares.

    Args:
        scale: 0 for no penalty.
        scope: name of the penalty's ops.

    Returns:
        A function from weights to the penalty, or to None if there is none.

    Raises:
        ValueError: the scale is negative or an integer.

    Example:
        >>> float(l2_regularizer(0.5)([1.0, 3.0]))
        2.5
    """
    return _regularizer(scale, scope, "l2_regularizer", lambda tf, weights: tf.nn.l2_loss(weights))


def l1_l2_regularizer(scale_l1: float = 1.0, scale_l2: float = 1.0, scope: str | None = None) -> Callable[[Any], Any]:
    """Returns the penalties of `l1_regularizer` and `l2_regularizer` together.

    Args:
        scale_l1: the scale of the first penalty; 0 for none.
        scale_l2: the scale of the second penalty; 0 for none.
        scope: name of the penalty's ops.

    Returns:
        A function from weights to the penalty, or to None if there is none.

    Raises:
        ValueError: a scale is negative or an integer.

    Example:
        >>> float(l1_l2_regularizer(0.5, 2.0)([1.0, -3.0]))
        12.0
    """
    parts = (l1_regularizer(scale_l1), l2_regularizer(scale_l2))
    return _sum_of([part for part, scale in zip(parts, (scale_l1, scale_l2)) if scale], scope, "l1_l2_regularizer")


def sum_regularizer(regularizer_list: Sequence[Any], scope: str | None = None) -> Callable[[Any], Any] | None:
    """Several penalties together.

    Args:
        regularizer_list: functions from weights to penalties; None among them is left out.
        scope: name of the penalty's ops.

    Returns:
        A function from weights to the penalty, or to None if there is none; None without any function.

    Example:
        >>> float(sum_regularizer([l1_regularizer(0.5), None, l2_regularizer(2.0)])([1.0, -3.0]))
        12.0
    """
    parts = [term for term in regularizer_list if term is not None]
    return _sum_of(parts, scope, "sum_regularizer") if parts else None


def apply_regularization(regularizer: Callable[[Any], Any], weights_list: Sequence[Any] | None = None) -> Any:
    """Returns the penalty of several weights, which becomes one of the graph's regularization losses too.

    Args:
        regularizer: a function from weights to a penalty, or to None.
        weights_list: the weights; by default the collection `WEIGHTS`.

    Returns:
        A scalar.

    Raises:
        ValueError: the weights are missing, or a penalty is not a scalar.

    Example:
        >>> with tf.Graph().as_default():
        ...     apply_regularization(l2_regularizer(0.5), [tf.ones([2]), tf.ones([3, 2])]).shape.rank
        0
    """
    v1 = _v1()
    weights = list(weights_list or v1.get_collection(v1.GraphKeys.WEIGHTS))
    if not weights:
        raise ValueError(
            "apply_regularization: there are no weights, neither given nor in the collection WEIGHTS. Pass "
            "weights_list."
        )
    with v1.name_scope("get_regularization_penalty", values=weights):
        penalties = [term for term in map(regularizer, weights) if term is not None]
        if any(penalty.shape.rank != 0 for penalty in penalties):
            raise ValueError(
                f"apply_regularization: the penalty of {regularizer!r} is not a scalar; it must be one. "
                "Reduce it with tf.reduce_sum."
            )
        total = v1.add_n(penalties) if penalties else v1.constant(0.0)
    v1.add_to_collection(v1.GraphKeys.REGULARIZATION_LOSSES, total)
    return total


def _sum_of(parts: Sequence[Callable[[Any], Any]], scope: str | None, name: str) -> Callable[[Any], Any]:
    def regularizer(weights: Any) -> Any:
        v1 = _v1()
        with v1.name_scope(scope, name, [weights]):
            penalties = [term for term in (part(weights) for part in parts) if term is not None]
            return v1.add_n(penalties) if penalties else None

    return regularizer


def _regularizer(
    scale: float, scope: str | None, name: str, penalty: Callable[[Any, Any], Any]
) -> Callable[[Any], Any]:
    if isinstance(scale, int) or scale < 0.0:
        raise ValueError(
            f"The scale of {name} must be a float that is not negative, not {scale!r}. Pass 0 or a larger float."
        )

    def regularizer(weights: Any) -> Any:
        if scale == 0.0:
            return None
        v1 = _v1()
        with v1.name_scope(scope, name, [weights]):
            weights = v1.convert_to_tensor(weights)
            return penalty(v1, weights) * v1.cast(scale, weights.dtype.base_dtype)

    return regularizer


def embed_sequence(
    ids: Any,
    vocab_size: int | None = None,
    embed_dim: int | None = None,
    unique: bool = False,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool = True,
    scope: Any = None,
    reuse: bool | None = None,
) -> Any:
    """Rows of a table of embeddings, which it makes, for ids of symbols.

    Args:
        ids: `[batch, length]`, whole numbers.
        vocab_size: how many symbols there are.
        embed_dim: numbers in a row.
        unique: whether each symbol is looked up once.
        initializer: the initializer of the table; by default the variable scope's.
        regularizer: the regularizer of the table.
        trainable: whether it is trained.
        scope: the scope of the variable `embeddings`; `EmbedSequence` by default.
        reuse: whether the table exists already; then its sizes may be omitted.

    Returns:
        `[batch, length, embed_dim]`.

    Raises:
        ValueError: a size is missing.

    Source: `tensorflow.contrib.layers.embed_sequence`.

    Example:
        >>> with tf.Graph().as_default():
        ...     embed_sequence([[0, 2]], vocab_size=3, embed_dim=4).shape
        TensorShape([1, 2, 4])
    """
    if not reuse and (vocab_size is None or embed_dim is None):
        raise ValueError(
            "Must specify vocab size and embedding dimension when not reusing. "
            f"Got vocab_size={vocab_size} and embed_dim={embed_dim}"
            ". Pass both."
        )
    v1 = _v1()
    with v1.variable_scope(scope, "EmbedSequence", [ids], reuse=reuse):
        table = v1.get_variable(
            "embeddings",
            None if reuse else [vocab_size, embed_dim],
            initializer=initializer,
            regularizer=regularizer,
            trainable=trainable,
            collections=[v1.GraphKeys.GLOBAL_VARIABLES, v1.GraphKeys.MODEL_VARIABLES],
        )
        if not unique:
            return v1.nn.embedding_lookup(table, ids)
        symbols, places = v1.unique(v1.reshape(ids, [-1]))
        rows = v1.gather(v1.nn.embedding_lookup(table, symbols), places)
        return v1.reshape(rows, v1.concat([v1.shape(ids), v1.shape(table)[1:]], 0))


def flatten(inputs: Any, outputs_collections: Any = None, scope: str | None = None) -> Any:
    """Flattens all axes but the first.

    Args:
        inputs: a tensor of shape [batch, ...].
        outputs_collections: a collection, or several, that gets the result.
        scope: the scope of the op.

    Returns:
        A tensor of shape [batch, elements].

    Example:
        >>> flatten(tf.zeros([2, 3, 4])).shape.as_list()
        [2, 12]
    """
    v1 = _v1()
    inputs = v1.convert_to_tensor(inputs)
    sizes = inputs.shape[1:].num_elements()
    shape = [v1.shape(inputs)[0], -1] if sizes is None else [-1 if sizes else v1.shape(inputs)[0], sizes]
    return _collected(v1.reshape(inputs, shape, name=scope or "Flatten"), outputs_collections)


def one_hot_encoding(
    labels: Any,
    num_classes: int,
    on_value: float = 1.0,
    off_value: float = 0.0,
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """Turns labels into one-hot rows.

    Args:
        labels: integers of shape [batch].
        num_classes: elements of a row.
        on_value: the value at the label's place.
        off_value: the value at other places.
        outputs_collections: a collection, or several, that gets the result.
        scope: the scope of the op.

    Returns:
        A tensor of shape [batch, num_classes].

    Example:
        >>> one_hot_encoding([1], 3).numpy().tolist()
        [[0.0, 1.0, 0.0]]
    """
    v1 = _v1()
    labels = v1.cast(labels, v1.int64)
    rows = v1.one_hot(labels, num_classes, on_value, off_value, name=scope or "OneHotEncoding")
    return _collected(rows, outputs_collections)


def _collected(result: Any, collections: Any) -> Any:
    for name in [collections] if isinstance(collections, str) else collections or ():
        _v1().add_to_collection(name, result)
    return result
