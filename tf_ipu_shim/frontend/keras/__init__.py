"""Keras models created in the scope of an `IPUStrategy`: construction, extensions, compiled programs.

models                 construction of models, and the methods that they have on IPUs
optimizers             optimizers that wrap another one: loss scaling, gradient accumulation
options                settings of a model: checks, copies for clones and saved models
stages                 assignment of layers to pipeline stages
training               compiled programs of `fit`, `evaluate` and `predict`
import_hook            changes Keras when a script imports it
keras3                 refuses Keras 3 models
"""
