"""Models and data for estimators, on IPUs and in stock TensorFlow, up to 2.15."""

import numpy as np
import tensorflow.compat.v1 as tf
from tensorflow.python.ipu.ipu_estimator import IPUEstimator
from tensorflow.python.ipu.ipu_run_config import IPURunConfig, RunConfig

X = np.random.default_rng(7).standard_normal((24, 3)).astype(np.float32)

Y = X @ np.float32([[1], [2], [3]]) + 0.5


def dataset(batch=2, repeat=True):
    elements = tf.data.Dataset.from_tensor_slices((X, Y)).batch(batch, drop_remainder=True)
    return elements.repeat() if repeat else elements


def model_fn(features, labels, mode):
    weight = tf.get_variable("weight", [3, 1], initializer=tf.zeros_initializer())
    bias = tf.get_variable("bias", [1], initializer=tf.zeros_initializer())
    predictions = features @ weight + bias
    if mode == "infer":
        return tf.estimator.EstimatorSpec(mode, predictions={"y": predictions, "twice": 2 * predictions})
    loss = tf.losses.mean_squared_error(labels, predictions)
    metrics = {
        "error": tf.metrics.mean_absolute_error(labels, predictions),
        "positive": tf.metrics.precision(labels > 0, predictions > 0),
    }
    train_op = tf.train.GradientDescentOptimizer(0.05).minimize(loss) if mode == "train" else None
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def counting(function):
    """A model function for TensorFlow's estimator, which leaves counting steps to the model."""

    def stock(features, labels, mode):
        spec = function(features, labels, mode)
        if mode != "train":
            return spec
        return spec._replace(train_op=tf.group(spec.train_op, tf.train.get_global_step().assign_add(1)))

    return stock


stock_model_fn = counting(model_fn)


def of_ipu(folder, loop=4, function=model_fn, **options):
    run = IPURunConfig(iterations_per_loop=loop, **options.pop("ipu", {}))
    return IPUEstimator(function, str(folder), RunConfig(ipu_run_config=run, **options.pop("run", {})), **options)


class Runs(tf.train.SessionRunHook):
    def __init__(self):
        self.number = 0

    def after_run(self, run_context, run_values):
        self.number += 1
