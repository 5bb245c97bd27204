// The blocks of block-sparse matrices with a mask, and their masked triangles.
#ifndef tf_ipu_shim_popsparse_block_sparse_hpp
#define tf_ipu_shim_popsparse_block_sparse_hpp

#include <popsparse/experimental/BlockSparse.hpp>
#include <string>
#include <vector>

#include "popsparse/positions.hpp"

namespace popsparse {
namespace detail {

// The positions of the blocks of a matrix; of several groups, one below the other, with the masks one after the other.
inline Positions positionsOf(const std::string &function, const Grid &grid, const std::vector<unsigned char> &mask) {
  if (mask.size() != grid.blockRows() * grid.blockColumns())
    fail(function, "the mask has " + std::to_string(mask.size()) + " elements; expected " +
         std::to_string(grid.blockRows()) + " times " + std::to_string(grid.blockColumns()),
         "Pass one element for each block");
  Positions positions;
  for (std::size_t i = 0; i != mask.size(); ++i)
    if (mask[i] != 0)
      positions.push_back({static_cast<std::uint32_t>(i / grid.blockColumns()),
                           static_cast<std::uint32_t>(i % grid.blockColumns())});
  return positions;
}

// Whether an element is in the triangle that is zero.
inline bool isMasked(experimental::SubBlockMask mask, std::size_t row, std::size_t column) {
  using experimental::SubBlockMask;
  return (mask == SubBlockMask::ZeroUpperTriangle && column > row) ||
         (mask == SubBlockMask::ZeroLowerTriangle && column < row);
}

}  // namespace detail
}  // namespace popsparse

#endif
