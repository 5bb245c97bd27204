"""From a traced function to what runs: one XLA program per IPU and phase, exchanges between them, host steps.

function_graph  a FunctionDef as nodes and edges
marks       the shard that a script gave an op
constants   small constant expressions, which are cloned instead of exchanged
placement   a location (an IPU, the host, or several) for every op
phases      which ops of one IPU make one XLA program
emit        the FunctionDefs that run
diagnostics the user's own source line of an op
"""
