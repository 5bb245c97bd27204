// The options of PopLibs' functions, as docs/reference/options/poplar_options.md lists them.
#ifndef tf_ipu_shim_poputil_option_tables_hpp
#define tf_ipu_shim_poputil_option_tables_hpp

#include <poplar/detail/options.hpp>
#include <vector>

namespace poputil::library {

using poplar::detail::Option;

// Why options have no effect.
inline constexpr const char *no_memory_plan = "no plan trades memory for cycles";
inline constexpr const char *float_sums = "sums are kept in float";
inline constexpr const char *same_kernel = "every pass has the same kernel";
inline constexpr const char *no_convolution_unit = "there is no convolution unit";
inline constexpr const char *nearest = "half is rounded to the nearest value";
inline constexpr const char *no_partials = "there are no partials to reduce";
inline constexpr const char *no_plan = "there is no plan";
inline constexpr const char *linear_output = "the output is mapped linearly";
inline constexpr const char *one_output = "the output is one variable";
inline constexpr const char *no_shards = "a layer is not divided over tiles";
inline constexpr const char *one_kernel = "there is one kernel";
inline constexpr const char *double_sums = "sums are kept in double and rounded once";
inline constexpr const char *loops = "expressions are compiled to loops";
inline constexpr const char *same_representation = "every pass reads the same representation";
inline constexpr const char *kept_on_demand = "intermediate results are kept where the caller asks for them";

// poplin/Convolution.hpp
inline constexpr Option convolution_options[] = {
    {"availableMemoryProportion", "Fraction", no_memory_plan},
    {"partialsType", "half, float", float_sums},
    {"partialsType.interTile", "half, float", float_sums},
    {"partialsType.interIPU", "half, float", float_sums},
    {"pass",
     "NONE, INFERENCE_FWD, TRAINING_FWD, TRAINING_BWD, "
     "TRAINING_WU, FC_INFERENCE_FWD, FC_TRAINING_FWD, FC_TRAINING_BWD, FC_TRAINING_WU, NONE_MATMUL",
     same_kernel},
    {"use128BitConvUnitLoad", "true, false", no_convolution_unit},
    {"enableMultiStageReduce", "true, false", no_partials},
    {"enableFastReduce", "true, false", no_partials},
    {"enableConvDithering", "true, false", "tensors are mapped linearly"},
    {"remapOutputTensor", "true, false", linear_output},
    {"gatherConvOutput", "true, false", one_output},
    {"experimental.slicVmac16", "true, false", no_plan},
    {"experimental.convTransformsEstimates", "true, false", no_plan},
    {"disableTransformations", "true, false", no_plan},
    {"enableTileLevelExpandDims", "true, false", no_plan},
    {"insertTransformsCycleCountProgs", "true, false", "no transformation of a plan takes cycles"},
    {"disableSRForAMPVertices", "true, false", nearest},
    {"planConstraints", "Text", no_plan},
    {"planConstraintsOutputFilename", "Text", "there is no plan to write"},
    {"tilesPerIPU", "Integer", nullptr},
    {"numIPUs", "Integer", nullptr},
};

// poplin/MultiConvolution.hpp
inline constexpr Option multi_convolution_options[] = {
    {"planType", "serial, parallel", "convolutions run one after another"},
    {"perConvReservedTiles", "Integer", "tiles are not divided"},
    {"cycleBackOff", "Decimal", no_plan},
};

// poplin/MatMul.hpp
inline constexpr Option matmul_options[] = {
    {"availableMemoryProportion", "Fraction", no_memory_plan},
    {"partialsType", "half, float", float_sums},
    {"fullyConnectedPass", "NONE, INFERENCE_FWD, TRAINING_FWD, TRAINING_BWD, TRAINING_WU", same_kernel},
    {"inputRHSIsPreArranged", "true, false", "an operand needs no arrangement"},
    {"use128BitConvUnitLoad", "true, false", no_convolution_unit},
    {"enableMultiStageReduce", "true, false", no_partials},
    {"enableFastReduce", "true, false", no_partials},
    {"remapOutputTensor", "true, false", linear_output},
    {"gatherOutput", "true, false", one_output},
    {"disableSRForAMPVertices", "true, false", nearest},
    {"planConstraints", "Text", no_plan},
};

// poplin/Cholesky.hpp, poplin/TriangularSolve.hpp
// with matmul_options
inline constexpr Option solver_options[] = {
    {"blockSize", "Integer", "a matrix is not split into blocks"},
};

// popnn/GroupNorm.hpp, popnn/InstanceNorm.hpp, popnn/LayerNorm.hpp
inline constexpr Option group_norm_options[] = {
    {"groupNormStridedChannelGrouping", "true, false", nullptr},
};

// popnn/BatchNorm.hpp
inline constexpr Option batch_norm_options[] = {
    {"groupNormStridedChannelGrouping", "true, false", "there are no groups"},
};

// popnn/Pooling.hpp
inline constexpr Option pooling_options[] = {
    {"poolUseIntrospectiveMapping", "true, false", linear_output},
    {"optimizeForSpeed", "true, false", one_kernel},
    {"useFloatPartialsWhereBeneficial", "true, false", double_sums},
};

// popnn/Gru.hpp
inline constexpr Option gru_options[] = {
    {"availableMemoryProportion", "Fraction", no_memory_plan},
    {"inferenceOnly", "true, false", kept_on_demand},
    {"partialsType", "half, float", float_sums},
    {"numShards", "Integer", no_shards},
    {"rnnCodeReuse", "true, false", one_kernel},
};

// popnn/Lstm.hpp
inline constexpr Option lstm_options[] = {
    {"availableMemoryProportion", "Fraction", no_memory_plan},
    {"inferenceOnly", "true, false", kept_on_demand},
    {"partialsType", "half, float", float_sums},
    {"weightAccumulatorsType", "half, float", "gradients of weights are summed in float"},
    {"preCalcWeights", "true, false", one_kernel},
    {"recomputationMode", "none, cellAndTanh, full", "nothing is computed again"},
    {"numShards", "Integer", no_shards},
    {"rnnCodeReuse", "true, false", one_kernel},
    {"rnnStepsPerWU", "Integer", "the gradients of weights are summed at every step"},
    {"disableWUPartialInterleaving", "true, false", no_partials},
};

// popnn::ctc::plan, popnn/CTCInference.hpp
inline constexpr Option ctc_plan_options[] = {
    {"partialsType", "half, float", "sums are kept in double"},
    {"availableMemoryProportion", "Fraction", no_memory_plan},
    {"enableReducedClassesInLabel", "true, false", no_plan},
};

// popnn/CTCLoss.hpp
inline constexpr Option ctc_loss_options[] = {
    {"includeSoftmaxGradient", "true, false", nullptr},
    {"zeroInfinity", "true, false", nullptr},
    {"zeroInfinityRelTolerance", "Decimal", "a loss without a path is infinite exactly"},
};

// popops/Reduce.hpp
inline constexpr Option reduce_options[] = {
    {"accumType.interTile", "half, float", double_sums},
    {"accumType.inVertex", "half, float", double_sums},
};

// popops/ScaledAdd.hpp
inline constexpr Option scaled_add_options[] = {
    {"optimizeForSpeed", "true, false", one_kernel},
    {"scaleFloatToHalfTolerance", "Decimal", "half is computed in float for every scale"},
};

// popops/ElementWise.hpp
inline constexpr Option element_wise_options[] = {
    {"enableGenerateCodelet", "true, false", loops},
    {"forceGenerateCodelet", "true, false", loops},
    {"enableVectorBroadcastOptimisations", "true, false", loops},
    {"enableExpressionOptimizations", "true, false", "expressions are compiled as they are"},
};

// popops/GatherStatistics.hpp
inline constexpr Option histogram_options[] = {
    {"useFloatArithmetic", "true, false", nullptr},
    {"useFloatArithmeticWithUnsignedIntOutput", "true, false", "counts are exact"},
};

// popops::dynamicSlice, popops::dynamicUpdate, popops/Gather.hpp, popops/Scatter.hpp
inline constexpr Option slice_options[] = {
    {"remapOutOfBoundIndices", "true, false", nullptr},
    {"paddingIndexUsed", "true, false", nullptr},
};

// popops::multiSlice, popops::multiUpdate, popops::embedding::plan
// with slice_options
inline constexpr Option multi_slice_options[] = {
    {"usedForSlice", "true, false", nullptr},
    {"usedForUpdate", "true, false", nullptr},
    {"validateIndices", "true, false", nullptr},
    {"operationForUpdate", "none, add, max, mul", "a plan holds for every operation"},
    {"availableMemoryProportion", "Fraction", no_memory_plan},
    {"indicesDistribution", "uniform, onePoint", "no plan depends on indices"},
    {"indicesAreSorted", "true, false", "indices are used in their order"},
    {"partialType", "half, float", "sums of half are kept in float"},
    {"internal.alwaysIncludeBaseRearrangementCost", "true, false", no_plan},
};

// popsparse/FullyConnected.hpp, popsparse/Embedding.hpp, popsparse/SparsePartitioner.hpp,
// popsparse::dynamic::sparseDenseMatMul
inline constexpr Option sparse_options[] = {
    {"availableMemoryProportion", "Fraction", no_memory_plan},
    {"metaInfoBucketOversizeProportion", "Fraction", "positions are not divided into buckets"},
    {"doGradAPass", "true, false", same_representation},
    {"doGradWPass", "true, false", same_representation},
    {"partialsType", "half, float", float_sums},
    {"sharedBuckets", "true, false", same_representation},
};

// popsparse::static_::sparseDenseMatMul, popsparse::static_::denseSparseMatMul
inline constexpr Option static_sparse_options[] = {
    {"availableMemoryProportion", "Fraction", no_memory_plan},
};

// popsparse/experimental/BlockSparseMatMul.hpp
inline constexpr Option block_sparse_options[] = {
    {"numberOfPass", "Integer", no_memory_plan},
    {"memoryCycleRatio", "Decimal", no_plan},
    {"partitionMethod", "block, block-naive, strip", no_plan},
};

// The rows of two tables.
template <std::size_t First, std::size_t Second>
std::vector<Option> joined(const Option (&first)[First], const Option (&second)[Second]) {
  std::vector<Option> rows(first, first + First);
  rows.insert(rows.end(), second, second + Second);
  return rows;
}

inline const std::vector<Option> &solverOptions() {
  static const auto rows = joined(solver_options, matmul_options);
  return rows;
}
inline const std::vector<Option> &multiSliceOptions() {
  static const auto rows = joined(multi_slice_options, slice_options);
  return rows;
}

}  // namespace poputil::library

#endif
