import argparse

import tensorflow as tf
from tensorflow.python import ipu

parser = argparse.ArgumentParser()
parser.add_argument("--batch", type=int, default=32)
batch = parser.parse_args().batch
ipu.config.IPUConfig().configure_ipu_system()
strategy = ipu.ipu_strategy.IPUStrategy()


@tf.function(jit_compile=True)
def step(x):
    return tf.reduce_sum(x)


strategy.run(step, args=[tf.ones([batch, 8])])
