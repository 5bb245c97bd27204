import tensorflow as tf
from tensorflow.python import ipu

config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.floating_point_behaviour.inv = True
config.floating_point_behaviour.div0 = True
config.floating_point_behaviour.oflo = True
config.configure_ipu_system()
strategy = ipu.ipu_strategy.IPUStrategy()


@tf.function(jit_compile=True)
def step(x):
    return 1.0 / (x + 1.0)


print(strategy.run(step, args=[tf.constant([1.0, -1.0])]))
