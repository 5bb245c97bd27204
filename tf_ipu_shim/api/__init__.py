"""Graphcore's module names, as scripts import them. Implementations are in `frontend`.

ipu      `tensorflow.python.ipu`
keras    `keras.ipu`
addons   `ipu_tensorflow_addons`
poplar   `tensorflow.compiler.plugin.poplar`
"""
