"""A lowered program as memory: values, steps and kinds of variables, from XLA's form of it.

memory_plan        makes the plan, records it, raises out of memory
faults             the warning that reports a bug in all this
memory_walk, function_walk, cluster_walk   walk through the emitted functions in running order
lone_loops         cycles of loops that XLA cannot have by themselves
hlo, compiler_ir   XLA's form of one program, and how to get it (conditionals, trees)
stand_ins          ops of equal memory for those that TensorFlow brings into XLA's form slowly (function_copies)
called_ops         such ops that must stay, made once where there are several alike
shape_inference    shapes of ops outside XLA programs
lists              the same with what lists of tensors tell, through loops and calls
variable_kinds     weights, optimizer state and accumulators, told apart by data flow
storage            whether a tensor is on the chip, in remote memory, whole or shared by replicas
pipeline_memory    FIFOs and stashes of a pipeline
accumulation       a training step that accumulates gradients, which the script does not do yet
recomputation      ops of a forward pass that run once more for the backward pass
"""
