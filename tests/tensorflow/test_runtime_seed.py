"""Seeds of devices."""

import pytest
import tensorflow as tf

from tf_ipu_shim.ipu import utils
from tf_ipu_shim.runtime import seed


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(seed, "_states", {})
    monkeypatch.setattr(seed, "_generators", {})


def test_the_same_seed_draws_the_same():
    utils.reset_ipu_seed(7)
    first = [seed.draw(0, 2), seed.draw(0, 2)]
    assert first[0] != first[1] and first[0][0] != first[0][1]
    utils.reset_ipu_seed(7)
    assert [seed.draw(0, 2), seed.draw(0, 2)] == first
    utils.reset_ipu_seed(8)
    assert seed.draw(0, 2) != first[0]


def test_generation_counts_settings():
    assert seed.state_of(1) == seed.SeedState(None, 0, False)
    utils.reset_ipu_seed(1, "/device:IPU:1")
    utils.reset_ipu_seed(1, device="/job:localhost/replica:0/task:0/device:IPU:1", experimental_identical_replicas=True)
    assert seed.state_of(1) == seed.SeedState(1, 2, True)
    assert seed.state_of(0).generation == 0


def test_identical_replicas():
    utils.reset_ipu_seed(3, experimental_identical_replicas=True)
    one, two, three = seed.draw(0, 3)
    assert one == two == three


def test_seeds_fit_stateless_ops():
    utils.reset_ipu_seed(2**63)
    for pair in seed.draw(0, 4):
        assert tf.random.stateless_uniform([2], pair).shape == [2]


def test_an_unset_seed_differs_from_run_to_run():
    assert seed.draw(0) != seed.draw(0)


def test_wrong_arguments():
    with pytest.raises(TypeError, match="`seed` must be an integer"):
        utils.reset_ipu_seed(1.5)
    for device in ("/device:CPU:0", "cpu", "", None):
        with pytest.raises(tf.errors.InvalidArgumentError, match="no IPU device"):
            utils.reset_ipu_seed(1, device)
