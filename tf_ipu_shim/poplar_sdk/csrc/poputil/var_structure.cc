// Finds groups of contiguous elements in a tensor's variables, and creates tensors in partitions.
#include <algorithm>
#include <numeric>
#include <poputil/TileMapping.hpp>
#include <poputil/Util.hpp>
#include <poputil/VarStructure.hpp>
#include <poputil/detail/elements.hpp>

namespace poputil {

namespace {

// The boundaries of part `index` of a dimension.
poplar::Interval partOf(std::size_t size, std::size_t parts, std::size_t index) {
  const auto sizes = balancedPartition(size, parts);
  const auto begin = std::accumulate(sizes.begin(), sizes.begin() + index, std::size_t(0));
  return {begin, begin + sizes[index]};
}

void checkPartitions(const std::string &function, const std::vector<std::size_t> &shape,
                     const std::vector<std::size_t> &nPartitions) {
  if (nPartitions.size() != shape.size())
    detail::fail(function, "there are " + std::to_string(nPartitions.size()) + " numbers of partitions for the shape " +
                 detail::describeShape(shape), "Pass one for each dimension");
  for (std::size_t dim = 0; dim != shape.size(); ++dim)
    if (nPartitions[dim] == 0 || nPartitions[dim] > std::max<std::size_t>(shape[dim], 1))
      detail::fail(function, "dimension " + std::to_string(dim) + " of the shape " + detail::describeShape(shape) +
                   " is divided into " + std::to_string(nPartitions[dim]) + " parts", "Pass 1 to its size");
}

}  // namespace

unsigned detectInnermostGrouping(const poplar::Graph &, const poplar::Tensor &t) {
  if (t.rank() == 0 || t.numElements() == 0)
    detail::fail("detectInnermostGrouping", "the tensor is a scalar or empty", "Pass a tensor with elements");
  const std::size_t inner = t.dim(t.rank() - 1);
  std::size_t grouping = inner;
  for (const auto &region : t.flatten().getContiguousRegions()) {
    grouping = std::gcd(grouping, region.begin() % inner == 0 ? inner : region.begin() % inner);
    grouping = std::gcd(grouping, region.end() % inner == 0 ? inner : region.end() % inner);
  }
  return grouping;
}

std::vector<GroupingInfo> detectDimGroupings(const poplar::Graph &graph, const poplar::Tensor &t) {
  std::vector<GroupingInfo> groupings;
  for (unsigned dim = t.rank(); dim-- > 0;) {
    const auto grouping = detectInnermostGrouping(graph, t.dimRoll(dim, t.rank() - 1));
    if (grouping > 1) groupings.emplace_back(dim, grouping);
  }
  return groupings;
}

void iterateTensorPartitions(
    const poplar::Tensor &t, const std::vector<std::size_t> &nPartitions,
    const std::function<void(const std::vector<std::size_t> &i, const poplar::Tensor &s)> &f) {
  const auto shape = t.shape();
  checkPartitions("iterateTensorPartitions", shape, nPartitions);
  for (std::size_t part = 0; part != detail::product(nPartitions); ++part) {
    const auto index = unflattenIndex(nPartitions, part);
    auto view = t;
    for (unsigned dim = 0; dim != shape.size(); ++dim)
      view = view.slice(partOf(shape[dim], nPartitions[dim], index[dim]), dim);
    f(index, view);
  }
}

poplar::Tensor createPartitionableTensor(poplar::Graph &graph, const poplar::Type &type,
                                         const std::vector<std::size_t> &shape,
                                         const std::vector<std::size_t> &nPartitions,
                                         const poplar::DebugContext &debugContext) {
  checkPartitions("createPartitionableTensor", shape, nPartitions);
  const auto memory = graph.addVariable(type, shape, debugContext).flatten();
  std::size_t begin = 0;
  // Joins the parts along the last dimension first, then along the others.
  const std::function<poplar::Tensor(unsigned, std::vector<std::size_t>)> build =
      [&](unsigned dim, std::vector<std::size_t> part) -> poplar::Tensor {
    if (dim == shape.size()) {
      const auto end = begin + detail::product(part);
      const auto view = memory.slice(begin, end).reshape(part);
      begin = end;
      return view;
    }
    std::vector<poplar::Tensor> parts;
    for (std::size_t i = 0; i != nPartitions[dim]; ++i) {
      auto inner = part;
      inner.push_back(partOf(shape[dim], nPartitions[dim], i).size());
      parts.push_back(build(dim + 1, inner));
    }
    return poplar::concat(parts, dim);
  };
  return build(0, {});
}

}  // namespace poputil
