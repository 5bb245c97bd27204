"""Keras models created in the scope of an `IPUStrategy`: construction, extensions, compiled programs.

pipeline_stage_assignment   which layer is in which stage
options                     what a model is told, checked
extensions_base             the methods all models have
functional_extensions, sequential_extensions, model_extensions   and each kind its own
data_adapter, data_feed_manager   data into queues
model_step, programs, pipelined_programs   what is compiled
running, polling_thread     executions and callbacks
replication                 replicas and their metrics
construction, import_hook   how models get their extension
layer_construction          what layers remember when they are made
saved_options, kept_options what a model was told goes into its configuration, and over to clones and loaded models
internal_names              names of Keras 2.6, wherever they are now
names_of_the_time, optimizers_of_the_time, mixed_precision_of_the_time   what Keras 2.6 did, and its names meant
"""
