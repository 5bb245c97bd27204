"""The driver: what the plugin calls when a program first runs under a configuration. Lowers, plans, describes, answers.

installation    gives the plugin the way in
entry           reads the request, lowers, plans the memory, writes the answer
compilation     what the plugin needs to report the compilation: name, events, progress bar
engine_needed   whether Graphcore would make an engine for the program
"""
