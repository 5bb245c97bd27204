// Positions of the blocks of sparse matrices, and their matmuls with dense matrices.
#ifndef tf_ipu_shim_popsparse_positions_hpp
#define tf_ipu_shim_popsparse_positions_hpp

#include <array>
#include <cstddef>
#include <cstdint>
#include <popsparse/SparseStorageFormats.hpp>
#include <string>
#include <vector>

#include "poputil/library.hpp"

namespace popsparse {
namespace detail {

using namespace poputil::library;

// The row and the column of a block, counted in blocks.
struct Position {
  std::uint32_t row, column;
};
using Positions = std::vector<Position>;

// A matrix divided into blocks.
struct Grid {
  std::size_t rows, columns;
  std::array<std::size_t, 2> block;

  // Throws poplibs_error for blocks that do not divide the matrix.
  Grid(std::size_t rows, std::size_t columns, const std::array<std::size_t, 2> &block);
  Grid() : rows(0), columns(0), block{1, 1} {}
  std::size_t blockElements() const { return block[0] * block[1]; }
  std::size_t blockRows() const { return rows / block[0]; }
  std::size_t blockColumns() const { return columns / block[1]; }
  // Throws poplibs_error for a position outside of the matrix.
  void check(const Positions &positions) const;
};

// The blocks of a matrix, sorted by row, then by column.
template <class T>
struct Blocks {
  Positions positions;
  std::vector<T> values;
};

template <class T>
Blocks<T> blocksOf(const Grid &grid, const COOMatrix<T> &matrix);
template <class T>
Blocks<T> blocksOf(const Grid &grid, const CSRMatrix<T> &matrix);
template <class T>
Blocks<T> blocksOf(const Grid &grid, const CSCMatrix<T> &matrix);

template <class T>
COOMatrix<T> toCOO(const Grid &grid, const Blocks<T> &blocks);
template <class T>
CSRMatrix<T> toCSR(const Grid &grid, const Blocks<T> &blocks);
template <class T>
CSCMatrix<T> toCSC(const Grid &grid, const Blocks<T> &blocks);

// result = sparse * dense, or sparse^T * dense, of row-major dense matrices with `width` columns.
void multiply(const Grid &grid, const Positions &positions, bool transposed, const poplar::Type &type,
              const void *values, const void *dense, void *result, std::size_t width);

// Throws poplibs_error unless a tensor has this shape and type.
void checkTensor(const std::string &function, const char *what, const Tensor &tensor, const Shape &shape,
                 const poplar::Type &type);
// Throws poplibs_error unless the type is float or half.
void checkFloating(const std::string &function, const poplar::Type &type);
void checkOneGroup(const std::string &what, std::size_t groups);

}  // namespace detail
}  // namespace popsparse

#endif
