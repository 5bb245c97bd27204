// Static sparse matrices: the positions of their blocks are known when the graph is built.
#ifndef tf_ipu_shim_popsparse_static_matrix_hpp
#define tf_ipu_shim_popsparse_static_matrix_hpp

#include <popsparse/MatMulParams.hpp>

#include "popsparse/positions.hpp"

namespace popsparse {
namespace detail {

// The sparse operand of a product: {m, k}, or {k, m} as the second one.
inline Grid gridOf(const static_::MatMulParams &params, const std::array<std::size_t, 2> &block) {
  checkOneGroup("popsparse::static_::MatMulParams", params.getNumGroups());
  return params.isTransposed() ? Grid(params.getK(), params.getM(), block) : Grid(params.getM(), params.getK(), block);
}

}  // namespace detail
}  // namespace popsparse

#endif
