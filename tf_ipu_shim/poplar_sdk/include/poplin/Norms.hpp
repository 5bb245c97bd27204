// Normalisation of activations {batch, channels, field...} by the statistics of each channel, computed in float.
#ifndef poplin_Norms_hpp
#define poplin_Norms_hpp

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <functional>
#include <utility>
#include <vector>

namespace poplin {

// One parameter for each channel.
poplar::Tensor createNormGamma(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Type &type,
                               const poplar::DebugContext &debugContext = {});
poplar::Tensor createNormGamma(poplar::Graph &graph, const poplar::Tensor &acts,
                               const poplar::DebugContext &debugContext = {});
poplar::Tensor createNormBeta(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Type &type,
                              const poplar::DebugContext &debugContext = {});
poplar::Tensor createNormBeta(poplar::Graph &graph, const poplar::Tensor &acts,
                              const poplar::DebugContext &debugContext = {});
std::pair<poplar::Tensor, poplar::Tensor> createNormParams(poplar::Graph &graph, const poplar::Tensor &acts,
                                                           const poplar::DebugContext &debugContext = {});

// The mean of each channel and 1 / sqrt(variance + eps). The variance is always that of the deviations from the mean.
std::pair<poplar::Tensor, poplar::Tensor> normStatistics(poplar::Graph &graph, const poplar::Tensor &acts, float eps,
                                                         poplar::program::Sequence &prog, bool unbiasedVarEstimate,
                                                         bool stableAlgo = false,
                                                         const poplar::Type &partialsType = poplar::FLOAT,
                                                         const poplar::DebugContext &debugContext = {});

// Returns the sums of tensors over the `groupSize` replicas that normalise together.
using DistributedNormReduceCallback = std::function<std::vector<poplar::Tensor>(
    poplar::Graph &replicatedGraph, const std::vector<poplar::Tensor> &inputsToReduce, poplar::program::Sequence &prog,
    unsigned groupSize, const poplar::DebugContext &debugContext, const poplar::OptionFlags &options)>;

// The statistics of `normSize` elements of the batch, of which each replica has as many.
std::pair<poplar::Tensor, poplar::Tensor> distributedNormStatistics(
    poplar::Graph &replicatedGraph, const poplar::Tensor &acts, float eps, poplar::program::Sequence &prog,
    bool unbiasedVarEstimate, DistributedNormReduceCallback allReduceCallback, unsigned normSize,
    bool stableAlgo = false, const poplar::Type &partialsType = poplar::FLOAT,
    const poplar::DebugContext &debugContext = {});

// (acts - mean) * iStdDev
poplar::Tensor normWhiten(poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &mean,
                          const poplar::Tensor &iStdDev, poplar::program::Sequence &prog,
                          const poplar::DebugContext &debugContext = {});

// actsWhitened * gamma + beta
poplar::Tensor normalise(poplar::Graph &graph, const poplar::Tensor &actsWhitened, const poplar::Tensor &gamma,
                         const poplar::Tensor &beta, poplar::program::Sequence &prog,
                         const poplar::DebugContext &debugContext = {});

// The gradients of gamma and beta.
std::pair<poplar::Tensor, poplar::Tensor> normParamGradients(poplar::Graph &graph, const poplar::Tensor &actsWhitened,
                                                             const poplar::Tensor &gradsIn,
                                                             poplar::program::Sequence &prog,
                                                             const poplar::Type &partialsType = poplar::FLOAT,
                                                             const poplar::DebugContext &debugContext = {});

// gradsIn * gamma
poplar::Tensor normGradients(poplar::Graph &graph, const poplar::Tensor &gradsIn, const poplar::Tensor &gamma,
                             poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});

// The gradient of the activations through whitening and statistics.
poplar::Tensor normStatisticsGradients(poplar::Graph &graph, const poplar::Tensor &actsWhitened,
                                       const poplar::Tensor &gradsIn, const poplar::Tensor &invStdDev,
                                       poplar::program::Sequence &prog,
                                       const poplar::Type &partialsType = poplar::FLOAT,
                                       const poplar::DebugContext &debugContext = {});
poplar::Tensor distributedNormStatisticsGradients(
    poplar::Graph &replicatedGraph, const poplar::Tensor &actsWhitened, const poplar::Tensor &gradsIn,
    const poplar::Tensor &invStdDev, poplar::program::Sequence &prog, DistributedNormReduceCallback reduceCallback,
    unsigned normSize, const poplar::Type &partialsType = poplar::FLOAT, const poplar::DebugContext &debugContext = {});

}  // namespace poplin

#endif
