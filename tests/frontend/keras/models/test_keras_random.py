"""Random Keras models against stock Keras. `NEW_MODELS=20 make test` looks at other ones, and at many."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from random_graphs import examples
from random_keras import Model, check, keras

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
@given(st.integers(0, 2**32 - 1))
def test_more_random_models(seed):
    check(Model.draw(random.Random(seed)))
