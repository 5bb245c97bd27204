"""Lowering puts Python's garbage collection off, and leaves it as it was."""

from __future__ import annotations

import gc

import pytest
import tensorflow as tf

from tf_ipu_shim import ipu


def run(shard):
    def add(x):
        with ipu.scopes.ipu_shard(shard):
            return x + 1.0

    @tf.function(autograph=False)
    def program(x):
        with ipu.scopes.ipu_scope("/device:IPU:0"):
            return ipu.ipu_compiler.compile(add, [x])

    return program(tf.constant([1.0, 2.0]))[0].numpy().tolist()


@pytest.fixture
def collection():
    """Puts garbage collection back on."""
    yield
    gc.enable()


@pytest.mark.parametrize("enabled", [True, False])
def test_collection_is_as_it_was(collection, enabled):
    (gc.enable if enabled else gc.disable)()
    assert run(0) == [2.0, 3.0]
    assert gc.isenabled() is enabled


def test_collection_is_on_again_where_lowering_fails(collection):
    with pytest.raises(tf.errors.InternalError, match="shard 9"):
        run(9)
    assert gc.isenabled()
