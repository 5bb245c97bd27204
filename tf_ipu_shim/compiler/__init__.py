"""Compiles a traced function: one XLA program per IPU and phase, exchanges between IPUs, and ops on the host.

`lower.lower` runs the passes of `pipeline.PASSES` in order, over one representation (`ir.functions`,
`ir.function_graph`):

1. `checks` refuse programs that an IPU could not run, and name the user's line.
2. `passes` and `loops` rewrite the functions; `xla_semantics` makes XLA return the results of TensorFlow's kernels.
3. `replicas` finds the number of replicas, and copies functions that depend on the replica index.
4. `placement` assigns every op a location and a phase; `emit` writes the functions that run.
5. `kernels` runs the XLA launches op by op instead, if that is asked for or faster.
"""
