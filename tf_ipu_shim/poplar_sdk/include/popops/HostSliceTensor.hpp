// Creates tensors for copies from and to the host.
#ifndef popops_HostSliceTensor_hpp
#define popops_HostSliceTensor_hpp

#include <poplar/Graph.hpp>
#include <vector>

namespace popops {

struct IndicesAndTensor {
  poplar::Tensor indices;
  poplar::Tensor tensor;
};

// A matrix mapped linearly, and an index for each of its rows. `offset` is the first tile.
IndicesAndTensor createHostSliceableTensor(poplar::Graph &graph, const poplar::Type &type,
                                           const std::vector<size_t> &shape, const bool isRead,
                                           const poplar::DebugContext &debugContext = {});
IndicesAndTensor createHostSliceableTensor(poplar::Graph &graph, const poplar::Type &type,
                                           const std::vector<size_t> &shape, const bool isRead, const size_t offset,
                                           const poplar::DebugContext &debugContext = {});

poplar::Tensor createHostTransferableTensor(poplar::Graph &graph, const poplar::Type &type,
                                            const std::vector<size_t> &shape, bool isRead,
                                            const poplar::DebugContext &debugContext = {});
poplar::Tensor createHostTransferableTensor(poplar::Graph &graph, const poplar::Type &type,
                                            const std::vector<size_t> &shape, bool isRead, const size_t offset,
                                            const poplar::DebugContext &debugContext = {});

}  // namespace popops

#endif
