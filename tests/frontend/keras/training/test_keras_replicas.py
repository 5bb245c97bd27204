"""Replicas of Keras models: each takes its own mini-batches, gradients are added up over all.

The sum of two replicas' gradients is twice the gradient of the larger batch: half the rate gives the same weights.
"""

import functools

import numpy as np
import pytest
import tensorflow as tf
from keras_models import X, Y, assert_same, compiled, functional, keras, on_the_cpu, sequential, strategy, trained
from slow_cases import slowly

from tf_ipu_shim import ipu, memory_report

# Keras draws its own seeds with a float.
pytestmark = [pytest.mark.filterwarnings("ignore:non-integer arguments to randrange"), pytest.mark.one_version]
HALF = functools.partial(keras.optimizers.SGD, 0.05)


def test_two_replicas(ipus):
    ipus(2)
    with strategy().scope():
        model = compiled(sequential(), HALF, steps_per_execution=2)
        model.set_replication_options("MEAN")
        got = trained(model)
    assert_same(got, on_the_cpu(sequential, 16))


@pytest.mark.parametrize(("version", "executions"), [("2.4", 2), ("2.5", 1), ("3.4", 1)])
def test_steps_per_execution_count_all_replicas_before_sdk_2_5(ipus, monkeypatch, version, executions):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", version)
    ipus(2)
    seen = []
    with strategy().scope():
        model = compiled(sequential(), HALF, steps_per_execution=4)
        weights = model.get_weights()
        count = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: seen.append(batch))
        model.fit(X[:64], Y[:64], batch_size=8, shuffle=False, verbose=0, callbacks=[count])
    stock = compiled(sequential())
    stock.set_weights(weights)
    stock.fit(X[:64], Y[:64], batch_size=16, shuffle=False, verbose=0)
    assert len(seen) == executions
    for mine, theirs in zip(model.get_weights(), stock.get_weights()):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_an_execution_that_replicas_cannot_share(ipus, monkeypatch):
    monkeypatch.setenv("TF_IPU_SHIM_SDK", "2.4")
    ipus(2)
    with strategy().scope():
        model = compiled(sequential(), HALF, steps_per_execution=3)
        for call in (lambda: model.fit(X, Y, batch_size=8), lambda: model.predict(X, batch_size=8)):
            with pytest.raises(RuntimeError, match="Currently `steps_per_execution` is set to 3 and the model has 2"):
                call()


@pytest.mark.slow
def test_replicas_that_accumulate(ipus):
    ipus(2)
    with strategy().scope():
        model = compiled(sequential(), HALF, steps_per_execution=4)
        model.set_gradient_accumulation_options(2, "mean")
        model.set_replication_options("MEAN")
        got = trained(model)
    assert_same(got, on_the_cpu(sequential, 32))


