"""Random models with random shards do what the same models do unmarked on TensorFlow's CPU."""

import numpy as np
import pytest
import tensorflow as tf
from harness import assert_same, check_function, check_session, run_function
from hypothesis import given
from random_graphs import NUM_IPUS, descriptions, eager_model_of, examples, model_of
from slow_cases import slowly

pytestmark = pytest.mark.one_version


@pytest.fixture(autouse=True)
def four_ipus(ipus):
    ipus(NUM_IPUS)


@examples(2)
@given(descriptions())
def test_sessions(execution_mode, description):
    check_session(model_of(description), description.inputs(), steps=1 + description.seed % 3)


@examples(2)
@given(descriptions(size=10))
def test_compile_in_functions(execution_mode, description):
    check_function(eager_model_of(description), description.inputs(), steps=1 + description.seed % 2)


@pytest.mark.parametrize("execution_mode", ["xla", slowly("kernels")], indirect=True)
@examples(2)
@given(descriptions(size=10))
def test_jit_compiled_functions(execution_mode, description):
    check_function(eager_model_of(description), description.inputs(), steps=1 + description.seed % 2, mode="jit")


@pytest.mark.parametrize("check", [check_session, check_function])
def test_roundings_of_nothing_are_those_of_stock_xla(monkeypatch, check):
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", "xla")

    def model(parts, x):
        return tf.reduce_sum(tf.nn.softmax(x), 1) - 1.0

    rows = [np.random.default_rng(0).normal(size=(64, 1001)).astype(np.float32)]
    run = check(model, rows)
    assert np.max(np.abs(run.steps[0][0])) < 1e-6
    with pytest.raises(AssertionError):  # op by op they are others, as large as these
        assert_same(run, run_function(model, rows))


@pytest.mark.parametrize("check", [check_session, check_function])
def test_another_result_fails(check):
    with pytest.raises(AssertionError, match="result 0 of step 0"):
        check(lambda parts, x: x + (1e-3 if parts.marked else 0.0), [np.ones(3, np.float32)])
