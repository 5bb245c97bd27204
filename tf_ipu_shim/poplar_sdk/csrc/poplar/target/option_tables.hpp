// The options of Poplar's own functions, as docs/reference/options/poplar_options.md lists them.
#ifndef poplar_csrc_option_tables_hpp
#define poplar_csrc_option_tables_hpp

#include <poplar/detail/options.hpp>

namespace poplar::detail {

// Why options have no effect.
inline constexpr const char* no_profile = "no profile is written; `Engine::printProfileSummary` prints the summary";
inline constexpr const char* no_trace = "programs run on the CPU, where a debugger can follow them";
inline constexpr const char* no_code = "no code for tiles is compiled, linked or placed";
inline constexpr const char* no_exchange = "tensors are copied in the memory of the host";
inline constexpr const char* no_transfer = "streams are copied when the program reaches them";
inline constexpr const char* no_limit = "pure Poplar programs are not limited to the memory of tiles";
inline constexpr const char* no_rounding = "the arithmetic of the CPU rounds to the nearest value";
inline constexpr const char* no_links = "replicas exchange values in the memory of the host";
inline constexpr const char* no_wait = "the host runs the program itself and never waits for an IPU";

// Engine, compileGraph
inline constexpr Option engine_options[] = {
    {"autoReport.all", "true, false", no_profile},
    {"autoReport.directory", "Text", no_profile},
    {"autoReport.executionProfileProgramRunCount", "Integer", no_profile},
    {"autoReport.outputArchive", "true, false", no_profile},
    {"autoReport.outputDebugInfo", "true, false", no_profile},
    {"autoReport.outputExecutionProfile", "true, false", no_profile},
    {"autoReport.outputGraphProfile", "true, false", no_profile},
    {"autoReport.outputLoweredVars", "true, false", no_profile},
    {"autoReport.outputSerializedGraph", "true, false", no_profile},
    {"autoReport.streamAtEachRun", "true, false", no_profile},
    {"debug.allowOutOfMemory", "true, false", no_limit},
    {"debug.branchRecordTile", "Integer", no_trace},
    {"debug.computeInstrumentationLevel", "vertex, tile, ipu, device", no_profile},
    {"debug.executionProfile", "Text", no_profile},
    {"debug.floatPointOpException", "true, false", nullptr},
    {"debug.globalExchangeViaDebug", "true, false", no_exchange},
    {"debug.graphReportDestination", "Text", no_profile},
    {"debug.instrument", "true, false", no_profile},
    {"debug.instrumentCompute", "true, false", no_profile},
    {"debug.instrumentControlFlow", "true, false", no_profile},
    {"debug.instrumentExternalExchange", "true, false", no_profile},
    {"debug.logStackSizeAnalysis", "true, false", no_code},
    {"debug.loweredProgsFile", "Text", no_profile},
    {"debug.loweredVarDumpFile", "Text", no_profile},
    {"debug.nanOverflowException", "true, false", nullptr},
    {"debug.nanOverflowMode", "false", "a half that overflows is infinite"},
    {"debug.outputAllSymbols", "true, false", no_code},
    {"debug.profilingTile", "Integer", no_profile},
    {"debug.retainDebugInformation", "true, false", no_code},
    {"debug.runtimeVerify", "true, false", no_code},
    {"debug.supervisorStackSizeInBytes", "Integer", no_code},
    {"debug.trace", "true, false", no_trace},
    {"debug.traceFile", "Text", no_trace},
    {"debug.verify", "true, false", no_code},
    {"debug.workerStackSizeInBytes", "Integer", no_code},
    {"device.clearAtomicFlagAfterExchange", "true, false", no_exchange},
    {"exchange.enablePrefetch", "true, false", no_transfer},
    {"exchange.multicastPolicy", "Text", no_exchange},
    {"exchange.streamBufferOverlap", "any, hostRearrangeOnly, none", no_transfer},
    {"opt.enableInlining", "true, false", no_code},
    {"opt.enableMultiAccessCopies", "true, false", no_exchange},
    {"opt.enableSwSyncs", "true, false", no_code},
    {"opt.internalExchangeOptimisationTarget", "cycles, memory, balanced", no_exchange},
    {"opt.limitVertexStateToLower256K", "true, false", no_code},
    {"opt.maxCompilationThreads", "Integer", no_code},
    {"opt.maxComputeSetsPerLoweredCopy", "Integer", no_exchange},
    {"opt.maxCopyMergeSize", "Integer", no_exchange},
    {"opt.maxLinkThreads", "Integer", no_code},
    {"opt.useAutoloader", "true, false", no_code},
    {"prng.enable", "false", no_rounding},
    {"prng.enableStochasticRounding", "false", no_rounding},
    {"prng.seed", "Integer", nullptr},
    {"profiler.blocks.filter", "Text", no_profile},
    {"profiler.blocks.implicitFlush", "true, false", no_profile},
    {"profiler.format", "v1, v2, v3, unstable", no_profile},
    {"profiler.includeCycleEstimates", "true, false", no_profile},
    {"profiler.includeFlopEstimates", "true, false", no_profile},
    {"profiler.perExecutionStreamCopyCycles", "true, false", no_profile},
    {"profiler.programs.filter", "Text", no_profile},
    {"profiler.replicaToProfile", "Integer, all", no_profile},
    {"profiler.useUnstableFormat", "true, false", no_profile},
    {"streamCallbacks.maxLookahead", "Integer, unlimited", no_transfer},
    {"streamCallbacks.multiThreadMode", "singleThread, collaborative, dedicated", no_transfer},
    {"streamCallbacks.numWorkerThreads", "Integer, auto", no_transfer},
    {"streamCallbacks.numaAware", "true, false", no_transfer},
    {"target.deterministicWorkers", "true, false, portable", "workers run one after another, so they are deterministic"},
    {"target.exceptionPollPeriodUs", "Integer", no_wait},
    {"target.extendedMemory", "true, false", "remote buffers are in the memory of the host anyway"},
    {"target.firstRuntimeReplica", "Integer", no_links},
    {"target.gatewayMode", "true, false", no_links},
    {"target.gatewayWriteTogether", "true, false", no_links},
    {"target.hostSyncTimeout", "Decimal", no_wait},
    {"target.maxStreamCallbackThreadsPerNumaNode", "Integer, auto", no_transfer},
    {"target.numberRuntimeReplica", "Integer", no_links},
    {"target.saveArchive", "Text", no_code},
    {"target.saveOutputVertexGraph", "Text", no_code},
    {"target.supervisorStackSizeInBytes", "Integer", "the older name of `debug.supervisorStackSizeInBytes`"},
    {"target.syncMethod", "polling, hybrid, default", no_wait},
    {"target.syncPollPeriodUs", "Integer", no_wait},
    {"target.syncReplicasIndependently", "true, false", no_links},
    {"target.textSectionSizeInBytes", "Integer", no_code},
    {"target.useBufferedCompletions", "true, false", no_wait},
    {"target.workerStackSizeInBytes", "Integer", "the older name of `debug.workerStackSizeInBytes`"},
};

// Target::createIPUTarget, DeviceManager, IPUModel::createDevice, Device::createCPUDevice
inline constexpr Option target_options[] = {
    {"gatewayMode", "true, false", no_links},
    {"instanceSize", "Integer", no_links},
    {"ipuLinkConfiguration", "Default, default, BarleyTwist, barleyTwist, SlidingWindow, slidingWindow", no_links},
    {"ipuLinkDomainSize", "Integer", no_links},
    {"ipuLinkTopology", "mesh, torus, line", no_links},
    {"syncConfiguration",
     "intraReplicaAndAll, ipuAndAll, intraReplicaAndLadder, ipuAndInstanceAndIntraReplicaAndAll", no_links},
};

// Graph::addHostToDeviceFIFO, Graph::addDeviceToHostFIFO
inline constexpr Option stream_options[] = {
    {"bufferingDepth", "Integer", no_transfer},
    {"splitLimit", "Integer", no_transfer},
};

// Engine::printProfileSummary
inline constexpr Option summary_options[] = {
    {"colours", "true, false", "the summary has no colours"},
    {"showExecutionSteps", "true, false", nullptr},
    {"showOptimizations", "true, false", "no optimisations are counted"},
    {"showPerIpuMemoryUsage", "true, false", "the summary is of all IPUs"},
    {"showVarStorage", "true, false", "`Engine::printProfileSummary` prints totals, not variables"},
};

}  // namespace poplar::detail

#endif
