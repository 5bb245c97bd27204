// Scatters slices with XLA's semantics: windows outside of the operand are skipped, and the later of two overlapping
// windows overwrites the earlier.
#ifndef popops_Scatter_hpp
#define popops_Scatter_hpp

#include <functional>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <vector>

namespace popops {

void scatter(poplar::Graph &graph, const poplar::Tensor &operand, const poplar::Tensor &indices,
             const poplar::Tensor &updates, std::size_t indexVectorDim, std::vector<unsigned> updateWindowDims,
             std::vector<std::size_t> insertWindowDims, std::vector<unsigned> scatterDimsToOperandDims,
             poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {},
             const poplar::OptionFlags &optionFlags = {});

// Adds to a program what combines the present value of a window with its update; returns the new value.
using UpdateComputationFunc =
    std::function<poplar::Tensor(poplar::Graph &, poplar::Tensor &, poplar::Tensor &, poplar::program::Sequence &)>;

void scatter(poplar::Graph &graph, const poplar::Tensor &operand, const poplar::Tensor &indices,
             const poplar::Tensor &updates, std::size_t indexVectorDim, std::vector<unsigned> updateWindowDims,
             std::vector<std::size_t> insertWindowDims, std::vector<unsigned> scatterDimsToOperandDims,
             UpdateComputationFunc &updateComputation, poplar::program::Sequence &prog,
             const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &optionFlags = {});

}  // namespace popops

#endif
