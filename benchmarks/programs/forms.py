"""A model as a TensorFlow 1 session or a TensorFlow 2 function, on an IPU or on the CPU.

Each form of ours has its counterpart: the same form, the model under `jit_compile=True` on the CPU.
"""

from __future__ import annotations

from typing import Any

from benchmarks.programs.models import Model
from benchmarks.runner import Call

CPU = "/device:CPU:0"
SECOND_CPU = "/device:CPU:1"
IPU = "/device:IPU:0"


def configure(num_ipus: int = 1, num_cpus: int = 1) -> None:
    """Configures an IPU device with a number of IPUs, and as many CPU devices."""
    import tensorflow as tf

    (cpu,) = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * num_cpus)
    from tf_ipu_shim import ipu

    config = ipu.config.IPUConfig()
    config.auto_select_ipus = num_ipus
    config.configure_ipu_system()


def num_cpus() -> int:
    """Returns how many CPU devices this process has."""
    import tensorflow as tf

    return len(tf.config.list_logical_devices("CPU"))


def session(model: Model, device: str) -> Call:
    """`Session.run` with NumPy arrays fed: `ipu_compiler.compile` against a jit-compiled function in the graph."""
    import tensorflow as tf

    from tf_ipu_shim import ipu

    tf1 = tf.compat.v1
    with tf.Graph().as_default():
        with tf.device(CPU):
            fed = [tf1.placeholder(value.dtype, value.shape) for value in model.inputs]
        with tf.device(device):
            variables = [tf1.Variable(value, use_resource=True) for value in model.variables]
            if device != IPU:
                jitted = tf.function(lambda *x: model.function(variables, *x), jit_compile=True, autograph=False)
                result = jitted(*fed)
            else:
                with ipu.scopes.ipu_scope(device):
                    result = ipu.ipu_compiler.compile(lambda *x: model.function(variables, *x), fed)
        running = tf1.Session(config=tf1.ConfigProto(device_count={"CPU": num_cpus()}))
        running.run(tf1.global_variables_initializer())
    feed = dict(zip(fed, model.inputs))
    return Call(lambda: running.run(result, feed))


def jit_function(model: Model, device: str) -> Call:
    """Returns a `tf.function(jit_compile=True)` called eagerly under the device."""
    import tensorflow as tf

    variables = _variables(model, device)
    jitted = tf.function(lambda *x: model.function(variables, *x), jit_compile=True, autograph=False)
    inputs = [tf.constant(value) for value in model.inputs]

    def call() -> Any:
        with tf.device(device):
            return jitted(*inputs)

    return Call(call)


def compiled_in_function(model: Model, device: str) -> Call:
    """Returns a `tf.function` around `ipu_compiler.compile`, against one around a jit-compiled function."""
    import tensorflow as tf

    from tf_ipu_shim import ipu

    variables = _variables(model, device)
    inputs = [tf.constant(value) for value in model.inputs]
    jitted = tf.function(lambda *x: model.function(variables, *x), jit_compile=True, autograph=False)

    def on_ipu(*x: Any) -> Any:
        with ipu.scopes.ipu_scope(device):
            return ipu.ipu_compiler.compile(lambda *y: model.function(variables, *y), list(x))

    def on_cpu(*x: Any) -> Any:
        with tf.device(device):
            return jitted(*x)

    function = tf.function(on_ipu if device == IPU else on_cpu, autograph=False)
    return Call(lambda: function(*inputs))


FORMS = {"Session": session, "jit function": jit_function, "function": compiled_in_function}


def _variables(model: Model, device: str) -> list[Any]:
    import tensorflow as tf

    with tf.device(device):
        return [tf.Variable(value) for value in model.variables]
