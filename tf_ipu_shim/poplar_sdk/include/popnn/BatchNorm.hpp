// Batch normalisation of activations {batch, channels, field...} by the statistics of each channel. Normalising returns the
// result and the whitened activations; with a combined multiplicand it is acts * combinedMultiplicand + addend. A
// parameter update adds scale times the gradient.
#ifndef popnn_BatchNorm_hpp
#define popnn_BatchNorm_hpp

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <poplin/Norms.hpp>
#include <utility>

namespace popnn {
namespace bn {

std::pair<poplar::Tensor, poplar::Tensor> batchNormStatistics(
    poplar::Graph &graph, const poplar::Tensor acts, float eps,
    poplar::program::Sequence &prog, bool unbiasedVarEstimate,
    bool stableAlgo = false, const poplar::Type &partialsType = poplar::FLOAT,
    const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {});

// The same over `normBatchSize` elements of the batch, of which each replica has as many; the callback sums.
std::pair<poplar::Tensor, poplar::Tensor> distributedBatchNormStatistics(
    poplar::Graph &replicatedGraph, const poplar::Tensor acts, float eps,
    poplar::program::Sequence &prog, bool unbiasedVarEstimate,
    poplin::DistributedNormReduceCallback reduceCallback, unsigned normBatchSize,
    bool stableAlgo = false, const poplar::Type &partialsType = poplar::FLOAT,
    const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {});

poplar::Tensor batchNormWhiten(
    poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &mean,
    const poplar::Tensor &invStdDev, poplar::program::Sequence &prog,
    const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {});

std::pair<poplar::Tensor, poplar::Tensor> batchNormalise(
    poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &gamma,
    const poplar::Tensor &beta, const poplar::Tensor &mean, const poplar::Tensor &invStdDev,
    poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {});

poplar::Tensor batchNormalise(
    poplar::Graph &graph, const poplar::Tensor &acts,
    const poplar::Tensor &combinedMultiplicand, const poplar::Tensor &addend,
    poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {});

std::pair<poplar::Tensor, poplar::Tensor> batchNormParamGradients(
    poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &gradsIn,
    const poplar::Tensor &mean, const poplar::Tensor &iStdDev, poplar::program::Sequence &prog,
    const poplar::Type &partialsType = poplar::FLOAT, const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {});

std::pair<poplar::Tensor, poplar::Tensor> batchNormParamGradients(
    poplar::Graph &graph, const poplar::Tensor &actsWhitened, const poplar::Tensor &gradsIn,
    poplar::program::Sequence &prog, const poplar::Type &partialsType = poplar::FLOAT,
    const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {});

poplar::Tensor batchNormGradients(
    poplar::Graph &graph, const poplar::Tensor &acts, const poplar::Tensor &gradsIn,
    const poplar::Tensor &mean, const poplar::Tensor &invStdDev, const poplar::Tensor &gamma,
    poplar::program::Sequence &prog, const poplar::Type &partialsType = poplar::FLOAT,
    const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {});

poplar::Tensor batchNormGradients(
    poplar::Graph &graph, const poplar::Tensor &actsWhitened, const poplar::Tensor &gradsIn,
    const poplar::Tensor &invStdDev, const poplar::Tensor &gamma, poplar::program::Sequence &prog,
    const poplar::Type &partialsType = poplar::FLOAT, const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {});

poplar::Tensor distributedBatchNormGradients(
    poplar::Graph &replicatedGraph, const poplar::Tensor &acts, const poplar::Tensor &gradsIn,
    const poplar::Tensor &mean, const poplar::Tensor &invStdDev, const poplar::Tensor &gamma,
    poplar::program::Sequence &prog, poplin::DistributedNormReduceCallback reduceCallback,
    unsigned normBatchSize, const poplar::Type &partialsType = poplar::FLOAT,
    const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {});

poplar::Tensor distributedBatchNormGradients(
    poplar::Graph &replicatedGraph, const poplar::Tensor &actsWhitened, const poplar::Tensor &gradsIn,
    const poplar::Tensor &invStdDev, const poplar::Tensor &gamma, poplar::program::Sequence &prog,
    poplin::DistributedNormReduceCallback reduceCallback,
    unsigned normBatchSize, const poplar::Type &partialsType = poplar::FLOAT,
    const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {});

void batchNormParamUpdate(
    poplar::Graph &graph, const poplar::Tensor &gammaDelta, const poplar::Tensor &betaDelta,
    float scale, poplar::Tensor &gamma, poplar::Tensor &beta, poplar::program::Sequence &prog,
    const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {});

void batchNormParamUpdate(
    poplar::Graph &graph, const poplar::Tensor &gammaDelta, const poplar::Tensor &betaDelta,
    const poplar::Tensor &scale, poplar::Tensor &gamma, poplar::Tensor &beta, poplar::program::Sequence &prog,
    const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {});

}  // namespace bn
}  // namespace popnn

#endif
