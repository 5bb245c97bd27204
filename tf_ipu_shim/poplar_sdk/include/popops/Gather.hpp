// Gathers slices: along one axis, or with XLA's general semantics, in which start indices are clamped.
#ifndef popops_Gather_hpp
#define popops_Gather_hpp

#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
#include <vector>

namespace popops {

struct GatherParams {
  std::size_t maxElementsPerTile = 65535;
  GatherParams() = default;
  GatherParams(std::size_t maxElementsPerTile) : maxElementsPerTile(maxElementsPerTile) {}
};

poplar::Tensor createGatherInput(poplar::Graph &graph, const poplar::Type &type,
                                 const std::vector<std::size_t> &operandShape, unsigned axis, GatherParams params = {},
                                 const poplar::DebugContext &debugContext = {});

// The indices' dimensions take the place of the axis. An index outside of it gathers zeros (index 0 with the option
// remapOutOfBoundIndices).
poplar::Tensor gather(poplar::Graph &graph, const poplar::Tensor &input, const poplar::Tensor &indices, unsigned axis,
                      poplar::program::Sequence &prog, GatherParams params,
                      const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &optionFlags = {});

poplar::Tensor createGatherInput(poplar::Graph &graph, const poplar::Type &type,
                                 const std::vector<std::size_t> &inputShape,
                                 const std::vector<std::size_t> &sliceSizes, std::vector<unsigned> startIndexMap,
                                 const poplar::DebugContext &debugContext = {});

poplar::Tensor gather(poplar::Graph &graph, const poplar::Tensor &input, const poplar::Tensor &indices,
                      std::size_t indexVectorDim, const std::vector<std::size_t> &offsetDims,
                      const std::vector<std::size_t> &sliceSizes, const std::vector<std::size_t> &collapsedSliceDims,
                      const std::vector<unsigned> &startIndexMap, poplar::program::Sequence &prog,
                      const poplar::DebugContext &debugContext = {}, const poplar::OptionFlags &optionFlags = {});

}  // namespace popops

#endif
