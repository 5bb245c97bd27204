// The names of element-wise operations.
#ifndef popops_detail_names_hpp
#define popops_detail_names_hpp

#include <popops/ExprOp.hpp>

namespace popops {
namespace detail {

const char *nameOf(expr::UnaryOpType op);
const char *nameOf(expr::BinaryOpType op);
const char *nameOf(expr::TernaryOpType op);

}  // namespace detail
}  // namespace popops

#endif
