// Dynamic sparse matrices: the positions of their blocks are read when the program runs.
#ifndef tf_ipu_shim_popsparse_dynamic_matrix_hpp
#define tf_ipu_shim_popsparse_dynamic_matrix_hpp

#include <cstdint>
#include <popsparse/FullyConnectedParams.hpp>
#include <popsparse/MatMulParams.hpp>
#include <popsparse/SparseTensor.hpp>
#include <string>

#include "popsparse/positions.hpp"
#include "poputil/library.hpp"

namespace popsparse {
namespace detail {

// How a matrix is stored. Its meta information is the number of blocks, low half first, then the row and the column of
// each block, counted in blocks. Unused elements of meta information and values are zero.
struct DynamicMatrix {
  Grid grid;
  std::size_t capacity = 0;

  std::size_t metaInfoElements() const { return 2 + 2 * capacity; }
  std::size_t values() const { return capacity * grid.blockElements(); }

  // Throws poplibs_error for too many blocks.
  std::vector<std::size_t> encode(const Positions &positions) const;
  // Throws poplibs_error for data that encode() has not written.
  template <class Element>
  Positions decode(const Element *meta_info) const {
    const std::size_t count = meta_info[0] | static_cast<std::size_t>(meta_info[1]) << 16;
    checkCount(count);
    Positions positions(count);
    const auto word = [&](std::size_t i) { return static_cast<std::uint32_t>(meta_info[i]); };
    for (std::size_t i = 0; i != count; ++i) positions[i] = {word(2 + 2 * i), word(3 + 2 * i)};
    grid.check(positions);
    return positions;
  }

 private:
  void checkCount(std::size_t count) const;
};

DynamicMatrix matrixOf(const dynamic::FullyConnectedParams &params);
DynamicMatrix matrixOf(const dynamic::MatMulParams &params);

dynamic::SparseTensor createTensor(poplar::Graph &graph, const poplar::Type &type, const DynamicMatrix &matrix,
                                   const poplar::DebugContext &debugContext, poputil::TensorMetaData data = {});
// Throws poplibs_error if tensors are not those of the matrix.
void checkMetaInfo(const std::string &function, const poplar::Tensor &meta_info, const DynamicMatrix &matrix);
void checkValues(const std::string &function, const poplar::Tensor &values, const DynamicMatrix &matrix);

}  // namespace detail
}  // namespace popsparse

#endif
