"""Exports for TensorFlow Serving: a SavedModel of stock ops with one call annotated as an IPU program.

plan            the exported steps, their signatures, the names of inputs and outputs
signatures      the origin of a request's signature, and its checks
served_call     the annotated call: traced like a program, and run unchanged by stock TensorFlow
eager_export    TensorFlow 2: variables are saved in addition to the graph
graph_export    TensorFlow 1: variables become constants of the graph
stages          a pipeline's stages, one request after another
loading         turns the annotated call into a program if this package is loaded
"""
