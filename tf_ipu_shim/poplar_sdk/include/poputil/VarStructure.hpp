// Finds groups of contiguous elements in a tensor's variables, and creates tensors in partitions.
#ifndef poputil_VarStructure_hpp
#define poputil_VarStructure_hpp

#include <functional>
#include <poplar/Graph.hpp>
#include <utility>
#include <vector>

namespace poputil {

// A dimension and the number of its elements that lie next to each other.
using GroupingInfo = std::pair<unsigned, unsigned>;

// The number of elements of the last dimension that lie next to each other in memory.
unsigned detectInnermostGrouping(const poplar::Graph &graph, const poplar::Tensor &t);

// The dimensions whose elements lie next to each other, the innermost first.
std::vector<GroupingInfo> detectDimGroupings(const poplar::Graph &graph, const poplar::Tensor &t);

// A tensor whose variable keeps each of the parts of `nPartitions` together.
poplar::Tensor createPartitionableTensor(poplar::Graph &graph, const poplar::Type &type,
                                         const std::vector<std::size_t> &shape,
                                         const std::vector<std::size_t> &nPartitions,
                                         const poplar::DebugContext &debugContext = {});

// Calls `f` with the coordinates and the view of each part.
void iterateTensorPartitions(
    const poplar::Tensor &t, const std::vector<std::size_t> &nPartitions,
    const std::function<void(const std::vector<std::size_t> &i, const poplar::Tensor &s)> &f);

}  // namespace poputil

#endif
