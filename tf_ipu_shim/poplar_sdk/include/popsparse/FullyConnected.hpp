// Fully connected layers with sparse weights {outputs, inputs} of one group. Matmuls accumulate in float and round
// once. Tensors are mapped linearly. Options and caches have no effect on values.
#ifndef popsparse_FullyConnected_hpp
#define popsparse_FullyConnected_hpp

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <popsparse/FullyConnectedParams.hpp>
#include <popsparse/PlanningCache.hpp>
#include <popsparse/SparseTensor.hpp>
#include <tuple>

namespace popsparse {
namespace dynamic {

SparseTensor createFullyConnectedWeights(
    poplar::Graph &graph, const poplar::Type &inputType, const FullyConnectedParams &params,
    const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {},
    PlanningCache *cache = nullptr);
// {batchSize, inputs}
poplar::Tensor createFullyConnectedInput(
    poplar::Graph &graph, const poplar::Type &inputType, const FullyConnectedParams &params,
    const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {},
    PlanningCache *cache = nullptr);

// activations * weights^T: {batchSize, inputs} to {batchSize, outputs}.
poplar::Tensor fullyConnectedFwd(
    poplar::Graph &graph, const SparseTensor &weights, const poplar::Tensor &activations,
    const FullyConnectedParams &params, poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
// gradients * weights: {batchSize, outputs} to {batchSize, inputs}.
poplar::Tensor fullyConnectedGradA(
    poplar::Graph &graph, const SparseTensor &weights, const poplar::Tensor &gradients,
    const FullyConnectedParams &params, poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
// The gradients of the weights at the positions of `weightMetaInfo`, in the order of the weights' values.
poplar::Tensor fullyConnectedSparseGradW(
    poplar::Graph &graph, const poplar::Tensor weightMetaInfo, const poplar::Tensor &gradA,
    const poplar::Tensor &activations, const FullyConnectedParams &params, poplar::program::Sequence &prog,
    const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {},
    PlanningCache *cache = nullptr);

// Returns the number of parts of groups, inputs and outputs in which a dense weight gradient fits in memory. It is
// always one, because the matmul needs no temporary memory on the tiles.
std::tuple<unsigned, unsigned, unsigned> fullyConnectedDenseGradWSerialSplits(
    const poplar::Graph &graph, const poplar::Type &inputType, const FullyConnectedParams &params,
    const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);

}  // namespace dynamic
}  // namespace popsparse

#endif
