"""The driver that the plugin calls when a program first runs: lowers, plans, describes and answers.

installation    gives the plugin the way in
entry           reads the request, has the program lowered or finds it in the cache, writes the answer
dumps           writes the schedule and the tensor map, where TF_POPLAR_FLAGS asks for them
lowered         lowers, plans the memory, settles how the program runs (execution_choice), has profiles written
cached_programs what the executable cache keeps of a program, and what it finds it by
other_devices   tells of scopes of another device than the program's, which have no effect
compilation     what the plugin needs to report the compilation: name, events, progress bar
applications    writes a program to a file
engine_needed   whether Graphcore would make an engine for the program
"""
