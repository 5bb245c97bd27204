"""Random models with random shards do what the same models do unmarked on TensorFlow's CPU."""

import pytest
from harness import check_function, check_session
from hypothesis import given
from random_graphs import NUM_IPUS, descriptions, eager_model_of, examples, model_of


@pytest.fixture(autouse=True)
def four_ipus(ipus):
    ipus(NUM_IPUS)


@examples(3)
@given(descriptions())
def test_sessions(way, description):
    check_session(model_of(description), description.inputs(), steps=1 + description.seed % 3)


@examples(3)
@given(descriptions(size=10))
def test_compile_in_functions(way, description):
    check_function(eager_model_of(description), description.inputs(), steps=1 + description.seed % 2)


@examples(3)
@given(descriptions(size=10))
def test_jit_compiled_functions(way, description):
    check_function(eager_model_of(description), description.inputs(), steps=1 + description.seed % 2, mode="jit")
