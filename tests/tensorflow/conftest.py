"""One process, and so one set of TensorFlow devices: every test begins and ends with nothing configured."""

import contextlib
import functools

import pytest


@pytest.fixture(autouse=True)
def own_environment(monkeypatch, tmp_path):
    """No variable of the developer's own counts, and IPUs are locked where nobody else looks."""
    from tf_ipu_shim.machine.environment import sdk_environment

    for name in (
        "TF_IPU_SHIM_SYSTEM",
        "TF_POPLAR_FLAGS",
        "POPLAR_ENGINE_OPTIONS",
        "TF_IPU_SHIM_SDK",
        "TF_IPU_SHIM_EXECUTION_MODE",
        "XLA_FLAGS",
        *sdk_environment.given(),
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TF_IPU_SHIM_LOCK_DIR", str(tmp_path / "locks"))
    from tf_ipu_shim.runtime import devices, ignored_options

    ignored_options.forget()
    devices.reset()  # a test that never configures leaves the default device
    yield
    devices.reset()


@pytest.fixture
def ipus(own_environment):
    """`ipus(4)` gives /device:IPU:0 four IPUs; `ipus([1, 2])` makes two TensorFlow devices."""
    from harness import configure
    from tf_ipu_shim.ipu import config

    yield configure
    config.reset_ipu_configuration()


@pytest.fixture
def studied(ipus):
    """`studied(function, 2)` gives the programs of a function that is studied on two IPUs."""
    import studies

    return functools.partial(studies.of_run, ipus)


@pytest.fixture
def graph(own_environment):
    """A TensorFlow 1 graph of the test's own, the default one while it runs."""
    import tensorflow as tf

    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def eager():
    """A test that takes this one beside `mostly_in_a_graph` runs in TensorFlow 2's mode."""


@pytest.fixture
def mostly_in_a_graph(own_environment, request):
    """Nothing is configured, and the test is in a graph of its own, unless it takes `eager`."""
    import tensorflow as tf
    from tf_ipu_shim.ipu import config

    config.reset_ipu_configuration()
    with contextlib.nullcontext() if "eager" in request.fixturenames else tf.Graph().as_default():
        yield
    config.reset_ipu_configuration()


@pytest.fixture
def environment(own_environment, monkeypatch):
    """`environment(config={"allow_recompute": True}, flags="--use_ipu_model")` configures from scratch."""
    import option_runs

    return functools.partial(option_runs.from_scratch, monkeypatch)


@pytest.fixture
def logged(own_environment, monkeypatch):
    """The lines that the driver's log gets."""
    from tf_ipu_shim.runtime import log

    lines = []
    monkeypatch.setattr(log, "info", lambda message, source=None: lines.append(message))
    return lines


@pytest.fixture(params=["xla", "kernels"])
def way(request, own_environment, monkeypatch):
    """Runs a test in both ways to run a program."""
    monkeypatch.setenv("TF_IPU_SHIM_EXECUTION_MODE", request.param)
    return request.param
