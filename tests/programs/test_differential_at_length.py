"""`test_differential.py` with larger models. `NEW_MODELS=20 make test-slow` looks at 20 other ones."""

import pytest
from harness import check_function, check_session, configure
from hypothesis import given
from random_graphs import NUM_IPUS, descriptions, eager_model_of, examples, model_of

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def four_ipus(monkeypatch, tmp_path):
    monkeypatch.setenv("TF_IPU_SHIM_LOCK_DIR", str(tmp_path / "locks"))
    configure(NUM_IPUS)


@examples(10)
@given(descriptions(size=24))
def test_sessions(description):
    check_session(model_of(description), description.inputs(), steps=3)


@pytest.mark.parametrize("mode", ["compile", "jit"])
@examples(8)
@given(description=descriptions(size=18))
def test_functions(mode, description):
    check_function(eager_model_of(description), description.inputs(), steps=2, mode=mode)
