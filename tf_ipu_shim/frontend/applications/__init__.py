"""Embedded applications: programs compiled to files, and the engines that run them inside a host graph.

compile_op      traces a function, and creates the op that writes it to a file
calls           ops that start an engine and pass it a batch
engine          one engine: its graph, its session, its thread
engines         all engines of this process, and how they are stopped
"""
