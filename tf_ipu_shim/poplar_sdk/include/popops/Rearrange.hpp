// Copies tensors to variables with elements grouped along a dimension; `regroupIfBeneficial()` copies nothing.
#ifndef popops_Rearrange_hpp
#define popops_Rearrange_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poputil/VarStructure.hpp>

namespace popops {
namespace rearrange {

unsigned getMinimumRegroupGrainSize(const poplar::Type &type);

// A tensor of the same elements whose variable may have another order. Reading in any order costs the same here, so it
// is `in` itself.
poplar::Tensor regroupIfBeneficial(poplar::Graph &graph, const poplar::Tensor &in, const poplar::Tensor &ref,
                                   poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});
poplar::Tensor regroupIfBeneficial(poplar::Graph &graph, const poplar::Tensor &in, std::size_t preferredGrouping,
                                   poplar::program::Sequence &prog, const poplar::DebugContext &debugContext = {});

// Returns a copy whose variable stores elements of the dimension `to.first` in contiguous groups of `to.second`.
// Returns `in` itself if that dimension is not a multiple of the group size.
poplar::Tensor regroupIfPossible(poplar::Graph &graph, const poplar::Tensor &t, poplar::program::Sequence &prog,
                                 const poputil::GroupingInfo &to, const poplar::DebugContext &debugContext = {});

}  // namespace rearrange
}  // namespace popops

#endif
