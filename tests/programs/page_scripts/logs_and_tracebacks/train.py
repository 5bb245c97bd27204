import tensorflow as tf
from tensorflow.python import ipu

config = ipu.config.IPUConfig()
config.configure_ipu_system()
strategy = ipu.ipu_strategy.IPUStrategy()


@tf.function(jit_compile=True)
def step(x):
    """Returns a tensor whose length depends on values."""
    return tf.unique(x)[0]


print(strategy.run(step, args=[tf.constant([1.0, 1.0])]))
