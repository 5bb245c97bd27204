// Runs expressions on half or float tensors in float, and rounds the result once.
#ifndef tf_ipu_shim_popops_float_expressions_hpp
#define tf_ipu_shim_popops_float_expressions_hpp

#include <popops/ElementWise.hpp>
#include <vector>

namespace popops::detail {

inline expr::Any inFloat(const expr::Expr &operand) { return expr::Cast(operand, poplar::FLOAT); }

// The expression of operands inFloat(), in the type of the first tensor.
inline poplar::Tensor mapInFloat(poplar::Graph &graph, const expr::Expr &expression,
                                 const std::vector<poplar::Tensor> &tensors, poplar::program::Sequence &prog,
                                 const poplar::DebugContext &debugContext) {
  return map(graph, expr::Cast(expression, tensors.front().elementType()), tensors, prog, debugContext);
}

}  // namespace popops::detail

#endif
