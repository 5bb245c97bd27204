"""From a traced function to what runs: one XLA program per IPU and phase, exchanges between them, host steps.

`lower.lower` runs the passes in this order, over one representation: `functions.Functions`, of `FunctionGraph`s.

pipelines       checks that schedules can run the mini-batches they were asked for
feed_order      orders what uses a feed, and side effects behind the elements of their iteration
needed          drops from loops of a session's graph what nothing returned needs
carried_waits   has ops on the host wait themselves for what their operands wait for
accumulated     gives loops the sums of gradients that they accumulate (accumulated_gradients)
handed_handles  has ops take variables from their source, not from a loop or call that hands them back
known_results   makes constants of what calls, branches and lists give and is known beforehand (known_values)
resizing        writes gradients of pictures resized by nearest pixels as products (op_functions)
samplers        writes samplers of classes and shuffles as ops that XLA has (candidate_samplers, shuffles, op_functions)
randomness      gives random ops seeds that start from the device's
synthetic       puts made-up data in the place of feeds and seeds where the flags ask for them
overlap         has loops of pipelines run several mini-batches at a time
replicas        finds how many replicas there are; ops that follow from their number are replaced
rows            applies gradient descent to the looked-up rows of a table only (row_updates)
shared          has groups of replicas share statistics of batch normalisation (shared_statistics, op_functions)
chunks          has loops on one IPU run several iterations in one XLA program (trip_count, chunk_functions)
replicas        gives each replica functions of its own where they ask which replica it is
placement       gives every op a location: an IPU, the host, or several (marks, constants, variable_homes)
variants        takes out of XLA programs what handles TensorLists that would have to leave them
counters        does the same with the few integer ops of a loop's counter
phases          finds which ops of one IPU make one XLA program
emit            writes the FunctionDefs that run (emit_cluster, emit_control_flow, feeds)
diagnostics     refuses what XLA has no kernel for, with the user's own line

Before that, `legacy_calls` makes calls of ops that are named after functions.

Then `execution` says how the program runs, and where TensorFlow's own kernels run it, `kernels` makes function calls of
its XLA launches (same_numbers), and puts calls and loops in place (inlining, tidying, loop_frames).

What they share: `location` where ops run, `vocabulary` the names of ops and attributes, `op_types` facts about ops,
`tensor_lists` what is in lists of tensors, `program` what goes in and comes out, `reachable` what names lead to,
`fresh_names` names for what is added.
"""
