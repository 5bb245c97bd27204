// The k largest or smallest elements along the last dimension. With SortOrder::NONE results keep the order of the
// input. Equal elements are selected and sorted in the order of the input.
#ifndef popops_TopK_hpp
#define popops_TopK_hpp

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <popops/SortOrder.hpp>
#include <utility>
#include <vector>

namespace popops {

struct TopKParams {
  unsigned k;
  bool largest;
  SortOrder sortOrder;
  bool stableSort;
  TopKParams(unsigned k, bool largest, SortOrder sortOrder, bool stableSort = false) noexcept
      : k(k), largest(largest), sortOrder(sortOrder), stableSort(stableSort) {}
};

std::ostream &operator<<(std::ostream &os, const TopKParams &params);

poplar::Tensor createTopKInput(poplar::Graph &graph, const poplar::Type &type, const std::vector<std::size_t> &shape,
                               const TopKParams &params, const poplar::DebugContext &debugContext = {});

poplar::Tensor topK(poplar::Graph &graph, poplar::program::Sequence &prog, const poplar::Tensor &t,
                    const TopKParams &params, const poplar::DebugContext &debugContext = {});

// The keys, and the values at their places.
std::pair<poplar::Tensor, poplar::Tensor> topKKeyValue(poplar::Graph &graph, poplar::program::Sequence &prog,
                                                       const poplar::Tensor &keys, const poplar::Tensor &values,
                                                       const TopKParams &params,
                                                       const poplar::DebugContext &debugContext = {});

// The elements, and their indices as unsigned integers.
std::pair<poplar::Tensor, poplar::Tensor> topKWithPermutation(poplar::Graph &graph, poplar::program::Sequence &prog,
                                                              const poplar::Tensor &t, const TopKParams &params,
                                                              const poplar::DebugContext &debugContext = {});

}  // namespace popops

#endif
