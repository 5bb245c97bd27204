"""Applications: programs in files, and the engines that run them embedded in a graph of the host.

compile_op      traces a function, and the op that writes it
calls           ops that start an engine and hand it a batch
engine          one engine: its graph, its session, its thread
engines         the engines of this process, and their end
"""
