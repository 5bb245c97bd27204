// Prints the names of element-wise operations.
#ifndef popops_ExprOpUtils_hpp
#define popops_ExprOpUtils_hpp

#include <iosfwd>
#include <popops/ExprOp.hpp>

namespace popops {
namespace expr {
namespace ostream_ext {

std::ostream &operator<<(std::ostream &os, const UnaryOpType &t);
std::ostream &operator<<(std::ostream &os, const BinaryOpType &t);
std::ostream &operator<<(std::ostream &os, const TernaryOpType &t);

}  // namespace ostream_ext
}  // namespace expr
}  // namespace popops

#endif
