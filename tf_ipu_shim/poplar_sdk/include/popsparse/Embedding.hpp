// Lookups of rows of sparse weights {outputs, inputs}, which a fully connected layer may share. An index that is out of
// range reads zeros and is not updated.
#ifndef popsparse_Embedding_hpp
#define popsparse_Embedding_hpp

#include <poplar/Graph.hpp>
#include <popsparse/FullyConnected.hpp>
#include <popsparse/FullyConnectedParams.hpp>
#include <popsparse/SparseTensor.hpp>

namespace popsparse {
namespace dynamic {

// {numIndices}, unsigned int.
poplar::Tensor createIndicesTensor(
    poplar::Graph &graph, const FullyConnectedParams &params, std::size_t numIndices,
    const poplar::OptionFlags &options = {}, const poplar::DebugContext &debugContext = {});
// {numIndices, inputs}
poplar::Tensor createSliceTensor(
    poplar::Graph &graph, const poplar::Type &dataType, const FullyConnectedParams &params, std::size_t numIndices,
    const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {},
    PlanningCache *cache = nullptr);

// Dense rows, {number of indices, inputs}.
poplar::Tensor embeddingSlice(
    poplar::Graph &graph, const SparseTensor &t, const poplar::Tensor &indices, poplar::program::Sequence &prog,
    const FullyConnectedParams &params, const poplar::DebugContext &debugContext = {},
    const poplar::OptionFlags &options = {}, PlanningCache *cache = nullptr);
// Adds scale * slices to the values that the rows have; other elements of the slices have no place.
void embeddingUpdateAdd(
    poplar::Graph &graph, const SparseTensor &t, const poplar::Tensor &slices, const poplar::Tensor &indices,
    const poplar::Tensor &scale, poplar::program::Sequence &prog, const FullyConnectedParams &params,
    const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &options = {},
    PlanningCache *cache = nullptr);

}  // namespace dynamic
}  // namespace popsparse

#endif
