"""Pipelines: one model over several IPUs, stage by stage.

    options            schedules, recomputation modes and checkpoints, options of a stage
    optimizer_output   what an optimizer function returns
    update_types       whether it takes gradients of the type that they are accumulated in
    arguments          checks
    step               one mini-batch, traced
    footprint          what its stages take and keep
    sources            where a value comes from, through calls and loops
    build              the loops around it
    pipelining_ops     `pipeline` itself

A mini-batch's stages are on their IPUs; as many mini-batches as stages are in work at a time
(`compiler.loops.overlap_iterations`). Results are those of every schedule: the same gradients, accumulated over the
same mini-batches, applied once.
"""
