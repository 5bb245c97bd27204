// Declares functions that return the names of element-wise operations.
#ifndef popops_detail_names_hpp
#define popops_detail_names_hpp

#include <popops/ExprOp.hpp>
#include <string>

namespace popops {
namespace detail {

const char *nameOf(expr::UnaryOpType op);
const char *nameOf(expr::BinaryOpType op);
const char *nameOf(expr::TernaryOpType op);

// GREATER_THAN as GreaterThan.
std::string camelCase(const std::string &name);

}  // namespace detail
}  // namespace popops

#endif
