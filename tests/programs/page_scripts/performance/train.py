"""Trains a Keras model, 64 steps at a time."""

import numpy as np
import tensorflow as tf
from tensorflow.python import ipu

config = ipu.config.IPUConfig()
config.auto_select_ipus = 1
config.configure_ipu_system()
random = np.random.RandomState(0)
inputs, targets = random.rand(4096, 16).astype("float32"), random.rand(4096, 1).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(32, drop_remainder=True)
with ipu.ipu_strategy.IPUStrategy().scope():
    layers = [tf.keras.layers.Dense(64, activation="relu", input_shape=[16]), tf.keras.layers.Dense(1)]
    model = tf.keras.Sequential(layers)
    model.compile("adam", "mse", steps_per_execution=64)
model.fit(dataset, epochs=2, verbose=0)
