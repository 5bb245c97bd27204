// Stores dynamic sparse matrices in tensors: meta information, then values.
#include "popsparse/dynamic_matrix.hpp"

#include <limits>

namespace popsparse {
namespace detail {

namespace {

constexpr std::size_t largest_word = std::numeric_limits<std::uint16_t>::max();

// A ratio that a float cannot express is a little above or below that of a whole number of blocks.
std::size_t blocksFor(double ratio, const Grid &grid) {
  const auto all = grid.blockRows() * grid.blockColumns();
  const auto exact = ratio * static_cast<double>(all), nearest = std::round(exact);
  const auto blocks = std::abs(exact - nearest) < 1e-6 * nearest ? nearest : std::ceil(exact);
  return std::min(static_cast<std::size_t>(blocks), all);
}

DynamicMatrix describe(const std::string &what, std::size_t groups, std::size_t rows, std::size_t columns,
                       const dynamic::SparsityParams &sparsity, double ratio) {
  checkOneGroup(what, groups);
  if (!(ratio >= 0 && ratio <= 1))
    fail(what, "the ratio of non-zero values is " + std::to_string(ratio) + "; expected 0 to 1", "Pass such a ratio");
  DynamicMatrix matrix;
  matrix.grid = Grid(rows, columns, sparsity.blockDimensions);
  if (matrix.grid.blockRows() > largest_word || matrix.grid.blockColumns() > largest_word)
    fail(what, "a dimension has " + std::to_string(std::max(matrix.grid.blockRows(), matrix.grid.blockColumns())) +
         " blocks; expected at most " + std::to_string(largest_word), "Use larger blocks, or divide the matrix");
  matrix.capacity = blocksFor(ratio, matrix.grid);
  return matrix;
}

}  // namespace

std::vector<std::size_t> DynamicMatrix::encode(const Positions &positions) const {
  checkCount(positions.size());
  std::vector<std::size_t> words(metaInfoElements());
  words[0] = positions.size() & 0xffffu;
  words[1] = positions.size() >> 16;
  for (std::size_t i = 0; i != positions.size(); ++i) {
    words[2 + 2 * i] = positions[i].row;
    words[3 + 2 * i] = positions[i].column;
  }
  return words;
}

void DynamicMatrix::checkCount(std::size_t count) const {
  if (count > capacity)
    fail("popsparse::dynamic", "a sparse matrix has " + std::to_string(count) + " blocks; expected at most " +
         std::to_string(capacity), "Raise the ratio of non-zero values, or pass meta information of a Partitioner");
}

DynamicMatrix matrixOf(const dynamic::FullyConnectedParams &params) {
  return describe("popsparse::dynamic::FullyConnectedParams", params.getNumGroups(), params.getOutputChannelsPerGroup(),
                  params.getInputChannelsPerGroup(), params.getSparsityParams(), params.getNzRatio());
}

DynamicMatrix matrixOf(const dynamic::MatMulParams &params) {
  return describe("popsparse::dynamic::MatMulParams", params.getNumGroups(), params.getM(), params.getK(),
                  params.getSparsityParams(), params.getNzRatio());
}

dynamic::SparseTensor createTensor(poplar::Graph &graph, const poplar::Type &type, const DynamicMatrix &matrix,
                                   const poplar::DebugContext &debugContext, poputil::TensorMetaData data) {
  checkFloating("popsparse::dynamic", type);
  const auto meta_info = poputil::detail::createLinear(graph, poplar::UNSIGNED_SHORT, {matrix.metaInfoElements()},
                                                       {debugContext, "metaInfo"});
  const auto values = poputil::detail::createLinear(graph, type, {matrix.values()}, {debugContext, "nzValues"});
  return {meta_info, values, data};
}

void checkMetaInfo(const std::string &function, const Tensor &meta_info, const DynamicMatrix &matrix) {
  checkTensor(function, "the meta information", meta_info, {matrix.metaInfoElements()}, poplar::UNSIGNED_SHORT);
}

void checkValues(const std::string &function, const Tensor &values, const DynamicMatrix &matrix) {
  checkFloating(function, values.elementType());
  checkTensor(function, "the tensor of values", values, {matrix.values()}, values.elementType());
}

}  // namespace detail
}  // namespace popsparse
