"""The pytest plugin, in a pytest of its own on two workers."""

import pytest

import tf_ipu_shim

pytestmark = [pytest.mark.subprocess, pytest.mark.one_version]

TESTS = """
import os, time
import pytest
import tensorflow as tf

def run(ipu, elements=256):
    @tf.function(jit_compile=True)
    def twice(x):
        return 2.0 * x
    with tf.device("/device:IPU:0"):
        return twice(tf.ones([elements])).numpy().sum()

def attached():
    from tf_ipu_shim.runtime import devices
    return [(device.chip.name, device.poplar_id) for device in devices.active()]

@pytest.mark.parametrize("turn", range(4))
def test_all_ipus_are_free_in_each_worker(ipus, turn):
    ipus(16)
    assert attached() == [("gc200", 30)]
    time.sleep(0.2)

@pytest.mark.ipu_system("pod4")
@pytest.mark.ipu_chip("bow")
def test_machine_and_memory(ipus, ipu_memory):
    ipus([1, 2], allow_recompute=True)
    assert attached() == [("bow", 0), ("bow", 5)]
    with pytest.raises(AssertionError, match="No program has run on IPU 0 of /device:IPU:0"):
        ipu_memory.peak()
    assert run(0) == 512
    assert ipu_memory.peak() >= 256 * 4
    assert ipu_memory.always_live(0) == 4  # the factor
    os.environ["TF_POPLAR_FLAGS"] = "--use_ipu_model"

def test_strategy(ipu_strategy, ipu_memory):
    assert tf.distribute.get_strategy() is ipu_strategy
    assert "TF_POPLAR_FLAGS" not in os.environ and attached() == [("gc200", 0)]
    assert ipu_memory.report().devices[0].programs == ()

def test_memory_that_must_not_grow(ipus, ipu_baseline, request):
    from tf_ipu_shim.runtime import plans
    ipus(1)
    run(0)
    with pytest.raises(AssertionError, match="There is no baseline .*test_model.test_memory_that_must_not_grow.json"):
        ipu_baseline()
    request.config.option.ipu_write_baselines = True
    ipu_baseline()
    request.config.option.ipu_write_baselines = False
    ipu_baseline()
    plans.forget()
    run(0, 512)
    with pytest.raises(AssertionError, match=r"(?s)IPU 0: peak .* KiB.*pytest --ipu-write-baselines test_model.py::"):
        ipu_baseline()
    ipu_baseline(percent=150)

def test_one_module_under_all_names():
    import tensorflow.python.ipu.loops
    import tf_ipu_shim.ipu.loops
    from tf_ipu_shim import ipu
    assert tensorflow.python.ipu.loops is tf_ipu_shim.ipu.loops is ipu.loops

@pytest.mark.ipu_sdk("2.6", "2.5")
def test_of_another_sdk():
    raise SystemExit

@pytest.mark.ipu_sdk(3.4)
def test_that_fails(ipus):
    ipus(1)
    run(0)
    assert run(0) == 3
"""


def test_fixtures_markers_and_report(python):
    """With TensorFlow in each worker, and so slow: everything in one run."""
    python.script(TESTS, "test_model.py")
    options = ("-p", "tf_ipu_shim.pytest_plugin", "-n", "2", "--strict-markers", "-rs")
    process = python("-m", "pytest", *options, environment={"TF_IPU_SHIM_LOCK_DIR": None, "TF_IPU_SHIM_SDK": None})
    assert "1 failed, 8 passed, 1 skipped" in process.stdout, process.stdout + process.stderr
    assert f"tf_ipu_shim: {tf_ipu_shim.__version__}, SDK 3.4, machine ipu16" in process.stdout
    assert "is for SDK 2.6, 2.5; run it with TF_IPU_SHIM_SDK=2.6" in process.stdout
    _, _, after = process.stdout.partition("IPU memory report")
    assert "/device:IPU:0: 1 x GC200" in after