@pytest.mark.slow
def test_replicas_share_the_optimizer_s_state(ipus):
    """For the memory model: losses are those of an optimizer whose state is whole on each replica."""
    momentum = functools.partial(keras.optimizers.SGD, 0.05, momentum=0.9)
    first, middle, last, others = 4 * 6 * 8, 4 * (8 * 8 + 8 * 8), 4 * 8 * 3, 4 * (8 + 8 + 8 + 3) + 8  # bytes
    whole = first + middle + last + others
    share, offload = {"replicated_optimizer_state_sharding": True}, {"offload_weight_update_variables": True}
    losses = []
    for options, kept, remote in (
        ({"offload_weight_update_variables": False}, whole, {}),
        ({}, last + others, {"optimizer_state": first + middle}),  # attached IPUs have remote memory
        (share, whole - middle, {"optimizer_state": middle // 2}),  # the middle ones: 128 bytes for each replica
        ({**share, **offload}, whole - middle, {"optimizer_state": middle // 2}),
        (offload, last + others, {"optimizer_state": first + middle}),
    ):
        ipus(2)
        with strategy().scope():
            model = compiled(sequential(), momentum, steps_per_execution=4)
            model.set_gradient_accumulation_options(2, **options)
            losses.append(model.fit(X, Y, batch_size=8, shuffle=False, verbose=0).history["loss"])
            for plan in memory_report().devices[0].programs[-1].ipus:
                assert plan.categories["optimizer_state"] == kept
                assert plan.remote == remote
            with pytest.raises(ValueError, match="optimizer state must be offloaded"):
                model.set_gradient_accumulation_options(2, offload_weight_update_variables=False, **share)
    np.testing.assert_allclose(losses, losses[:1] * 5)


@pytest.mark.parametrize(("number", "stages"), [(4, [0, 0, 1, 1]), slowly(8, [0, 1, 2, 2])])
def test_replicas_that_are_pipelined(ipus, number, stages):
    """Two replicas; a model of three stages takes four IPUs."""
    ipus(number)
    with strategy().scope():
        model = compiled(functional(stages), HALF, steps_per_execution=4)
        schedule = ipu.pipelining_ops.PipelineSchedule.Sequential
        model.set_pipelining_options(4, gradient_accumulation_reduction_method="mean", pipeline_schedule=schedule)
        model.set_replication_options("mean")
        got = trained(model)
    assert_same(got, on_the_cpu(functional, 64))


@pytest.mark.parametrize("asynchronous", [slowly(False), True])
def test_how_metrics_of_replicas_are_reduced(ipus, asynchronous):
    ipus(2)
    stock = compiled(sequential())
    turns = np.arange(64).reshape(8, 8)  # mini-batches are dealt out in turn
    each = [
        stock.evaluate(X[turns[replica::2].ravel()], Y[turns[replica::2].ravel()], verbose=0)[0] for replica in (0, 1)
    ]
    with strategy().scope():
        model = compiled(sequential(), steps_per_execution=4)
        model.set_asynchronous_callbacks(asynchronous)
        for method, expected in (("NONE", each[1]), ("LIST", each), ("SUM", sum(each)), ("MEAN", np.mean(each))):
            model.set_replication_options(method)
            got = model.evaluate(X, Y, batch_size=8, verbose=int(method == "LIST"))[0]  # the bar takes an array too
            np.testing.assert_allclose(got, expected, rtol=1e-5, err_msg=method)
        np.testing.assert_allclose(model.predict(X, batch_size=8, verbose=0), stock.predict(X, verbose=0), 1e-4, 1e-5)
        with pytest.raises(ValueError, match="Cannot parse 'MEDIAN' as a ReplicatedMetricReductionMethod"):
            model.set_replication_options("MEDIAN")
        with pytest.raises(ValueError, match="The provided dataset contains 1 items"):
            model.evaluate(X[:8], Y[:8], batch_size=8, verbose=0)


def test_steps_of_training_are_those_of_all_replicas(ipus):
    """As many updates as the same call makes on a CPU whose batches are those of all replicas."""
    ipus(2)
    data = tf.data.Dataset.from_tensor_slices((X, Y)).repeat()
    with strategy().scope():
        model = compiled(sequential(), HALF, steps_per_execution=4)
        model.set_gradient_accumulation_options(2, "mean")
        model.fit(data.batch(8, drop_remainder=True), steps_per_epoch=8, epochs=2, verbose=0)
    stock = compiled(sequential())
    stock.fit(data.batch(32), steps_per_epoch=2, epochs=2, verbose=0)
    for mine, theirs in zip(model.get_weights(), stock.get_weights()):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_steps_of_evaluate_and_predict_are_those_of_all_replicas(ipus):
    """So that results are those of the same call on a CPU."""
    ipus(2)
    with strategy().scope():
        model = compiled(sequential(), steps_per_execution=4)
        model.set_replication_options("MEAN")
        predictions = model.predict(X, batch_size=8, steps=4, verbose=0)
        losses = model.evaluate(X, Y, batch_size=8, steps=4, verbose=0)
        with pytest.raises(ValueError, match=r"`steps_per_epoch` \(or `steps`\) is 1, and 2 replicas share them"):
            model.evaluate(X, Y, batch_size=8, steps=1, verbose=0)
        weights = model.get_weights()
    stock = compiled(sequential())
    stock.set_weights(weights)
    assert predictions.shape == (32, 3)
    np.testing.assert_allclose(predictions, stock.predict(X, batch_size=8, steps=4, verbose=0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(losses, stock.evaluate(X, Y, batch_size=8, steps=4, verbose=0), rtol=1e-5)
