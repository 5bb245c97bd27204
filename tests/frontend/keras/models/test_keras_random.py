"""Random Keras models against stock Keras. `NEW_MODELS=20 make test` looks at 20 other ones."""

import random

import pytest
import tensorflow as tf
from hypothesis import example, given
from hypothesis import strategies as st
from random_graphs import examples
from random_keras import Model, check, keras
from random_keras_training import counting

pytestmark = [
    pytest.mark.one_version,
    pytest.mark.filterwarnings("ignore:non-integer arguments to randrange"),  # Keras' own seeds
]


@pytest.fixture(autouse=True)
def cleared():
    yield
    keras.backend.clear_session()


@examples(1)
@given(st.integers(0, 2**32 - 1))
def test_random_models(seed):
    check(Model.draw(random.Random(seed)))


@pytest.mark.slow
@examples(20)
@example(1624)  # clips the gradient of a table of which rows are looked up twice
@example(1120029)  # in mixed precision near ties decide accuracies
@example(1120032)
@example(1150005)  # in mixed precision a product overflows in stock Keras alone
@given(st.integers(0, 2**32 - 1))
def test_more_random_models(seed):
    check(Model.draw(random.Random(seed)))


@pytest.mark.parametrize(("moves", "expected"), [(0.0, 0.5), (-0.01, 0.25), (0.01, 0.75)])
@pytest.mark.parametrize(
    ("task", "labels", "outputs"),
    [
        ("binary", [[1.0], [1.0], [0.0], [0.0]], [[0.005], [-0.005], [0.5], [-0.5]]),
        ("classes", [0, 0, 1, 1], [[0.105, 0.1, 0.0], [0.1, 0.105, 0.0], [0.5, 0.1, 0.0], [0.1, 0.5, 0.0]]),
    ],
)
def test_only_near_ties_count_either_way(task, labels, outputs, moves, expected):
    metric = counting(task, lambda predicted: moves)["accuracy"]()
    metric.update_state(tf.constant(labels), tf.constant(outputs))
    assert float(metric.result()) == expected
