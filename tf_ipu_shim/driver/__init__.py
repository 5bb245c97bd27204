"""The driver that the plugin calls when a program first runs: lowers, plans, describes and answers.

registration     registers the plugin's entry point
entry            reads the request, chooses the path and writes the answer
program_requests the request as a job for a device
paths            the paths: lowered, from the executable cache, compiled in advance, written as an application
uncompiled_ops   the path of a session's uncompiled ops, of which only a profile is written
planned_program  lowers, plans the memory, chooses the execution mode (execution_choice), writes profiles
cached_programs  a program's record in the executable cache, and its key
compilation      the plugin's data for reports of the compilation: name, events, progress bar
applications     writes a program to a file
engine_needed    whether Graphcore would make an engine for the program
dumps            writes the schedule and the tensor map, if TF_POPLAR_FLAGS asks for them
other_devices    warns of scopes of another device than the program's, which have no effect
"""
