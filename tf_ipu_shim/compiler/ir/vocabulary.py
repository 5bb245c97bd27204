"""Names the ops and attributes that the compiler uses, and groups ops by kind.

The plugin registers the ops of ours in C++ and reads the attributes; a test holds the two together.
"""

from __future__ import annotations

# Attributes of a node. Those with a leading underscore survive TensorFlow's inlining and grappler.
CHIP_ATTRIBUTE = "_ipu"  # which IPU of its device an emitted op runs on
DESCRIPTION_ATTRIBUTE = "_ipu_op"  # what messages call it: its name, type and the user's line
ROUNDING_ATTRIBUTE = "_ipu_rounding"  # whether it rounds float16 stochastically, whatever its device does
BUILD_ORDER_ATTRIBUTE = "_ipu_build_order"  # a user's Poplar op: its place among those of the traced program
IN_PLACE_ATTRIBUTE = "_ipu_in_place"  # on a launch that updates variables where they are
SHAPES_ATTRIBUTE = "_ipu_shapes"  # on a launch: which of its inputs are variables that decide shapes
SHARDING_ATTRIBUTE = "_XlaSharding"
OUTSIDE_COMPILATION_ATTRIBUTE = "_xla_outside_compilation"
# In addition to the one above if the script, not this package, has put the op on the host.
OUTSIDE_SCOPE_ATTRIBUTE = "_ipu_outside_scope"
COLOCATION_ATTRIBUTE = "_class"
# Attributes that only the lowering or a placer reads.
PRIVATE_ATTRIBUTES = (
    SHARDING_ATTRIBUTE,
    OUTSIDE_COMPILATION_ATTRIBUTE,
    OUTSIDE_SCOPE_ATTRIBUTE,
    COLOCATION_ATTRIBUTE,
    "_XlaMustCompile",  # on calls of `tf.function(jit_compile=True)`, which TensorFlow would compile once more
)
# On a replica op that only knows the replicas of its instance, though the configuration names several.
WITHIN_INSTANCE_ATTRIBUTE = "_ipu_within_instance"
# On a call that stands for an op which TensorFlow has a kernel for: that op, as a serialised `NodeDef`.
STANDS_FOR_ATTRIBUTE = "_ipu_stands_for"
# On the loop over mini-batches: their number, and what it has to be a multiple of.
PIPELINE_COUNT_ATTRIBUTE = "_ipu_pipeline_count"
# On the same loop: a `pipelines.PipelineDescription` as JSON.
PIPELINE_ATTRIBUTE = "_ipu_pipeline"
# On an op of a forward stage: the stage's number.
STAGE_ATTRIBUTE = "_ipu_stage"
# On an op of a stage whose value recomputation keeps.
CHECKPOINT_ATTRIBUTE = "_ipu_recomputation_checkpoint"
# On a loop in which optimizers accumulate: its iterations and the mini-batches for each update, by optimizer.
ACCUMULATION_ATTRIBUTE = "_ipu_accumulation_counts"
# On an assignment: its variable holds accumulated gradients, kept as these options say.
ACCUMULATOR_ATTRIBUTE = "_ipu_accumulator"
# On the loop over the mini-batches of an update whose gradients are its values: how optimizer state is kept.
UPDATE_ATTRIBUTE = "_ipu_update"
# On a random op with an op seed: every run of the program begins with the same numbers.
RESTARTING_ATTRIBUTE = "_ipu_restarts"
# On an op that Poplar would refuse when it compiles: its message.
REFUSED_ATTRIBUTE = "_ipu_refused"
# On an argument of an outlined function: the function's name.
OUTLINED_ATTRIBUTE = "_ipu_outlined_argument"
# On an op of an outlined function, or of its gradient: the name of the call.
OUTLINED_CALL_ATTRIBUTE = "_ipu_outlined_call"
# On matmuls: options of PopLibs' planner as JSON, one entry for each XLA opcode, and the script's own names for XLA.
PLANNING_ATTRIBUTE = "_ipu_planning"
FRONTEND_ATTRIBUTE = "_XlaFrontendAttributes"
# On a product whose gradients are planned in another way: their options, in the form of the first of these.
GRADIENT_PLANNING_ATTRIBUTE = "_ipu_gradient_planning"
# What PopLibs, or with a slash XLA and PopLibs, calls an op of a layer; after a blank, what tells layers apart.
LIBRARY_NAME_ATTRIBUTE = "_ipu_library_name"
OUTPUT_GATE = "OutputGate"
# On a loop of a session's graph: it runs what its values depend on, and nothing else.
NEEDED_ATTRIBUTE = "_ipu_needed_only"
# On a loop that may take long within an XLA program.
LONG_ATTRIBUTE = "_ipu_long"
# On a launch that XLA compiles without making one loop of several ops.
UNFUSED_ATTRIBUTE = "_ipu_unfused"
# How often an emitted loop runs, where that can be told.
TRIPS_ATTRIBUTE = "_ipu_trips"
# On an op in the body of such a loop: the ops that the script has it wait for. TensorFlow adds others.
WAITS_ATTRIBUTE = "_ipu_waits_for"
# On an operation that a branch returns: it is needed.
ASKED_ATTRIBUTE = "_ipu_asked_for"
# On a call whose function's ops are in the graph in addition to it: it is no part of the program.
INLINED_ATTRIBUTE = "_ipu_inlined"
# On the handle of a variable that an op of this package keeps: what accesses it stays in the script's order.
INTERNAL_ATTRIBUTE = "_ipu_internal"
# On an op of a program that a Keras model has made.
KERAS_ATTRIBUTE = "_ipu_keras"
# On a call in a model that was exported for serving: IPUs run it where there are some.
SERVED_ATTRIBUTE = "_ipu_served"

