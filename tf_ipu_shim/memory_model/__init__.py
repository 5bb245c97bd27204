"""Models the memory that a lowered program needs on each IPU, and the computation of each step.

`memory_plan` makes the plan of a program, records it and raises out of memory; `bug_report` warns of a bug in it.

hlo           XLA's HLO of a program, and its instructions
walk          visits the lowered functions, and writes a block of steps for each IPU
computations  the computation of each step: flops, elements, Poplar's names
shapes        shapes and sizes of tensors outside XLA programs
variables     the storage of variables and stashes
advice        options and partitions with which a program fits
"""
