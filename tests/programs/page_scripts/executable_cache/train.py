import tensorflow as tf
from tensorflow.python import ipu

config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
strategy = ipu.ipu_strategy.IPUStrategy()


@tf.function(jit_compile=True)
def step(x):
    return x * 2.0


strategy.run(step, args=[tf.constant([1.0, 2.0])])
