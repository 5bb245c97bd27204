"""The driver: what the plugin calls when a program first runs under a configuration. Lowers, plans, describes, answers.

installation    gives the plugin the way in
entry           reads the request, lowers, plans the memory, writes the answer
cached_programs what the executable cache keeps of a program, and what it finds it by
compilation     what the plugin needs to report the compilation: name, events, progress bar
applications    writes a program to a file
engine_needed   whether Graphcore would make an engine for the program
"""
