"""These tests never import TensorFlow."""

import pytest


@pytest.fixture(autouse=True)
def own_environment(monkeypatch, tmp_path):
    """No variable of the developer's own counts, and IPUs are locked where nobody else looks."""
    for name in ("TF_IPU_SHIM_SYSTEM", "TF_POPLAR_FLAGS", "POPLAR_ENGINE_OPTIONS", "TF_IPU_SHIM_SDK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TF_IPU_SHIM_LOCK_DIR", str(tmp_path / "locks"))
