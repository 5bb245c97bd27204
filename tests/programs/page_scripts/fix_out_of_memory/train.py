import sys

import tensorflow as tf
from tensorflow.python import ipu

config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
strategy = ipu.ipu_strategy.IPUStrategy()
batch = int(sys.argv[1])
dataset = tf.data.Dataset.from_tensors((tf.ones([4096]), tf.ones([1]))).repeat()
data = dataset.batch(batch, drop_remainder=True)
with strategy.scope():
    layers = [
        tf.keras.layers.Dense(4096, activation="relu", input_shape=[4096]),
        tf.keras.layers.Dense(4096, activation="relu"),
        tf.keras.layers.Dense(1),
    ]
    model = tf.keras.Sequential(layers)
    model.compile("sgd", "mse", steps_per_execution=4)


model.fit(data, steps_per_epoch=4, verbose=0)