# Names of ops that make the seeds of others, below the name of the op that uses the seed.
SEED_NAME = "ipu_seed"
SPLIT_SEED_NAME = "ipu_split_seed"

# Ops that run functions, and the attributes that name these. Such an op runs where its functions do.
FUNCTION_ATTRIBUTES: dict[str, tuple[str, ...]] = {
    "PartitionedCall": ("f",),
    "StatefulPartitionedCall": ("f",),
    "While": ("cond", "body"),
    "StatelessWhile": ("cond", "body"),
    "If": ("then_branch", "else_branch"),
    "StatelessIf": ("then_branch", "else_branch"),
    "Case": ("branches",),
    "StatelessCase": ("branches",),
}
LOOPS = frozenset({"While", "StatelessWhile"})
BRANCHES = frozenset({"If", "StatelessIf", "Case", "StatelessCase"})
CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
# Ops that loops and branches become in their graph.
FRAMES = frozenset({"Enter", "Exit", "LoopCond", "Merge", "NextIteration", "Switch"})

# Ops of emitted programs.
PROGRAM = "IpuProgram"
LAUNCH = "XlaLaunch"
INTER_COPY = "IpuInterCopy"
REPLICA_CALL = "IpuReplicaCall"
COLLECTIVE = "IpuCollective"

# Feeds.
ITERATOR = "IteratorV2"
INFEEDS = frozenset({"IteratorGetNext", "IteratorGetNextSync"})
INFEED_DEQUEUE = "IpuInfeedDequeue"
OUTFEED_ENQUEUE = "PopDatastreamOutfeedEnqueue"
OUTFEED_DEQUEUE = "PopDatastreamOutfeedDequeue"
CHUNK_BEGIN = "IpuChunkBegin"
CHUNK_ENQUEUE = "IpuOutfeedEnqueueChunk"
# How often a loop over chunks runs, where that is known when it begins.
LOOP_TOTAL = "IpuLoopTotal"
# Before a cross-entropy in mode `kernels`: rows with labels out of range become NaN.
LABELS_IN_RANGE = "IpuLabelsInRange"
# A handle on the IPU's TensorFlow device, of a resource that may be elsewhere.
HANDLE = "IpuHandle"

