"""Graphcore's module names, and nothing else: what scripts import. The work is `building`'s.

ipu      `tensorflow.python.ipu`
keras    `keras.ipu`
addons   `ipu_tensorflow_addons`
poplar   `tensorflow.compiler.plugin.poplar`
"""
