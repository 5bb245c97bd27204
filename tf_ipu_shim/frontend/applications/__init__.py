"""Embedded applications: programs compiled to files, and the engines that run them inside a host graph.

compile_op      traces a function, and the op that writes it
calls           ops that start an engine and pass it a batch engine          one engine: its graph, its session, its
thread engines         the engines of this process, and their end
"""
