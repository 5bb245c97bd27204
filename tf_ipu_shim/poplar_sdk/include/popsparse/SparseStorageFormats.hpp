// Sparse matrices in the host's memory: dense blocks, row-major, and their positions. A block of {1, 1} is an element.
// Row and column indices are those of a block's first element.
#ifndef popsparse_SparseStorageFormats_hpp
#define popsparse_SparseStorageFormats_hpp

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace popsparse {

struct Block {
  std::size_t getNumRowsInBlock() const { return blockDimensions[0]; }
  std::size_t getNumColumnsInBlock() const { return blockDimensions[1]; }
  std::size_t getBlockSize() const { return blockDimensions[0] * blockDimensions[1]; }
  std::array<std::size_t, 2> getBlockDimensions() const { return blockDimensions; }

 protected:
  std::array<std::size_t, 2> blockDimensions = {1, 1};
};

namespace detail {

// The members of each format. A format says what its indices hold.
template <typename T>
struct SparseMatrix : Block {
  using Dimensions = std::array<std::size_t, 2>;
  using Indices = std::vector<std::size_t>;

  std::size_t numRows = 0;
  std::size_t numColumns = 0;
  std::vector<T> nzValues;
  Indices columnIndices;
  Indices rowIndices;

  SparseMatrix(std::size_t rows, std::size_t columns, std::vector<T> values, Indices column_indices,
               Indices row_indices, const Dimensions &dimensions = {1, 1})
      : numRows(rows),
        numColumns(columns),
        nzValues(std::move(values)),
        columnIndices(std::move(column_indices)),
        rowIndices(std::move(row_indices)) {
    blockDimensions = dimensions;
  }
  SparseMatrix(std::vector<T> values, Indices column_indices, Indices row_indices,
               const Dimensions &dimensions = {1, 1})
      : SparseMatrix(0, 0, std::move(values), std::move(column_indices), std::move(row_indices), dimensions) {}
  SparseMatrix(const Dimensions &dimensions = {1, 1}) { blockDimensions = dimensions; }

 protected:
  SparseMatrix(std::size_t values, std::size_t column_indices, std::size_t row_indices, const Dimensions &dimensions)
      : nzValues(values), columnIndices(column_indices), rowIndices(row_indices) {
    blockDimensions = dimensions;
  }
};

}  // namespace detail

// Coordinates: each block has a row and a column index.
template <typename T>
struct COOMatrix : detail::SparseMatrix<T> {
  using detail::SparseMatrix<T>::SparseMatrix;
  COOMatrix(std::size_t numNZValues, const std::array<std::size_t, 2> &blockDimensions = {1, 1})
      : detail::SparseMatrix<T>(numNZValues, numNZValues, numNZValues, blockDimensions) {}
};

// Compressed columns: each block has a row index. columnIndices holds the number of values before each column of
// blocks. Its last element is the number of values.
template <typename T>
struct CSCMatrix : detail::SparseMatrix<T> {
  using detail::SparseMatrix<T>::SparseMatrix;
  CSCMatrix(std::size_t numNZValues, std::size_t numColumns, const std::array<std::size_t, 2> &blockDimensions = {1, 1})
      : detail::SparseMatrix<T>(numNZValues, numColumns + 1, numNZValues, blockDimensions) {}
};

// Compressed rows: each block has a column index. rowIndices holds the number of values before each row of blocks. Its
// last element is the number of values.
template <typename T>
struct CSRMatrix : detail::SparseMatrix<T> {
  using detail::SparseMatrix<T>::SparseMatrix;
  CSRMatrix(std::size_t numNZValues, std::size_t numRows, const std::array<std::size_t, 2> &blockDimensions = {1, 1})
      : detail::SparseMatrix<T>(numNZValues, numNZValues, numRows + 1, blockDimensions) {}
};

}  // namespace popsparse

#endif
