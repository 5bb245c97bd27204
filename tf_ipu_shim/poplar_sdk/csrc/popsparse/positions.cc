// Computes positions of blocks, converts host formats, and multiplies sparse by dense matrices.
#include "popsparse/positions.hpp"

#include <numeric>

namespace popsparse {
namespace detail {

using poputil::detail::describeShape;
using poputil::detail::typeName;

Grid::Grid(std::size_t rows_of_matrix, std::size_t columns_of_matrix, const std::array<std::size_t, 2> &block_size)
    : rows(rows_of_matrix), columns(columns_of_matrix), block(block_size) {
  if (block[0] == 0 || block[1] == 0 || rows % block[0] != 0 || columns % block[1] != 0)
    fail("popsparse", "blocks are " + describeShape({block[0], block[1]}) + " and the sparse matrix " +
         describeShape({rows, columns}), "Pass blocks that divide the matrix");
}

void Grid::check(const Positions &positions) const {
  for (const auto &position : positions)
    if (position.row >= blockRows() || position.column >= blockColumns())
      fail("popsparse", "a block is at {" + std::to_string(position.row) + "," + std::to_string(position.column) +
           "}; expected a position below " + describeShape({blockRows(), blockColumns()}) + ", counted in blocks",
           "Pass the positions of this matrix");
}

namespace {

// The blocks in the order of a matrix's format; `place` is the position of each by its number.
template <class T, class Place>
Blocks<T> sorted(const Grid &grid, const SparseMatrix<T> &matrix, std::size_t count, Place place) {
  if (matrix.getBlockDimensions() != grid.block || matrix.nzValues.size() != count * grid.blockElements())
    fail("popsparse", "a matrix has " + std::to_string(matrix.nzValues.size()) + " values, " + std::to_string(count) +
         " positions and blocks of " +
         describeShape({matrix.getNumRowsInBlock(), matrix.getNumColumnsInBlock()}) + "; expected a position for each "
         "block of " + describeShape({grid.block[0], grid.block[1]}), "Pass as many values as the blocks have");
  Positions positions(count);
  for (std::size_t i = 0; i != count; ++i) positions[i] = place(i);
  grid.check(positions);
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  const auto key = [&](std::size_t i) { return std::make_pair(positions[i].row, positions[i].column); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  Blocks<T> blocks;
  for (const auto i : order) {
    blocks.positions.push_back(positions[i]);
    const auto begin = matrix.nzValues.begin() + i * grid.blockElements();
    blocks.values.insert(blocks.values.end(), begin, begin + grid.blockElements());
  }
  return blocks;
}

Position at(const Grid &grid, std::size_t row, std::size_t column) {
  return {static_cast<std::uint32_t>(row / grid.block[0]), static_cast<std::uint32_t>(column / grid.block[1])};
}

// For each block, the line of a compressed format to which it belongs.
std::vector<std::size_t> linesOf(const Grid &grid, const std::vector<std::size_t> &starts, std::size_t lines,
                                 std::size_t count) {
  std::vector<std::size_t> result;
  for (std::size_t line = 0; line + 1 < starts.size() && starts[line] <= starts[line + 1]; ++line)
    result.resize(std::min(starts[line + 1] / grid.blockElements(), count), line);
  if (starts.size() != lines + 1 || result.size() != count || starts.front() != 0)
    fail("popsparse", "a compressed matrix has " + std::to_string(starts.size()) + " starts of lines for " +
         std::to_string(count) + " blocks; expected " + std::to_string(lines + 1) +
         ", from 0 to the number of values, each at least the one before", "Correct them");
  return result;
}

// The numbers of values before each line, from the line of each block.
template <class Line>
std::vector<std::size_t> startsOf(const Grid &grid, const Positions &positions, std::size_t lines, Line line) {
  std::vector<std::size_t> starts(lines + 1);
  for (const auto &position : positions) starts[line(position) + 1] += grid.blockElements();
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  return starts;
}

std::vector<std::size_t> firstRows(const Grid &grid, const Positions &positions) {
  std::vector<std::size_t> rows;
  for (const auto &position : positions) rows.push_back(position.row * grid.block[0]);
  return rows;
}

std::vector<std::size_t> firstColumns(const Grid &grid, const Positions &positions) {
  std::vector<std::size_t> columns;
  for (const auto &position : positions) columns.push_back(position.column * grid.block[1]);
  return columns;
}

}  // namespace

template <class T>
Blocks<T> blocksOf(const Grid &grid, const COOMatrix<T> &matrix) {
  const auto count = matrix.rowIndices.size();
  if (matrix.columnIndices.size() != count)
    fail("popsparse", "a matrix has " + std::to_string(count) + " row and " +
         std::to_string(matrix.columnIndices.size()) + " column indices; expected the same number", "Pass both");
  return sorted(grid, matrix, count,
                [&](std::size_t i) { return at(grid, matrix.rowIndices[i], matrix.columnIndices[i]); });
}

template <class T>
Blocks<T> blocksOf(const Grid &grid, const CSRMatrix<T> &matrix) {
  const auto count = matrix.columnIndices.size();
  const auto rows = linesOf(grid, matrix.rowIndices, grid.blockRows(), count);
  return sorted(grid, matrix, count,
                [&](std::size_t i) { return at(grid, rows[i] * grid.block[0], matrix.columnIndices[i]); });
}

template <class T>
Blocks<T> blocksOf(const Grid &grid, const CSCMatrix<T> &matrix) {
  const auto count = matrix.rowIndices.size();
  const auto columns = linesOf(grid, matrix.columnIndices, grid.blockColumns(), count);
  return sorted(grid, matrix, count,
                [&](std::size_t i) { return at(grid, matrix.rowIndices[i], columns[i] * grid.block[1]); });
}

template <class T>
COOMatrix<T> toCOO(const Grid &grid, const Blocks<T> &blocks) {
  return {grid.rows, grid.columns, blocks.values, firstColumns(grid, blocks.positions),
          firstRows(grid, blocks.positions), grid.block};
}

template <class T>
CSRMatrix<T> toCSR(const Grid &grid, const Blocks<T> &blocks) {
  const auto starts = startsOf(grid, blocks.positions, grid.blockRows(), [](const Position &p) { return p.row; });
  return {grid.rows, grid.columns, blocks.values, firstColumns(grid, blocks.positions), starts, grid.block};
}

template <class T>
CSCMatrix<T> toCSC(const Grid &grid, const Blocks<T> &blocks) {
  std::vector<std::size_t> order(blocks.positions.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return blocks.positions[a].column < blocks.positions[b].column;
  });
  Blocks<T> by_column;
  for (const auto i : order) {
    by_column.positions.push_back(blocks.positions[i]);
    const auto begin = blocks.values.begin() + i * grid.blockElements();
    by_column.values.insert(by_column.values.end(), begin, begin + grid.blockElements());
  }
  const auto starts =
      startsOf(grid, by_column.positions, grid.blockColumns(), [](const Position &p) { return p.column; });
  return {grid.rows, grid.columns, by_column.values, starts, firstRows(grid, by_column.positions), grid.block};
}

#define FOR_VALUES(T)                                               \
  template Blocks<T> blocksOf(const Grid &, const COOMatrix<T> &);  \
  template Blocks<T> blocksOf(const Grid &, const CSRMatrix<T> &);  \
  template Blocks<T> blocksOf(const Grid &, const CSCMatrix<T> &);  \
  template COOMatrix<T> toCOO(const Grid &, const Blocks<T> &);     \
  template CSRMatrix<T> toCSR(const Grid &, const Blocks<T> &);     \
  template CSCMatrix<T> toCSC(const Grid &, const Blocks<T> &);
FOR_VALUES(float)
FOR_VALUES(double)
#undef FOR_VALUES

void multiply(const Grid &grid, const Positions &positions, bool transposed, const poplar::Type &type,
              const void *values, const void *dense, void *result, std::size_t width) {
  const auto depth = transposed ? grid.rows : grid.columns, height = transposed ? grid.columns : grid.rows;
  const auto sparse_values = poputil::detail::readFloats(type, values, positions.size() * grid.blockElements());
  const auto right = poputil::detail::readFloats(type, dense, depth * width);
  std::vector<float> sums(height * width);
  const auto grain = std::max<std::size_t>(262144 / std::max<std::size_t>(sparse_values.size(), 1), 16);
  poplar::detail::parallelFor(width, grain, [&](std::size_t begin, std::size_t end) {
    const auto *value = sparse_values.data();
    for (const auto &position : positions)
      for (std::size_t i = 0; i != grid.block[0]; ++i)
        for (std::size_t j = 0; j != grid.block[1]; ++j, ++value) {
          const auto row = position.row * grid.block[0] + i, column = position.column * grid.block[1] + j;
          const float *from = right.data() + (transposed ? row : column) * width;
          float *to = sums.data() + (transposed ? column : row) * width;
          for (auto k = begin; k != end; ++k) to[k] += *value * from[k];
        }
  });
  poputil::detail::writeFloats(type, sums.data(), result, sums.size());
}

void checkTensor(const std::string &function, const char *what, const Tensor &tensor, const Shape &shape,
                 const poplar::Type &type) {
  if (tensor.shape() != shape || tensor.elementType() != type)
    fail(function, std::string(what) + " has the shape " + describeShape(tensor.shape()) + " and the type " +
         typeName(tensor.elementType()) + "; expected " + describeShape(shape) + " and " + typeName(type),
         "Pass a tensor of that shape and type");
}

void checkFloating(const std::string &function, const poplar::Type &type) {
  if (!poputil::detail::isFloating(type))
    fail(function, "the type is " + typeName(type) + "; expected float or half", "Cast the tensors");
}

void checkOneGroup(const std::string &what, std::size_t groups) {
  if (groups != 1)
    fail(what, "there are " + std::to_string(groups) + " groups; expected 1", "Multiply each group by itself");
}

}  // namespace detail
}  // namespace popsparse
