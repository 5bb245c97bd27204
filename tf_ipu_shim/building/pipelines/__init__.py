"""One model over several IPUs, stage by stage.

    options            schedules, recomputation modes and checkpoints, options of a stage
    optimizer_output   what an optimizer function returns
    arguments          checks
    step               one mini-batch, traced
    footprint          what its stages take and keep
    build              the loops around it
    pipelining_ops     `pipeline` itself

Mini-batches run one after another here; a mini-batch's stages are on their IPUs. Results are those of every schedule:
the same gradients, accumulated over the same mini-batches, applied once.
"""
