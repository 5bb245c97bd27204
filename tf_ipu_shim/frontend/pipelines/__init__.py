"""Pipelines: one model over several IPUs, stage by stage.

    options            schedules, recomputation modes and checkpoints, options of a stage
    optimizer_output   the result of an optimizer function
    update_types       whether it accepts gradients of the type that they are accumulated in
    arguments          checks
    step               one mini-batch, traced
    footprint          memory that its stages need and keep
    sources            the origin of a value, through calls and loops
    build              the loops around it
    pipelining_ops     `pipeline` itself

A mini-batch's stages are on their IPUs; as many mini-batches as stages are in flight at a time
(`compiler.loops.overlap_iterations`). Results do not depend on the schedule: the same gradients, accumulated over the
same mini-batches, applied once.
"""
