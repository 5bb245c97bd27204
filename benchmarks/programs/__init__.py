"""Models that the benchmarks measure, and the forms in which they run.

models        small models as plain functions of tensors and variables
forms         a model as a TensorFlow 1 session or a TensorFlow 2 function, on an IPU or on the CPU
keras_models  Keras models with their data
large_models  BERT-Base and ResNet-50
"""