# A tensor that a program hands to the host's part of the same step.
SEND_TO_HOST = "IpuSendToHost"

# Replicas. Collectives are where replicas meet.
CROSS_REPLICA_SUM = "IpuCrossReplicaSum"
REPLICA_GATHER = "IpuReplicaGather"
COLLECTIVES = frozenset({CROSS_REPLICA_SUM, REPLICA_GATHER})
REPLICATION_INDEX = "ReplicationIndex"
REPLICATION_FACTOR = "IpuReplicationFactor"

RANDOM_SEED = "IpuRandomSeed"

# Users' ops in Poplar code: with state, so that each runs whether anything needs its results or not, and without.
USER_OP = "IpuUserOp"
STATELESS_USER_OP = "IpuStatelessUserOp"
USER_OPS = frozenset({USER_OP, STATELESS_USER_OP})

# Sums of gradients over the iterations of a loop.
MOMENTUM_ACCUMULATION = "IpuStatefulGradientAccumulateWithMomentum"
GRADIENT_ACCUMULATIONS = frozenset({"IpuStatefulGradientAccumulate", MOMENTUM_ACCUMULATION})

# All ops of programs that the plugin registers.
PLUGIN_OPS = (
    COLLECTIVES
    | GRADIENT_ACCUMULATIONS
    | USER_OPS
    | {
        PROGRAM,
        INTER_COPY,
        REPLICA_CALL,
        COLLECTIVE,
        INFEED_DEQUEUE,
        OUTFEED_ENQUEUE,
        OUTFEED_DEQUEUE,
        CHUNK_BEGIN,
        CHUNK_ENQUEUE,
        LOOP_TOTAL,
        HANDLE,
        LABELS_IN_RANGE,
        SEND_TO_HOST,
        REPLICATION_INDEX,
        REPLICATION_FACTOR,
        RANDOM_SEED,
    }
)
# Ops that run on the host although no script says so.
HOST_OPS = INFEEDS | {
    ITERATOR,
    OUTFEED_ENQUEUE,
    OUTFEED_DEQUEUE,
    CHUNK_BEGIN,
    CHUNK_ENQUEUE,
    RANDOM_SEED,
    SEND_TO_HOST,
}
# Those of the host whose kernels run on the IPU's TensorFlow device (see `feeds`).
ON_DEVICE_OPS = INFEEDS | {OUTFEED_ENQUEUE, CHUNK_BEGIN, CHUNK_ENQUEUE, RANDOM_SEED, SEND_TO_HOST}

READ_VARIABLE = "ReadVariableOp"
ASSIGN_VARIABLE = "AssignVariableOp"
# Ops that tell of a tensor's shape, not of its values: they stay with the tensor, which need not move for them.
SHAPE_QUERIES = frozenset({"Shape", "ShapeN", "Size", "Rank"})
# Ops whose result is their operand.
IDENTITIES = frozenset({"Identity", "StopGradient"})
# Ops that compute nothing.
PASS_ON = IDENTITIES | {"NoOp"}
# Ops whose result is their first operand's memory in another shape.
VIEWS = IDENTITIES | {"ExpandDims", "Reshape", "Squeeze"}

# Random ops that XLA launches compute in both execution modes, and which of their inputs XLA must know.
LAUNCHED = {
    "StatelessRandomUniform": (0,),
    "StatelessRandomUniformInt": (0,),
    "StatelessRandomUniformFullInt": (0,),
    "StatelessRandomNormal": (0,),
    "StatelessTruncatedNormal": (0,),
    "StatelessParameterizedTruncatedNormal": (0,),
    "StatelessMultinomial": (1,),
    "StatelessRandomUniformV2": (0, 3),
    "StatelessRandomUniformIntV2": (0, 3),
    "StatelessRandomUniformFullIntV2": (0, 3),
    "StatelessRandomNormalV2": (0, 3),
    "StatelessTruncatedNormalV2": (0, 3),
}
