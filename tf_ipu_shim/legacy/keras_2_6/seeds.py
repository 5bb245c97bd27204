"""Derives the initial values of Keras layers from `tf.random.set_seed`, as TensorFlow 2.6 did.

Keras now draws a seed for each initializer without one from Python's `random`. Two models created after the same
`tf.random.set_seed` differ, and processes of a job start with different weights. In a process that uses `ipu` such an
initializer draws from TensorFlow's generator if that has a seed, unless `tf.keras.utils.set_random_seed` has seeded
Keras. Checked on `keras` 2.15.0 and `tf_keras` 2.21.0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tf_ipu_shim import patches
from tf_ipu_shim.legacy.names import mode
from tf_ipu_shim.tf_private import keras_members
from tf_ipu_shim.tf_private.eager import context
from tf_ipu_shim.tf_private.graphs import ops


def loaded(module: Any) -> None:
    """Replaces the random generator of Keras' initializers.

    Args:
        module: `backend` of Keras 2.
    """
    generator = getattr(module, "RandomGenerator", None)
    if generator is not None and mode.is_requested():
        why = "initial values follow `tf.random.set_seed`, as in TensorFlow 2.6"
        patches.replace(generator, "_maybe_init", functools.partial(_by_the_global_seed, module), why=why)


def _by_the_global_seed(module: Any, stock: Callable[[Any], None]) -> Callable[[Any], None]:
    @functools.wraps(stock)
    def _maybe_init(self: Any) -> None:
        is_unseeded = keras_members.draws_random_seed(self) and keras_members.seed_generator(module) is None
        if is_unseeded and _global_seed() is not None:
            keras_members.draw_from_global_seed(self)
        stock(self)

    return _maybe_init


def _global_seed() -> int | None:
    return context.global_seed() if context.executing_eagerly() else ops.get_default_graph().seed
